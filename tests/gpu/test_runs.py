"""Every benchmark that is searched has a run, or says why not; what runs say fits the units."""

import re
from itertools import chain

import pytest

from policygen import rendering
from policygen.bindings.load import bindings
from policygen.errors import InputError
from policygen.gpu import units
from policygen.gpu.units import inputs_text, runs_of, variants_text
from policygen.model.bindings import RunBinding
from policygen.proof.probe import workloads
from tests.gpu import compiled

VERSIONS = ("2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0")
_ARGUMENTS = frozenset({"axes", "sizes", "buffers", "exact", "arena", "stream", "tuning"})
_LOCAL = frozenset({"to", "count", "seed", "env", "storage", "error"})
_COMPARED = frozenset({"bytes", "got", "expected", "first", "buffer", "differ", "left", "right"})
OWN = {"sizes": _ARGUMENTS | _LOCAL | _COMPARED, "buffers": _ARGUMENTS | _LOCAL}
"""What units call their own: no binding's names may be these."""
# cudaError_t uniform(T* to, long long count, long long entropy, T least, T most)
_GENERATOR = re.compile(r"^(?:inline )?cudaError_t (\w+)\(", re.M)
_RUNS = tuple(run for binding in bindings() for run in binding.runs)


def _named(run: RunBinding) -> str:
    return f"{run.benchmarks[0]}-{run.since or ''}-{'-'.join(chain(*run.workload.values()))}"


def _generators() -> frozenset[str]:
    folder = rendering.folder("templates") / "measure"
    return frozenset(
        name for path in folder.glob("*.cuh") for name in _GENERATOR.findall(path.read_text())
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_benchmark_that_is_searched_has_a_run_or_a_reason(version: str) -> None:
    cub = compiled.cub(version)
    without = set()
    for name, benchmark in compiled.benchmarks(version).items():
        if not benchmark.writable or not benchmark.parameters:
            continue
        for point in workloads(benchmark, cub.bindings):
            try:
                found = runs_of(cub, point)
            except InputError:
                if not benchmark.unmeasured:
                    without.add(name)
                continue
            assert not benchmark.unmeasured, name
            assert all(run.points for run in found)
            by_subbench = [run.binding.subbench for run in found]
            assert len(by_subbench) == len(set(by_subbench)), point.name
    assert not without


@pytest.mark.parametrize("version", VERSIONS)
def test_units_of_every_run_can_be_written(version: str) -> None:
    cub = compiled.cub(version)
    written = 0
    for name, benchmark in compiled.benchmarks(version).items():
        points = workloads(benchmark, cub.bindings)
        for point in {points[0].name: points[0], points[-1].name: points[-1]}.values():
            try:
                found = runs_of(cub, point)
            except InputError:
                continue
            for run in found:
                base = variants_text(run, [None])
                assert inputs_text(run).count("policygen_shape(") == 1
                assert base.count("int policygen_run_0(") == 1
                form = run.binding.form_in(cub.bindings.text)
                assert ("policygen_storage" in base) is (form == "environment"), name
                assert ("size_t storage = 0" in base) is (form == "storage"), name
                public = version in {"3.5.0", "3.6.0"} and run.binding.form == "environment"
                assert (form == "environment") is public, name
                written += 1
    assert written > 20


@pytest.mark.parametrize("run", _RUNS, ids=_named)
def test_names_of_a_run_are_none_of_the_units_own(run: RunBinding) -> None:
    assert not OWN["sizes"] & run.sizes.keys()
    assert not (OWN["buffers"] | _generators()) & run.buffers.keys()
    assert not run.sizes.keys() & run.buffers.keys()


@pytest.mark.parametrize("run", _RUNS, ids=_named)
def test_contents_come_from_generators_and_results_are_compared(run: RunBinding) -> None:
    known = _generators()
    beside = {one.beside for one in run.buffers.values()}
    for name, buffer in run.buffers.items():
        for call in filter(None, (buffer.fill, buffer.exact)):
            assert re.split(r"[<(]", call)[0] in known
        read_or_compared = buffer.fill or buffer.result or name in beside
        assert read_or_compared, "neither read nor compared"
    assert any(one.result for one in run.buffers.values())


def test_a_share_is_in_thousandths_and_a_power_is_what_it_stands_for() -> None:
    (run,) = compiled.runs("3.6.0", "cub.bench.partition.if")
    point = next(
        one for one in run.points if one.values == {"Elements{io}[pow2]": "20", "Entropy": "0.544"}
    )
    assert run.numbers == ("Elements", "Entropy")
    assert point.numbers == (1 << 20, 544)


def test_types_without_names_of_their_own_are_no_runtime_axes() -> None:
    (run,) = compiled.runs("3.6.0", "cub.bench.find_if.base", T="I128", U="I64")
    assert run.numbers == ("Elements", "MismatchAt")
    assert {one.numbers[1] for one in run.points} == {1, 500, 0}


def test_a_benchmark_without_a_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    point = compiled.workload("3.6.0", "cub.bench.select.if")
    monkeypatch.setattr(units, "bound", lambda _: ())
    with pytest.raises(InputError, match="no binding says how it runs"):
        runs_of(compiled.cub("3.6.0"), point)
    reason = {"unmeasured": "its inputs are files"}
    object.__setattr__(point, "call", point.call.model_copy(update=reason))
    with pytest.raises(InputError, match="cannot be measured: its inputs are files"):
        runs_of(compiled.cub("3.6.0"), point)


def test_a_workload_without_declared_sizes_cannot_be_measured() -> None:
    benchmark = compiled.benchmarks("3.6.0")["cub.bench.reduce.sum"]
    point = next(iter(workloads(benchmark, compiled.cub("3.6.0").bindings)))
    with pytest.raises(InputError) as caught:
        units._declared_axes({}, point, "base")
    assert str(caught.value) == (
        "cub.bench.reduce.sum cannot be measured: its runtime workloads are unknown\n"
        "  Declare its runtime axes in schemas/axes.toml."
    )


def test_a_size_is_a_number() -> None:
    with pytest.raises(InputError, match=r"the value 'many' of Elements\[pow2\] is not a number"):
        units._number("Elements[pow2]", "many")
