"""Units of workloads on real trees, compiled once for all tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.resolve import resolve_workloads
from policygen.app.session import Session
from policygen.bindings.load import bound
from policygen.gpu.compiling import ObjectCompiler, ObjectSource
from policygen.gpu.units import WorkloadRun, inputs_text, runner_text, runs_of, variants_text
from policygen.model.bindings import BenchmarkBinding
from policygen.model.trees import Cub
from policygen.paths import cache_folder
from policygen.proof.compile import Listings
from policygen.proof.probe import workloads
from policygen.proof.toolchain import find_toolchain
from policygen.proof.units import Workload
from policygen.trees.lookup import open_tree
from tests.real_trees import tree

ARCH = "sm90"


@dataclass(frozen=True, slots=True)
class Units:
    """A workload's objects."""

    run: WorkloadRun
    inputs: Path
    base: Path


@cache
def cub(version: str) -> Cub:
    """A version of CUB."""
    return open_tree(tree(version))


@cache
def compiler() -> ObjectCompiler:
    """What compiles, and keeps what it made beside the trees."""
    folder = cache_folder() / "test-units"
    folder.mkdir(parents=True, exist_ok=True)
    return ObjectCompiler(find_toolchain(), folder, Listings())


@cache
def benchmarks(version: str) -> Mapping[str, BenchmarkBinding]:
    """The benchmarks that are bound, by name."""
    return {one.name: one for found in bound(cub(version).bindings) for one in found.benchmarks}


def workload(version: str, benchmark: str, **axes: str) -> Workload:
    """The first workload of a benchmark with some values."""
    points = workloads(benchmarks(version)[benchmark], cub(version).bindings)
    return next(one for one in points if axes.items() <= one.values.items())


def runs(version: str, benchmark: str, **axes: str) -> tuple[WorkloadRun, ...]:
    """How that workload runs."""
    return runs_of(cub(version), workload(version, benchmark, **axes))


@cache
def _made(text: str, includes: tuple[str, ...]) -> Path:
    return compiler().make(ObjectSource(text, includes, ARCH))


def units(run: WorkloadRun) -> Units:
    """Compiles the inputs of a workload, and base; a failure shows the compiler's words."""
    folders = tuple(str(one) for one in run.cub.include_folders)
    base = _made(variants_text(run, [None]), folders)
    return Units(run, _made(inputs_text(run), folders), base)


def values(run: WorkloadRun) -> dict[str, int]:
    """What CUB selects for a workload, as far as it is numbers."""
    axes = tuple(f"{axis}={value}" for axis, value in run.workload.values.items())
    asked = Filter(regex=f"{run.benchmark.name}$", axes=axes, archs=(ARCH,))
    found, errors = resolve_workloads(Session(run.cub), asked)
    assert not errors
    (row,) = found.rows
    return {name: int(value) for name, value in row.values.items() if str(value).isdigit()}


def runner() -> Path:
    """Compiles the runner."""
    return _made(runner_text(), ())
