"""Which workloads `verify-sass` compiles on each side, and for which architectures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from policygen.cli.options import parse_archs
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.cli.base import Base
    from policygen.model.cub import Cub
    from policygen.model.sass import DumpIndex, Units, VerifySass
    from policygen.model.tuning import TuningHeader
    from policygen.model.workload import Point
    from policygen.proof.sass.benchmarks import Checkout
    from policygen.proof.sass.build import Tools
    from policygen.proof.sass.calls import Wanted, WorkloadUnit
    from policygen.proof.sass.compiler import KernelCompiler
    from policygen.proof.sass.sides import Sides
    from policygen.proof.toolchain import Toolchain

EARLIER = "earlier"
_NAMED = {"calls": "calls of the algorithms", "benchmarks": "the benchmarks' own sources"}


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the user asked for by name."""

    pattern: "re.Pattern[str]"
    axes: Mapping[str, frozenset[str]]
    everything: bool
    checkout: "Checkout | None" = None
    """Compiles its benchmarks, instead of calls of the same algorithms."""

    @property
    def units(self) -> "Units":
        """What is compiled."""
        return "calls" if self.checkout is None else "benchmarks"

    @property
    def named(self) -> bool:
        """Whether it does not depend on what differs."""
        return bool(self.everything or self.pattern.pattern)


@dataclass(frozen=True, slots=True)
class Question:
    """What is compiled on each side, for which architectures."""

    cub: "Cub"
    base: "Base | None"
    before: "Mapping[Point, WorkloadUnit]"
    after: "Mapping[Point, WorkloadUnit]"
    units: "Units"
    archs: tuple[str, ...]
    remarks: tuple[str, ...]

    def save(self, compiler: "KernelCompiler", folder: Path) -> "DumpIndex":
        """Keeps the kernels of the side after; all of them, or none."""
        from policygen.errors import PolicygenError, together
        from policygen.proof.sass import dumps
        from policygen.proof.sass.sides import compile_side

        made = compile_side(self.after, self.archs, compiler)
        if errors := [one for one in made.values() if isinstance(one, PolicygenError)]:
            raise together(errors)
        whole = {spot: one for spot, one in made.items() if not isinstance(one, PolicygenError)}
        return dumps.save(folder, whole, self.units, self.cub.version, str(compiler.tools))

    def compiled(self, compiler: "KernelCompiler") -> "Sides":
        """The kernels of both sides."""
        from policygen.proof.sass.sides import compile_side, compile_sides, with_dumps

        assert self.base is not None
        if self.base.index is not None:
            return with_dumps(self.base.dumps, compile_side(self.after, self.archs, compiler))
        return compile_sides(self.before, self.after, self.archs, compiler)

    def document(self, sides: "Sides", tools: str, *, allow_moved: bool) -> "VerifySass":
        """What the comparison comes to."""
        from policygen.model.sass import VerifySass
        from policygen.proof.sass.verdicts import verdicts

        assert self.base is not None
        found = verdicts(sides)
        remarks = list(self.remarks)
        if self.base.index is not None and self.base.index.toolchain != tools:
            remarks.append(f"the dumps were made with {self.base.index.toolchain}")
        rows = found.rows
        return VerifySass(
            cub=self.cub,
            base=self.base.label,
            toolchain=tools,
            units=self.units,
            remarks=tuple(remarks),
            archs=self.archs,
            workloads=sum(row.workloads for row in rows),
            identical=sum(row.identical for row in rows),
            rows=rows,
            kernels=sum(row.kernels for row in rows),
            equal=sum(row.equal for row in rows),
            renamed=sum(row.renamed for row in rows),
            renamings=tuple(found.renamed),
            different=tuple(found.different),
            allow_moved=allow_moved,
            only_before=tuple(found.only_before),
            only_after=tuple(found.only_after),
            refused=tuple(found.refused),
        )


def tools_of(toolchain: "Toolchain") -> "Tools":
    """What compiles, and what disassembles beside it."""
    from policygen.proof.sass.build import Tools

    return Tools.of(toolchain)


@contextmanager
def compiling(tools: "Tools", jobs: int | None, *, quiet: bool) -> "Iterator[KernelCompiler]":
    """A compiler with its workers, which shows how far it is."""
    from policygen.cli.asking import compile_progress
    from policygen.paths import cache_folder
    from policygen.proof.sass.compiler import KernelCompiler, workers

    with workers(jobs) as executor:
        yield KernelCompiler(tools, cache_folder(), executor, compile_progress(quiet=quiet))


def ask(
    cub: "Cub",
    base: "Base | None",
    chosen: Chosen,
    archs: Sequence[str],
    compilable: tuple[str, ...],
) -> Question:
    """Which workloads are compiled, and for which architectures."""
    from policygen.proof.sass.calls import Wanted
    from policygen.proof.sites import nothing_bound

    headers, remarks = _changed_headers(cub, base)
    wanted = Wanted(chosen.pattern, chosen.axes, None if chosen.named else headers)
    before = _units(base.cub, base.includes, wanted, chosen) if base and base.cub else {}
    after = _units(cub, cub.include_folders, wanted, chosen)
    if not (before or after) and (chosen.named or (chosen.axes and headers)):
        asked = frozenset() if chosen.named else headers or frozenset()
        raise nothing_bound(cub.version, chosen.pattern, chosen.axes, asked)
    remarks += _left_out(cub, wanted, chosen)
    if base and base.index:
        if base.index.units != chosen.units:
            raise InputError(
                f"{base.label}: they are of {_NAMED[base.index.units]}",
                "Compare them with --benchmarks."
                if chosen.checkout is None
                else "Compare them without --benchmarks.",
            )
        points = {point for point, _ in base.dumps}
        after = {point: unit for point, unit in after.items() if point in points}
    wanted_archs = _archs(cub, base, archs, compilable, headers)
    if base and base.index and not any((p, a) in base.dumps for p in after for a in wanted_archs):
        raise InputError(f"{base.label}: the dumps hold nothing of what is asked")
    return Question(cub, base, before, after, chosen.units, wanted_archs, tuple(remarks))


def _units(
    cub: "Cub", includes: tuple[str, ...], wanted: "Wanted", chosen: Chosen
) -> "Mapping[Point, WorkloadUnit]":
    from policygen.proof.sass.benchmarks import sources
    from policygen.proof.sass.calls import calls

    if chosen.checkout is None:
        return calls(cub, includes, wanted)
    return sources(cub, includes, wanted, chosen.checkout)


def _left_out(cub: "Cub", wanted: "Wanted", chosen: Chosen) -> list[str]:
    """What is asked for and cannot be compiled."""
    from policygen.proof.sass.benchmarks import absent
    from policygen.proof.sass.calls import without_call

    if chosen.checkout is None:
        names, why = without_call(cub, wanted), "has no call in its binding"
    else:
        names, why = absent(cub, wanted, chosen.checkout), f"is not in {chosen.checkout.folder}"
    return [f"{name} {why}: it is not compiled" for name in names]


def _changed_headers(cub: "Cub", base: "Base | None") -> tuple[frozenset[str] | None, list[str]]:
    """The tuning headers that differ; none where other files do, which any benchmark may read."""
    from policygen import tree
    from policygen.report.console import nearby, plural
    from policygen.source.files import read_bytes
    from policygen.tree.changes import changed_files

    if base is None or base.cub is None:
        return None, []
    if base.replaced:
        paths = {path.name: path for path in tree.tuning_headers(cub)}
        names = [n for n, data in base.replaced.items() if read_bytes(paths[n]) != data]
        return frozenset(names), []
    tunings = {path.parent for path in tree.tuning_headers(cub)}
    found = changed_files(base.cub, cub)
    others = [path for path in found if path.parent not in tunings]
    if not others:
        return frozenset(path.name for path in found), []
    files = plural(len(others), "file differs", "files differ")
    return None, [
        f"{files} that are no tuning headers ({nearby(others[0])}): any benchmark may be affected"
    ]


def _archs(
    cub: "Cub",
    base: "Base | None",
    given: Sequence[str],
    compilable: tuple[str, ...],
    headers: frozenset[str] | None,
) -> tuple[str, ...]:
    """Those that are named, with all that the change should not reach."""
    from policygen.model.arch import arch_number

    named = parse_archs([arch for arch in given if arch != EARLIER])
    if lost := sorted(named - set(compilable), key=arch_number):
        raise InputError(
            f"this nvcc does not compile for {', '.join(lost)}",
            f"It compiles for {', '.join(compilable)}.",
        )
    if not given and base and base.index:
        named |= {arch for _, arch in base.dumps}
    elif not given or EARLIER in given:
        named |= frozenset(_untouched(cub, base, compilable, headers))
    return tuple(sorted(named, key=arch_number))


def _untouched(
    cub: "Cub", base: "Base | None", compilable: tuple[str, ...], headers: frozenset[str] | None
) -> tuple[str, ...]:
    """The architectures that the change should leave as they are."""
    from policygen.proof.sass.archs import left_alone, tuned, unread

    if base is None or base.cub is None or headers is None:
        return compilable
    after = _scanned(cub, headers)
    if base.plan is not None:
        return left_alone(base.plan, after, compilable)
    return unread(tuned(_scanned(base.cub, headers), after), after, compilable)


def _scanned(cub: "Cub", names: frozenset[str]) -> "list[TuningHeader]":
    from policygen.cli.asking import read_tree
    from policygen.errors import Problems

    found = read_tree(cub, sorted(names)) if names else None
    if found and found.errors:
        raise Problems(found.errors)
    return list(found.headers) if found else []
