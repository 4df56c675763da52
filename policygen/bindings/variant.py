"""From a variant's parameters to the values of an entry's members, and counts between units."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from policygen.bindings.load import scaling, types
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.model.bench import ParameterRange
from policygen.model.bindings import NOMINAL, BenchmarkBinding, FamilyBinding, MemberRule, Unit
from policygen.model.labels import parse_label, shortened

SHARED_MEMORY = 48 * 1024
"""What CUB's scaling by memory keeps a tile below."""
WARP = 32
INT_BITS = 32
_COUNT = re.compile(r"-?[0-9]+")

Sizes = Mapping[str, int]
"""Role → bytes, as the compiler has them: an accumulator is often larger than its input."""


def variant_parameters(
    benchmark: BenchmarkBinding, label: str, space: Sequence[ParameterRange] = ()
) -> dict[str, int]:
    """A label's values by parameter; refused where the benchmark has no such parameter or value.

    Its search space is the one of the bindings, or that which the user gives with the results.
    """
    values = parse_label(label)
    if values is None:
        raise InputError(f"{shortened(label)} is no variant label", "Such as: ipt_19.tpb_512")
    given = {one.label: one.values for one in space}
    for name, value in values.items():
        if name not in benchmark.parameters:
            known = ", ".join(benchmark.parameters) or "none"
            raise InputError(f"{benchmark.name} has no parameter {name!r}", f"It has: {known}")
        if value not in benchmark.values(name) and value not in given.get(name, ()):
            raise InputError(
                f"{name} = {value} is outside of {benchmark.parameters[name]},"
                f" the range of {benchmark.name}",
                "If another one was searched, name its source or cccl_meta_bench.csv with --bench.",
            )
    return values


def member_values(
    family: FamilyBinding, benchmark: BenchmarkBinding, variant: Mapping[str, int], sizes: Sizes
) -> dict[str, str]:
    """What a variant means for each member of an entry, spelled as in C++, in the entry's order."""
    return {
        name: value if rule.bias else within_limits(name, value)
        for name, rule in family.members.items()
        if (value := _value(name, rule, benchmark, variant, sizes))
    }


def _value(
    member: str,
    rule: MemberRule,
    benchmark: BenchmarkBinding,
    variant: Mapping[str, int],
    sizes: Sizes,
) -> str:
    if rule.constant is not None:
        return rule.constant
    if rule.delay is not None:
        return _delay(*(_given(variant, label) for label in rule.delay))
    assert rule.parameter is not None
    value = _given(variant, rule.parameter)
    if rule.choices is not None:
        return _choice(rule, value)
    if rule.power_of_two:
        count = _power_of_two(rule, value)
    elif words().members.counts_threads(member):
        count = value  # scaling keeps threads as they are, or fewer where they would not fit
    else:
        count = _rescaled(rule, value, benchmark.units.get(rule.parameter), sizes)
    times = _given(variant, rule.times) if isinstance(rule.times, str) else rule.times or 1
    return str(count * times + rule.plus)


def within_limits(member: str, value: str) -> str:
    """A member's value; refused where it is a count that no kernel can have."""
    name = member.rpartition(".")[2]
    for limit in types().limits:
        if name in limit.members and _COUNT.fullmatch(value) and not limit.allows(int(value)):
            raise InputError(f"{member} = {value} cannot be", limit.reason)
    return value


def _given(variant: Mapping[str, int], label: str) -> int:
    if label not in variant:
        raise InputError(f"the variant has no parameter {label!r}", f"It has: {', '.join(variant)}")
    return variant[label]


def _choice(rule: MemberRule, value: int) -> str:
    assert rule.choices is not None
    if not 0 <= value < len(rule.choices):
        known = ", ".join(f"{i} ({choice})" for i, choice in enumerate(rule.choices))
        raise InputError(f"{rule.parameter} = {value} has no meaning", f"It has: {known}")
    return rule.choices[value]


def _power_of_two(rule: MemberRule, exponent: int) -> int:
    if not 0 <= exponent < INT_BITS - 1:
        raise InputError(
            f"{rule.parameter} = {exponent} has no meaning", "It is the exponent of a power of two."
        )
    return 1 << exponent


def _delay(number: int, ns: int, l2w: int) -> str:
    for delay in types().delays:
        if delay.id == number:
            return delay.spelled(*(within_limits("delay", str(given)) for given in (ns, l2w)))
    raise InputError(f"no delay constructor has the id {number}")


def _rescaled(rule: MemberRule, value: int, measured: Unit | None, sizes: Sizes) -> int:
    """A count in the unit of the header that gives what the benchmark measured."""
    written = rule.unit
    if _same(written, measured, sizes):
        return value
    if measured is not None and value < 1:  # scaling would make one of it
        raise InputError(f"{rule.parameter} = {value} has no meaning", "It counts items.")
    plain = value if measured is None else scale(measured.scaling, value, _size(measured, sizes))
    if written is None:
        return plain
    return unscaled(written.scaling, plain, _size(written, sizes))


def _same(written: Unit | None, measured: Unit | None, sizes: Sizes) -> bool:
    if written is None or measured is None:
        return written is measured
    return written.scaling == measured.scaling and _size(written, sizes) == _size(measured, sizes)


def _size(unit: Unit, sizes: Sizes) -> int:
    if unit.of not in sizes:
        raise InputError(f"the size of {unit.of} is not known")
    return sizes[unit.of]


def scale(name: str, count: int, size: int) -> int:
    """The items per thread that a count in a unit stands for, for elements of a size."""
    return scaling(name).items(count, size)


def unscaled(name: str, items: int, size: int) -> int:
    """The least count in a unit that stands for so many items per thread."""
    counts = range(1, items * max(size, NOMINAL) + 1)
    # More of a count never are fewer items.
    least = bisect_left(counts, items, key=lambda count: scale(name, count, size))
    if least < len(counts) and scale(name, counts[least], size) == items:
        return counts[least]
    raise InputError(
        f"no count of nominal items gives {items} items of {size} bytes",
        "The header cannot express this variant.",
    )


def fitting_threads(unit: Unit | None, threads: int, items: int, sizes: Sizes) -> int:
    """The threads of a block whose items have been scaled."""
    if unit is None or not scaling(unit.scaling).bounded:
        return threads
    return threads_that_fit(threads, items, sizes[unit.of])


def threads_that_fit(threads: int, items: int, size: int) -> int:
    """The threads that CUB's scaling leaves of a block, in whole warps."""
    warps = -(-(SHARED_MEMORY // (size * items)) // WARP)
    return min(threads, warps * WARP)
