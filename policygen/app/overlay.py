"""Makes overlays: changed tuning headers that a compiler finds before those of a tree."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen import __version__
from policygen.app.apply import apply_plan
from policygen.app.effect import Planned
from policygen.app.session import Session, check_serves, open_session
from policygen.bindings.load import bound
from policygen.bindings.words import words
from policygen.cache import file_sha256
from policygen.errors import InputError, ProcessError, plural
from policygen.headers.comments import labelled
from policygen.model.machine_code import Kernel
from policygen.model.overlays import (
    KernelOutcome,
    Overlay,
    OverlayCheck,
    OverlayHeader,
    OverlayMade,
    OverlayProof,
    ProgramKernel,
)
from policygen.model.plans import Action, Plan
from policygen.model.trees import BoundVersion, Cub, numbers
from policygen.opening import load_document
from policygen.outputs import write_output
from policygen.paths import cache_folder
from policygen.portable import nearby
from policygen.process import run, threads, workers_of
from policygen.proof.kernel_build import Tools
from policygen.proof.kernel_comparison import demangled, pairs, same, short, summary
from policygen.proof.programs import compile_unit, headers_in, units_of
from policygen.proof.toolchain import find_toolchain, to_install
from policygen.rendering import fill
from policygen.results.database import expand
from policygen.store.targets import inside
from policygen.trees.layout import own_folders

MANIFEST = "policygen-overlay.json"
REMEDY = "Make it with: policygen overlay --db DB --arch ARCH --cub TREE -o FOLDER"
_LENGTH = 12
"""Hexadecimal digits of the digest in symbols: they fit into a number of the preprocessor."""


def make_overlay(
    session: Session, planned: Planned, folder: Path, *, force: bool = False
) -> OverlayMade:
    """Proves a plan as `apply` does, and writes the changed headers to a folder of their own.

    If nothing changes, no folder is written.
    """
    check_serves("overlay", session.cub)
    previous = previous_overlay(folder, force=force)
    change = apply_plan(session, planned, write=False)
    if not change.changed:
        return OverlayMade(folder=str(folder), plan=change.plan, effect=None, overlay=None)
    overlay, files = _render(planned, change.changed)
    _try_out(session.cub, overlay, files)
    _write(folder, files, previous, force=force)
    return OverlayMade(folder=str(folder), plan=change.plan, effect=change.effect, overlay=overlay)


def read_overlay(folder: Path) -> Overlay:
    """Reads the manifest of an overlay."""
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} is not an overlay: {MANIFEST} is missing", REMEDY)
    return load_document(folder / MANIFEST, Overlay, "manifest of an overlay", REMEDY)


def check_overlay(folder: Path, cub: str | None = None) -> OverlayCheck:
    """Compares an overlay with a tree: its version, and the headers that it was made from."""
    overlay = read_overlay(folder)
    tree = open_session(cub).cub
    problems = [*_altered(folder, overlay), *_unfit(tree, overlay)]
    return OverlayCheck(folder=str(folder), cub=tree, overlay=overlay, problems=tuple(problems))


def prove_overlay(
    folder: Path,
    source: Path,
    flags: Sequence[str],
    *,
    arch: str | None = None,
    jobs: int | None = None,
) -> OverlayProof:
    """Compiles a program with and without an overlay, and compares its kernels.

    `source` is a translation unit with flags, or a `compile_commands.json`.
    """
    overlay = read_overlay(folder)
    units, target = units_of(source, flags), arch or overlay.arch
    tools, cache = Tools.of(find_toolchain()), cache_folder()

    kernels: list[ProgramKernel] = []
    unaffected = []
    with threads(workers_of(jobs)) as executor:
        compiling = [
            [
                executor.submit(compile_unit, unit, side, target, tools, cache, listed=True)
                for side in unit.with_overlay(folder)
            ]
            for unit in units
        ]
        for unit, sides in zip(units, compiling, strict=True):
            before, after = (side.result() for side in sides)
            kernels += _compare(nearby(unit.source), overlay, before, after)
            if not any(overlay.tag in kernel.name for kernel in after):
                unaffected.append(nearby(unit.source))
    left_out = sorted({flag for unit in units for flag in unit.left_out})
    remarks = [f"not passed to the compiler: {' '.join(left_out)}"] if left_out else []
    resident = (kernel.resident for kernel in kernels)
    if fewer := sum(bool(before and after and after < before) for before, after in resident):
        remarks.append(f"a multiprocessor holds fewer threads of {plural(fewer, 'kernel')} now")
    return OverlayProof(
        folder=str(folder),
        overlay=overlay,
        toolchain=str(tools),
        arch=target,
        units=tuple(nearby(unit.source) for unit in units),
        kernels=tuple(kernels),
        unaffected=tuple(unaffected),
        remarks=tuple(remarks),
    )


def _compare(
    unit: str, overlay: Overlay, before: Sequence[Kernel], after: Sequence[Kernel]
) -> Iterator[ProgramKernel]:
    """Yields the kernels of a unit; only those of the overlay's algorithms may differ."""
    algorithms = bound(BoundVersion(overlay.cub))
    tuned = {Path(name).name for name in overlay.replaced}
    cpp = demangled(kernel.name for kernel in (*before, *after))
    for old, new in ((pair.before, pair.after) for pair in pairs(before, after, cpp)):
        kernel = new or old
        assert kernel is not None
        name = cpp[kernel.name]
        headers = headers_in(name, algorithms) & tuned
        outcome: KernelOutcome = "changed" if headers else "unexpected"
        if old and new and same(old, new):
            outcome = "same"
        elif headers and not (old and new):
            outcome = "added" if new else "removed"
        results = [
            result
            for result in overlay.results
            if outcome != "same" and result.target and result.target.header in headers
        ]
        yield ProgramKernel(
            unit=unit,
            kernel=short(name),
            outcome=outcome,
            threads=(old and old.max_threads, new and new.max_threads),
            resident=(old and old.resident, new and new.resident),
            summary=summary(old, new) if old and new else "",
            variants=tuple(f"{result.name}: {result.variant}" for result in results),
        )


# The files of an overlay.


def _render(planned: Planned, changed: Mapping[str, bytes]) -> tuple[Overlay, dict[str, bytes]]:
    """Returns the manifest and the files by path in the folder."""
    plan, cub = planned.plan, planned.plan.cub
    tree, root = planned.compiler.tree, Path(cub.root)
    paths = {name: inside(tree.paths[name], root) for name in sorted(changed)}
    parts = (part for name, path in paths.items() for part in (path.encode(), changed[name]))
    number = _sha256(b"\0".join((cub.version.encode(), *parts)))[:_LENGTH]
    results = tuple(action for action in plan.written if action.target)
    major, minor, patch = numbers(cub.version)
    values: dict[str, object] = {
        "version": __version__,
        "cub": cub.version,
        "number": major * 100000 + minor * 100 + patch,
        "arch": plan.options.arch,
        "digest": number,
        "tag": f"policygen_{number}",
        "headers": tuple(paths.values()),
    }
    databases = _databases(plan, results)
    files: dict[str, bytes] = {}
    headers = []
    for name, path in paths.items():
        original = _sha256(planned.before[name])
        origin = list(_origin([r for r in results if r.target and r.target.header == name]))
        origin += [f"{file}: SHA-256 {sha or 'unknown'}" for file, sha in databases.items()]
        own = {"path": path, "original": original, "origin": origin}
        files[path] = fill("overlay/header.cuh.j2", {**values, **own}).encode() + changed[name]
        headers.append((path, original, True))
    for library in words().namespaces:
        macros = {"library": library.model_dump()}
        files[library.header] = fill("overlay/namespace.cuh.j2", {**values, **macros}).encode()
        headers.append((library.header, _standing(cub, library.header), False))
    overlay = Overlay(
        made_by=__version__,
        cub=cub.version,
        dialect=cub.dialect,
        arch=plan.options.arch,
        tag=f"policygen_{number}",
        toolchain=plan.toolchain,
        headers=tuple(
            OverlayHeader(name=name, original=sha, written=_sha256(files[name]), replaces=replaces)
            for name, sha, replaces in headers
        ),
        results=results,
        databases=databases,
    )
    for name in ("README.md", "policygen-overlay-config.cmake"):
        files[name] = fill(f"overlay/{name}.j2", values).encode()
    files[MANIFEST] = (overlay.to_json() + "\n").encode()
    return overlay, files


def _databases(plan: Plan, results: Sequence[Action]) -> dict[str, str | None]:
    """Returns the digests of the files with results; None for those of a saved plan elsewhere."""
    names = {name for result in results for name in result.databases}
    confirming = map(str, expand(plan.given.confirm) if plan.given else ())
    digests: dict[str, str | None] = {}
    for path in map(Path, sorted({*names, *confirming})):
        with suppress(OSError):
            digests[path.name] = file_sha256(path)
        digests.setdefault(path.name, None)
    return digests


def _origin(results: Sequence[Action]) -> Iterator[str]:
    for result in results:
        yield result.name
        yield f"  {labelled(result.variant or '', result.scores or ())}"
        yield f"  {result.gpu}, CUDA {result.ctk}, CCCL {result.cccl}"


def _try_out(cub: Cub, overlay: Overlay, files: Mapping[str, bytes]) -> None:
    """Compiles the headers before the tree's: its macros may not be those of a release."""
    toolchain = find_toolchain()
    with TemporaryDirectory(prefix="policygen-") as name:
        folder = Path(name)
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        source = folder / "trial.cu"
        values = {"headers": overlay.replaced, "tag": overlay.tag}
        source.write_text(fill("overlay/trial.cu.j2", values), encoding="utf-8")
        includes = [f"-I{include}" for include in (folder, *cub.include_folders)]
        arch = f"-arch=sm_{overlay.arch.removeprefix('sm')}"
        command = [str(toolchain.nvcc), "-std=c++17", "-w", arch, *includes, "-ptx"]
        try:
            run([*command, "-o", str(folder / "trial.ptx"), str(source)], install=to_install())
        except ProcessError as error:
            raise InputError(
                f"an overlay does not work with {cub.title} in {cub.root}: {error.in_line}",
                "Use policygen apply on a copy of the tree.",
            ) from error


# The folder.


def previous_overlay(folder: Path, *, force: bool = False) -> Overlay | None:
    """Returns the overlay that a folder holds; raises if it holds anything else."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"cannot write an overlay to {folder}: it is a file", "Name a folder.")
    if (folder / MANIFEST).is_file():
        return read_overlay(folder)
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise InputError(
            f"{folder}: exists already, and holds no overlay",
            "Name another folder, or use --force.",
        )
    return None


def _write(
    folder: Path, files: Mapping[str, bytes], previous: Overlay | None, *, force: bool
) -> None:
    """Writes the files, the manifest last; tuning headers of a previous overlay are removed."""
    try:
        for header in previous.headers if previous else ():
            path = folder / header.name
            present = path.read_bytes() if path.is_file() else None
            if present is None or present == files.get(header.name):
                continue
            if _sha256(present) != header.written and not force:
                raise InputError(
                    f"{path}: was edited after policygen wrote it", "Save it, or use --force."
                )
            if header.name not in files:
                path.unlink()
        for path_in_folder, data in files.items():
            (folder / path_in_folder).parent.mkdir(parents=True, exist_ok=True)
            write_output(folder / path_in_folder, data, force=force)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from error


# What an overlay needs of a tree.


def _altered(folder: Path, overlay: Overlay) -> Iterator[str]:
    for header in overlay.headers:
        path = folder / header.name
        if not path.is_file():
            yield f"{nearby(path)} is missing"
        elif _sha256(path.read_bytes()) != header.written:
            yield f"{nearby(path)} is not as policygen wrote it"


def _unfit(tree: Cub, overlay: Overlay) -> Iterator[str]:
    if tree.called != "CUB" or tree.version != overlay.cub:
        yield f"the overlay is for CUB {overlay.cub}, and the tree is {tree.title}"
        return
    for header in overlay.headers:
        if _standing(tree, header.name) != header.original:
            yield f"{header.name}: the tree's is not the one that the overlay was made from"


def _standing(tree: Cub, name: str) -> str:
    """Returns the digest of a tree's file of a path below an include folder; empty if missing."""
    candidates = (folder / name for folder in own_folders(tree))
    return next((_sha256(path.read_bytes()) for path in candidates if path.is_file()), "")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
