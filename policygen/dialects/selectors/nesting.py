"""Returns of a new function or block within each other as those are that they are made after.

    switch (key_size)
    {
      case 4:
        switch (value_size)

A return that shares no condition with another one has a plain `if` for itself.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from policygen.dialects.selectors.additions import UNIT, Sizes, guarded, sizes_of
from policygen.dialects.selectors.branches import facts_of
from policygen.dialects.selectors.conditions import EQUAL, excluded, opposites, plain
from policygen.dialects.selectors.statements import Clauses


@dataclass(frozen=True, slots=True)
class Step:
    """What is asked for at one level of the model."""

    kind: str
    """`case`, or `if`."""
    facts: tuple[str, ...]

    @property
    def subject(self) -> str | None:
        """What a `switch` is of, where this can be one of its cases."""
        match = EQUAL.fullmatch(self.facts[0]) if len(self.facts) == 1 else None
        return match[1] if match and self.kind == "case" else None


@dataclass(frozen=True, slots=True)
class Nested:
    """A return with what it asks for."""

    steps: tuple[Step, ...]
    more: tuple[str, ...]
    """What the model asks for nowhere on the way to its return."""
    rows: Callable[[str], list[str]]
    """Its lines, with an indent."""

    @property
    def asks(self) -> tuple[str, ...]:
        """All that it asks for."""
        return (*(fact for step in self.steps for fact in step.facts), *self.more)


def steps_of(clauses: Clauses, own: Callable[[str], str | None]) -> tuple[Step, ...]:
    """The levels of a model, with the conditions of a new return in place of its own."""
    return tuple(
        Step(clause.kind, tuple(fact for one in facts_of((clause,)) if (fact := own(one))))
        for clause in clauses
    )


def nested(steps: Sequence[Step], asks: Sequence[str], rows: Callable[[str], list[str]]) -> Nested:
    """The conditions of a return, each at the first level of its model that has it."""
    left = list(asks)
    found: list[Step] = []
    for step in steps:
        mine = [fact for fact in dict.fromkeys(map(plain, step.facts)) if fact in left]
        left = [fact for fact in left if fact not in mine]
        if mine:
            found.append(replace(step, facts=tuple(mine)))
    return Nested(tuple(found), tuple(left), rows)


def leaving(ones: Sequence[Nested], indent: str) -> tuple[list[str], list[Nested]]:
    """What all returns ask for, and their model left a function for before: so does the new one."""
    shared = [fact for fact in _shared(ones) if len(opposites([fact])) == 1]
    if not shared:
        return [], list(ones)
    left = " || ".join(opposites([fact])[0] for fact in shared)
    rows = guarded((left,), [f"{indent}{UNIT}return {{}};"], indent)
    return [*rows, ""], _without(ones, shared)


def _shared(ones: Sequence[Nested]) -> list[str]:
    """What several returns all ask for, beside what their models do."""
    found = ones[0].more if len(ones) > 1 else ()
    return [fact for fact in found if all(fact in one.more for one in ones)]


def _without(ones: Sequence[Nested], shared: Sequence[str]) -> list[Nested]:
    kept = [tuple(fact for fact in one.more if fact not in shared) for one in ones]
    return [replace(one, more=more) for one, more in zip(ones, kept, strict=True)]


def block_rows(ones: Sequence[Nested], indent: str) -> list[str]:
    """The lines of returns in a block, within an `if` for what all of them ask for."""
    if shared := _shared(ones):
        first = Step("if", tuple(shared))
        ones = [replace(one, steps=(first, *one.steps)) for one in _without(ones, shared)]
    return nested_rows(ones, indent)


def nested_rows(ones: Sequence[Nested], indent: str, switched: Collection[str] = ()) -> list[str]:
    """The lines of returns that stand in one block; some values have a `switch` for one case."""
    rows: list[str] = []
    for subject, groups in _runs(_groups(ones), switched):
        if subject is None:
            for group in groups:
                rows += _if(group, indent)
        else:
            rows += _switch(subject, groups, indent)
    return rows


_Group = list[Nested]


def _groups(ones: Sequence[Nested]) -> list[_Group]:
    """Returns with the same first step, as far as that changes nothing for those between."""
    found: list[_Group] = []
    for one in ones:
        for place in range(len(found) - 1, -1, -1):
            if one.steps and found[place][0].steps[:1] == one.steps[:1]:
                found[place].append(one)
                break
            if not all(_apart(one, other) for other in found[place]):
                found.append([one])
                break
        else:
            found.append([one])
    return found


def _apart(one: Nested, other: Nested) -> bool:
    """Whether no workload is for both."""
    return any(excluded(fact, other.asks) for fact in one.asks)


def _runs(
    groups: Sequence[_Group], switched: Collection[str] = ()
) -> Iterator[tuple[str | None, list[_Group]]]:
    """Groups that are cases of one `switch`, and those that are not."""
    runs: list[tuple[str | None, list[_Group]]] = []
    for group in groups:
        steps = group[0].steps
        subject = steps[0].subject if steps else None
        if runs and runs[-1][0] == subject:
            runs[-1][1].append(group)
        else:
            runs.append((subject, [group]))
    for subject, run in runs:
        yield (subject if len(run) > 1 or subject in switched else None), run


def _if(group: _Group, indent: str) -> list[str]:
    """One `if` for all that the returns of a group share; none where they ask for nothing."""
    if len(group) == 1:
        (one,) = group
        return guarded(one.asks, one.rows(indent + UNIT), indent) if one.asks else one.rows(indent)
    facts: list[str] = []
    while (step := group[0].steps[:1]) and all(one.steps[:1] == step for one in group):
        facts += step[0].facts
        group = [_within(one) for one in group]
    return guarded(facts, nested_rows(group, indent + UNIT), indent)


def _switch(subject: str, groups: Sequence[_Group], indent: str) -> list[str]:
    """`switch (…)`; what has no case, or returns nothing in its own, goes on behind it."""
    label, inside = indent + UNIT, indent + UNIT * 2
    rows = [f"{indent}switch ({subject})", f"{indent}{{"]
    cases = [[_within(one) for one in group] for group in groups]
    switched = {inner for case in cases for inner, _ in _runs(_groups(case)) if inner}
    for group, within in sorted(zip(groups, cases, strict=True), key=_size):
        rows.append(f"{label}case {group[0].steps[0].facts[0].partition(' == ')[2]}:")
        rows += nested_rows(within, inside, switched)
        rows += [f"{inside}break;"] if within[-1].asks else []
    return [*rows, f"{label}default:", f"{inside}break;", f"{indent}}}"]


def _size(case: tuple[_Group, _Group]) -> Sizes:
    """The number of a case, by which those of a `switch` are sorted."""
    return sizes_of(case[0][0].steps[0].facts)


def _within(one: Nested) -> Nested:
    """A return in the block of its first step."""
    return replace(one, steps=one.steps[1:])
