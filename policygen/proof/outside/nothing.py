"""Remembers headers that ask for nothing, by the content of all that they were found to include."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from policygen.bindings.outside import outside
from policygen.cache import digest, keep, kept, written_by
from policygen.proof import lexemes
from policygen.proof.outside import asks, header, taint, walk
from policygen.proof.outside.walk import Folders
from policygen.tree.manifest import shipped

KIND = "outside"
_LOOKED = TypeAdapter(dict[str, str | None])


def asked(names: Sequence[str], folders: Sequence[Path]) -> tuple[asks.Dependence, ...]:
    """Finds what headers ask for; where that was nothing, all files are compared alone."""
    tree = _folders(names, folders)
    key = _key(names, tree)
    if (data := kept(KIND, key)) is not None and _same(data, _folders(names, folders)):
        return ()
    found = asks.asks(names, tree)
    if not found:
        looked = {name: _content(tree, name) for name in sorted(tree.known)}
        with suppress(OSError):  # a folder that cannot be written costs speed, nothing else
            keep(KIND, key, _LOOKED.dump_json(looked))
    return found


def _folders(names: Sequence[str], folders: Sequence[Path]) -> Folders:
    """The tree that headers are in: of a library that needs others' headers its own files alone.

    HIP's, or all of `/usr/include`, may stand beside them.
    """
    others = (one.tree.folder for one in shipped().libraries.values() if one.needs)
    found = (f"{one}/" for one in others if all(name.startswith(f"{one}/") for name in names))
    return Folders(tuple(folders), within=next(found, ""))


def _key(names: Sequence[str], tree: Folders) -> str:
    """Names the question: what is looked for, and in which headers."""
    rules = written_by(asks, header, taint, walk, lexemes), outside().model_dump_json()
    return digest(*rules, *(f"{name} {_content(tree, name)}" for name in names))


def _same(data: bytes, tree: Folders) -> bool:
    """Whether each file that was looked for is there as it was, or missing as it was."""
    try:
        looked = _LOOKED.validate_json(data, strict=True)
    except ValidationError:  # what seals an entry is no secret
        return False
    return all(_content(tree, name) == content for name, content in looked.items())


def _content(tree: Folders, name: str) -> str | None:
    found = tree.find(name)
    return None if found is None else digest(found.data)
