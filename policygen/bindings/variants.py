"""Converts a variant's parameters to members of a tuning entry, and counts between units."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from policygen.bindings.load import Bound, scaling, types
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.model.arch import family_arch
from policygen.model.benchmarks import ParameterRange
from policygen.model.bindings import (
    NOMINAL,
    BenchmarkBinding,
    FamilyBinding,
    MemberRule,
    Site,
    Unit,
)
from policygen.model.tuning import Entry, Family, Slot, TemplateParameter, Value, spell
from policygen.model.workload import parse_label, shortened

SHARED_MEMORY = 48 * 1024
"""The bound that CUB's memory scaling keeps a tile below."""
WARP = 32
INT_BITS = 32
_COUNT = re.compile(r"-?[0-9]+")
Sizes = Mapping[str, int]
"""Role → bytes according to the compiler; an accumulator is often larger than its input."""


def variant_parameters(
    benchmark: BenchmarkBinding, label: str, space: Sequence[ParameterRange] = ()
) -> dict[str, int]:
    """Parses a label into values by parameter; raises for an unknown parameter or value.

    The search space is the one in the bindings or one that the user provides with the results.
    """
    values = parse_label(label)
    if values is None:
        raise InputError(
            f"{shortened(label)} is not a variant label", "For example: ipt_19.tpb_512"
        )
    values_by_parameter = {parameter.label: parameter.values for parameter in space}
    for name, value in values.items():
        if name not in benchmark.parameters:
            parameters = ", ".join(benchmark.parameters) or "none"
            raise InputError(f"{benchmark.name} has no parameter {name!r}", f"It has: {parameters}")
        if value not in benchmark.values(name) and value not in values_by_parameter.get(name, ()):
            raise InputError(
                f"{name} = {value} is outside of {benchmark.parameters[name]},"
                f" the range of {benchmark.name}",
                "If a wider range was searched, name its source or cccl_meta_bench.csv"
                " with --bench.",
            )
    return values


def member_values(
    family: FamilyBinding, benchmark: BenchmarkBinding, variant: Mapping[str, int], sizes: Sizes
) -> dict[str, str]:
    """Returns each entry member's C++ spelling for a variant, in the entry's order."""
    return {
        name: value if rule.bias else within_limits(name, value)
        for name, rule in family.members.items()
        if (value := _member_value(name, rule, benchmark, variant, sizes))
    }


def _member_value(
    member: str,
    rule: MemberRule,
    benchmark: BenchmarkBinding,
    variant: Mapping[str, int],
    sizes: Sizes,
) -> str:
    if rule.constant is not None:
        return rule.constant
    if rule.delay is not None:
        return _delay(*(_argument(variant, label) for label in rule.delay))
    assert rule.parameter is not None
    value = _argument(variant, rule.parameter)
    if rule.choices is not None:
        return _choice(rule, value)
    if rule.power_of_two:
        count = _power_of_two(rule, value)
    elif words().members.counts_threads(member):
        count = value  # scaling keeps threads, or reduces them to fit
    else:
        count = _rescaled(rule, value, benchmark.units.get(rule.parameter), sizes)
    factor = _argument(variant, rule.times) if isinstance(rule.times, str) else rule.times or 1
    return str(count * factor + rule.plus)


def within_limits(member: str, value: str) -> str:
    """Returns a member's value; raises if no kernel can have this count."""
    name = member.rpartition(".")[2]
    for limit in types().limits:
        if name in limit.members and _COUNT.fullmatch(value) and not limit.allows(int(value)):
            raise InputError(f"{member} = {value} is impossible", limit.reason)
    return value


def _argument(variant: Mapping[str, int], label: str) -> int:
    if label not in variant:
        raise InputError(f"the variant has no parameter {label!r}", f"It has: {', '.join(variant)}")
    return variant[label]


def _choice(rule: MemberRule, value: int) -> str:
    assert rule.choices is not None
    if not 0 <= value < len(rule.choices):
        choices = ", ".join(f"{index} ({choice})" for index, choice in enumerate(rule.choices))
        raise InputError(f"{rule.parameter} = {value} is invalid", f"It has: {choices}")
    return rule.choices[value]


def _power_of_two(rule: MemberRule, exponent: int) -> int:
    if not 0 <= exponent < INT_BITS - 1:
        raise InputError(
            f"{rule.parameter} = {exponent} is invalid",
            "The value is the exponent of a power of two.",
        )
    return 1 << exponent


def _delay(number: int, ns: int, l2w: int) -> str:
    for delay in types().delays:
        if delay.id == number:
            return delay.spelled(*(within_limits("delay", str(argument)) for argument in (ns, l2w)))
    raise InputError(f"no delay constructor has the id {number}")


def _rescaled(rule: MemberRule, value: int, benchmark_unit: Unit | None, sizes: Sizes) -> int:
    """Converts a count from the benchmark's unit to the header's unit."""
    header, benchmark = (
        None if unit is None else (unit.scaling, _size(unit, sizes))
        for unit in (rule.unit, benchmark_unit)
    )
    if header == benchmark:
        return value
    if benchmark is not None and value < 1:  # scaling would round it up to 1
        raise InputError(
            f"{rule.parameter} = {value} is invalid", "The value is a number of items."
        )
    items = value if benchmark is None else scaling(benchmark[0]).items(value, benchmark[1])
    return items if header is None else unscaled(header[0], items, header[1])


def _size(unit: Unit, sizes: Sizes) -> int:
    if unit.of not in sizes:
        raise InputError(f"the size of {unit.of} is unknown")
    return sizes[unit.of]


def unscaled(name: str, items: int, size: int) -> int:
    """Returns the smallest count in a unit that yields this many items per thread."""
    unit, counts = scaling(name), range(1, items * max(size, NOMINAL) + 1)
    # The number of items is monotonic in the count.
    smallest = bisect_left(counts, items, key=lambda count: unit.items(count, size))
    if smallest < len(counts) and unit.items(counts[smallest], size) == items:
        return counts[smallest]
    raise InputError(
        f"no count of nominal items gives {items} items of {size} bytes",
        "The header cannot express this variant.",
    )


def fitting_threads(unit: Unit | None, threads: int, items: int, sizes: Sizes) -> int:
    """Returns the threads of a block after its items have been scaled."""
    if unit is None or not scaling(unit.scaling).bounded:
        return threads
    return threads_that_fit(threads, items, sizes[unit.of])


def threads_that_fit(threads: int, items: int, size: int) -> int:
    """Returns the threads that CUB's scaling keeps in a block, in whole warps."""
    warps = -(-(SHARED_MEMORY // (size * items)) // WARP)
    return min(threads, warps * WARP)


_NUMBER = re.compile(r"-?\d+")
# "mine::fast": the compiler prints enumerators without their scope
_SCOPED = re.compile(r"(?:::)?\w+(?:::\w+)+")
# "policy.threads_per_block", "selected.lookahead.stages"
_PATH = re.compile(r"(policy|selected)\.([\w.]+)")


# Policy values expected for an entry


def value_name(site: Site, member: str, rule: MemberRule) -> str | None:
    """Returns the policy's name for a member, which differs for a count in another unit."""
    if rule.shown:
        return rule.shown
    if member in site.values or member in site.types or (rule.delay and site.delay):
        return member
    return site.marked if _unit(member, rule) else None


def selected_path(policy: str, text: str) -> str | None:
    """Maps `policy.vec_size` to `multi_tile.vec_size` in the selected policy; `None` if no path."""
    match = _PATH.fullmatch(text)
    if match is None:
        return None
    return f"{policy}.{match[2]}" if match[1] == "policy" and policy else match[2]


def expected_values(
    site: Site, family: FamilyBinding, members: Mapping[str, str], sizes: Sizes
) -> dict[str, Value]:
    """Returns the policy's values by name for an entry with these members."""
    values: dict[str, Value] = {}
    for member, text in members.items():
        rule = family.members[member]
        name = value_name(site, member, rule)
        if name is not None:
            values[name] = _expected_value(text, _unit(member, rule), sizes)
    items = values.get(site.marked)
    scaled_threads = {
        name: fitting_threads(rule.unit, threads, items, sizes)
        for member, rule in family.members.items()
        if words().members.counts_threads(member) and (name := value_name(site, member, rule))
        if isinstance(threads := values.get(name), int) and isinstance(items, int)
    }
    return values | scaled_threads


def kept_members(
    site: Site, family: FamilyBinding, values: Mapping[str, Value], sizes: Sizes
) -> dict[str, str] | None:
    """Returns the members that yield a policy's values; `None` if they cannot be derived."""
    members = {}
    for member, rule in family.members.items():
        name = value_name(site, member, rule)
        if name is None or name not in values:
            return None
        value, unit = values[name], _unit(member, rule)
        if unit and isinstance(value, int):
            value = unscaled(unit.scaling, value, sizes[unit.of])
        members[member] = spell(value)
    return members


def _unit(member: str, rule: MemberRule) -> Unit | None:
    """Returns the unit of a member's count; a unit on threads refers to their items."""
    return None if words().members.counts_threads(member) else rule.unit


def _expected_value(text: str, unit: Unit | None, sizes: Sizes) -> Value:
    if text in {"true", "false"}:
        return text == "true"
    if not _NUMBER.fullmatch(text):
        return text.rpartition("::")[2] if _SCOPED.fullmatch(text) else text
    return scaling(unit.scaling).items(int(text), sizes[unit.of]) if unit else int(text)


# Values of a guarded return


def rules_of(
    algorithm: Bound, site: Site, benchmark: BenchmarkBinding | None, family: Family, entry: Entry
) -> tuple[dict[str, MemberRule], dict[str, str]]:
    """Returns how parameters become a return's values, and the return's name for each value.

    The rules are the benchmark's rules for returns, else those of the newest family.
    """
    rules: dict[str, MemberRule] = {}
    fields: dict[str, str] = {}
    own_rules = dict(benchmark.returns) if benchmark else {}
    # A function that the return calls, or passes counts to, scales by a size.
    calls = entry.inherits is not None or words().selectors.counts in entry.values
    is_scaled = bool(own_rules) or calls
    for member, rule in (own_rules or newest_family(algorithm, site).members).items():
        value = value_name(site, member, rule) or shown_as(site, member)
        name = _name_in_return(site, entry, member, value)
        if name is None and own_rules and len(rules) >= len(entry.members):
            # All explicit values are matched: the return leaves its last values to their defaults.
            name = site.values[value].rpartition(".")[2]
        if name is None:
            raise InputError(
                f"{family.header}:{entry.line} ({family.name}) returns no {value}: CUB selects a"
                " different algorithm for it than the measured one"
            )
        counts = rule.parameter is not None and rule.choices is None
        if counts and any(item.name == name and item.value is None for item in entry.members):
            raise InputError(f"{family.header}:{entry.line} ({family.name}) computes {value}")
        rules[value] = rule if is_scaled else rule.model_copy(update={"unit": None})
        fields[value] = name
    if not own_rules:
        for value, rule in newest_family(algorithm, site).optional.items():
            if name := _name_in_return(site, entry, value, value):
                rules[value], fields[value] = rule, name
    return rules, fields


def says_algorithm(entry: Entry) -> bool:
    """Returns whether a return states its algorithm."""
    return any(
        member.name.rpartition(".")[2] == words().values.algorithm for member in entry.members
    )


def optional_rules(
    algorithm: Bound, site: Site, rules: Mapping[str, MemberRule]
) -> dict[str, MemberRule]:
    """Returns the rules for values that the policy has and a return does not state."""
    if not _families(algorithm, site):
        return {}
    optional = newest_family(algorithm, site).optional
    return {
        name: rule for name, rule in optional.items() if name in site.values and name not in rules
    }


def newest_family(algorithm: Bound, site: Site) -> FamilyBinding:
    """Returns the rules of the newest family, which has the most members.

    A policy has the same fields for all architectures, whereas older families lack some.
    """
    families = _families(algorithm, site)
    if not families:
        raise InputError(f"the bindings describe no tunings of {site.header}")
    return max(families, key=lambda family: family_arch(family.name))


def _families(algorithm: Bound, site: Site) -> list[FamilyBinding]:
    return [binding for binding in algorithm.families if binding.site == site.name]


def shown_as(site: Site, member: str) -> str:
    """Returns the policy's name for a member, such as `use_work_stealing`."""
    paths = ((name, path.rpartition(".")[2]) for name, path in site.values.items())
    return next((name for name, field_name in paths if field_name == member), member)


def _name_in_return(site: Site, entry: Entry, member: str, value: str) -> str | None:
    """Returns the return's name for a value: its own, a field of the policy, or a parameter."""
    paths = (entry_member.name for entry_member in entry.members)
    policy_last = sorted(paths, key=lambda path: path.startswith(f"{site.policy}."))
    by_last_part = {path.rpartition(".")[2]: path for path in policy_last}
    names = (name for name in _possible_names(site, member, value) if name in by_last_part)
    return by_last_part.get(next(names, ""))


def _possible_names(site: Site, member: str, value: str) -> Iterator[str]:
    yield from (member, value)
    path = site.values.get(value)
    if path is None and site.delay:
        path = site.delay[0].rpartition(".")[0]
    if path:
        yield path.rpartition(".")[2]
    yield from site.arguments.get(value, ())


# Template arguments as printed by the compiler


def fits(
    parameters: Sequence[TemplateParameter], slots: Sequence[Slot], args: Sequence[str]
) -> bool:
    """Returns whether an entry's slots match the arguments; omitted slots are defaults."""
    argument_slots = [
        by_print().get(type_name(arg), type_name(arg))
        if parameter.kind == "type"
        else as_slot(parameter, arg)
        for parameter, arg in zip(parameters, args, strict=True)
    ]
    pairs = zip(slots, argument_slots, strict=False)
    return len(slots) <= len(argument_slots) and all(
        slot in {None, argument_slot} for slot, argument_slot in pairs
    )


def as_slot(parameter: TemplateParameter, arg: str) -> Slot:
    """Spells an argument as a header does: `_4` of an `offset_size` is `offset_size::_4`."""
    if parameter.kind == "type":
        return None
    if arg in {"true", "false"} or arg.lstrip("-").isdigit():
        return arg
    return f"{parameter.type}::{arg}"


def type_name(arg: str) -> str:
    """Returns the usual name of a type that the compiler prints: `signed int` is `int`."""
    return arg if arg == "signed char" else arg.removeprefix("signed ")


def by_print() -> Mapping[str, str]:
    """Maps printed types to names in headers: `long`, whose width varies, to `int64_t`."""
    excluded = {"int", "short"}
    return {printed: name for name, printed in types().spellings.items() if printed not in excluded}
