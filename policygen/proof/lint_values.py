"""Whether an entry has the values of the variant that its comment names."""

import re
from collections.abc import Iterator, Mapping

from policygen.bindings.load import scaling, types
from policygen.bindings.variants import fitting_threads
from policygen.bindings.words import archs, words
from policygen.model.bindings import DelayConstructor, FamilyBinding, MemberRule
from policygen.model.records import Span
from policygen.model.tuning import Label, Member, Value, spell
from policygen.model.workload import parse_label
from policygen.proof.lint_entries import forwarded
from policygen.proof.lint_subject import Remark, Subject, role_sizes, scale_items, split_template

Parameters = Mapping[str, int]


def contradictions(subject: Subject) -> Iterator[Remark]:
    """A label records what was measured: a value that differs from it was mistyped, or never was.

    Where an entry has several labels, or several benchmarks fill it, the one that fits best counts.
    """
    found = [
        list(_compare(subject, binding, parse_label(label.variant) or {}))
        for binding in subject.bindings
        for label in _live(subject)
    ]
    yield from min(found, key=len, default=[])


def exponents(subject: Subject) -> Iterator[Remark]:
    """A benchmark takes 1 << ipv as vector length: an entry that has ipv was not measured."""
    found = [
        [r for member, rule in _ruled(subject, binding) if (r := _exponent(member, rule, values))]
        for binding in subject.bindings
        for label in _live(subject)
        if (values := parse_label(label.variant))
    ]
    yield from min(found, key=len, default=[])


def _live(subject: Subject) -> list[Label]:
    return [label for label in subject.entry.labels if not label.rejected]


def _ruled(subject: Subject, binding: FamilyBinding) -> Iterator[tuple[Member, MemberRule]]:
    for member in subject.entry.members:
        rule = binding.members.get(member.name)
        if rule is not None and (member.value is not None or rule.delay is not None):
            yield member, rule


def _compare(subject: Subject, binding: FamilyBinding, values: Parameters) -> Iterator[Remark]:
    sizes = role_sizes(binding, subject.entry)
    for member, rule in _ruled(subject, binding):
        if rule.delay is not None:
            delay = delay_type(member)
            said = delay_contradiction(delay, rule.delay, values) if delay else None
        elif rule.parameter is None or rule.parameter not in values or member.value is None:
            said = None
        elif rule.unit is None or _same_scale(subject, rule, values):
            said = _contradiction(member.value, rule, values[rule.parameter])
        else:
            said = _of_any_scale(member.value, rule, values[rule.parameter], sizes)
        if said:
            yield Remark(member.value_span, f"the label says {said}")


def _same_scale(subject: Subject, rule: MemberRule, values: Parameters) -> bool:
    """Whether the benchmarks that have such labels count in the same unit as the header."""
    known = (b for b in subject.benchmarks if b.writable and not b.returns)
    measured = [b for b in known if set(b.parameters) == set(values)]
    units = {unit.scaling if (unit := b.units.get(rule.parameter or "")) else "" for b in measured}
    return rule.unit is not None and units == {rule.unit.scaling}


def _of_any_scale(
    value: Value, rule: MemberRule, given: int, sizes: Mapping[str, int]
) -> str | None:
    """A contradiction whether a label is in the header's unit or, as of other versions, in none."""
    if type(value) is not int or rule.unit is None or scaling(rule.unit.scaling).bounded:
        return None
    if scale_items(rule.unit, value, sizes) in {None, given}:
        return None
    return _contradiction(value, rule, given)


def _contradiction(value: Value, rule: MemberRule, given: int) -> str | None:
    """What the label says instead of a value; nothing where it says nothing certain."""
    wanted = _wanted(rule, given)
    if wanted is None or _same(value, wanted) or (rule.power_of_two and value == given):
        return None
    label = f"{rule.parameter}_{given}"
    meant = label if wanted == given else f"{label}, which is {spell(wanted)}"
    return f"{meant}, the entry has {spell(value)}"


def _wanted(rule: MemberRule, given: int) -> Value | None:
    if rule.choices is not None:
        # A value beyond the choices is of a benchmark that had others.
        return rule.choices[given] if 0 <= given < len(rule.choices) else None
    if rule.power_of_two:
        return 1 << given if 0 <= given < 31 else None
    return given


def _same(value: Value, wanted: Value) -> bool:
    if isinstance(wanted, str):
        return spell(value).rpartition("::")[2] == wanted
    return value == wanted


def _exponent(member: Member, rule: MemberRule, values: Parameters) -> Remark | None:
    given = values.get(rule.parameter or "")
    if not rule.power_of_two or given is None or member.value != given:
        return None
    wanted = _wanted(rule, given)
    if wanted is None:
        return None
    return Remark(
        member.value_span,
        f"the label says {rule.parameter}_{given}, which is {wanted},"
        f" the entry has the exponent {given}",
    )


# LookbackDelayPolicy{LookbackDelayAlgorithm::fixed_delay, 350, 450}
_FIELDS = re.compile(r"LookbackDelayAlgorithm::(\w+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\}")
# lookback_delay_policy_from_type<fixed_delay_constructor_t<350, 450>>
_FROM_TYPE = re.compile(r"lookback_delay_policy_from_type<(.*)>$")


# Delay constructors: three parameters of a label are one type of an entry.


def delay_type(member: Member) -> str | None:
    """A delay as a type: a family names one, a return names it or gives its fields."""
    if member.value is not None:
        return str(member.value)
    if named := _FROM_TYPE.search(member.spelling):
        return named[1]
    if fields := _FIELDS.search(member.spelling):
        kind, ns, l2w = fields.groups()
        found = (d.spelled(ns, l2w) for d in types().delays if d.kind == kind)
        return next(found, None)
    return None


def delay_contradiction(
    spelling: str, parameters: tuple[str, str, str], values: Mapping[str, int]
) -> str | None:
    """What a label says instead of a delay constructor; nothing where it names none."""
    if not set(parameters) <= set(values):
        return None
    identity, ns, l2w = (values[name] for name in parameters)
    meant = next((delay for delay in types().delays if delay.id == identity), None)
    if meant is None:
        return None
    name, args = split_template(spelling)
    label = f"{parameters[0]}_{identity}"
    if name != meant.type:
        return f"{label}, which is {meant.type}, the entry has {name}"
    wanted = {"ns": (parameters[1], ns), "l2w": (parameters[2], l2w)}
    return _arguments(meant, args, wanted)


def _arguments(
    meant: DelayConstructor, args: tuple[str, ...], wanted: Mapping[str, tuple[str, int]]
) -> str | None:
    """The first argument that is another than the label's."""
    if len(args) != len(meant.args):
        return None
    for name, arg in zip(meant.args, args, strict=True):
        label, number = wanted[name]
        if not arg.isdecimal() or int(arg) == number:
            continue
        others = [f"{who}_{what}" for who, what in wanted.values() if what == int(arg)]
        # no_delay_constructor_t takes the latency alone, and has been given the delay.
        swapped = f", which is {others[0]}" if others else ""
        return f"{label}_{number}, the entry has {arg}{swapped}"
    return None


# Whether a tile fits into shared memory.


def fits(subject: Subject) -> Iterator[Remark]:
    """A tile that is transposed lies in static shared memory, of which a block has 48 KiB."""
    facts = archs().get(subject.family.arch)
    exchange = next((m for m in subject.entry.members if _is_exchange(m.value)), None)
    threads = subject.first(words().members.threads)
    if facts is None or exchange is None or threads is None or not subject.bindings:
        return
    tiles = [_tile(binding, subject) for binding in subject.bindings]
    if any(tile is None or _size(tile) <= facts.static for tile in tiles):
        return
    tile = min((t for t in tiles if t), key=_size)
    more = f", or {facts.opt_in:,} when its launch asks for them" if facts.opt_in else ""
    yield Remark(
        threads.value_span,
        f"{tile[0]} threads x {tile[1]} items x {tile[2]} bytes = {_size(tile):,} bytes, which"
        f" {exchange.value} keeps in shared memory: a block of {facts.name} has"
        f" {facts.static:,}{more}",
    )


def _is_exchange(value: object) -> bool:
    return isinstance(value, str) and value.rpartition("::")[2] in words().tiles.exchanges


def _tile(binding: FamilyBinding, subject: Subject) -> tuple[int, int, int] | None:
    """Threads, items and bytes of an element, as far as they are certain."""
    items = subject.first(words().members.items)
    threads = subject.first(words().members.threads)
    if items is None or threads is None or items.name not in binding.members:
        return None
    if type(items.value) is not int or type(threads.value) is not int:
        return None
    sizes = role_sizes(binding, subject.entry)
    unit = binding.members[items.name].unit
    count = scale_items(unit, items.value, sizes)
    elements = [size for role, size in sizes.items() if role not in words().tiles.outside]
    if count is None or not elements:
        return None
    element = sizes[unit.of] if unit else max(elements)
    return fitting_threads(unit, threads.value, count, sizes), count, element


def _size(tile: tuple[int, int, int]) -> int:
    return tile[0] * tile[1] * tile[2]


WARP = 32
MOST = 1024


# How many threads a block has.


def warp_multiple(subject: Subject) -> Iterator[Remark]:
    """CUB's BLOCK_LOAD_WARP_TRANSPOSE refuses blocks of part warps, its BlockScan falls back."""
    for threads, span in thread_counts(subject):
        if threads % WARP:
            yield Remark(span, f"{threads} threads are no multiple of a warp's {WARP}")


def limit(subject: Subject) -> Iterator[Remark]:
    """No GPU of any architecture launches a block of more than 1024 threads."""
    for threads, span in thread_counts(subject):
        if threads > MOST:
            yield Remark(span, f"{threads} threads: a block can have {MOST} at most")
        elif threads < WARP:
            yield Remark(span, f"{threads} threads: a block needs at least a warp, {WARP}")


def thread_counts(subject: Subject) -> Iterator[tuple[int, Span]]:
    """The threads of an entry, or those that it hands to its base, with their place."""
    for name in words().members.threads:
        members = subject.called(name)
        yield from ((m.value, m.value_span) for m in members if type(m.value) is int)
        if (
            not members
            and subject.entry.kind != "branch"
            and subject.entry.inherits_span is not None
        ):
            given = forwarded(subject).get(name)
            if type(given) is int:
                yield given, subject.entry.inherits_span


# Whether a thread's items can be loaded as vectors.


def divisible(subject: Subject) -> Iterator[Remark]:
    """CUB loads vectors only when they divide a thread's items, else silently single items.

    NVIDIA/cccl#10752 had 17 items and vectors of 2.
    """
    if _has_pixels(subject):
        return
    members = words().members
    vector, items = subject.first(members.vectors), subject.first(members.items)
    if vector is None or items is None:
        return
    length, count = vector.value, items.value
    if type(length) is not int or type(count) is not int or length < 2 or count < 1:
        return
    scaled = _scaled(subject, items.name, count)
    # A vector that is longer than all items is cut down to them.
    if scaled is not None and scaled % min(length, scaled):
        counted = (
            f"{count} items"
            if scaled == count
            else f"{count} items, of which large elements leave {scaled},"
        )
        yield Remark(
            items.value_span,
            f"{counted} cannot be loaded as vectors of {length}: vectorization is off",
        )


def _has_pixels(subject: Subject) -> bool:
    """Samples of several channels are loaded by pixels, whatever the vector length says."""
    names = [parameter.name for parameter in subject.family.parameters]
    channels = words().tiles.channels
    if channels not in names or len(names) != len(subject.entry.args):
        return False
    return subject.entry.args[names.index(channels)] != "1"


def _scaled(subject: Subject, name: str, count: int) -> int | None:
    """A thread's items, where the bindings and the arguments tell them."""
    found = set()
    for binding in subject.bindings:
        if (rule := binding.members.get(name)) is None:
            return None
        found.add(scale_items(rule.unit, count, role_sizes(binding, subject.entry)))
    return found.pop() if len(found) == 1 else None
