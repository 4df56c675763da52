"""What the functions of a header return, and for which workloads they are asked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.words import words
from policygen.dialects.selectors.branches import conjuncts
from policygen.dialects.selectors.functions import Struct, find_structs
from policygen.dialects.selectors.nearest import Bodies, KnownReturn, known_returns, read_bodies
from policygen.dialects.selectors.truth import Truth, locals_of
from policygen.errors import InputError
from policygen.model.selection import Selected
from policygen.model.tuning import TuningHeader
from policygen.source.text import Text

_CAPABILITY = re.compile(r"\bcc\b")
# "get_sm90_tuning("
_CALLED = re.compile(rb"(\w+)\s*\(")


@dataclass(frozen=True, slots=True)
class HeaderReturns:
    """What the functions of a header do."""

    text: Text
    structs: Mapping[str, Struct]
    bodies: Bodies
    constants: Mapping[str, str]
    returns: tuple[KnownReturn, ...]
    enumerations: Mapping[str, str]
    """Members of the policy selector that name a type, and the enumeration of the names."""
    calls: Mapping[str, Sequence[Sequence[str]]]
    """Function → what is asked for where it is called, each time."""
    deciding: frozenset[str]
    """Functions that give every workload values."""

    def asks(self, one: KnownReturn, truth: Truth, told: Selected) -> bool:
        """Whether the function of a return is asked for a workload, as far as that is known."""
        if told.entry is None and one.function.label in self.deciding:
            return False  # its values are given, and not taken
        calls = self.calls.get(one.function.name, [()])
        return any(all(truth.holds(fact) is not False for fact in facts) for facts in calls)


def read_returns(text: Text, header: TuningHeader) -> HeaderReturns:
    """Reads a header; refused where it is not UTF-8."""
    _check_utf8(text)
    structs, bodies = find_structs(text.code), read_bodies(text)
    found = tuple(known_returns(bodies, header.selectors))
    selector = structs.get(words().selectors.name)
    pairs = zip(selector.fields, selector.types, strict=True) if selector else ()
    return HeaderReturns(
        text,
        structs,
        bodies,
        locals_of(text.code, (function.body for function, _ in bodies)),
        found,
        {name: kind for name, kind in pairs if kind == words().selectors.types},
        _asked_around(text, bodies),
        _always_decide(text, bodies, found),
    )


def _asked_around(text: Text, bodies: Bodies) -> dict[str, list[tuple[str, ...]]]:
    """By function what else than the architecture is asked for where it is called."""
    names = "|".join(
        re.escape(function.name) for function, _ in bodies if function.name.isidentifier()
    )
    calls = re.compile(rf"\b({names})\s*\(".encode())
    found: dict[str, list[tuple[str, ...]]] = {}
    for function, body in bodies:
        for match in calls.finditer(text.code, function.body.start, function.body.end):
            scopes = [s for s in body.scopes if s.span.start <= match.start() < s.span.end]
            inner = max(scopes, key=lambda scope: scope.span.start)
            facts = [f for f in conjuncts(inner.conditions) if not _CAPABILITY.search(f)]
            found.setdefault(match[1].decode(), []).append(tuple(facts))
    return found


def _always_decide(text: Text, bodies: Bodies, known: Sequence[KnownReturn]) -> frozenset[str]:
    """The functions that give every workload values of a return.

    A workload that the compiler gives none of them does not get what such a function says.
    """
    valued = {one.start for one in known}
    found: set[str] = set()
    for function, body in bodies:  # what they call comes before them
        left = [each for each in body.returns if each.span.start not in valued]
        calls = [_CALLED.match(text.code, *each.value) for each in left]
        if not function.optional and all(call and call[1].decode() in found for call in calls):
            found.add(function.label)
    return frozenset(found)


def _check_utf8(text: Text) -> None:
    """A plan is JSON: what is made after a line must be text."""
    try:
        text.data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{text.path}:{text.line(error.start)} is not UTF-8", "Save the header as UTF-8."
        ) from error
