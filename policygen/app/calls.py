"""Lists the CUB kernels of a program, their policies, and what would find tunings for them."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.resolve import resolve_workloads
from policygen.app.session import Session, open_session
from policygen.bindings.load import bound, types
from policygen.errors import InputError, PolicygenError
from policygen.headers.user.policies import takes_selectors
from policygen.model.bindings import BenchmarkBinding
from policygen.model.overlays import CallKernel, ProgramCall, ProgramCalls
from policygen.model.selection import ResolvedRow
from policygen.model.trees import BoundVersion
from policygen.paths import cache_folder
from policygen.portable import nearby
from policygen.proof.kernel_build import Tools
from policygen.proof.kernel_comparison import demangled, function, lasting, short
from policygen.proof.programs import (
    PolicyUse,
    arch_of,
    benchmark_of,
    compile_unit,
    hides_release,
    is_of_library,
    open_object,
    overlay_of,
    policy_in,
    release_of,
    units_of,
)
from policygen.proof.toolchain import find_toolchain
from policygen.steps import Progress

SOURCES = frozenset({".cu", ".json"})
OUT = "tuned-cub"
"""The folder in proposed commands."""
WRAPPED = "CUB is in a namespace of the program's own, so that no kernel names its version"
Case = tuple[BenchmarkBinding | None, dict[str, str]]


def list_calls(
    files: Sequence[Path],
    flags: Sequence[str],
    *,
    arch: str | None = None,
    cub: str | None = None,
    progress: Progress | None = None,
) -> ProgramCalls:
    """Lists the kernels of sources with flags, of objects, and of static or shared libraries.

    The tree with the version of the program says whether a kernel's policy is tuned.
    """
    target, bounds = _read(files, flags, arch)
    names = demangled(bounds)
    helpers = frozenset(types().helper_kernels)
    ours = {
        kernel: name
        for kernel, name in sorted(names.items(), key=lambda item: (item[1], item[0]))
        if is_of_library(name) and function(lasting(name)) not in helpers
    }
    releases = sorted({release for name in ours.values() if (release := release_of(name))})
    is_wrapped = not releases and any(map(hides_release, ours.values()))
    if is_wrapped and cub is None:
        raise InputError(WRAPPED, "Name the tree that it was compiled with: --cub TREE")
    session, why = _tree(cub, releases, progress)
    remark = f"{WRAPPED}: taken as {session.cub.title}" if session and is_wrapped else why
    version = session.cub.bindings if session else BoundVersion(releases[-1] if releases else "0")
    algorithms = bound(version) if session or releases else ()
    kernels: defaultdict[tuple[PolicyUse, str | None, str | None], set[CallKernel]]
    kernels, untuned = defaultdict(set), []
    for kernel, name in ours.items():
        if use := policy_in(name, algorithms):
            made = CallKernel(name=function(lasting(name)), threads=bounds[kernel])
            kernels[use, release_of(name), overlay_of(name)].add(made)
        else:
            untuned.append(short(name))
    cases = {key: benchmark_of(key[0], version) for key in kernels}
    rows, failure = _resolve(session, cases.values(), target)
    calls = [
        ProgramCall(
            algorithm=use.algorithm.algorithm,
            selector=use.shown,
            cub=release,
            overlay=overlay,
            kernels=tuple(sorted(made, key=str)),
            **_policy(cases[use, release, overlay], rows, why or failure),
            command=_command(use, cases[use, release, overlay], version),
        )
        for (use, release, overlay), made in kernels.items()
    ]
    return ProgramCalls(
        files=tuple(map(nearby, files)),
        arch=target,
        calls=tuple(sorted(calls, key=lambda call: (call.algorithm, call.selector))),
        untuned=tuple(sorted(untuned)),
        others=len(names) - len(ours),
        remarks=(remark,) if remark and calls else (),
    )


def _read(
    files: Sequence[Path], flags: Sequence[str], arch: str | None
) -> tuple[str, dict[str, int | None]]:
    """Returns the architecture that was read, and the kernels with their launch bounds."""
    tools, cache = Tools.of(find_toolchain()), cache_folder()
    bounds: dict[str, int | None] = {}
    for path in files:
        if path.suffix not in SOURCES:
            arch, opened = open_object(path, arch, tools.cuobjdump, cache)
            bounds |= opened
        elif (arch := arch or arch_of(flags)) is None:
            raise InputError("no architecture is given", "Name one to compile for: --arch sm90")
        else:
            for unit in units_of(path, flags):
                for kernel in compile_unit(unit, unit.flags, arch, tools, cache):
                    bounds[kernel.name] = kernel.max_threads
    assert arch is not None
    return arch, bounds


def _tree(
    cub: str | None, releases: Sequence[str], progress: Progress | None
) -> tuple[Session | None, str]:
    """Opens the tree with the version of a program; else says why policies are unknown."""
    if cub is not None:
        session = open_session(cub, progress=progress)
        if not releases or session.cub.version in releases:
            return session, ""
        return None, f"the program has CUB {', '.join(releases)}, and --cub is {session.cub.title}"
    if len(releases) == 1:
        for name in (releases[0], None):
            with suppress(PolicygenError):
                session = open_session(name, progress=progress)
                if session.cub.version == releases[0]:
                    return session, ""
        return None, f"no tree of CUB {releases[0]} is here: policygen headers fetch {releases[0]}"
    return None, f"the program has CUB {', '.join(releases) or '?'}: name its tree with --cub"


def _resolve(
    session: Session | None, cases: Iterable[Case], arch: str
) -> tuple[Sequence[ResolvedRow], str]:
    """Resolves what the tree selects for the benchmarks that were recognized."""
    names = sorted({benchmark.name for benchmark, axes in cases if benchmark and axes})
    if session is None or not names:
        return (), ""
    regex = f"(?:{'|'.join(map(re.escape, names))})$"
    try:
        resolution, errors = resolve_workloads(session, Filter(regex=regex, archs=(arch,)))
    except PolicygenError as error:
        return (), error.in_line
    return resolution.rows, errors[0].in_line if errors else ""


def _policy(case: Case, rows: Sequence[ResolvedRow], why: str) -> dict[str, object]:
    """Returns what the tree selects for a call; the axes that are unknown must not matter."""
    benchmark, axes = case
    fields: dict[str, object] = {"benchmark": benchmark.name if benchmark else None, "axes": axes}
    if benchmark is None or not axes:
        return fields | {"why": "CUB has no benchmark with these types"}
    of_types = [
        row
        for row in rows
        if row.benchmark == benchmark.name and axes.items() <= row.workload.items()
    ]
    if not of_types or any(row.values != of_types[0].values for row in of_types):
        return fields | {"why": why or "its types leave more than one policy"}
    row = of_types[0]
    entry = f"{row.entry.header}: {row.entry.name}" if row.entry else None
    return fields | {"status": row.status, "values": row.values, "entry": entry}


def _command(use: PolicyUse, case: Case, version: BoundVersion) -> str:
    """Returns the command that finds a tuning; a template for types that no benchmark has."""
    benchmark, axes = case
    if benchmark is not None and axes:
        given = [word for axis, value in axes.items() for word in ("-a", f"{axis}={value}")]
        words = ["-R", f"{benchmark.name}$", *given, "--cub", version.plain, "--overlay", OUT]
        return shlex.join(["policygen", "tune", *words]) if benchmark.writable else ""
    templates = [call.algorithm for call in use.algorithm.own if takes_selectors(version.plain)]
    return shlex.join(["policygen", "tune", "--template", templates[0]]) if templates else ""
