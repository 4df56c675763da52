"""The machine code of workloads before and after a change, kernel by kernel."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from policygen.app.change import Base, find_base, no_base
from policygen.app.comparison import (
    EARLIER,
    Chosen,
    Compiles,
    choose_compiles,
    meant,
    narrowed,
    part_of,
)
from policygen.app.compilers import CodeMaker, find_kernel_maker
from policygen.app.filters import EVERYTHING, Filter
from policygen.app.journal import record_proof
from policygen.app.session import Session
from policygen.errors import PolicygenError, Problems, SourceError, together
from policygen.headers.benchmark_sources import (
    benchmarks_folder,
    checkout,
    find,
    helper_folders,
    narrowing,
)
from policygen.model.machine_code import DumpIndex, SassCompiles, VerifySass
from policygen.model.trees import Cub
from policygen.model.workload import in_words
from policygen.paths import cache_folder
from policygen.proof import kernel_units
from policygen.proof.kernel_build import KernelTools
from policygen.proof.kernel_calls import Checkout, find_nvbench
from policygen.proof.kernel_comparison import (
    Sides,
    compile_side,
    compile_sides,
    verdicts,
    with_dumps,
)
from policygen.proof.kernel_units import KernelCompiler, workers, workers_of
from policygen.report.value_views import summary
from policygen.steps import Progress
from policygen.trees.layout import tree_content

__all__ = ["DumpIndex", "SassCompiles", "compare_earlier", "tell_earlier", "verify_sass"]


def verify_sass(
    session: Session,
    asked: Filter = EVERYTHING,
    *,
    base: str | None = None,
    everything: bool = False,
    benchmarks: bool = False,
    nvbench: Path | None = None,
    allow_moved: bool = False,
    save: Path | None = None,
    hipcc: Path | None = None,
    jobs: int | None = None,
    shard: tuple[int, int] | None = None,
    dry: bool = False,
    announce: Callable[[SassCompiles], None] | None = None,
) -> VerifySass | DumpIndex | SassCompiles:
    """Compares the kernels of a tree with those of before; where there is only `save`, keeps them.

    Compiled are workloads that the change can touch; a pattern names benchmarks of which all are,
    `everything` takes all of all. `benchmarks` compiles the checkout's own, instead of calls. What
    will be compiled is announced first; when `dry`, that is the answer.
    """
    before = find_base(session, base)
    if before is None and save is None:
        raise no_base(session.store)
    named = tuple(arch for arch in asked.archs if arch != EARLIER)
    maker = find_kernel_maker(session.cub, named, hipcc)
    own = _checkout(session.root, asked.pattern, nvbench) if benchmarks else None
    chosen = Chosen(asked.pattern, asked.values, everything, own)
    archs = asked.archs or _default_archs(before, maker.archs)
    compiles = choose_compiles(session.cub, before, chosen, archs, maker)
    if chosen.named or save is not None:
        compiles = replace(compiles, meant=meant(before.plan if before else None))
    else:
        compiles = narrowed(compiles, session.progress)
    compiles = part_of(compiles, shard)
    told = _announced(compiles, maker, jobs)
    if dry:
        return told
    if announce and told.units:
        announce(told)
    with _compiling(maker.tools, jobs, session.progress) as compiler:
        if save is not None:
            index = _saved(compiles, compiler, save)
            if before is None:
                return index
        found = _compared(compiles, compiler, allow_moved=allow_moved)
    whole = shard is None and not (asked.regex or asked.axes)
    whole = whole and (not asked.archs or EARLIER in asked.archs)
    passed = not (found.changed or found.refused)
    words = f"{summary(found)}, compared with {found.base}"
    record_proof(
        session.store, session.cub, "verify-sass", words, session.note, passed=passed, whole=whole
    )
    return found


def compare_earlier(
    session: Session, base: Base, announce: Callable[[SassCompiles], None] | None = None
) -> VerifySass:
    """The machine code of the architectures that a change should not reach.

    Compiled is what it can touch; what that is, and how long it takes, is announced first.
    """
    compiles, maker = _earlier(session, base)
    told = _announced(compiles, maker, None)
    if announce and told.units:
        announce(told)
    with _compiling(maker.tools, None, session.progress) as compiler:
        return _compared(compiles, compiler, allow_moved=False)


def tell_earlier(session: Session, base: Base) -> SassCompiles:
    """What that would compile; nothing is compiled."""
    return _announced(*_earlier(session, base), None)


def _earlier(session: Session, base: Base) -> tuple[Compiles, CodeMaker]:
    maker = find_kernel_maker(session.cub)
    chosen = Chosen(re.compile(""), {}, everything=False)
    compiles = choose_compiles(session.cub, base, chosen, (), maker)
    return narrowed(compiles, session.progress), maker


def _default_archs(base: Base | None, compilable: tuple[str, ...]) -> tuple[str, ...]:
    """What was tuned, to see what it became, and what should be as it was."""
    plan = base.plan if base else None
    target = plan.options.arch if plan else None
    return (target, EARLIER) if target in compilable and target else ()


def _announced(compiles: Compiles, maker: CodeMaker, jobs: int | None) -> SassCompiles:
    """What will be compiled, and how long that takes."""
    sides = (
        (compiles.after,)
        if compiles.base is None or compiles.base.index
        else (
            compiles.before,
            compiles.after,
        )
    )
    units = sum(spot[0] in side for side in sides for spot in compiles.spots)
    at_once = workers_of(jobs)
    return SassCompiles(
        base=compiles.base.label if compiles.base else "nothing",
        toolchain=str(maker.tools),
        archs=compiles.archs,
        workloads=len(compiles.spots),
        changed=compiles.changed,
        untouched=compiles.untouched,
        units=units,
        at_once=at_once,
        minutes=round(units * maker.seconds / at_once / 60, 1),
        remarks=compiles.remarks,
    )


@contextmanager
def _compiling(
    tools: KernelTools, jobs: int | None, progress: Progress | None
) -> Iterator[KernelCompiler]:
    """A compiler with its workers, which shows how far it is."""
    with workers(jobs) as executor:
        yield KernelCompiler(tools, cache_folder(), executor, progress)


def _saved(compiles: Compiles, compiler: KernelCompiler, folder: Path) -> DumpIndex:
    """Keeps the kernels of the side after; all of them, or none."""
    made = compile_side(compiles.after, compiles.spots, compiler)
    if errors := [one for one in made.values() if isinstance(one, PolicygenError)]:
        raise together(errors)
    whole = {spot: one for spot, one in made.items() if not isinstance(one, PolicygenError)}
    return kernel_units.save(
        folder, whole, compiles.units, _dumped(compiles.cub), str(compiler.tools)
    )


def _dumped(cub: Cub) -> str:
    """What dumps are of: of another library than CUB with its name."""
    return cub.release if cub.release.partition("@")[2] else cub.version


def _compared(compiles: Compiles, compiler: KernelCompiler, *, allow_moved: bool) -> VerifySass:
    """What the comparison comes to."""
    base, archs, tools = compiles.base, compiles.archs, str(compiler.tools)
    assert base is not None
    if base.index is not None:
        sides = with_dumps(base.dumps, compile_side(compiles.after, compiles.spots, compiler))
    else:
        sides = compile_sides(compiles.before, compiles.after, compiles.spots, compiler)
    found = verdicts(sides, compiles.meant)
    remarks = [*compiles.remarks, *_without_effect(compiles, sides)]
    if base.index is not None and base.index.toolchain != tools:
        remarks.append(f"the dumps were made with {base.index.toolchain}")
    rows = found.rows
    return VerifySass(
        cub=compiles.cub,
        content=tree_content(compiles.cub),
        base=base.label,
        toolchain=tools,
        units=compiles.units,
        remarks=tuple(remarks),
        archs=archs,
        workloads=sum(row.workloads for row in rows),
        identical=sum(row.identical for row in rows),
        untouched=compiles.untouched,
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


def _without_effect(compiles: Compiles, sides: Sides) -> Iterator[str]:
    """Says which workloads get other values, and have the code that they had."""
    changed = compiles.spots[: compiles.changed]
    same = [spot for spot in changed if not sides.refusal(spot) and sides.same_code(spot)]
    if same:
        (name, workload), arch = same[0]
        more = f" and {len(same) - 1:,} more" if len(same) > 1 else ""
        yield (
            f"{in_words(name, dict(workload))} on {arch}{more}: other values, and the same machine"
            " code: what is called does not take them, or does not depend on them"
        )


def _checkout(include: Path, pattern: re.Pattern[str], nvbench: Path | None) -> Checkout:
    """The benchmarks that stand beside a tree."""
    errors: list[SourceError] = []
    root = checkout(include.parent)
    found_files = [file for file in find(root, errors) if pattern.match(file.name)]
    if errors:
        raise Problems(errors)
    files = {file.name: file.path for file in found_files}
    folders = (*map(str, helper_folders(root)), *find_nvbench(nvbench, cache_folder()))
    return Checkout(benchmarks_folder(root), files, narrowing(found_files), folders)
