"""C++ units: a workload's inputs, and its algorithm with the policies of variants."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product

from policygen import rendering
from policygen.bindings.load import bound, sites_of
from policygen.errors import InputError
from policygen.headers.selectors.functions import Field, returned
from policygen.model.bindings import BenchmarkBinding, RunBinding, Site
from policygen.model.trees import Cub
from policygen.proof.units import Workload, axis_declaration, axis_headers
from policygen.rendering import fill
from policygen.results.tables import axes_of

INPUTS = "measure/inputs.cu.j2"
VARIANTS = "measure/variants.cu.j2"
RUNNER = "measure/runner.cu"
FUNCTION = "policygen_run_{}"
STD = 17
"""C++ standard of units, which has no designated initializers."""
_ENVIRONMENT = (
    "cuda/__execution/tune.h",
    "cuda/__memory_resource/get_memory_resource.h",
    "cuda/__memory_resource/properties.h",
    "cuda/std/__execution/env.h",
    "cuda/stream_ref",
    "new",
)


@dataclass(frozen=True, slots=True)
class RuntimePoint:
    """A runtime workload: its axis values and the numbers that a unit takes."""

    values: Mapping[str, str]
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """A workload of a benchmark and how it runs in a tree."""

    cub: Cub
    site: Site
    workload: Workload
    binding: RunBinding
    axes: Mapping[str, tuple[str, ...]]
    """Runtime axis → its declared values."""

    @property
    def benchmark(self) -> BenchmarkBinding:
        """The benchmark."""
        assert isinstance(self.workload.call, BenchmarkBinding)
        return self.workload.call

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the runtime axes in units."""
        return tuple(map(plain_axis, self.axes))

    @property
    def points(self) -> tuple[RuntimePoint, ...]:
        """All runtime workloads."""
        points = []
        for values in product(*self.axes.values()):
            numbers = tuple(map(self._number, self.axes, values))
            points.append(RuntimePoint(dict(zip(self.axes, values, strict=True)), numbers))
        return tuple(points)

    def _number(self, axis: str, value: str) -> int:
        words = self.binding.words.get(axis)
        if words is None:
            return _number(axis, value)
        if value not in words:
            raise InputError(f"the value {value!r} of {axis} is not one of {', '.join(words)}")
        return words.index(value)


def inputs_text(run: WorkloadRun) -> str:
    """Render the unit of a workload's buffers."""
    binding = run.binding
    references = {buffer.beside for buffer in binding.buffers.values()}
    buffers = [
        {
            **buffer.model_dump(),
            "name": name,
            "compared": bool(buffer.result) or name in references,
            "beside": buffer.beside and list(binding.buffers).index(buffer.beside),
            "bitwise": any(any_buffer.exact for any_buffer in binding.buffers.values()),
        }
        for name, buffer in binding.buffers.items()
    ]
    values = {**_prelude(run, ()), "sizes": binding.sizes, "skip": binding.skip}
    return fill(INPUTS, {**values, "buffers": buffers})


def variants_text(
    run: WorkloadRun,
    variants: Sequence[Mapping[str, str] | None],
    policy: str | None = None,
    fields: tuple[Field, ...] = (),
) -> str:
    """Render a unit of variants; each is a whole policy, or None for CUB's default.

    `policy` is the aggregate in namespace cub that selectors return: `ScanPolicy`.
    """
    binding = run.binding
    form = binding.form_in(run.cub.bindings.text)
    in_environment = form == "environment"
    values = {
        **_prelude(run, _ENVIRONMENT if in_environment else ()),
        "sizes": list(binding.sizes),
        "buffers": [
            {"name": name, "type": buffer.type} for name, buffer in binding.buffers.items()
        ],
        "setup": binding.setup.strip(),
        "function": binding.function,
        "arguments": binding.arguments,
        "environment": binding.environment if in_environment else None,
        "last": "stream" if binding.environment == "env" else binding.environment,
        "storage": form == "storage",
        "policy": policy,
        "variants": [
            {
                "number": number,
                "policy": None if variant is None else returned(fields, variant, STD, 2),
            }
            for number, variant in enumerate(variants)
        ],
    }
    return fill(VARIANTS, values)


def plain_axis(axis: str) -> str:
    """Convert `Elements{io}[pow2]` to its name in the binding's C++."""
    return _DECORATION.sub("", axis)


def runner_text() -> str:
    """Read the unit that times calls."""
    return (rendering.folder("templates") / RUNNER).read_text(encoding="utf-8")


def _prelude(run: WorkloadRun, environment_headers: Sequence[str]) -> dict[str, object]:
    call, values, version = run.benchmark, run.workload.values, run.cub.bindings
    headers = {*run.site.includes, *run.binding.includes, *axis_headers(run.workload, version)}
    includes = [*filter(None, [call.call_header]), *sorted({*headers, *environment_headers})]
    return {
        "includes": list(dict.fromkeys(includes)),
        "axes": [
            axis_declaration(axis, text, version)
            for axis, text in values.items()
            if axis in call.axes
        ],
        "roles": call.roles,
        "constants": call.constants,
        "support": run.binding.support.strip(),
        "namespaces": run.site.namespace.split("::"),
        "numbers": list(run.numbers),
    }


POWER = "[pow2]"
"""Suffix of axes whose values are exponents: `Elements{io}[pow2]`."""
THOUSANDTHS = 1000
_DECORATION = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\W")


# Runs and runtime workloads


def runs_of(cub: Cub, workload: Workload) -> tuple[WorkloadRun, ...]:
    """Return how a workload runs, by sub-benchmark; raise InputError if no binding defines it."""
    benchmark = workload.call
    assert isinstance(benchmark, BenchmarkBinding)
    declared = axes_of(cub.version)
    runs = tuple(
        WorkloadRun(
            cub,
            site,
            workload,
            run.of(subbench),
            run.axes or _declared_axes(declared, workload, subbench),
        )
        for algorithm in bound(cub.bindings)
        if benchmark in algorithm.benchmarks
        for site in sites_of(algorithm, cub.dialect)
        if site.name == benchmark.site
        for run in algorithm.runs
        if benchmark.name in run.benchmarks
        and all(workload.values.get(axis) in values for axis, values in run.workload.items())
        for subbench in run.every_subbench
    )
    if not runs:
        reason = benchmark.unmeasured or "no binding says how it runs"
        raise InputError(
            f"{workload.name} cannot be measured: {reason}",
            "Add a [[run]] table to schemas/bindings; docs/reference/bindings.md lists its keys.",
        )
    return runs


def _declared_axes(
    declared: Mapping[tuple[str, str, str], tuple[str, ...]], workload: Workload, subbench: str
) -> dict[str, tuple[str, ...]]:
    assert isinstance(workload.call, BenchmarkBinding)
    benchmark = workload.call.name
    # Types that the benchmark gives no names look like runtime axes: `T` of cub.bench.find_if.
    axes = {
        axis: values
        for (name, table_subbench, axis), values in declared.items()
        if (name, table_subbench) == (benchmark, subbench) and axis not in workload.values
    }
    if not axes:
        raise InputError(
            f"{benchmark} cannot be measured: its runtime workloads are unknown",
            "Declare its runtime axes in schemas/axes.toml.",
        )
    return axes


def _number(axis: str, value: str) -> int:
    """Convert a value for units: 2^16, a fraction in thousandths, or the number itself."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise InputError(f"the value {value!r} of {axis} is not a number") from None
    if axis.endswith(POWER):
        return 1 << int(number)
    return int(number * THOUSANDTHS) if "." in value else int(number)
