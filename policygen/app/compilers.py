"""Compilers that know a tree: its headers as they are, and as a change would have them."""

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


NO_CODE = "it stands for architectures that have no configs of their own"


@dataclass(frozen=True, slots=True)
class CodeMaker:
    """A compiler of kernels."""

    tools: KernelTools
    compiler: str
    """`nvcc`."""
    archs: tuple[str, ...]
    """What it compiles for; where it depends on the tree, of those that are asked about."""
    seconds: float
    """What a unit takes, on one core."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why it does not compile for others that are asked about."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What nothing is known of, as it cannot be compiled."""
        lost = sorted(self.refusals, key=arch_number)
        return tuple(f"{arch} is not compared: {self.refusals[arch]}" for arch in lost)


# The compiler that makes the kernels of a tree, and the architectures that it does so for.


def nvcc_maker(toolchain: Toolchain) -> CodeMaker:
    """Takes a toolchain of NVIDIA's."""
    return CodeMaker(Tools.of(toolchain), "nvcc", toolchain.archs, 5.0)


def find_kernel_maker(cub: Cub, archs: Sequence[str] = (), hipcc: Path | None = None) -> CodeMaker:
    """Finds what compiles the kernels of a tree for archs, else for all that it has tunings for."""
    return _MAKERS[cub.library](cub, archs, hipcc)


def _with_nvcc(cub: Cub, _archs: Sequence[str], hipcc: Path | None) -> CodeMaker:
    if hipcc is not None:
        raise InputError(
            f"--hipcc names a compiler for GPUs of AMD, and {cub.root} holds {cub.title}",
            "Leave it out.",
        )
    return nvcc_maker(find_toolchain())


def _with_hipcc(cub: Cub, archs: Sequence[str], named: Path | None) -> CodeMaker:
    hipcc = find_hipcc(named)
    families = (family for header in read_tree(cub).headers for family in header.families)
    wanted = {*archs, *(arch_and_gpu(family.arch)[0] for family in families)}
    asked = sorted(wanted - {UNKNOWN}, key=arch_number)
    with threads() as pool:
        targets = list(pool.map(lambda arch: find_target(hipcc, arch), asked))
    refusals = {
        one.arch: f"{hipcc.name} does not compile for it: {one.refusal}"
        for one in targets
        if not one.identity
    }
    refusals |= {UNKNOWN: NO_CODE} if UNKNOWN in wanted else {}
    tools = HipTools.of(hipcc, targets)
    return CodeMaker(tools, "hipcc", tools.archs, 2.0, refusals)


_MAKERS: Mapping[Library, Callable[[Cub, Sequence[str], Path | None], CodeMaker]] = {
    "cub": _with_nvcc,
    "rocprim": _with_hipcc,
}
