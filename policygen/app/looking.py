"""Which bindings a tree's headers fit; a version of CUB is shared by many states of its main."""

import re
from contextlib import suppress
from pathlib import Path

from policygen.bindings import fit, rows, shapes, spelled
from policygen.bindings.load import bindings, identity
from policygen.cache import digest, keep, kept, written_by
from policygen.errors import PolicygenError
from policygen.model.cub import UNKNOWN, Cub
from policygen.source.text import Text
from policygen.tree.content import own_sources
from policygen.tree.layout import other_headers, tunings_folder

KIND = "looked"
# #include <cub/device/dispatch/tuning/tuning_radix_sort.cuh>
_INCLUDED = re.compile(rb"#\s*include\s*<cub/device/dispatch/tuning/(\w+\.cuh)>")


def looked(cub: Cub) -> Cub:
    """The tree with the bindings that its headers fit; they are told by its version at first."""
    if cub.version == UNKNOWN:
        return cub
    try:
        found = _read_as(cub, Path(cub.root))
    except (PolicygenError, OSError):
        return cub  # who reads a file of it for its own sake tells what is wrong
    return cub.model_copy(update={"read_as": found}) if found != cub.version else cub


def _read_as(cub: Cub, root: Path) -> str:
    files = {
        path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(own_sources(cub))
    }
    made = written_by(fit, rows, shapes, spelled)
    contents = (part for name, data in files.items() for part in (name, data))
    key = digest(made, identity(), cub.version, cub.dialect, *contents)
    if (known := kept(KIND, key)) is not None:
        return known.decode()
    mine = [binding for binding in bindings() if binding.library == cub.library]
    found = fit.read_as(cub, mine, _held(cub, root, files))
    with suppress(OSError):  # a cache that cannot be written costs speed, nothing else
        keep(KIND, key, found.encode())
    return found


def _held(cub: Cub, root: Path, files: dict[str, bytes]) -> fit.TreeText:
    folder = tunings_folder(cub).relative_to(root).as_posix()
    others = {path.relative_to(root).as_posix() for path in other_headers(cub)}
    tunings = {
        path.rpartition("/")[2]: Text(path, data).uncommented
        for path, data in files.items()
        if path.rpartition("/")[0] == folder or path in others
    }
    headers = {
        name: b"\n".join(tunings[one] for one in _reached(name, tunings)).decode("utf-8", "replace")
        for name in tunings
    }
    beside = [data for path, data in files.items() if path.rpartition("/")[0] != folder]
    return fit.TreeText(
        headers, files.__contains__, lambda: b"\n".join(beside).decode("utf-8", "replace")
    )


def _reached(name: str, tunings: dict[str, bytes]) -> list[str]:
    """A header and the tuning headers that it includes."""
    found = [name]
    for one in found:
        names = [match.decode() for match in _INCLUDED.findall(tunings[one])]
        found += [other for other in names if other in tunings and other not in found]
    return found
