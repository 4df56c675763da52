"""Compilers bound to a tree: its headers as they are, and as a change would make them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from policygen.app.reading import ReadTree, read_tree
from policygen.bindings.load import bound
from policygen.errors import InputError, Problems
from policygen.headers.dialects import DIALECTS
from policygen.headers.scan import read_changed
from policygen.headers.specializations.siblings import older
from policygen.headers.text import read_bytes
from policygen.model.arch import UNKNOWN, arch_and_gpu, arch_number
from policygen.model.edits import Marked
from policygen.model.trees import Cub, Library
from policygen.model.tuning import TuningHeader
from policygen.process import threads
from policygen.proof.ask import compiler_of
from policygen.proof.kernel_build import KernelTools, Tools
from policygen.proof.oracle import Compiler
from policygen.proof.sites import marked_members, with_new_families
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.rocprim.assembly import HipTools
from policygen.rocprim.hipcc import find_hipcc, find_target
from policygen.steps import Progress


def open_tree(
    cub: Cub, names: Sequence[str] = (), *, progress: Progress | None = None
) -> tuple[ReadTree, dict[str, bytes], Compiler]:
    """Opens a tree with its headers' bytes and a compiler for it."""
    tree = read_tree(cub, names)
    if tree.errors:
        raise Problems(tree.errors)
    return tree, *open_compiler(tree, progress=progress)


def open_compiler(
    tree: ReadTree, *, progress: Progress | None = None
) -> tuple[dict[str, bytes], Compiler]:
    """Returns the bytes of a tree's headers, and a compiler for the tree."""
    data = {name: read_bytes(path) for name, path in tree.paths.items()}
    headers = {header.name: header for header in tree.headers}
    return data, compiler_for(tree, headers, data, progress=progress)


def compiler_for(
    tree: ReadTree,
    headers: Mapping[str, TuningHeader],
    data: Mapping[str, bytes],
    *,
    progress: Progress | None = None,
) -> Compiler:
    """Returns a compiler for a tree whose headers have the given contents."""
    members = marked_members(bound(tree.cub.bindings), older(tree.cub).dialect)
    marked_by_content: dict[tuple[str, bytes], Marked] = {}

    def marked(name: str, content: bytes) -> Marked:
        unchanged = content == data[name]
        header = headers[name] if unchanged else read_changed(tree.paths[name], content)
        return DIALECTS[tree.cub.dialect].mark(header, content, with_new_families(members, header))

    def mark(contents: Mapping[str, bytes]) -> dict[str, Marked]:
        missing = [item for item in contents.items() if item not in marked_by_content]
        # clang parses without holding the GIL.
        with ThreadPoolExecutor() as pool:
            marked_by_content.update(
                zip(missing, pool.map(lambda item: marked(*item), missing), strict=True)
            )
        return {name: marked_by_content[name, content] for name, content in contents.items()}

    return Compiler(tree.cub, headers, data, compiler_of(tree.cub), mark, progress)


def older_tree(tree: ReadTree, names: Collection[str]) -> ReadTree:
    """Restricts a tree to some headers, as its older dispatchers see them."""
    return replace(
        tree,
        cub=older(tree.cub),
        headers=tuple(header for header in tree.headers if header.name in names),
        paths={name: path for name, path in tree.paths.items() if name in names},
    )


def older_compiler(tree: ReadTree, compiler: Compiler) -> Compiler:
    """Returns a compiler for the tree as its older dispatchers see it."""
    older_side = older_tree(tree, tree.paths)
    rebuilt = compiler_for(older_side, compiler.headers, compiler.data, progress=compiler.progress)
    return replace(rebuilt, replaced=compiler.replaced, only=older_side.cub.dialect)


NO_CODE = "it stands for architectures that have no configs of their own"


@dataclass(frozen=True, slots=True)
class CodeMaker:
    """A compiler for kernels."""

    tools: KernelTools
    compiler: str
    """`nvcc` or `hipcc`."""
    archs: tuple[str, ...]
    """Supported architectures; if these depend on the tree, those among the requested ones."""
    seconds: float
    """Core-seconds to compile a unit."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Requested architectures that it does not support, with reasons."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks about architectures that are not compared because they cannot be compiled."""
        archs = sorted(self.refusals, key=arch_number)
        return tuple(f"{arch} is not compared: {self.refusals[arch]}" for arch in archs)


# Finding the compiler for a tree's kernels, and its architectures.


def nvcc_maker(toolchain: Toolchain) -> CodeMaker:
    """Wraps an NVIDIA toolchain."""
    return CodeMaker(Tools.of(toolchain), "nvcc", toolchain.archs, 5.0)


def find_kernel_maker(cub: Cub, archs: Sequence[str] = (), hipcc: Path | None = None) -> CodeMaker:
    """Finds the compiler for a tree's kernels, for `archs` or else for all tuned architectures."""
    return _MAKERS[cub.library](cub, archs, hipcc)


def _with_nvcc(cub: Cub, _archs: Sequence[str], hipcc: Path | None) -> CodeMaker:
    if hipcc is not None:
        raise InputError(
            f"--hipcc names a compiler for GPUs of AMD, and {cub.root} holds {cub.title}",
            "Leave it out.",
        )
    return nvcc_maker(find_toolchain())


def _with_hipcc(cub: Cub, archs: Sequence[str], path: Path | None) -> CodeMaker:
    hipcc = find_hipcc(path)
    families = (family for header in read_tree(cub).headers for family in header.families)
    archs_and_unknown = {*archs, *(arch_and_gpu(family.arch)[0] for family in families)}
    supported = sorted(archs_and_unknown - {UNKNOWN}, key=arch_number)
    with threads() as pool:
        targets = list(pool.map(lambda arch: find_target(hipcc, arch), supported))
    refusals = {
        target.arch: f"{hipcc.name} does not compile for it: {target.refusal}"
        for target in targets
        if not target.identity
    }
    refusals |= {UNKNOWN: NO_CODE} if UNKNOWN in archs_and_unknown else {}
    tools = HipTools.of(hipcc, targets)
    return CodeMaker(tools, "hipcc", tools.archs, 2.0, refusals)


_MAKERS: Mapping[Library, Callable[[Cub, Sequence[str], Path | None], CodeMaker]] = {
    "cub": _with_nvcc,
    "rocprim": _with_hipcc,
}
