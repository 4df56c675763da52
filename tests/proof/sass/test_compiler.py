import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import pytest

from policygen.bindings.load import types
from policygen.errors import PolicygenError
from policygen.model.machine_code import Kernel
from policygen.process import threads, workers_of
from policygen.proof.kernel_build import Tools
from policygen.proof.kernel_calls import WorkloadFilters, calls
from policygen.proof.kernel_comparison import Sides, compile_sides, verdicts
from policygen.proof.kernel_units import KernelCompiler
from policygen.proof.toolchain import find_toolchain
from policygen.steps import HowFar
from policygen.trees import open_tree
from tests.probing import TUNINGS, changed_tree, root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

HELPER = types().helper_kernels[0]
ONE = {"KeyT": frozenset({"I8", "I16"}), "OffsetT": frozenset({"I32", "I64"})}


@pytest.fixture(scope="module")
def tools():
    toolchain = find_toolchain()
    return Tools.of(toolchain)


@pytest.fixture(scope="module")
def four():
    """Four workloads of two units: no key depends on the type of offsets."""
    cub = open_tree(root("3.0.1"))
    wanted = WorkloadFilters(re.compile("cub.bench.merge.keys$"), ONE)
    found, _ = calls(cub, cub.include_folders, wanted)
    return [((point, "sm90"), called) for point, called in found.items()]


@pytest.mark.slow
def test_any_executor_compiles_and_equal_units_are_compiled_once(tools, four, tmp_path):
    told = []
    with ProcessPoolExecutor(1) as pool:
        compiler = KernelCompiler(tools, tmp_path, pool, told.append)
        contents = compiler.contents(four)
        kernels = compiler.kernels(four, contents, listed=True)
    units = {called.text for _, called in four}
    assert len(units) < len(four)
    assert list(dict.fromkeys((one.phase, one.total) for one in told)) == [
        ("reading headers", 1),
        ("disassembling", len(units)),
    ]
    assert told[-1] == HowFar("disassembling", len(units), len(units))
    names = {name for one in told if one.phase == "disassembling" for name in one.running}
    assert names
    assert all(
        re.fullmatch(r"cub.bench.merge.keys KeyT=I\d+ OffsetT=I\d+ on sm90", n) for n in names
    )
    with ThreadPoolExecutor(2) as pool:
        again = KernelCompiler(replace(tools, nvcc="/absent"), tmp_path, pool)
        assert again.kernels(four, again.contents(four), listed=True) == kernels


@pytest.mark.slow
def test_one_that_is_refused_does_not_end_the_others(tools, four, tmp_path):
    (spot, called), other = four[0], four[-1]
    call = called.workload.call.model_copy(update={"algorithm_call": "not_declared()"})
    broken = replace(called, workload=replace(called.workload, call=call))
    before = {spot[0]: broken, other[0][0]: other[1]}
    after = {spot[0]: called}
    with threads(workers_of(2)) as pool:
        spots = [(point, "sm90") for point in before]
        sides = compile_sides(before, after, spots, KernelCompiler(tools, tmp_path, pool))
    found = verdicts(sides)
    (refused,) = found.refused
    assert refused.side == "before"
    assert "not_declared" in refused.message
    assert [(row.refused, row.only_before, row.equal) for row in found.rows] == [
        (1, len(found.only_before), 0)
    ]
    assert found.only_before
    assert isinstance(sides.before[spot], PolicygenError)


@pytest.mark.slow
def test_trees_with_the_same_files_are_preprocessed_once(tools, four, tmp_path):
    """Headers that a change does not reach cost one run of nvcc, and not one for each side."""
    runs, nvcc = tmp_path / "runs", tmp_path / "nvcc"
    nvcc.write_text(f'#!/bin/sh\necho "$1" >> {runs}\nexec {tools.nvcc} "$@"\n')
    nvcc.chmod(0o755)
    counting = replace(tools, nvcc=str(nvcc))
    tuning = (root("3.0.1") / TUNINGS / "tuning_merge.cuh").read_bytes()
    trees = [changed_tree(tmp_path / n, "3.0.1", {"tuning_merge.cuh": tuning}) for n in "ab"]
    sides = [{spot[0]: replace(unit, includes=(str(t),)) for spot, unit in four} for t in trees]

    def preprocessed():
        with threads(workers_of(1)) as pool:
            compiler = KernelCompiler(counting, tmp_path / "cache", pool)
            spots = [(point, arch) for arch in ("sm80", "sm90") for point in sides[0]]
            found = compile_sides(*sides, spots, compiler)
        assert found.identical == {*spots}
        return runs.read_text().split()

    assert preprocessed() == ["-E"] * 2, "for two architectures, of two sides"
    # A header may ask whether it is there: both sides are looked at.
    (trees[1] / "cub" / "new.cuh").write_text("")
    assert preprocessed() == ["-E"] * 4


def test_helpers_alone_are_not_called_equal():
    name = f"_Z{len(HELPER)}{HELPER}v"
    helper = (Kernel(name=name, code=("EXIT",), resources={}),)
    spot = ("cub.bench.merge.keys", ()), "sm90"
    found = verdicts(Sides({spot: helper}, {spot: helper}))
    assert [(row.kernels, row.refused) for row in found.rows] == [(0, 1)]
    assert [(one.side, one.message) for one in found.refused] == [
        (
            "after",
            "it contains only helper kernels that are never launched; nothing to compare",
        )
    ]


def test_nothing_compared_is_nothing_found():
    found = verdicts(Sides({}, {}))
    assert (found.rows, found.different) == ((), [])
