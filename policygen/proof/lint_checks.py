"""Checks entries: against labels in comments, hardware limits, and other entries."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import takewhile
from math import prod

from policygen.bindings.load import scaling, types
from policygen.bindings.variants import fitting_threads
from policygen.bindings.words import archs, gpu_archs, words
from policygen.model.arch import arch_number, parse_arch
from policygen.model.bindings import DelayConstructor, FamilyBinding, MemberRule
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, Label, Member, Value, spell
from policygen.model.workload import parse_label
from policygen.proof.lint_subject import (
    Remark,
    Subject,
    forwarded,
    inherited,
    key,
    mentions,
    normal,
    role_sizes,
    scale_items,
    split_template,
    without,
)

Parameters = Mapping[str, int]


def contradictions(subject: Subject) -> Iterator[Remark]:
    """Finds values that differ from the label, which records what was measured.

    If an entry has several labels, or several benchmarks fill it, the best match counts.
    """
    remarks_by_label = [
        list(_compare(subject, binding, parse_label(label.variant) or {}))
        for binding in subject.bindings
        for label in _accepted_labels(subject)
    ]
    yield from min(remarks_by_label, key=len, default=[])


def exponents(subject: Subject) -> Iterator[Remark]:
    """Finds exponents: benchmarks use vectors of 1 << ipv, so an entry of ipv was not measured."""
    remarks_by_label = [
        [
            remark
            for member, rule in _members_with_rules(subject, binding)
            if (remark := _exponent_remark(member, rule, values))
        ]
        for binding in subject.bindings
        for label in _accepted_labels(subject)
        if (values := parse_label(label.variant))
    ]
    yield from min(remarks_by_label, key=len, default=[])


def _accepted_labels(subject: Subject) -> list[Label]:
    return [label for label in subject.entry.labels if not label.rejected]


def _members_with_rules(
    subject: Subject, binding: FamilyBinding
) -> Iterator[tuple[Member, MemberRule]]:
    for member in subject.entry.members:
        rule = binding.members.get(member.name)
        if rule is not None and (member.value is not None or rule.delay is not None):
            yield member, rule


def _compare(subject: Subject, binding: FamilyBinding, values: Parameters) -> Iterator[Remark]:
    sizes = role_sizes(binding, subject.entry)
    for member, rule in _members_with_rules(subject, binding):
        if rule.delay is not None:
            delay = delay_type(member)
            contradiction = delay_contradiction(delay, rule.delay, values) if delay else None
        elif rule.parameter is None or rule.parameter not in values or member.value is None:
            contradiction = None
        elif rule.unit is None or _same_scale(subject, rule, values):
            contradiction = _contradiction(member.value, rule, values[rule.parameter])
        else:
            contradiction = _contradiction_at_any_scale(
                member.value, rule, values[rule.parameter], sizes
            )
        if contradiction:
            yield Remark(member.value_span, f"the label says {contradiction}")


def _same_scale(subject: Subject, rule: MemberRule, values: Parameters) -> bool:
    """Whether the benchmarks that have such labels use the same unit as the header."""
    writable = (row for row in subject.benchmarks if row.writable and not row.returns)
    measured = (row for row in writable if set(row.parameters) == set(values))
    units = (row.units.get(rule.parameter or "") for row in measured)
    scalings = {unit.scaling if unit else "" for unit in units}
    return rule.unit is not None and scalings == {rule.unit.scaling}


def _contradiction_at_any_scale(
    value: Value, rule: MemberRule, number: int, sizes: Mapping[str, int]
) -> str | None:
    """Returns a contradiction that holds both in the header's unit and without one.

    Labels of other versions have no unit.
    """
    if type(value) is not int or rule.unit is None or scaling(rule.unit.scaling).bounded:
        return None
    if scale_items(rule.unit, value, sizes) in {None, number}:
        return None
    return _contradiction(value, rule, number)


def _contradiction(value: Value, rule: MemberRule, number: int) -> str | None:
    """Describes what the label says instead of a value; None if that is not certain."""
    meant_value = _meant_value(rule, number)
    own_value = spell(value).rpartition("::")[2] if isinstance(meant_value, str) else value
    if meant_value in {None, own_value} or (rule.power_of_two and value == number):
        return None
    label = f"{rule.parameter}_{number}"
    description = label if meant_value == number else f"{label}, which is {spell(meant_value)}"
    return f"{description}, the entry has {spell(value)}"


def _meant_value(rule: MemberRule, number: int) -> Value | None:
    if rule.choices is not None:
        # a choice out of range is from a version with other choices
        return rule.choices[number] if 0 <= number < len(rule.choices) else None
    if rule.power_of_two:
        return 1 << number if 0 <= number < 31 else None
    return number


def _exponent_remark(member: Member, rule: MemberRule, values: Parameters) -> Remark | None:
    number = values.get(rule.parameter or "")
    if not rule.power_of_two or number is None or member.value != number:
        return None
    meant = _meant_value(rule, number)
    if meant is None:
        return None
    label = f"the label says {rule.parameter}_{number}, which is {meant}"
    return Remark(member.value_span, f"{label}, the entry has the exponent {number}")


# LookbackDelayPolicy{LookbackDelayAlgorithm::fixed_delay, 350, 450}
_FIELDS = re.compile(r"LookbackDelayAlgorithm::(\w+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\}")
# lookback_delay_policy_from_type<fixed_delay_constructor_t<350, 450>>
_FROM_TYPE = re.compile(r"lookback_delay_policy_from_type<(.*)>$")


# Delay constructors: three parameters of a label form one type in an entry.


def delay_type(member: Member) -> str | None:
    """Returns a delay as a type; a return may give its fields instead of naming the type."""
    if member.value is not None:
        return str(member.value)
    if named := _FROM_TYPE.search(member.spelling):
        return named[1]
    if fields := _FIELDS.search(member.spelling):
        kind, ns, l2w = fields.groups()
        spellings = (delay.spelled(ns, l2w) for delay in types().delays if delay.kind == kind)
        return next(spellings, None)
    return None


def delay_contradiction(
    spelling: str, parameters: tuple[str, str, str], values: Mapping[str, int]
) -> str | None:
    """Describes what a label says instead of a delay constructor; None if it names none."""
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
    label_values = {"ns": (parameters[1], ns), "l2w": (parameters[2], l2w)}
    return _argument_contradiction(meant, args, label_values)


def _argument_contradiction(
    meant: DelayConstructor, args: tuple[str, ...], label_values: Mapping[str, tuple[str, int]]
) -> str | None:
    """Describes the first argument that differs from the label's."""
    if len(args) != len(meant.args):
        return None
    for name, arg in zip(meant.args, args, strict=True):
        label, number = label_values[name]
        if not arg.isdecimal() or int(arg) == number:
            continue
        pairs = label_values.values()
        # no_delay_constructor_t takes only the latency, but was given the delay.
        swapped = (f", which is {other}_{value}" for other, value in pairs if value == int(arg))
        return f"{label}_{number}, the entry has {arg}{next(swapped, '')}"
    return None


# Checks that a tile fits into shared memory.


def fits(subject: Subject) -> Iterator[Remark]:
    """Finds transposed tiles that exceed static shared memory, which is 48 KiB per block."""
    facts = archs().get(subject.family.arch)
    kinds, members = words().tiles.exchanges, subject.entry.members
    exchanges = (row for row in members if str(row.value).rpartition("::")[2] in kinds)
    exchange = next(exchanges, None)
    threads = subject.first(words().members.threads)
    if facts is None or exchange is None or threads is None or not subject.bindings:
        return
    tiles = [_tile(binding, subject) for binding in subject.bindings]
    if any(tile is None or prod(tile) <= facts.static for tile in tiles):
        return
    tile = min((tile for tile in tiles if tile), key=prod)
    opt_in_text = f", or {facts.opt_in:,} when its launch asks for them" if facts.opt_in else ""
    yield Remark(
        threads.value_span,
        f"{tile[0]} threads x {tile[1]} items x {tile[2]} bytes = {prod(tile):,} bytes,"
        f" which {exchange.value} keeps in shared memory: a block of {facts.name} has"
        f" {facts.static:,}{opt_in_text}",
    )


def _tile(binding: FamilyBinding, subject: Subject) -> tuple[int, int, int] | None:
    """Returns threads, items and element size in bytes, as far as they are certain."""
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


WARP = 32
MOST = 1024


# Checks the number of threads in a block.


def warp_multiple(subject: Subject) -> Iterator[Remark]:
    """Finds partial warps: BLOCK_LOAD_WARP_TRANSPOSE refuses them, and BlockScan falls back."""
    for threads, span in thread_counts(subject):
        if threads % WARP:
            yield Remark(span, f"{threads} threads are not a multiple of the warp size {WARP}")


def limit(subject: Subject) -> Iterator[Remark]:
    """Finds blocks of more than 1024 threads, which no GPU launches, or of less than a warp."""
    for threads, span in thread_counts(subject):
        if threads > MOST:
            yield Remark(span, f"{threads} threads: a block has at most {MOST}")
        elif threads < WARP:
            yield Remark(span, f"{threads} threads: a block needs at least a warp, {WARP}")


def thread_counts(subject: Subject) -> Iterator[tuple[int, Span]]:
    """Yields an entry's threads, or those that it passes to its base, with their spans."""
    entry = subject.entry
    for name in words().members.threads:
        members = subject.called(name)
        yield from ((row.value, row.value_span) for row in members if type(row.value) is int)
        if not members and entry.kind != "branch" and entry.inherits_span is not None:
            forwarded_value = forwarded(subject).get(name)
            if type(forwarded_value) is int:
                yield forwarded_value, entry.inherits_span


# Checks that a thread's items can be loaded as vectors.


def divisible(subject: Subject) -> Iterator[Remark]:
    """Finds vector lengths that do not divide a thread's items: CUB then loads single items.

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
    scaled = _items_per_thread(subject, items.name, count)
    # A vector longer than all items is shortened to them.
    if scaled is not None and scaled % min(length, scaled):
        scaled_to = "" if scaled == count else f", which are {scaled} for large elements,"
        effect = f"cannot be loaded as vectors of {length}: vectorization is off"
        yield Remark(items.value_span, f"{count} items{scaled_to} {effect}")


def _has_pixels(subject: Subject) -> bool:
    """Whether samples have several channels: they are loaded by pixel, not as vectors."""
    names = [parameter.name for parameter in subject.family.parameters]
    channels = words().tiles.channels
    if channels not in names or len(names) != len(subject.entry.args):
        return False
    return subject.entry.args[names.index(channels)] != "1"


def _items_per_thread(subject: Subject, name: str, count: int) -> int | None:
    """Returns a thread's items, if the bindings and the arguments determine them."""
    item_counts = set()
    for binding in subject.bindings:
        if (rule := binding.members.get(name)) is None:
            return None
        item_counts.add(scale_items(rule.unit, count, role_sizes(binding, subject.entry)))
    return item_counts.pop() if len(item_counts) == 1 else None


# Scores of another GPU.

# "scores from B200", "tuned on an H100", "measured with sm_90"
_MEASURED = (
    r"\b(?:tuned|tunings?|measured|measurements?|benchmarked|scores?|results?|ran|run)\s+"
    r"(?:(?:is|are|was|were|taken|comes?)\s+)*(?:on|for|from|with|of)\s+(?:an?\s+|the\s+)?"
)
# Phrases that mention another GPU on purpose: "like H100", "todo: tune on B200", "falls back to …"
_NO_CLAIM = re.compile(
    r"\b(?:not|no|n[o']t|never|todo|fixme|same|like|as|than|unlike|copied|copy|inherits?|fall\w*"
    r"|default\w*|regress\w*|slower|faster|worse|better|also|instead|untuned|re-?tune|kept|keeps?"
    r"|still|only)\b",
    re.IGNORECASE,
)


def other_gpu(subject: Subject) -> Iterator[Remark]:
    """Finds scores of a GPU that never selects the entry: NVIDIA/cccl#8611 had B200's for sm120."""
    entry, family = subject.entry, subject.family
    for remark in entry.remarks:
        match = _claims().search(remark)
        if match is None or _NO_CLAIM.search(remark):
            continue
        word = match[match.lastindex or 0]
        gpu, arch = _claimed_gpu(word)
        if not _selects(arch, family, subject.families):
            # Remarks have no spans: they are in an entry, or in the comment above it.
            start = (entry.comment_span or entry.span).start
            message = f"the comment names {gpu}, which never selects {family.name}"
            yield Remark(Span(start, entry.span.end), message, word)


@cache
def _claims() -> re.Pattern[str]:
    """Matches `B200` or `tuned on B200`; an architecture counts only with such a phrase."""
    names = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in gpu_archs())
    return re.compile(
        rf"(?:^\W*|{_MEASURED})(?:NVIDIA\s+)?({names})\b|{_MEASURED}(sm_?\d{{2,3}})\b",
        re.IGNORECASE,
    )


def _claimed_gpu(word: str) -> tuple[str, str]:
    """Returns the GPU in words, and its architecture."""
    squeezed = " ".join(word.upper().split())
    for name, arch in gpu_archs().items():
        if name.upper() == squeezed:
            return f"{name}, an {arch} GPU", arch
    arch = parse_arch(word)
    return arch, arch


def _selects(gpu: str, family: Family, families: tuple[Family, ...]) -> bool:
    """Whether a GPU selects this family: the newest that is not newer than the GPU."""
    own, number = arch_number(family.arch), arch_number(gpu)
    place = (family.header, family.namespace)
    siblings = (row for row in families if (row.header, row.namespace) == place)
    return own <= number and not any(own < arch_number(row.arch) <= number for row in siblings)


# Two entries for the same arguments.


def duplicate(subject: Subject) -> Iterator[Remark]:
    """Finds a second specialization for the same arguments, whatever its parameters are called."""
    entry = subject.entry
    if entry.kind == "primary":
        return
    key_of = key if subject.returns else _config_key
    own_key, own_conditions = key_of(entry), conditions(entry.guard)
    entries = subject.family.specializations
    for earlier in takewhile(lambda candidate: candidate is not entry, entries):
        earlier_conditions = conditions(earlier.guard)
        shared = own_conditions & earlier_conditions
        # A compiler is sure to see both only if one guard implies the other.
        if key_of(earlier) == own_key and shared in {own_conditions, earlier_conditions}:
            span = entry.args_span or entry.span
            yield Remark(span, f"line {earlier.line} specializes the same arguments")
            return


def _config_key(entry: Entry) -> tuple[str, ...]:
    """Identifies a config by its template parameters and conditions, in any order."""
    return (*entry.template_parameters, *sorted(map(normal, entry.args)))


def conditions(guard: str | None) -> frozenset[str]:
    """Splits `A() && (B || C)` into its two parts; `A || B && C` is a single one."""
    parts, depth = [""], 0
    for piece in re.findall(r"&&|\|\||[()]|[^()&|]+|.", guard or ""):
        depth += (piece == "(") - (piece == ")")
        if piece == "||" and not depth:
            return frozenset({"".join((guard or "").split())})
        if piece == "&&" and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return frozenset("".join(part.split()) for part in parts if part.strip())


# Values that the entry would get without writing them.


def repeats(subject: Subject) -> Iterator[Remark]:
    """Finds values that repeat the base's, and would become stale when the base is tuned again.

    An entry that only inherits is the same on purpose, and is left alone.
    """
    entry = subject.entry
    if not entry.values or entry.kind == "primary":
        return
    own = {
        member.name: member.value
        for member in entry.members
        if member.value is not None and not mentions(member.spelling, entry.own_parameters)
    }
    if entry.inherits is None:
        base = without(subject)
        if base and len(own) == len(entry.members) and _plain(base) == _plain(own):
            spelled = ", ".join(f"{name} {value}" for name, value in base.items())
            span = entry.args_span or entry.span
            yield Remark(span, f"the primary template gives the same: {spelled}")
        return
    values = _plain(inherited(subject) or {})
    for member in entry.members:
        if member.name in own and values.get(member.name) == _comparable(own[member.name]):
            yield Remark(member.span, f"{entry.inherits} gives the same {member.name}")


def _plain(values: Mapping[str, Value]) -> dict[str, str]:
    return {name: _comparable(value) for name, value in values.items()}


def _comparable(value: Value) -> str:
    """Returns a value as text, so that 1 and true differ."""
    return normal(str(value).removeprefix("detail::")) if isinstance(value, str) else repr(value)
