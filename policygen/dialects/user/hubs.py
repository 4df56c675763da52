"""A policy hub with the macros of a benchmark's parameters, for CUB 2.8 to 3.4."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policygen.bindings.load import Bound, bound, types
from policygen.dialects.user.layout import statement, wrapped
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding
from policygen.model.hub import DispatchBinding, HubBinding
from policygen.model.versions import plain

HUB = "policy_hub_t"
INDENT = 2
"""Levels of what stands in the policy of a hub."""
_LABEL = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class GivenHub:
    """The hub for a benchmark, and what dispatches to it."""

    algorithm: Bound
    hub: HubBinding
    dispatch: DispatchBinding
    benchmark: BenchmarkBinding

    @property
    def roles(self) -> tuple[str, ...]:
        """What the hub is templated on: the roles that it names."""
        known = {*self.benchmark.roles, *self.benchmark.constants}
        texts = " ".join([*self.hub.constants.values(), *self.hub.policies.values()])
        return tuple(dict.fromkeys(word for word in _WORD.findall(texts) if word in known))

    def lines(self, macros: Mapping[str, str]) -> Iterator[str]:
        """The members of its policy; `macros` are by label."""
        for name, labels in self.hub.delays.items():
            yield from wrapped(f"using {name} = ", _delays(*labels, macros), ";", INDENT)
        for name, value in self.hub.constants.items():
            left = f"static constexpr auto {name} ="
            yield from statement(left, _with_macros(value, macros), INDENT)
        for name, policy in self.hub.policies.items():
            yield from wrapped(f"using {name} = ", _with_macros(policy, macros), ";", INDENT)

    def class_name(self, hub: str | None) -> str:
        """The class that runs the algorithm, with a hub of one's own or with CUB's."""
        last = hub or self.dispatch.default
        return f"{self.dispatch.name}<{', '.join([*self.dispatch.takes, *filter(None, [last])])}>"


def hub_for(benchmark: BenchmarkBinding, values: Mapping[str, str], version: str) -> GivenHub:
    """The hub for a workload; refused where CUB takes none."""
    like = benchmark.like or benchmark.name
    for algorithm in bound(version):
        if benchmark in algorithm.benchmarks:
            for hub in algorithm.hubs:
                for dispatch in hub.dispatches:
                    if hub.site == benchmark.site and dispatch.serves(like, dict(values)):
                        return GivenHub(algorithm, hub, dispatch, benchmark)
    chosen = " ".join(f"{axis}={value}" for axis, value in values.items())
    raise InputError(
        f"CUB {plain(version)} can be given no policy for {like} {chosen}",
        "It can since CUB 3.5: name a tree of that version, or of a later one.",
    )


def _with_macros(text: str, macros: Mapping[str, str]) -> str:
    return _LABEL.sub(lambda match: macros[match[1]], " ".join(text.split()))


def _delays(kind: str, ns: str, l2w: str, macros: Mapping[str, str]) -> str:
    """CUB's delay constructors, of which a parameter chooses one."""
    known = {one.id: one for one in types().delays if one.id is not None}
    spelled = [
        f"cub::detail::{known[number].spelled(macros[ns], macros[l2w])}" for number in sorted(known)
    ]
    return f"nvbench::tl::get<{macros[kind]}, nvbench::type_list<{', '.join(spelled)}>>"
