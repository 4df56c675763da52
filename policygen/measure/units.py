"""The C++ of units: a workload's inputs, and its algorithm with the policies of variants."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen import resources
from policygen.dialects.selectors.aggregates import Field
from policygen.dialects.user.layout import returned
from policygen.measure.runs import WorkloadRun
from policygen.proof.unit import axis_declaration, axis_headers
from policygen.rendering import fill

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
    return (resources.folder("templates") / RUNNER).read_text(encoding="utf-8")


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
