"""Compares the machine code of workloads before and after a change, kernel by kernel."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from policygen.app.change import Base, find_base, find_base_tree, no_base
from policygen.app.comparison import (
    EARLIER,
    Chosen,
    Compiles,
    choose_compiles,
    meant,
    narrowed,
    part_of,
)
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
from policygen.model.workload import in_words
from policygen.paths import cache_folder
from policygen.process import threads, workers_of
from policygen.proof import kernel_units
from policygen.proof.kernel_build import KernelTools
from policygen.proof.kernel_calls import Checkout, find_nvbench
from policygen.proof.kernel_comparison import (
    Sides,
    compile_side,
    compile_sides,
    find_kernel_tools,
    verdicts,
)
from policygen.proof.kernel_units import KernelCompiler
from policygen.steps import Progress
from policygen.trees.layout import tree_content

__all__ = ["DumpIndex", "SassCompiles", "compare_earlier", "tell_earlier", "verify_sass"]


def verify_sass(
    session: Session,
    where: Filter = EVERYTHING,
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
    """Compares a tree's kernels with those before a change, or saves them if only `save` is given.

    Compiles the workloads that the change can touch, all workloads of benchmarks selected by a
    pattern, or all of all with `everything`. `benchmarks` compiles the checkout's own benchmarks
    instead of calls. `announce` gets the estimate before compiling; with `dry`, the estimate is the
    result.
    """
    before = find_base(session, base)
    if before is None and save is None:
        raise no_base(session.store)
    archs_given = tuple(arch for arch in where.archs if arch != EARLIER)
    tools = find_kernel_tools(session.cub, archs_given, hipcc)
    benchmark_checkout = _checkout(session.root, where.pattern, nvbench) if benchmarks else None
    chosen = Chosen(where.pattern, where.values, everything, benchmark_checkout)
    target = before.plan.options.arch if before and before.plan else ""
    # By default the tuned architecture, to see its changes, and those that should be unchanged.
    archs = where.archs or ((target, EARLIER) if target in tools.archs else ())
    compiles = choose_compiles(session.cub, before, chosen, archs, tools)
    if chosen.named or save is not None:
        compiles = replace(compiles, meant=meant(before.plan if before else None))
    else:
        compiles = narrowed(compiles, session.progress)
    compiles = part_of(compiles, shard)
    if dry:
        return _estimate(compiles, tools, jobs)
    with _compiling(compiles, tools, jobs, announce, session.progress) as compiler:
        if save is not None:
            index = _save_dumps(compiles, compiler, save)
            if before is None:
                return index
        result = _compare(compiles, compiler, allow_moved=allow_moved)
    is_part = shard or where.regex or where.axes or (where.archs and EARLIER not in where.archs)
    result = result.model_copy(update={"whole": not is_part})
    outcome = {"passed": not (result.changed or result.refused), "whole": result.whole}
    words, tree = f"{result.summary}, compared with {result.base}", session.cub
    record_proof(session.store, tree, "verify-sass", words, session.note, **outcome)
    return result


def compare_earlier(
    session: Session, base: Base, announce: Callable[[SassCompiles], None] | None = None
) -> VerifySass:
    """Compares the machine code of the architectures that a change should not affect.

    Only compiles what the change can touch. `announce` gets the estimate first.
    """
    compiles, tools = _compiles_since(session, base)
    with _compiling(compiles, tools, None, announce, session.progress) as compiler:
        result = _compare(compiles, compiler, allow_moved=False)
    return result.model_copy(update={"whole": True})


def tell_earlier(session: Session, base: str | None = None) -> SassCompiles:
    """Estimates what a review would compile to compare machine code, and how long that takes."""
    return _estimate(*_compiles_since(session, find_base_tree(session, base)[0]), None)


def _compiles_since(session: Session, base: Base) -> tuple[Compiles, KernelTools]:
    tools = find_kernel_tools(session.cub)
    chosen = Chosen(re.compile(""), {}, everything=False)
    compiles = choose_compiles(session.cub, base, chosen, (), tools)
    return narrowed(compiles, session.progress), tools


def _estimate(compiles: Compiles, tools: KernelTools, jobs: int | None) -> SassCompiles:
    """Estimates what will be compiled, and how long that takes."""
    one_side = compiles.base is None or compiles.base.index
    sides = (compiles.after,) if one_side else (compiles.before, compiles.after)
    units = sum(spot[0] in side for side in sides for spot in compiles.spots)
    at_once = workers_of(jobs)
    return SassCompiles(
        base=compiles.base.label if compiles.base else "nothing",
        toolchain=str(tools),
        archs=compiles.archs,
        workloads=len(compiles.spots),
        changed=compiles.changed,
        untouched=compiles.untouched,
        units=units,
        at_once=at_once,
        minutes=round(units * tools.seconds / at_once / 60, 1),
        remarks=compiles.remarks,
    )


@contextmanager
def _compiling(
    compiles: Compiles,
    tools: KernelTools,
    jobs: int | None,
    announce: Callable[[SassCompiles], None] | None,
    progress: Progress | None,
) -> Iterator[KernelCompiler]:
    """Announces what will be compiled, and creates a compiler with its worker processes."""
    if announce and (estimate := _estimate(compiles, tools, jobs)).units:
        announce(estimate)
    with threads(workers_of(jobs)) as executor:
        yield KernelCompiler(tools, cache_folder(), executor, progress)


def _save_dumps(compiles: Compiles, compiler: KernelCompiler, folder: Path) -> DumpIndex:
    """Saves the kernels of the side after: all of them, or none."""
    compiled = compile_side(compiles.after, compiles.spots, compiler)
    if errors := [result for result in compiled.values() if isinstance(result, PolicygenError)]:
        raise together(errors)
    units = {
        spot: result for spot, result in compiled.items() if not isinstance(result, PolicygenError)
    }
    cub = compiles.cub
    # For libraries other than CUB, the title includes the library's name.
    title = cub.release if cub.release.partition("@")[2] else cub.version
    return kernel_units.save(folder, units, compiles.units, title, str(compiler.tools))


def _compare(compiles: Compiles, compiler: KernelCompiler, *, allow_moved: bool) -> VerifySass:
    """Compiles both sides and compares their kernels."""
    base, archs, tools = compiles.base, compiles.archs, str(compiler.tools)
    assert base is not None
    if base.index is not None:
        after = compile_side(compiles.after, compiles.spots, compiler)
        sides = Sides({spot: base.dumps[spot] for spot in after if spot in base.dumps}, after)
    else:
        sides = compile_sides(compiles.before, compiles.after, compiles.spots, compiler)
    outcome = verdicts(sides, compiles.meant)
    remarks = [*compiles.remarks, *_without_effect(compiles, sides)]
    if base.index is not None and base.index.toolchain != tools:
        remarks.append(f"the dumps were made with {base.index.toolchain}")
    rows = outcome.rows
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
        renamings=tuple(outcome.renamed),
        different=tuple(outcome.different),
        allow_moved=allow_moved,
        only_before=tuple(outcome.only_before),
        only_after=tuple(outcome.only_after),
        refused=tuple(outcome.refused),
    )


def _without_effect(compiles: Compiles, sides: Sides) -> Iterator[str]:
    """Reports workloads that get different values but have the same machine code."""
    changed = compiles.spots[: compiles.changed]
    unchanged = [spot for spot in changed if not sides.refusal(spot) and sides.same_code(spot)]
    if unchanged:
        (name, workload), arch = unchanged[0]
        rest = f" and {len(unchanged) - 1:,} more" if len(unchanged) > 1 else ""
        yield (
            f"{in_words(name, dict(workload))} on {arch}{rest}: different values, but the same"
            " machine code: the call does not use them or does not depend on them"
        )


def _checkout(include: Path, pattern: re.Pattern[str], nvbench: Path | None) -> Checkout:
    """Finds the benchmarks beside a tree."""
    errors: list[SourceError] = []
    root = checkout(include.parent)
    matching = [file for file in find(root, errors) if pattern.match(file.name)]
    if errors:
        raise Problems(errors)
    files = {file.name: file.path for file in matching}
    folders = (*map(str, helper_folders(root)), *find_nvbench(nvbench, cache_folder()))
    return Checkout(benchmarks_folder(root), files, narrowing(matching), folders)
