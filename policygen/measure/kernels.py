"""Kernels of one's own: what their variants mean, and the C++ that launches them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.own_kernel import KernelMaker
from policygen.measure.meaning import Policy, PolicyPart, joined
from policygen.measure.runs import WorkloadRun
from policygen.measure.space import Variant
from policygen.model.bindings import BenchmarkBinding
from policygen.model.expression import Expression
from policygen.model.own_kernel import ELEMENTS, STRATEGY, KernelStrategy
from policygen.model.workload import Point
from policygen.rendering import fill

KERNEL = "measure/kernel.cu.j2"


@dataclass(frozen=True, slots=True)
class KernelWorkload:
    """A class of sizes of a kernel on an architecture; a policy is what its parameters are."""

    maker: KernelMaker
    benchmark: BenchmarkBinding
    point: Point
    arch: str

    @property
    def base(self) -> Policy:
        """What the kernel has today."""
        return self.maker.values(self.maker.start)

    def policy(self, variant: Variant) -> Policy:
        """What parameters are in C++; refused where they cannot be so."""
        return self.maker.values(variant)

    def parts(self) -> Sequence[PolicyPart]:
        """Each parameter alone, but those that a constraint joins."""
        labels = self.maker.given.every_parameter
        ruled = (Expression(text).names for text in self.maker.given.constraints)
        return joined(
            [
                *(({label}, {label}, None) for label in labels),
                *((names, (), None) for names in ruled),
            ]
        )

    @property
    def is_alone(self) -> bool:
        """Whether a unit holds one variant: a macro has one value in it."""
        return any(one.macro for one in self.maker.given.every_parameter.values())

    def text(self, run: WorkloadRun, policies: Sequence[Policy | None]) -> str:
        """Writes a unit of variants; none is what the kernel has today."""
        given = self.maker.given
        variants = [self._variant(n, one) for n, one in enumerate(policies)]
        values = {
            "source": given.kernel,
            "header": given.header,
            "macros": self._macros(policies[0] or self.base) if self.is_alone else {},
            "sizes": list(run.binding.sizes),
            "buffers": [
                {"name": n, "type": one.type, "count": one.count, "modified": one.modified}
                for n, one in run.binding.buffers.items()
            ],
            "scalars": {n: one.model_dump() for n, one in given.scalar.items()},
            "arguments": ", ".join(given.arguments),
            "reference": given.reference,
            "traffic": given.traffic and Expression(given.traffic).cpp,
            "elements": ELEMENTS,
            "kinds": sorted({str(one["memory"]) for one in variants} - {"device"}),
            "variants": variants,
        }
        return fill(KERNEL, values)

    def _macros(self, policy: Policy) -> dict[str, str]:
        every = self.maker.given.every_parameter
        return {one.macro: policy[label] for label, one in every.items() if one.macro}

    def _variant(self, number: int, policy: Policy | None) -> dict[str, object]:
        """How a variant is launched."""
        values = self.base if policy is None else policy
        way = self._way(values)
        return {
            "number": number,
            "is_base": policy is None,
            "constants": {k: v for k, v in values.items() if k != STRATEGY},
            "function": way.function,
            "memory": way.memory,
            "block": _cpp(way.block),
            "shared": _cpp(way.shared),
            "grid": _cpp(way.grid),
        }

    def _way(self, values: Mapping[str, str]) -> KernelStrategy:
        ways = self.maker.given.ways
        named = {one.name: one for one in ways}
        return named[values[STRATEGY]] if STRATEGY in values else ways[0]


def _cpp(text: str | None) -> str:
    assert text is not None, "a strategy says what the kernel does not"
    return Expression(text).cpp
