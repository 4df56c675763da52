"""What a rule looks at, and what it says."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from policygen.bindings.load import Bound, bound, types
from policygen.bindings.variants import newest_family, rules_of, scale
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site, Unit
from policygen.model.records import Span
from policygen.model.trees import Cub
from policygen.model.tuning import Entry, Family, Member, Scan


@dataclass(frozen=True, slots=True)
class Subject:
    """One live entry, its family, and what is known about the family."""

    entry: Entry
    family: Family
    families: tuple[Family, ...]
    """Of the whole tree: what an entry inherits stands in others."""
    bindings: tuple[FamilyBinding, ...]
    """How variants come to be values; several where several sites read one family."""
    benchmarks: tuple[BenchmarkBinding, ...] = ()
    """What measured them."""
    returns: bool = True
    """Whether an entry with a condition is a return; else it is a config of types."""

    def member(self, name: str) -> Member | None:
        """A member of the entry's own."""
        return next(iter(self.called(name)), None)

    def called(self, name: str) -> list[Member]:
        """The members of a name; a return has one in each part of its policy."""
        return [m for m in self.entry.members if m.name.rpartition(".")[2] == name]

    def first(self, names: Iterable[str]) -> Member | None:
        """The first of some members that the entry has."""
        return next((m for name in names if (m := self.member(name))), None)


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule says about a subject, and where."""

    span: Span
    message: str
    word: str | None = None
    """What to point at within the span; the comments of an entry have no spans of their own."""


def subjects(scan: Scan) -> Iterator[Subject]:
    """Every live entry of a scan, primary templates and guarded returns among them."""
    for family in scan.families:
        live = [entry for entry in family.entries if not entry.disabled]
        bindings = bindings_of(family, scan.cub)
        branches = not bindings and any(entry.kind == "branch" for entry in live)
        sites = _sites(family, scan.cub) if branches else []
        benchmarks = _benchmarks(bindings, scan.cub)
        for entry in live:
            if branches:
                bindings = tuple(_as_returned(family, entry, sites))
                benchmarks = _benchmarks(bindings, scan.cub)
            returns = scan.cub.has_returns
            yield Subject(entry, family, scan.families, bindings, benchmarks, returns)


def _sites(family: Family, cub: Cub) -> list[tuple[Bound, Site]]:
    """The sites whose selectors a function with returns may be of: those of its header."""
    place = family.header, family.namespace
    return [
        (algorithm, site)
        for algorithm in bound(cub.bindings)
        for name in dict.fromkeys(binding.site for binding in algorithm.families)
        if (site := algorithm.site(name, cub.dialect)) and (site.header, site.scope) == place
    ]


def _as_returned(
    family: Family, entry: Entry, sites: Iterable[tuple[Bound, Site]]
) -> Iterator[FamilyBinding]:
    """How variants come to be what a return calls its values, at each site of its header."""
    for algorithm, site in sites:
        with suppress(InputError):  # it returns another algorithm's values
            rules, fields = rules_of(algorithm, site, None, family, entry)
            members = {fields[value]: rule for value, rule in rules.items()}
            yield newest_family(algorithm, site).model_copy(update={"members": members})


def bindings_of(family: Family, cub: Cub) -> tuple[FamilyBinding, ...]:
    """What the bindings say about a family; nothing for one that no site reads."""
    if cub.version == "unknown":
        return ()
    return tuple(
        binding
        for algorithm in bound(cub.bindings)
        for binding in algorithm.families
        if binding.name == family.name
        # The families of old stay in trees that select otherwise, for the public dispatchers.
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
    return tuple(
        b for algorithm in bound(cub.bindings) for b in algorithm.benchmarks if b.site in sites
    )


# "cuda::std::int8_t", "::cuda::std::plus<>", "std::int8_t"
_STANDARD = re.compile(r"(?<![\w:])(?:::)?(?:cuda::)?std::")
_WORD = re.compile(r"[A-Za-z_]\w*")
# "sm90_tuning<double, accum_size::_8>"
_TEMPLATE = re.compile(r"(?:[\w:]*::)?(\w+)\s*(?:<(.*)>)?\s*$", re.DOTALL)
_OPEN, _CLOSE = "<([{", ">)]}"


# What an entry is a specialization for, whatever its parameters are called.


def normal(text: str) -> str:
    """A spelling without spaces and standard namespaces, with one name for each type."""
    names = types().spellings
    plain = _WORD.sub(lambda word: names.get(word[0], word[0]), _STANDARD.sub("", text))
    return "".join(plain.split())


def parameter_names(entry: Entry) -> tuple[str, ...]:
    """What an entry's own template parameters are called."""
    return tuple(entry.own_parameters)


def key(entry: Entry) -> tuple[str, ...]:
    """The arguments, with template parameters numbered in the order in which they appear."""
    names = set(parameter_names(entry))
    numbers: dict[str, str] = {}

    def number(word: re.Match[str]) -> str:
        if word[0] not in names:
            return word[0]
        return numbers.setdefault(word[0], f"${len(numbers)}")

    return tuple(normal(_WORD.sub(number, arg)) for arg in entry.args)


def mentions(text: str, names: tuple[str, ...]) -> bool:
    """Whether one of the names is in a spelling."""
    return not set(names).isdisjoint(_WORD.findall(text))


def overlap(one: Entry, other: Entry) -> bool:
    """Whether some arguments might match both; in doubt they might."""
    if len(one.args) != len(other.args):
        return True
    mine, theirs = parameter_names(one), parameter_names(other)
    return all(
        mentions(a, mine) or mentions(b, theirs) or normal(a) == normal(b)
        for a, b in zip(one.args, other.args, strict=True)
    )


def split_template(text: str) -> tuple[str, tuple[str, ...]]:
    """`sm90_tuning<KeyT, 4>` as its name and its arguments."""
    match = _TEMPLATE.match(text)
    if match is None:
        return text, ()
    return match[1], split_args(match[2] or "")


def split_args(text: str) -> tuple[str, ...]:
    """What stands between commas that are in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in _OPEN) - (char in _CLOSE)
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return tuple(part.strip() for part in parts if part.strip())


BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class HeaderSource:
    """A header as it is named, and its bytes."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column from 1, the line's text, and how many characters are meant."""

    line: int
    column: int
    text: str
    width: int


# From bytes to lines and columns, as an editor counts them.


def place(data: bytes, span: Span, word: str | None = None) -> Position:
    """Where a span begins, or a word in it; what is wider than its line ends with it."""
    if word is not None and (found := data.find(word.encode(), span.start, span.end)) >= 0:
        span = Span(found, found + len(word.encode()))
    start = data.rfind(b"\n", 0, span.start) + 1
    end = data.find(b"\n", span.start)
    row = data[start : end if end >= 0 else None].rstrip(b"\r")
    lead = _decode(data[start : span.start].removeprefix(BOM))
    meant = _decode(data[span.start : min(span.end, start + len(row))])
    line = data.count(b"\n", 0, span.start) + 1
    return Position(line, len(lead) + 1, _decode(row.removeprefix(BOM)), max(1, len(meant)))


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


# "key_size::_4", "16"
_BYTES = re.compile(r"(?:\w+::_)?(\d+)")
# "key_size == 4", "input_t == type_t::uint32"
_ASKED = re.compile(
    r"(?P<name>\w+?)_(?:size(?:_bytes)? == (?P<bytes>\d+)"
    r"|t(?:ype)? == (?:\w+::)*[a-z]+(?P<bits>\d+))"
)


# In what a count is counted, and how large the elements are that an entry is for.


def role_sizes(binding: FamilyBinding, entry: Entry) -> dict[str, int]:
    """Role → bytes, as far as an entry's arguments tell them."""
    if entry.kind == "branch":
        return _asked_sizes(binding, entry)
    sizes: dict[str, int] = {}
    if len(binding.args) != len(entry.args):
        return sizes
    for expression, arg in zip(binding.args, entry.args, strict=True):
        role, size = _size().search(expression), _BYTES.fullmatch(arg)
        if role and size and int(size[1]):
            sizes[role[1]] = int(size[1])
        elif named := _type_sizes().get(normal(arg)):
            sizes.setdefault(expression, named)
    return sizes


def _asked_sizes(binding: FamilyBinding, entry: Entry) -> dict[str, int]:
    """Role → bytes, where a return asks for one size: `key_size == 4` is that of `KeyT`."""
    sizes: dict[str, int] = {}
    for role in {rule.unit.of for rule in binding.members.values() if rule.unit}:
        name = role.removesuffix("T").lower()
        for fact in entry.args:
            parts = [_ASKED.fullmatch(part.strip(" ()")) for part in fact.split("||")]
            asked = {
                int(p["bytes"] or int(p["bits"]) // 8) for p in parts if p and p["name"] == name
            }
            if all(parts) and len(asked) == 1:
                sizes[role] = asked.pop()
    return sizes


def scale_items(unit: Unit | None, items: int, sizes: Mapping[str, int]) -> int | None:
    """The items that each thread gets; none where the size that scales them is not known."""
    if unit is None:
        return items
    size = sizes.get(unit.of)
    if size is None:
        return None
    return max(1, scale(unit.scaling, items, size))


@cache
def _size() -> re.Pattern[str]:
    """`classify_key_size<KeyT>()`, `sizeof(ValueT)`."""
    return re.compile(rf"(?:\b{words().tiles.sizes}\s*<|\bsizeof\s*\()\s*(\w+)\s*[>)]")


@cache
def _type_sizes() -> dict[str, int]:
    return {normal(t.cpp): t.size for t in types().types if t.cpp and t.size}
