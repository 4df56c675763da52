"""Whether an entry's numbers were measured on a GPU that selects it."""

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
# What is said about another GPU on purpose: "like H100", "todo: tune on B200", "falls back to …"
_NO_CLAIM = re.compile(
    r"\b(?:not|no|n[o']t|never|todo|fixme|same|like|as|than|unlike|copied|copy|inherits?|fall\w*"
    r"|default\w*|regress\w*|slower|faster|worse|better|also|instead|untuned|re-?tune|kept|keeps?"
    r"|still|only)\b",
    re.IGNORECASE,
)


def other_gpu(subject: Subject) -> Iterator[Remark]:
    """Scores count for the GPU that they come from: NVIDIA/cccl#8611 had B200's for sm120."""
    entry, family = subject.entry, subject.family
    for remark in entry.remarks:
        match = _claims().search(remark)
        if match is None or _NO_CLAIM.search(remark):
            continue
        word = match[match.lastindex or 0]
        gpu, arch = _named(word)
        if not _selects(arch, family, subject.families):
            yield Remark(
                _comments(subject),
                f"the comment names {gpu}, which never selects {family.name}",
                word,
            )


@cache
def _claims() -> re.Pattern[str]:
    """`B200` and `tuned on B200` claim to be of it; an architecture does with the words alone."""
    names = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in gpu_archs())
    return re.compile(
        rf"(?:^\W*|{_MEASURED})(?:NVIDIA\s+)?({names})\b|{_MEASURED}(sm_?\d{{2,3}})\b",
        re.IGNORECASE,
    )


def _named(word: str) -> tuple[str, str]:
    """What is named, in words, and its architecture."""
    squeezed = " ".join(word.upper().split())
    for name, arch in gpu_archs().items():
        if name.upper() == squeezed:
            return f"{name}, an {arch} GPU", arch
    arch = parse_arch(word)
    return arch, arch


def _selects(gpu: str, family: Family, families: tuple[Family, ...]) -> bool:
    """Whether a GPU takes this family: the newest that is no newer than itself."""
    own, number = arch_number(family.arch), arch_number(gpu)
    place = (family.header, family.namespace)
    newer = (arch_number(f.arch) for f in families if (f.header, f.namespace) == place)
    return own <= number and not any(own < other <= number for other in newer)


def _comments(subject: Subject) -> Span:
    """From the comment above an entry to its end: what a remark stands in has no span."""
    entry = subject.entry
    above = entry.comment_span
    return Span(above.start, entry.span.end) if above else entry.span


# Two entries for the same arguments.


def duplicate(subject: Subject) -> Iterator[Remark]:
    """C++ allows one specialization for each list of arguments, whatever its parameters' names."""
    entry = subject.entry
    if entry.kind == "primary":
        return
    told = key if subject.returns else _asked
    own = told(entry)
    for other in takewhile(lambda e: e is not entry, subject.family.specializations):
        if told(other) == own and _together(entry, other):
            span = entry.args_span or entry.span
            yield Remark(span, f"line {other.line} is a specialization for the same arguments")
            return


def _asked(entry: Entry) -> tuple[str, ...]:
    """What a config asks of types, in whatever order, and which of them it is told."""
    return (*entry.template_parameters, *sorted(map(normal, entry.args)))


def _together(one: Entry, other: Entry) -> bool:
    """Whether a compiler surely sees both: where one is, the other is too."""
    mine, theirs = conditions(one.guard), conditions(other.guard)
    return mine <= theirs or theirs <= mine


def conditions(guard: str | None) -> frozenset[str]:
    """`A() && (B || C)` as its two parts; `A || B && C` is one."""
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


# Values that would be there without being written.


def repeats(subject: Subject) -> Iterator[Remark]:
    """What repeats its base stays behind when the base is tuned again.

    An entry that only inherits says on purpose that it is the same, and is left alone.
    """
    entry = subject.entry
    if not entry.values or entry.kind == "primary":
        return
    own = {m.name: m.value for m in entry.members if m.value is not None and _is_fixed(m, entry)}
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
    """A value as a text, so that 1 and true stay apart."""
    return normal(str(value).removeprefix("detail::")) if isinstance(value, str) else repr(value)


Values = dict[str, Value]


# What an entry inherits, and what would be there without it.


def inherited(subject: Subject) -> Values | None:
    """The values that an entry's base gives; none where the source alone does not tell."""
    return _base_values(subject.entry, {}, subject)


def forwarded(subject: Subject) -> Values:
    """Values that an entry hands to its base: `sm90_tuning_vals<float, 128, 24, 688, 1140>`."""
    base = _base(subject.entry, {}, subject)
    return {} if base is None else _given(*base)


def without(subject: Subject) -> Values | None:
    """What the primary template gives where an entry does; none where another one may match."""
    family, entry = subject.family, subject.entry
    others = (e for e in family.specializations if e is not entry)
    primary = next((e for e in family.entries if e.kind == "primary"), None)
    if primary is None or any(overlap(entry, other) for other in others):
        return None
    return _values(primary, _bind(family, entry.args), subject, (entry,))


def _values(
    entry: Entry, args: Mapping[str, str], subject: Subject, below: tuple[Entry, ...]
) -> Values | None:
    """All values of an entry whose template parameters are known."""
    base = _base_values(entry, args, subject, below) if entry.inherits else {}
    return None if base is None else base | _own(entry, args)


def _base_values(
    entry: Entry, args: Mapping[str, str], subject: Subject, below: tuple[Entry, ...] = ()
) -> Values | None:
    """The values of a base; none for one that comes to inherit itself."""
    base = _base(entry, args, subject)
    if base is None or any(base[0] is known for known in (entry, *below)):
        return None
    return _values(*base, subject, (entry, *below))


def _own(entry: Entry, args: Mapping[str, str]) -> Values:
    """The values of an entry, and those that its arguments are."""
    return entry.values | _given(entry, args)


def _given(entry: Entry, args: Mapping[str, str]) -> Values:
    return {
        member.name: int(arg)
        for member in entry.members
        if member.value is None and (arg := args.get(member.spelling, "")).isdecimal()
    }


def _base(
    entry: Entry, args: Mapping[str, str], subject: Subject
) -> tuple[Entry, Mapping[str, str]] | None:
    """The one entry that a base is, with its arguments; none where several may be it."""
    name, given = split_template(entry.inherits or "")
    given = tuple(args.get(arg, arg) for arg in given)
    family = _family(name, subject)
    if family is None:
        return None
    open_names = () if args else parameter_names(entry)
    matching: list[Entry] = []
    for candidate in family.specializations:
        fits = _fits(candidate, given, open_names)
        if fits is None:
            return None
        matching += [candidate] if fits else []
    if not matching:
        primary = next((e for e in family.entries if e.kind == "primary"), None)
        return None if primary is None else (primary, _bind(family, given))
    return (matching[0], {}) if len(matching) == 1 else None


def _family(name: str, subject: Subject) -> Family | None:
    place = (subject.family.header, subject.family.namespace, name)
    found = [f for f in subject.families if (f.header, f.namespace, f.name) == place]
    return found[0] if len(found) == 1 else None


def _fits(candidate: Entry, given: tuple[str, ...], open_names: tuple[str, ...]) -> bool | None:
    """Whether a specialization is for the given arguments; none where they do not tell."""
    if len(candidate.args) != len(given):
        return None
    names = parameter_names(candidate)
    certain = True
    for own, arg in zip(candidate.args, given, strict=True):
        if own in names or normal(own) == normal(arg):
            continue
        if not (mentions(own, names) or mentions(arg, open_names)):
            return False
        certain = False
    return True if certain else None


def _bind(family: Family, args: tuple[str, ...]) -> Mapping[str, str]:
    """The parameters of a primary template with what is given for them."""
    return {p.name: arg for p, arg in zip(family.parameters, args, strict=False) if p.name}
