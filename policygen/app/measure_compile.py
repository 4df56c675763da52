"""Compiles the variants of workloads, and measures none: how many there are, differ, and fail."""

from collections.abc import Sequence
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.measure_variants import (
    ChosenWorkload,
    VariantsWanted,
    check_compiles,
    choose_lot,
    compile_lot,
    work_folder,
)
from policygen.app.serving import check_serves
from policygen.app.session import Session
from policygen.errors import PolicygenError
from policygen.measure.compiling import CompiledWorkload
from policygen.measure.objects import ObjectCompiler
from policygen.model.measure import CompiledSpace, FailedVariant, MeasureCompile, Unmeasured
from policygen.proof.deps import Listings
from policygen.proof.toolchain import find_toolchain


def compile_variants(
    session: Session,
    where: Filter,
    arch: str,
    wanted: VariantsWanted | None = None,
    *,
    slots: int | None = None,
) -> MeasureCompile:
    """Compiles variants of the workloads that are meant, for an architecture; needs no GPU."""
    check_serves("measure", session.cub)
    wanted = wanted or VariantsWanted()
    toolchain = find_toolchain()
    check_compiles(toolchain, arch)
    lot = choose_lot(session, where, arch, wanted)
    chosen, refused = lot.chosen, dict(lot.refused)
    with work_folder() as folder:
        compiler = ObjectCompiler(toolchain, Path(folder), Listings())
        made = compile_lot(session, chosen, compiler, slots)
    spaces = []
    for point, what in chosen.items():
        try:
            spaces.append(_space(what, made[point]))
        except PolicygenError as error:
            refused[point] = error.in_line
    drawn = wanted.count is not None and not wanted.labels
    return MeasureCompile(
        cub=session.cub,
        toolchain=f"nvcc {toolchain.version}",
        arch=arch,
        seed=wanted.seed if drawn else None,
        workloads=tuple(spaces),
        unmeasured=tuple(
            Unmeasured(benchmark=point[0], workload=dict(point[1]), arch=arch, reason=reason)
            for point, reason in refused.items()
        ),
    )


def _space(
    chosen: ChosenWorkload, made: Sequence[CompiledWorkload | PolicygenError]
) -> CompiledSpace:
    """What the compiler said; a variant that fails in a sub-benchmark has failed."""
    failed = dict(chosen.candidates.refused)
    for one in made:
        if isinstance(one, PolicygenError):
            raise one
        failed = {**one.failed, **failed}
    benchmark, workload = chosen.opened.meaning.point
    variants, valid, distinct = chosen.counted
    asked = len(chosen.candidates.made) + len(chosen.candidates.refused)
    labels = [one.label for one in chosen.classified.distinct]
    return CompiledSpace(
        benchmark=benchmark,
        workload=dict(workload),
        arch=chosen.opened.meaning.arch,
        how="headers" if chosen.opened.headers else "policies",
        variants=variants,
        valid=valid,
        distinct=distinct,
        asked=asked,
        compiled=asked - len(failed),
        base=chosen.candidates.base,
        failed=tuple(
            FailedVariant(variant=label, reason=failed[label])
            for label in labels
            if label in failed
        ),
        dropped=dict(chosen.classified.dropped),
    )
