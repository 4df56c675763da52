"""What the compiler is asked of CUB's own selector, so that variants can be made of its policy."""

from collections.abc import Iterator, Mapping

from policygen.bindings.load import units_of
from policygen.dialects.selectors.aggregates import leaves, read_aggregate
from policygen.dialects.selectors.functions import Struct
from policygen.dialects.user.public import PublicSelector
from policygen.model.policies import Question


def question(one: PublicSelector, structs: Mapping[str, Struct]) -> Question:
    """All fields of the policy, the roles that tell workloads apart, and the sizes that scale."""
    fields = read_aggregate(structs, one.selects)
    return Question(
        one.site,
        one.benchmark,
        one.default,
        tuple(path for path, _ in leaves(fields)),
        one.roles,
        tuple(dict.fromkeys([*_sized(one), *one.selector.sized])),
    )


def _sized(one: PublicSelector) -> Iterator[str]:
    """The roles in whose sizes any version of the benchmark counts."""
    known = {*one.benchmark.roles, *(f"axis::{axis}" for axis in one.benchmark.axes)}
    return (unit.of for unit in units_of(one.benchmark.name) if unit.of in known)
