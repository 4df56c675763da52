"""Checks entries for scores of another GPU, duplicate keys, and repeated values."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import takewhile

from policygen.bindings.words import gpu_archs
from policygen.model.arch import arch_number, parse_arch
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, Member, Value
from policygen.proof.lint_subject import (
    Remark,
    Subject,
    key,
    mentions,
    normal,
    overlap,
    parameter_names,
    split_template,
)

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
            yield Remark(
                _comments_span(subject),
                f"the comment names {gpu}, which never selects {family.name}",
                word,
            )


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
    newer = (
        arch_number(candidate.arch)
        for candidate in families
        if (candidate.header, candidate.namespace) == place
    )
    return own <= number and not any(own < another <= number for another in newer)


def _comments_span(subject: Subject) -> Span:
    """Returns the span from the comment above an entry to its end, as remarks have no spans."""
    entry = subject.entry
    above = entry.comment_span
    return Span(above.start, entry.span.end) if above else entry.span


# Two entries for the same arguments.


def duplicate(subject: Subject) -> Iterator[Remark]:
    """Finds a second specialization for the same arguments, whatever its parameters are called."""
    entry = subject.entry
    if entry.kind == "primary":
        return
    key_of = key if subject.returns else _config_key
    own_key = key_of(entry)
    for earlier in takewhile(
        lambda candidate: candidate is not entry, subject.family.specializations
    ):
        if key_of(earlier) == own_key and _coexist(entry, earlier):
            span = entry.args_span or entry.span
            yield Remark(span, f"line {earlier.line} specializes the same arguments")
            return


def _config_key(entry: Entry) -> tuple[str, ...]:
    """Identifies a config by its template parameters and conditions, in any order."""
    return (*entry.template_parameters, *sorted(map(normal, entry.args)))


def _coexist(first: Entry, second: Entry) -> bool:
    """Whether a compiler is sure to see both: one guard implies the other."""
    first_conditions, second_conditions = conditions(first.guard), conditions(second.guard)
    return first_conditions <= second_conditions or second_conditions <= first_conditions


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
        if member.value is not None and _is_fixed(member, entry)
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


def _is_fixed(member: Member, entry: Entry) -> bool:
    """Whether a value means the same in another template."""
    return not mentions(member.spelling, parameter_names(entry))


def _plain(values: Mapping[str, Value]) -> dict[str, str]:
    return {name: _comparable(value) for name, value in values.items()}


def _comparable(value: Value) -> str:
    """Returns a value as text, so that 1 and true differ."""
    return normal(str(value).removeprefix("detail::")) if isinstance(value, str) else repr(value)


Values = dict[str, Value]


# What an entry inherits, and what it would get without its own values.


def inherited(subject: Subject) -> Values | None:
    """Returns the values that an entry's base gives; None if the source does not show them."""
    return _base_values(subject.entry, {}, subject)


def forwarded(subject: Subject) -> Values:
    """Returns values that an entry passes to its base: `tuning_vals<float, 128, 24, 688, 1140>`."""
    base = _base(subject.entry, {}, subject)
    return {} if base is None else _argument_values(*base)


def without(subject: Subject) -> Values | None:
    """Returns what the primary template gives for the key; None if another entry may match."""
    family, entry = subject.family, subject.entry
    other_entries = (candidate for candidate in family.specializations if candidate is not entry)
    primary = next((candidate for candidate in family.entries if candidate.kind == "primary"), None)
    if primary is None or any(overlap(entry, other_entry) for other_entry in other_entries):
        return None
    return _values(primary, _bind(family, entry.args), subject, (entry,))


def _values(
    entry: Entry, args: Mapping[str, str], subject: Subject, below: tuple[Entry, ...]
) -> Values | None:
    """Returns all values of an entry whose template parameters are known."""
    base = _base_values(entry, args, subject, below) if entry.inherits else {}
    return None if base is None else base | entry.values | _argument_values(entry, args)


def _base_values(
    entry: Entry, args: Mapping[str, str], subject: Subject, below: tuple[Entry, ...] = ()
) -> Values | None:
    """Returns the values of a base; None for an entry that inherits from itself."""
    base = _base(entry, args, subject)
    if base is None or any(base[0] is ancestor for ancestor in (entry, *below)):
        return None
    return _values(*base, subject, (entry, *below))


def _argument_values(entry: Entry, args: Mapping[str, str]) -> Values:
    return {
        member.name: int(arg)
        for member in entry.members
        if member.value is None and (arg := args.get(member.spelling, "")).isdecimal()
    }


def _base(
    entry: Entry, args: Mapping[str, str], subject: Subject
) -> tuple[Entry, Mapping[str, str]] | None:
    """Returns the one entry that is the base, with its arguments; None if several may be."""
    name, given_args = split_template(entry.inherits or "")
    given_args = tuple(args.get(arg, arg) for arg in given_args)
    family = _family(name, subject)
    if family is None:
        return None
    open_names = () if args else parameter_names(entry)
    matching: list[Entry] = []
    for candidate in family.specializations:
        fits = _fits(candidate, given_args, open_names)
        if fits is None:
            return None
        matching += [candidate] if fits else []
    if not matching:
        primary = next(
            (candidate for candidate in family.entries if candidate.kind == "primary"), None
        )
        return None if primary is None else (primary, _bind(family, given_args))
    return (matching[0], {}) if len(matching) == 1 else None


def _family(name: str, subject: Subject) -> Family | None:
    place = (subject.family.header, subject.family.namespace, name)
    families = [
        family
        for family in subject.families
        if (family.header, family.namespace, family.name) == place
    ]
    return families[0] if len(families) == 1 else None


def _fits(
    candidate: Entry, given_args: tuple[str, ...], open_names: tuple[str, ...]
) -> bool | None:
    """Whether a specialization matches the arguments; None if that is not certain."""
    if len(candidate.args) != len(given_args):
        return None
    names = parameter_names(candidate)
    certain = True
    for own_arg, arg in zip(candidate.args, given_args, strict=True):
        if own_arg in names or normal(own_arg) == normal(arg):
            continue
        if not (mentions(own_arg, names) or mentions(arg, open_names)):
            return False
        certain = False
    return True if certain else None


def _bind(family: Family, args: tuple[str, ...]) -> Mapping[str, str]:
    """Maps the parameters of a primary template to arguments."""
    return {
        parameter.name: arg
        for parameter, arg in zip(family.parameters, args, strict=False)
        if parameter.name
    }
