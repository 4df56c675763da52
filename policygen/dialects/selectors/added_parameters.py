"""Makes a function that makes policies take one value more, which it gave all of them.

constexpr auto make_scaled_policy(int threads_per_block, …, LookbackDelayPolicy delay,
                                  detail::LoadPrefetch load_prefetch = detail::LoadPrefetch::none)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policygen.dialects.selectors.added_fields import rewrapped
from policygen.dialects.selectors.functions import Function, Struct, arguments, find_functions
from policygen.dialects.selectors.statements import read_body
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.entry_text import AddedMember
from policygen.model.tuning import Entry
from policygen.source.brackets import closing_bracket, split_list
from policygen.source.spelling import indent_of, newline
from policygen.source.text import Text


@dataclass(frozen=True, slots=True)
class AddedParameters:
    """A function, and the fields of its policy that returns are to tell it."""

    function: Function
    struct: Struct
    members: Mapping[str, AddedMember]

    def edits(self, text: Text) -> Iterator[tuple[Span, str]]:
        """What its list of parameters gets, and the policy that it makes."""
        function, code = self.function, text.code
        types = dict(zip(self.struct.fields, self.struct.types, strict=True))
        opened = code.index(b"(", code.index(function.name.encode(), function.span.start))
        close = closing_bracket(code, opened)
        assert close is not None, "it was read"
        *_, last = split_list(code, opened + 1, close)
        own = indent_of(text.data, last.start)
        for name, member in self.members.items():
            if _parameter(name) in function.parameters:
                continue
            kind = types[name]
            declared = f"{kind} {_parameter(name)} = {_default(kind, member.default)}"
            gap = f",{newline(text.data)}{own}" if own else ", "
            yield Span(last.end, last.end), gap + declared
            yield self._made(text, name)

    def _made(self, text: Text, name: str) -> tuple[Span, str]:
        """The policy with the parameter behind its last value."""
        returns = read_body(text.code, self.function.body).returns
        given = arguments(text.code, returns[0].value) if len(returns) == 1 else None
        if given is None or len(given[1]) != self.struct.fields.index(name):
            line = text.line(self.function.span.start)
            raise InputError(
                f"{text.path}:{line}: {self.function.name} has no place for {name}: what it returns"
                " is no list of the values before it"
            )
        at = given[1][-1].end
        return rewrapped(text, Span(at, at), f", {_parameter(name)}")


def helper_of(
    text: Text, structs: Mapping[str, Struct], entry: Entry, members: Mapping[str, AddedMember]
) -> AddedParameters | None:
    """Finds the function that makes what a return gives, where its policy has the fields."""
    found = [f for f in find_functions(text.code, structs) if f.name == entry.inherits]
    if len(found) != 1 or not members.keys() <= {*structs[found[0].returns].fields}:
        return None
    return AddedParameters(found[0], structs[found[0].returns], members)


def _parameter(field: str) -> str:
    """`_load_prefetch` as a parameter is called."""
    return field.strip("_")


def _default(kind: str, value: str) -> str:
    return f"{kind}::{value}" if value.isidentifier() and value not in {"true", "false"} else value
