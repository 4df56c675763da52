"""The C++ of units: a workload's inputs, and its algorithm with the policies of variants."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product

from policygen import rendering
from policygen.bindings.load import Bound, bound
from policygen.errors import InputError
from policygen.headers.selectors.functions import Field
from policygen.headers.user.header import returned
from policygen.model.bindings import BenchmarkBinding, RunBinding, Site
from policygen.model.trees import Cub
from policygen.model.workload import in_words
from policygen.proof.sites import sites_of
from policygen.proof.units import Workload, axis_declaration, axis_headers
from policygen.rendering import fill
from policygen.results.tables import axes_of

INPUTS = "measure/inputs.cu.j2"
VARIANTS = "measure/variants.cu.j2"
RUNNER = "measure/runner.cu"
FUNCTION = "policygen_run_{}"
STD = 17
"""The language of units: no designated initializers."""
_ENVIRONMENT = (
    "cuda/__execution/tune.h",
    "cuda/__memory_resource/get_memory_resource.h",
    "cuda/memory_resource",
    "cuda/std/__execution/env.h",
    "cuda/stream_ref",
    "new",
)


@dataclass(frozen=True, slots=True)
class PublicPolicy:
    """The aggregate that policy selectors return."""

    name: str
    """`ScanPolicy`, in namespace cub."""
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class RuntimePoint:
    """A runtime workload: as databases name it, and as a unit takes it."""

    values: Mapping[str, str]
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """A workload of a benchmark, and how it runs in one tree."""

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
        """What units call the runtime axes."""
        return tuple(_DECORATION.sub("", axis) for axis in self.axes)

    @property
    def points(self) -> tuple[RuntimePoint, ...]:
        """All runtime workloads."""
        return tuple(
            RuntimePoint(
                dict(zip(self.axes, values, strict=True)),
                tuple(map(self._number, self.axes, values)),
            )
            for values in product(*self.axes.values())
        )

    def _number(self, axis: str, value: str) -> int:
        words = self.binding.words.get(axis)
        if words is None:
            return _number(axis, value)
        if value not in words:
            raise InputError(f"the value {value!r} of {axis} is none of {', '.join(words)}")
        return words.index(value)


def inputs_text(run: WorkloadRun) -> str:
    """Writes the unit of a workload's buffers."""
    binding = run.binding
    beside = {one.beside for one in binding.buffers.values()}
    buffers = [
        {
            "name": name,
            "type": one.type,
            "count": one.count,
            "fill": one.fill,
            "exact": one.exact,
            "result": one.result,
            "compared": bool(one.result) or name in beside,
            "tolerance": one.tolerance,
            "same": one.same,
            "modified": one.modified,
            "group": one.group,
            "beside": one.beside and list(binding.buffers).index(one.beside),
            "bitwise": any(other.exact for other in binding.buffers.values()),
        }
        for name, one in binding.buffers.items()
    ]
    values = {**_prelude(run, ()), "sizes": binding.sizes, "skip": binding.skip}
    return fill(INPUTS, {**values, "buffers": buffers})


def variants_text(
    run: WorkloadRun,
    variants: Sequence[Mapping[str, str] | None],
    policy: PublicPolicy | None = None,
) -> str:
    """Writes a unit of variants, each the values of a whole policy, or nothing for CUB's own."""
    binding = run.binding
    form = binding.form_in(run.cub.bindings)
    in_environment = form == "environment"
    values = {
        **_prelude(run, _ENVIRONMENT if in_environment else ()),
        "sizes": list(binding.sizes),
        "buffers": [{"name": n, "type": one.type} for n, one in binding.buffers.items()],
        "setup": binding.setup.strip(),
        "function": binding.function,
        "arguments": binding.arguments,
        "environment": binding.environment if in_environment else None,
        "last": "stream" if binding.environment == "env" else binding.environment,
        "storage": form == "storage",
        "policy": policy and policy.name,
        "variants": [
            {"number": number, "policy": _returned(policy, one)}
            for number, one in enumerate(variants)
        ],
    }
    return fill(VARIANTS, values)


def runner_text() -> str:
    """Reads the unit that times calls."""
    return (rendering.folder("templates") / RUNNER).read_text(encoding="utf-8")


def _returned(policy: PublicPolicy | None, values: Mapping[str, str] | None) -> str | None:
    if values is None:
        return None
    assert policy is not None
    return returned(policy.fields, values, STD, 2)


def _prelude(run: WorkloadRun, more: Sequence[str]) -> dict[str, object]:
    call, values = run.benchmark, run.workload.values
    version = run.cub.bindings
    return {
        "includes": list(dict.fromkeys(_includes(run, more))),
        "axes": [
            axis_declaration(a, text, version) for a, text in values.items() if a in call.axes
        ],
        "roles": call.roles,
        "constants": call.constants,
        "support": run.binding.support.strip(),
        "namespaces": run.site.namespace.split("::"),
        "numbers": list(run.numbers),
    }


def _includes(run: WorkloadRun, more: Sequence[str]) -> Iterator[str]:
    if run.benchmark.call_header:
        yield run.benchmark.call_header
    others = {
        *run.site.includes,
        *run.binding.includes,
        *axis_headers(run.workload, run.cub.bindings),
    }
    yield from sorted({*others, *more})


POWER = "[pow2]"
"""Behind an axis whose values are exponents: `Elements{io}[pow2]`."""
THOUSANDTHS = 1000
_DECORATION = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\W")


# How a workload runs: its binding, its runtime workloads, and what they are as numbers.


def runs_of(cub: Cub, workload: Workload) -> tuple[WorkloadRun, ...]:
    """How a workload runs, by sub-benchmark; refused where no binding says it."""
    benchmark = workload.call
    assert isinstance(benchmark, BenchmarkBinding)
    declared = axes_of(cub.version)
    found = tuple(
        WorkloadRun(
            cub, site, workload, run.of(one), run.axes or _declared(declared, workload, one)
        )
        for site, run in _bound(cub, benchmark)
        if _holds(run, workload)
        for one in run.every_subbench
    )
    if not found:
        name = in_words(benchmark.name, dict(workload.values))
        raise InputError(
            f"{name} cannot be measured: {benchmark.unmeasured or 'no binding says how it runs'}",
            "A [[run]] table of schemas/bindings does: docs/bindings.md has its keys.",
        )
    return found


def _bound(cub: Cub, benchmark: BenchmarkBinding) -> Iterator[tuple[Site, RunBinding]]:
    for algorithm in bound(cub.bindings):
        if benchmark in algorithm.benchmarks:
            site = _site(algorithm, cub, benchmark)
            yield from ((site, run) for run in algorithm.runs if benchmark.name in run.benchmarks)


def _site(algorithm: Bound, cub: Cub, benchmark: BenchmarkBinding) -> Site:
    return next(one for one in sites_of(algorithm, cub.dialect) if one.name == benchmark.site)


def _holds(run: RunBinding, workload: Workload) -> bool:
    return all(workload.values.get(axis) in values for axis, values in run.workload.items())


def _declared(
    declared: Mapping[tuple[str, str, str], tuple[str, ...]], workload: Workload, subbench: str
) -> dict[str, tuple[str, ...]]:
    assert isinstance(workload.call, BenchmarkBinding)
    benchmark = workload.call.name
    # Types that the benchmark gives no names look like runtime axes: `T` of cub.bench.find_if.
    found = {
        axis: values
        for (name, bench, axis), values in declared.items()
        if (name, bench) == (benchmark, subbench) and axis not in workload.values
    }
    if not found:
        raise InputError(
            f"{benchmark} cannot be measured: its runtime workloads are not known",
            "schemas/axes.toml has the declared values of runtime axes.",
        )
    return found


def _number(axis: str, value: str) -> int:
    """A value as units take it: 2^16, a share in thousandths, or as it stands."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise InputError(f"the value {value!r} of {axis} is no number") from None
    if axis.endswith(POWER):
        return 1 << int(number)
    return int(number * THOUSANDTHS) if "." in value else int(number)
