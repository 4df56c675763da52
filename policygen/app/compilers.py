"""Compilers that know a tree: its headers as they are, and as a change would have them."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from policygen.app.reading import ReadTree, read_tree
from policygen.bindings.load import bound
from policygen.dialects.known import DIALECTS
from policygen.dialects.scan import read_changed
from policygen.dialects.specializations.older import older
from policygen.errors import Problems
from policygen.model.cub import Cub
from policygen.model.marks import Marked
from policygen.model.tuning import TuningHeader
from policygen.proof.compilers import compiler_of
from policygen.proof.oracle import Compiler
from policygen.proof.sites import marked_members, with_new_families
from policygen.source.files import read_bytes
from policygen.steps import Progress


def open_tree(
    cub: Cub, names: Sequence[str] = (), *, progress: Progress | None = None
) -> tuple[ReadTree, dict[str, bytes], Compiler]:
    """A tree with its headers' bytes and a compiler for it."""
    found = read_tree(cub, names)
    if found.errors:
        raise Problems(found.errors)
    return found, *open_compiler(found, progress=progress)


def open_compiler(
    found: ReadTree, *, progress: Progress | None = None
) -> tuple[dict[str, bytes], Compiler]:
    """The bytes of a tree's headers as they are, and a compiler for it."""
    data = {name: read_bytes(path) for name, path in found.paths.items()}
    headers = {header.name: header for header in found.headers}
    return data, compiler_for(found, headers, data, progress=progress)


def compiler_for(
    found: ReadTree,
    headers: Mapping[str, TuningHeader],
    data: Mapping[str, bytes],
    *,
    progress: Progress | None = None,
) -> Compiler:
    """The compiler, for a tree whose headers hold some data."""
    members = marked_members(bound(found.cub.bindings), older(found.cub).dialect)
    known: dict[tuple[str, bytes], Marked] = {}

    def marked(name: str, content: bytes) -> Marked:
        same = content == data[name]
        header = headers[name] if same else read_changed(found.paths[name], content)
        return DIALECTS[found.cub.dialect].mark(header, content, with_new_families(members, header))

    def mark(wanted: Mapping[str, bytes]) -> dict[str, Marked]:
        missing = [item for item in wanted.items() if item not in known]
        # clang parses outside of the interpreter's lock.
        with ThreadPoolExecutor() as pool:
            known.update(zip(missing, pool.map(lambda item: marked(*item), missing), strict=True))
        return {name: known[name, content] for name, content in wanted.items()}

    return Compiler(found.cub, headers, data, compiler_of(found.cub), mark, progress)


def older_tree(found: ReadTree, names: Collection[str]) -> ReadTree:
    """Some headers of a tree, as its older dispatchers see them."""
    return replace(
        found,
        cub=older(found.cub),
        headers=tuple(header for header in found.headers if header.name in names),
        paths={name: path for name, path in found.paths.items() if name in names},
    )


def older_compiler(found: ReadTree, compiler: Compiler) -> Compiler:
    """The same tree, as its older dispatchers see it."""
    tree = older_tree(found, found.paths)
    made = compiler_for(tree, compiler.headers, compiler.data, progress=compiler.progress)
    return replace(made, replaced=compiler.replaced, only=tree.cub.dialect)
