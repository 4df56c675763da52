"""Reads the tuning headers of a tree, and makes marked copies of them for compiler queries."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from policygen import trees
from policygen.app.filters import parse_archs
from policygen.bindings import fit
from policygen.bindings.load import bindings, bound, identity
from policygen.bindings.words import ladder
from policygen.cache import digest, keep, kept, written_by
from policygen.errors import InputError, PolicygenError, Problems, SourceError
from policygen.headers.dialects import DIALECTS
from policygen.headers.scan import algorithm, read_changed, scan_headers
from policygen.headers.selectors.marks import enable_returns
from policygen.headers.specializations.siblings import older
from policygen.headers.text import Text, read_bytes
from policygen.model.arch import UNKNOWN as UNKNOWN_ARCH
from policygen.model.arch import arch_and_gpu, arch_number
from policygen.model.edits import Marked
from policygen.model.trees import UNKNOWN, Cub, Dialect, Library
from policygen.model.tuning import TuningHeader, steps
from policygen.process import threads
from policygen.proof.ask import compiler_of
from policygen.proof.kernel_build import KernelTools, Tools
from policygen.proof.oracle import Compiler
from policygen.proof.probe import SiteQuery
from policygen.proof.sites import marked_members, with_new_families
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.rocprim.assembly import HipTools
from policygen.rocprim.hipcc import find_hipcc, find_target
from policygen.steps import Progress
from policygen.trees.layout import other_headers, own_sources, tunings_folder


@dataclass(frozen=True, slots=True)
class ReadTree:
    """A tree, and the contents of its tuning headers."""

    cub: Cub
    headers: tuple[TuningHeader, ...]
    paths: Mapping[str, Path]
    errors: tuple[SourceError, ...]
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    """Headers whose content here differs from their files, for compilers that support this."""

    @property
    def contents(self) -> dict[str, bytes]:
        """The replaced contents by path."""
        return {str(self.paths[name]): data for name, data in self.replaced.items()}

    def marked(self, dialect: Dialect) -> Mapping[str, Marked]:
        """Returns marked copies of the headers that hold entries in a dialect."""
        dialect_reader, members = (
            DIALECTS[dialect],
            marked_members(bound(self.cub.bindings), dialect),
        )
        matching = [header for header in self.headers if dialect_reader.read(header)]
        return {
            header.name: dialect_reader.mark(header, self._data(header), members)
            for header in matching
        }

    def marked_for(self, places: Iterable[SiteQuery]) -> Mapping[str, Marked]:
        """Returns marked copies of headers, each in the dialect that decides its site."""
        if self.cub.has_selectors:
            return self.marked(self.cub.dialect)
        dialects = {p.site.header: p.site.dialect for p in places if p.site.is_selector}
        copies = {n: c for n, c in self.marked(self.cub.dialect).items() if n not in dialects}
        selector_tree = replace(self, headers=tuple(h for h in self.headers if h.name in dialects))
        for dialect in dict.fromkeys(dialects.values()):
            copies |= selector_tree.marked(dialect)
        return copies

    def enabled(self) -> Mapping[str, Marked]:
        """Returns copies of headers in which commented-out guarded returns are enabled."""
        copies = (enable_returns(header, self._data(header)) for header in self.headers)
        return {copy.header.name: copy for copy in copies if copy.entries}

    def _data(self, header: TuningHeader) -> bytes:
        content = self.replaced.get(header.name)
        return read_bytes(self.paths[header.name]) if content is None else content


def read_tree(cub: Cub, names: Sequence[str] = ()) -> ReadTree:
    """Scans the headers of a tree: those named by algorithm or by header, or all."""
    paths_by_name = {path.name: path for path in trees.tuning_headers(cub)}
    selected = _header_names(names, paths_by_name, cub.bindings) or frozenset(paths_by_name)
    paths = tuple(path for name, path in paths_by_name.items() if name in selected)
    scanned = scan_headers(paths)
    return ReadTree(cub, scanned.headers, {path.name: path for path in paths}, scanned.errors)


def _header_names(
    names: Sequence[str], headers: Mapping[str, Path], version: str
) -> frozenset[str]:
    """Returns the headers that names select.

    A name is a header's, or an algorithm's from a header or a binding.
    """
    bindings = {b.algorithm: {site.header for site in b.sites} for b in bound(version)}
    selected: set[str] = set()
    for name in names:
        matches = {h for h in headers if name in {h, Path(h).stem, algorithm(h)}}
        matches |= bindings.get(name, set()) & headers.keys()
        if not matches:
            available = ", ".join(algorithm(header) for header in headers)
            raise InputError(f"no tuning header is called {name!r}", f"Here are: {available}")
        selected.update(matches)
    return frozenset(selected)


def chosen_archs(
    texts: Sequence[str], selected: Sequence[TuningHeader], all_headers: Sequence[TuningHeader]
) -> tuple[str, ...]:
    """Returns the requested architectures; by default those that the headers have tunings for.

    If no header that was read has any, returns those at which defaults change.
    """
    archs = (
        parse_archs(texts)
        or _tuned_archs(selected)
        or _tuned_archs(all_headers)
        or _default_archs(selected)
    )
    return tuple(sorted(archs, key=arch_number))


def _tuned_archs(headers: Sequence[TuningHeader]) -> set[str]:
    archs = {family.arch for header in headers for family in header.families}
    return archs | {
        family.arch
        for header in headers
        for family in header.selectors
        if any(entry.specific and entry.members for entry in family.entries)
    }


def _default_archs(headers: Sequence[TuningHeader]) -> set[str]:
    chains = (chain for header in headers for chain in header.chains)
    archs = {policy.arch for chain in chains for policy in chain.policies}
    returned = steps(family for header in headers for family in header.selectors)
    return archs | returned or {ladder()[0]}


KIND = "looked"
# #include <cub/device/dispatch/tuning/tuning_radix_sort.cuh>
_INCLUDED = re.compile(rb"#\s*include\s*<cub/device/dispatch/tuning/(\w+\.cuh)>")


# Detecting the bindings for a tree's headers: one version of CUB covers many states of main.


def with_detected_bindings(cub: Cub) -> Cub:
    """Returns the tree with the bindings that fit its headers; its version is a first guess."""
    if cub.version == UNKNOWN:
        return cub
    try:
        read_as = _read_as(cub, Path(cub.root))
    except (PolicygenError, OSError):
        return cub  # whoever needs a file of it reports what is wrong
    return cub.model_copy(update={"read_as": read_as}) if read_as != cub.version else cub


def _read_as(cub: Cub, root: Path) -> str:
    files = {
        path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(own_sources(cub))
    }
    versions = written_by(fit, fit, fit, fit)
    contents = (part for name, data in files.items() for part in (name, data))
    key = digest(versions, identity(), cub.version, cub.dialect, *contents)
    if (cached := kept(KIND, key)) is not None:
        return cached.decode()
    candidates = [binding for binding in bindings() if binding.library == cub.library]
    read_as = fit.read_as(cub, candidates, _tree_text(cub, root, files))
    with suppress(OSError):  # an unwritable cache only costs speed
        keep(KIND, key, read_as.encode())
    return read_as


def _tree_text(cub: Cub, root: Path, files: dict[str, bytes]) -> fit.TreeText:
    folder = tunings_folder(cub).relative_to(root).as_posix()
    other_paths = {path.relative_to(root).as_posix() for path in other_headers(cub)}
    tunings = {
        path.rpartition("/")[2]: Text(path, data).uncommented
        for path, data in files.items()
        if path.rpartition("/")[0] == folder or path in other_paths
    }
    headers = {
        name: b"\n".join(tunings[header] for header in _with_included(name, tunings)).decode(
            "utf-8", "replace"
        )
        for name in tunings
    }
    other_texts = [data for path, data in files.items() if path.rpartition("/")[0] != folder]
    return fit.TreeText(
        headers, files.__contains__, lambda: b"\n".join(other_texts).decode("utf-8", "replace")
    )


def _with_included(name: str, tunings: dict[str, bytes]) -> list[str]:
    """Returns a header and the tuning headers that it includes."""
    reached = [name]
    for header in reached:
        names = [match.decode() for match in _INCLUDED.findall(tunings[header])]
        reached += [
            included for included in names if included in tunings and included not in reached
        ]
    return reached


# Compilers bound to a tree: its headers as they are, and as a change would make them.


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
    supported = sorted(archs_and_unknown - {UNKNOWN_ARCH}, key=arch_number)
    with threads() as pool:
        targets = list(pool.map(lambda arch: find_target(hipcc, arch), supported))
    refusals = {
        target.arch: f"{hipcc.name} does not compile for it: {target.refusal}"
        for target in targets
        if not target.identity
    }
    refusals |= {UNKNOWN_ARCH: NO_CODE} if UNKNOWN_ARCH in archs_and_unknown else {}
    tools = HipTools.of(hipcc, targets)
    return CodeMaker(tools, "hipcc", tools.archs, 2.0, refusals)


_MAKERS: Mapping[Library, Callable[[Cub, Sequence[str], Path | None], CodeMaker]] = {
    "cub": _with_nvcc,
    "rocprim": _with_hipcc,
}
