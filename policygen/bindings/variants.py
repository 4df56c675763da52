"""From a variant's parameters to the values of an entry's members, and counts between units."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from policygen.bindings.load import Bound, scaling, types
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.benchmarks import ParameterRange
from policygen.model.bindings import (
    NOMINAL,
    BenchmarkBinding,
    FamilyBinding,
    MemberRule,
    Site,
    Unit,
)
from policygen.model.edits import Slot
from policygen.model.tuning import Entry, Family, TemplateParameter, Value, spell
from policygen.model.workload import parse_label, shortened

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


_NUMBER = re.compile(r"-?\d+")
# "mine::fast": the compiler tells enumerators without what they are in
_SCOPED = re.compile(r"(?:::)?\w+(?:::\w+)+")
# "policy.threads_per_block", "selected.lookahead.stages"
_PATH = re.compile(r"(policy|selected)\.([\w.]+)")


# What a policy must show when it takes an entry's values.


def value_name(site: Site, member: str, rule: MemberRule) -> str | None:
    """What the policy calls a member: the same, but for a count in another unit."""
    if rule.shown:
        return rule.shown
    if member in site.values or member in site.types or (rule.delay and site.delay):
        return member
    return site.marked if _unit(member, rule) else None


def selected_path(policy: str, text: str) -> str | None:
    """`policy.vec_size` as seen from what is selected: `multi_tile.vec_size`; none for no path."""
    match = _PATH.fullmatch(text)
    if match is None:
        return None
    return f"{policy}.{match[2]}" if match[1] == "policy" and policy else match[2]


def expected_values(
    site: Site, family: FamilyBinding, members: Mapping[str, str], sizes: Sizes
) -> dict[str, Value]:
    """The values of the policy by name, for an entry with these members."""
    found: dict[str, Value] = {}
    for member, text in members.items():
        rule = family.members[member]
        name = value_name(site, member, rule)
        if name is not None:
            found[name] = _expected_value(text, _unit(member, rule), sizes)
    return found | _fitting(site, family, found, sizes)


def kept_members(
    site: Site, family: FamilyBinding, values: Mapping[str, Value], sizes: Sizes
) -> dict[str, str] | None:
    """The members that give a policy the values that it has; none where they cannot be told."""
    found = {}
    for member, rule in family.members.items():
        name = value_name(site, member, rule)
        if name is None or name not in values:
            return None
        value, unit = values[name], _unit(member, rule)
        if unit and isinstance(value, int):
            value = unscaled(unit.scaling, value, sizes[unit.of])
        found[member] = spell(value)
    return found


def _unit(member: str, rule: MemberRule) -> Unit | None:
    """What items are counted in; the unit of threads is that of their items."""
    return None if words().members.counts_threads(member) else rule.unit


def _fitting(
    site: Site, family: FamilyBinding, values: Mapping[str, Value], sizes: Sizes
) -> dict[str, Value]:
    """The threads that are left of those that are written."""
    items = values.get(site.marked)
    return {
        name: fitting_threads(rule.unit, threads, items, sizes)
        for member, rule in family.members.items()
        if words().members.counts_threads(member) and (name := value_name(site, member, rule))
        if isinstance(threads := values.get(name), int) and isinstance(items, int)
    }


def _expected_value(text: str, unit: Unit | None, sizes: Sizes) -> Value:
    if text in {"true", "false"}:
        return text == "true"
    if not _NUMBER.fullmatch(text):
        return text.rpartition("::")[2] if _SCOPED.fullmatch(text) else text
    return scale(unit.scaling, int(text), sizes[unit.of]) if unit else int(text)


# How parameters become the values of a guarded return, and what it calls them.


def rules_of(
    algorithm: Bound, site: Site, benchmark: BenchmarkBinding | None, family: Family, entry: Entry
) -> tuple[dict[str, MemberRule], dict[str, str]]:
    """How parameters become the values that a return has, and what it calls them.

    As the benchmark says it for returns, else as the newest family has it.
    """
    rules: dict[str, MemberRule] = {}
    fields: dict[str, str] = {}
    own = dict(benchmark.returns) if benchmark else {}
    scaled = bool(own) or _is_scaled(entry)
    for member, rule in (own or newest_family(algorithm, site).members).items():
        value = value_name(site, member, rule) or shown_as(site, member)
        name = _field(site, entry, member, value)
        if name is None and own and len(rules) >= len(entry.members):
            # All that the return says is told: it leaves its last values to their defaults.
            name = site.values[value].rpartition(".")[2]
        if name is None:
            raise InputError(
                f"{family.header}:{entry.line} ({family.name}) returns no {value}: CUB selects"
                f" another algorithm for it than the one that was measured"
            )
        if _is_computed(entry, name, rule):
            raise InputError(f"{family.header}:{entry.line} ({family.name}) computes {value}")
        rules[value] = rule if scaled else rule.model_copy(update={"unit": None})
        fields[value] = name
    if not own:
        for value, rule in newest_family(algorithm, site).optional.items():
            if name := _field(site, entry, value, value):
                rules[value], fields[value] = rule, name
    return rules, fields


def _is_computed(entry: Entry, name: str, rule: MemberRule) -> bool:
    """Whether a return has a formula for what a parameter counts."""
    counts = rule.parameter is not None and rule.choices is None
    return counts and any(m.name == name and m.value is None for m in entry.members)


def says_algorithm(entry: Entry) -> bool:
    """Whether a return says by which algorithm it is done."""
    return any(m.name.rpartition(".")[2] == words().values.algorithm for m in entry.members)


def optional_rules(
    algorithm: Bound, site: Site, rules: Mapping[str, MemberRule]
) -> dict[str, MemberRule]:
    """How parameters become values that the policy has, and that a return does not say."""
    if not _families(algorithm, site):
        return {}
    known = newest_family(algorithm, site).optional
    return {n: rule for n, rule in known.items() if n in site.values and n not in rules}


def newest_family(algorithm: Bound, site: Site) -> FamilyBinding:
    """How parameters become values: as in the newest family, which has most of them.

    A policy has the same fields for all architectures, where older families lack some.
    """
    known = _families(algorithm, site)
    if not known:
        raise InputError(f"{site.header} has no tunings")
    return known[0] if len(known) == 1 else max(known, key=_arch)


def _families(algorithm: Bound, site: Site) -> list[FamilyBinding]:
    return [binding for binding in algorithm.families if binding.site == site.name]


def _arch(binding: FamilyBinding) -> int:
    return arch_number(binding.name.partition("_")[0])


def shown_as(site: Site, member: str) -> str:
    """A member that only the policy calls so: `use_work_stealing`."""
    paths = ((name, path.rpartition(".")[2]) for name, path in site.values.items())
    return next((name for name, last in paths if last == member), member)


def _field(site: Site, entry: Entry, member: str, value: str) -> str | None:
    """What the return calls a value: its own name, a field of the policy, or a parameter."""
    known = {m.name.rpartition(".")[2]: m.name for m in entry.members}
    return next((known[name] for name in _names(site, member, value) if name in known), None)


def _names(site: Site, member: str, value: str) -> Iterator[str]:
    yield from (member, value)
    path = site.values.get(value)
    if path is None and site.delay:
        path = site.delay[0].rpartition(".")[0]
    if path:
        yield path.rpartition(".")[2]
    yield from site.arguments.get(value, ())


def _is_scaled(entry: Entry) -> bool:
    """Whether counts are scaled by a size: by the function that is called, or that is told them."""
    return entry.inherits is not None or words().selectors.counts in entry.values


# The arguments that the compiler prints, in the words of headers.


def fits(
    parameters: Sequence[TemplateParameter], slots: Sequence[Slot], args: Sequence[str]
) -> bool:
    """Whether an entry with these slots would be there for the arguments; fewer are defaults."""
    literal = [
        by_print().get(type_name(arg), type_name(arg)) if p.kind == "type" else as_slot(p, arg)
        for p, arg in zip(parameters, args, strict=True)
    ]
    pairs = zip(slots, literal, strict=False)
    return len(slots) <= len(literal) and all(there in {None, own} for there, own in pairs)


def as_slot(parameter: TemplateParameter, arg: str) -> Slot:
    """An argument as a header writes it: `_4` of an `offset_size` is `offset_size::_4`."""
    if parameter.kind == "type":
        return None
    if arg in {"true", "false"} or arg.lstrip("-").isdigit():
        return arg
    return f"{parameter.type}::{arg}"


def type_name(arg: str) -> str:
    """A type that the compiler prints, by its usual name: `signed int` is `int`."""
    return arg if arg == "signed char" else arg.removeprefix("signed ")


def by_print() -> Mapping[str, str]:
    """What the compiler prints → what headers write: `long` is not as wide everywhere."""
    plain = {"int", "short"}
    return {shown: name for name, shown in types().spellings.items() if shown not in plain}
