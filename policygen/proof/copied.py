"""Makes a copy of a library's headers in which some have other content.

Headers that include each other by their place cannot be replaced by a folder before the tree.
"""

from collections.abc import Mapping
from pathlib import Path

from policygen.cache import digest
from policygen.model.cub import Cub
from policygen.paths import cache_failure, cache_folder, write_atomically
from policygen.tree.content import own_sources
from policygen.tree.files import read
from policygen.tree.layout import tuning_headers


def copied(cub: Cub, replaced: Mapping[str, bytes]) -> str:
    """Makes an include folder; the same content has the same one."""
    root = Path(cub.root)
    paths = sorted(path for path in own_sources(cub) if path.is_file())
    contents = {str(path.relative_to(root)): read(path, root) for path in paths}
    places = {path.name: str(path.relative_to(root)) for path in tuning_headers(cub)}
    contents |= {places[name]: data for name, data in replaced.items()}
    name = digest(*(part for item in sorted(contents.items()) for part in item))[:32]
    folder = cache_folder() / "copied" / name
    try:
        for place, data in contents.items():
            path = folder / place
            if not path.is_file() or path.read_bytes() != data:
                write_atomically(path, data)
    except OSError as error:
        raise cache_failure(error) from error
    return str(folder)
