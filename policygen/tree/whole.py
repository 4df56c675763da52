"""Whether a fetched tree is as it was fetched: the one place that says so.

The manifest has a digest of all files of a wheel, or of packages. Which they are stands beside the
tree, so that what differs can be named.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from policygen.tree.files import failure, is_file, read


@dataclass(frozen=True, slots=True)
class Difference:
    """A tree is not as it was fetched."""

    files: tuple[str, ...]
    """Those that were changed, added or removed; none where it is not known which."""


def difference(root: Path, files: str) -> Difference | None:
    """How a fetched tree differs from what the manifest says of its files; all of them are read."""
    try:
        found = _digests(root)
    except OSError as error:
        raise failure("read", Path(error.filename or root), error) from error
    if digest_of(listing(found)) == files:
        return None
    known = _known(root, files)
    names = known.keys() | found.keys() if known else set()
    return Difference(tuple(sorted(n for n in names if known.get(n) != found.get(n))))


def listing(digests: Mapping[str, str]) -> str:
    """Files with their sha256, as `sha256sum --check` takes them."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def listing_file(root: Path) -> Path:
    """Where the listing of a fetched tree stands; hidden, and no version."""
    return root.with_name(f".{root.name}.sha256")


def digest_of(files: str) -> str:
    """What the manifest says of a listing."""
    return sha256(files.encode()).hexdigest()


def _known(root: Path, files: str) -> dict[str, str]:
    path = listing_file(root)
    text = read(path, path.parent).decode(errors="replace") if is_file(path) else ""
    if digest_of(text) != files:  # of a policygen that wrote none, or changed itself
        return {}
    return {name: digest for digest, _, name in (row.partition("  ") for row in text.splitlines())}


def _digests(root: Path) -> dict[str, str]:
    """Each file below a folder with its sha256; links are what they lead to, as for a compiler."""
    found: dict[str, str] = {}
    waiting, seen = [("", os.fspath(root))], set()
    while waiting:
        at, folder = waiting.pop()
        if (real := os.path.realpath(folder)) in seen:  # a link leads back
            continue
        seen.add(real)
        with os.scandir(folder) as items:
            for item in items:
                if item.is_dir():
                    waiting.append((f"{at}{item.name}/", item.path))
                elif item.is_file():
                    with open(item.path, "rb", buffering=0) as file:  # noqa: PTH123  thousands
                        found[f"{at}{item.name}"] = sha256(file.read()).hexdigest()
                else:
                    found[f"{at}{item.name}"] = ""  # a pipe, a link to nothing
    return found
