"""What lint rules examine, and what they report."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from policygen.bindings.load import Bound, bound, scaling, types
from policygen.bindings.variants import newest_family, rules_of
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.headers.text import BOM, decode
from policygen.model.audits import Scan
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site, Unit
from policygen.model.records import Span
from policygen.model.trees import Cub
from policygen.model.tuning import Entry, Family, Member, TuningHeader, Value
from policygen.proof.answers import split


@dataclass(frozen=True, slots=True)
class Subject:
    """One live entry, its family, and what is known about the family."""

    entry: Entry
    family: Family
    families: tuple[Family, ...]
    """All families of the tree, as an entry may inherit from another family."""
    bindings: tuple[FamilyBinding, ...]
    """How variants map to values; several if several sites read the family."""
    benchmarks: tuple[BenchmarkBinding, ...] = ()
    """The benchmarks that measure them."""
    returns: bool = True
    """Whether an entry with a condition is a return; otherwise it is a config of types."""

    def called(self, name: str) -> list[Member]:
        """Returns the members of this name; a return has one in each part of its policy."""
        return [member for member in self.entry.members if member.name.rpartition(".")[2] == name]

    def first(self, names: Iterable[str]) -> Member | None:
        """Returns the first of these members that the entry has."""
        return next((member for name in names for member in self.called(name)), None)


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule reports about a subject, and where."""

    span: Span
    message: str
    word: str | None = None
    """The word to point at within the span; comments in an entry have no spans of their own."""


def subjects(scan: Scan) -> Iterator[Subject]:
    """Yields every live entry of a scan, including primary templates and guarded returns."""
    for family in scan.families:
        live = [entry for entry in family.entries if not entry.disabled]
        bindings = bindings_of(family, scan.cub)
        branches = not bindings and any(entry.kind == "branch" for entry in live)
        sites = _sites(family, scan.cub) if branches else []
        benchmarks = _benchmarks(bindings, scan.cub)
        for entry in live:
            if branches:
                bindings = tuple(_return_bindings(family, entry, sites))
                benchmarks = _benchmarks(bindings, scan.cub)
            returns = scan.cub.has_returns
            yield Subject(entry, family, scan.families, bindings, benchmarks, returns)


def _sites(family: Family, cub: Cub) -> list[tuple[Bound, Site]]:
    """Returns the sites that a function's returns may belong to: those of its header."""
    place = family.header, family.namespace
    return [
        (algorithm, site)
        for algorithm in bound(cub.bindings)
        for name in dict.fromkeys(binding.site for binding in algorithm.families)
        if (site := algorithm.site(name, cub.dialect)) and (site.header, site.scope) == place
    ]


def _return_bindings(
    family: Family, entry: Entry, sites: Iterable[tuple[Bound, Site]]
) -> Iterator[FamilyBinding]:
    """Yields how variants map to the values of a return, at each site of its header."""
    for algorithm, site in sites:
        with suppress(InputError):  # the return is for another algorithm
            rules, fields = rules_of(algorithm, site, None, family, entry)
            members = {fields[value]: rule for value, rule in rules.items()}
            yield newest_family(algorithm, site).model_copy(update={"members": members})


def bindings_of(family: Family, cub: Cub) -> tuple[FamilyBinding, ...]:
    """Returns the bindings of a family; none if no site reads it."""
    if cub.version == "unknown":
        return ()
    return tuple(
        binding
        for algorithm in bound(cub.bindings)
        for binding in algorithm.families
        if binding.name == family.name
        # Trees with selectors keep the older families for the public dispatchers.
        and any(
            site.name == binding.site
            and not site.is_selector
            and (site.header, site.scope) == (family.header, family.namespace)
            for site in algorithm.sites
        )
    )


def _benchmarks(bindings: tuple[FamilyBinding, ...], cub: Cub) -> tuple[BenchmarkBinding, ...]:
    sites = {binding.site for binding in bindings}
    if not sites:
        return ()
    benchmarks = (row for algorithm in bound(cub.bindings) for row in algorithm.benchmarks)
    return tuple(benchmark for benchmark in benchmarks if benchmark.site in sites)


# "cuda::std::int8_t", "::cuda::std::plus<>", "std::int8_t"
_STANDARD = re.compile(r"(?<![\w:])(?:::)?(?:cuda::)?std::")
_WORD = re.compile(r"[A-Za-z_]\w*")
# "sm90_tuning<double, accum_size::_8>"
_TEMPLATE = re.compile(r"(?:[\w:]*::)?(\w+)\s*(?:<(.*)>)?\s*$", re.DOTALL)


# Normalized template arguments, independent of the names of parameters.


def normal(text: str) -> str:
    """Removes spaces and standard namespaces, and uses a single name for each type."""
    names = types().spellings
    plain = _WORD.sub(lambda word: names.get(word[0], word[0]), _STANDARD.sub("", text))
    return "".join(plain.split())


def key(entry: Entry) -> tuple[str, ...]:
    """Returns the arguments, with template parameters numbered in order of appearance."""
    names = entry.own_parameters
    numbers: dict[str, str] = {}

    def number(word: re.Match[str]) -> str:
        if word[0] not in names:
            return word[0]
        return numbers.setdefault(word[0], f"${len(numbers)}")

    return tuple(normal(_WORD.sub(number, arg)) for arg in entry.args)


def mentions(text: str, names: Collection[str]) -> bool:
    """Whether one of the names occurs in a spelling."""
    return not set(names).isdisjoint(_WORD.findall(text))


def overlap(first: Entry, second: Entry) -> bool:
    """Whether some arguments may match both entries; in doubt, true."""
    if len(first.args) != len(second.args):
        return True
    first_names, second_names = first.own_parameters, second.own_parameters
    return all(
        mentions(first_arg, first_names)
        or mentions(second_arg, second_names)
        or normal(first_arg) == normal(second_arg)
        for first_arg, second_arg in zip(first.args, second.args, strict=True)
    )


def split_template(text: str) -> tuple[str, tuple[str, ...]]:
    """Splits `sm90_tuning<KeyT, 4>` into its name and its arguments."""
    match = _TEMPLATE.match(text)
    if match is None:
        return text, ()
    return match[1], tuple(filter(None, split(match[2] or "", ",")))


@dataclass(frozen=True, slots=True)
class HeaderSource:
    """A header's displayed path, and its bytes."""

    path: str
    data: bytes


class Position(NamedTuple):
    """Line and column, from 1, the line's text, and the number of characters to mark."""

    line: int
    column: int
    text: str
    width: int


# Converts offsets to lines and columns, as editors count them.


def place(data: bytes, span: Span, word: str | None = None) -> Position:
    """Locates the start of a span, or of a word in it; the width ends with the line."""
    if word is not None and (offset := data.find(word.encode(), span.start, span.end)) >= 0:
        span = Span(offset, offset + len(word.encode()))
    start = data.rfind(b"\n", 0, span.start) + 1
    end = data.find(b"\n", span.start)
    row = data[start : end if end >= 0 else None].rstrip(b"\r")
    lead = decode(data[start : span.start].removeprefix(BOM))
    marked = decode(data[span.start : min(span.end, start + len(row))])
    line = data.count(b"\n", 0, span.start) + 1
    return Position(line, len(lead) + 1, decode(row.removeprefix(BOM)), max(1, len(marked)))


# "key_size::_4", "16"
_BYTES = re.compile(r"(?:\w+::_)?(\d+)")
# "key_size == 4", "input_t == type_t::uint32"
_SIZE_TEST = re.compile(
    r"(?P<name>\w+?)_(?:size(?:_bytes)? == (?P<bytes>\d+)"
    r"|t(?:ype)? == (?:\w+::)*[a-z]+(?P<bits>\d+))"
)


# The unit of a count, and the sizes of the elements that an entry is for.


def role_sizes(binding: FamilyBinding, entry: Entry) -> dict[str, int]:
    """Maps roles to sizes in bytes, as far as an entry's arguments show them."""
    if entry.kind == "branch":
        return _tested_sizes(binding, entry)
    sizes: dict[str, int] = {}
    if len(binding.args) != len(entry.args):
        return sizes
    for expression, arg in zip(binding.args, entry.args, strict=True):
        role, size = _size_pattern().search(expression), _BYTES.fullmatch(arg)
        if role and size and int(size[1]):
            sizes[role[1]] = int(size[1])
        elif type_size := _size_by_type().get(normal(arg)):
            sizes.setdefault(expression, type_size)
    return sizes


def _tested_sizes(binding: FamilyBinding, entry: Entry) -> dict[str, int]:
    """Maps roles to bytes if a return tests for one size: `key_size == 4` is that of `KeyT`."""
    sizes: dict[str, int] = {}
    for role in {rule.unit.of for rule in binding.members.values() if rule.unit}:
        name = role.removesuffix("T").lower()
        for fact in entry.args:
            parts = [_SIZE_TEST.fullmatch(part.strip(" ()")) for part in fact.split("||")]
            tested_sizes = {
                int(match["bytes"] or int(match["bits"]) // 8)
                for match in parts
                if match and match["name"] == name
            }
            if all(parts) and len(tested_sizes) == 1:
                sizes[role] = tested_sizes.pop()
    return sizes


def scale_items(unit: Unit | None, items: int, sizes: Mapping[str, int]) -> int | None:
    """Returns a thread's items; None if the size that scales them is unknown."""
    if unit is None:
        return items
    size = sizes.get(unit.of)
    return None if size is None else max(1, scaling(unit.scaling).items(items, size))


@cache
def _size_pattern() -> re.Pattern[str]:
    """Matches `classify_key_size<KeyT>()`, `sizeof(ValueT)`."""
    return re.compile(rf"(?:\b{words().tiles.sizes}\s*<|\bsizeof\s*\()\s*(\w+)\s*[>)]")


@cache
def _size_by_type() -> dict[str, int]:
    return {normal(entry.cpp): entry.size for entry in types().types if entry.cpp and entry.size}


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
    primary = family.primary
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
    open_names = () if args else tuple(entry.own_parameters)
    matching: list[Entry] = []
    for candidate in family.specializations:
        fits = _fits(candidate, given_args, open_names)
        if fits is None:
            return None
        matching += [candidate] if fits else []
    if not matching:
        return None if family.primary is None else (family.primary, _bind(family, given_args))
    return (matching[0], {}) if len(matching) == 1 else None


def _family(name: str, subject: Subject) -> Family | None:
    place = (subject.family.header, subject.family.namespace, name)
    families = [family for family in subject.families if family.path == place]
    return families[0] if len(families) == 1 else None


def _fits(
    candidate: Entry, given_args: tuple[str, ...], open_names: tuple[str, ...]
) -> bool | None:
    """Whether a specialization matches the arguments; None if that is not certain."""
    if len(candidate.args) != len(given_args):
        return None
    names = candidate.own_parameters
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


# Follows inheritance between entries.


def all_members(header: TuningHeader, family: Family, entry: Entry) -> frozenset[str] | None:
    """Returns the members that an entry has, including inherited ones.

    None if it inherits from something outside the header's tunings, whose members are unknown.
    """
    ancestors = [entry, *(base for _, base in bases_of(header, family, entry))]
    if ancestors[-1].inherits and base_of(header, family, ancestors[-1]) is None:
        return None
    return frozenset(member.name for ancestor in ancestors for member in ancestor.members)


def bases_of(header: TuningHeader, family: Family, entry: Entry) -> list[tuple[Family, Entry]]:
    """Lists what an entry inherits from, closest first."""
    bases: list[tuple[Family, Entry]] = []
    seen = {entry.span}
    base = base_of(header, family, entry) if entry.inherits else None
    while base and base[1].span not in seen:
        bases.append(base)
        seen.add(base[1].span)
        base = base_of(header, *base) if base[1].inherits else None
    return bases


def base_of(header: TuningHeader, family: Family, entry: Entry) -> tuple[Family, Entry] | None:
    """Finds the entry that another one inherits from: the best match, else the primary."""
    name, args = split_template((entry.inherits or "").removeprefix("public "))
    for base_family in header.families:
        if (base_family.namespace, base_family.name) != (family.namespace, name):
            continue
        live = (row for row in base_family.entries if not row.disabled and row is not entry)
        fitting = [(free, row) for row in live if (free := _open_arguments(row, args)) is not None]
        if fitting:
            return base_family, min(fitting, key=lambda pair: pair[0])[1]
    return None


def _open_arguments(entry: Entry, args: tuple[str, ...]) -> int | None:
    """Counts the arguments that a matching entry leaves open; the primary leaves all open."""
    if entry.kind == "primary":
        return len(args) + 1
    own = entry.own_parameters
    pairs = list(zip(entry.args, args, strict=False))
    if any(own_arg not in own and normal(own_arg) != normal(arg) for own_arg, arg in pairs):
        return None
    return sum(own_arg in own for own_arg, _ in pairs)
