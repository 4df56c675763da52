"""What planning asks of the compiler, where nothing needs to be compiled."""

import pytest

from policygen.model.selection import DeltaRow, Resolution, ResolvedRow
from policygen.proof.oracle import compiler_for
from tests.probing import header, read, root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

THREE = "tuning_three_way_partition.cuh"


@pytest.fixture
def compiler():
    return compiler_for(read(root("3.0.1"), THREE))


def resolution(compiler, spots, items):
    """One that has the same values for all workloads but the first."""
    rows = [
        ResolvedRow(
            benchmark=benchmark,
            workload=dict(workload),
            arch=arch,
            values={"items": 1 if number else items},
            entry=None,
            status="default",
        )
        for number, ((benchmark, workload), arch) in enumerate(spots)
    ]
    return Resolution(cub=compiler.sources.cub, toolchain="nvcc", archs=("sm90",), rows=rows)


def test_two_resolutions_are_a_comparison_where_they_hold_all_that_is_asked(compiler):
    changed = {THREE: header("3.0.1", THREE) + b"\n"}
    asked = compiler._questions(changed)
    spots = [(workload.point, arch) for one in asked for workload, arch in one.spots]
    before, after = (resolution(compiler, spots, items) for items in (7, 8))
    lacking = before.model_copy(update={"rows": before.rows[1:]})
    compiler.take(changed, lacking, after)
    assert compiler.comparisons == {}
    compiler.take(changed, before, after)
    found = compiler.compare(changed)
    assert (found.compared, found.changes) == (
        len(spots),
        (DeltaRow(*spots[0][0], spots[0][1], {"items": 7}, {"items": 8}),),
    )
    assert set(found.archs) == {arch for one in asked for arch in one.archs}
