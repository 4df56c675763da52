"""Two runs, or two GPUs: what they have in common, whether they choose alike, whose wins travel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from policygen.model.db_compare import (
    Agreement,
    ComparedSide,
    ComparedWorkload,
    LoneWorkload,
    PairedScore,
    Says,
    Winner,
)
from policygen.model.labels import BASE
from policygen.model.results import Choice, DataWarning, Rules
from policygen.results.case import Case, Warn
from policygen.results.choose import Confirmed, choose
from policygen.results.confidence import Confidence, SampleReader, judge
from policygen.results.confirm import confirm, finalists
from policygen.results.declared import DeclaredAxes
from policygen.results.decoder import Decoder
from policygen.results.load import Floats, Integers
from policygen.results.pairs import (
    Common,
    pair_of,
    pairs,
    point_differences,
    score_difference,
    subject,
)
from policygen.results.ranks import order_of
from policygen.results.score import Scores, score_case
from policygen.results.top import basis_of, is_partial, leading

WORST: tuple[Says, ...] = ("contradicts", "not measured", "not confirmed", "holds")
"""What counts where two winners differ, the first that is said."""
KEYS: tuple[Literal["gpu", "ctk", "cccl"], ...] = ("gpu", "ctk", "cccl")
NOT_BOTH = "was measured on both sides"
NOT_WHOLE = "the other side has not measured it on all runtime workloads"
Axes = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Terms:
    """How sides are compared."""

    rules: Rules
    decoder: Decoder
    warn: Warn
    declared_a: DeclaredAxes
    declared_b: DeclaredAxes
    axes: Axes


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a pair: what it has, and what it has in common with the other one."""

    scores: Scores
    reader: SampleReader
    choice: Choice | None
    declared: DeclaredAxes
    index: Integers
    """Into its variants, by common variant, base first."""
    common: Floats
    """Its scores of the common variants but base."""

    @property
    def winner(self) -> int | None:
        """What it chooses, into its variants; else the best one."""
        case = self.scores.case
        if self.choice is not None and self.choice.variant is not None:
            return case.variants.index(self.choice.variant)
        return next((int(i) for i in self.scores.index if case.variants[int(i)] != BASE), None)

    def place(self, variant: int | None) -> int | None:
        """Where a variant stands among the common ones, base not counted."""
        found = np.flatnonzero(self.index[1:] == variant)
        return int(found[0]) if found.size else None


def compare_cases(
    ones: Sequence[Case], others: Sequence[Case], how: Terms
) -> tuple[ComparedWorkload, ...]:
    """The workloads that both sides have; those without a common variant are told."""
    found = []
    for one, other in pairs(ones, others):
        pair = pair_of(score_case(one, how.declared_a), score_case(other, how.declared_b))
        if not pair.columns_a.size or len(pair.index_a) < 2:
            what = "variant" if pair.columns_a.size else "runtime workload"
            how.warn(_nothing_common(one, other, what))
        else:
            found.append(_compared(pair, how))
    return tuple(found)


def lone(cases: Sequence[Case], compared: Sequence[ComparedWorkload]) -> tuple[LoneWorkload, ...]:
    """The workloads of one side that nothing was compared with."""
    known = {(one.algorithm, frozenset(one.workload.items())) for one in compared}
    found: dict[tuple[str, frozenset[tuple[str, str]]], LoneWorkload] = {}
    for case in cases:
        key = subject(case)
        if key not in known:
            found[key] = LoneWorkload(algorithm=case.algorithm, workload=dict(case.workload))
    return tuple(found.values())


def _nothing_common(one: Case, other: Case, what: str) -> DataWarning:
    where = ", ".join(f"{name}={value}" for name, value in one.workload.items())
    files = " + ".join((*one.files, *other.files))
    message = f"{one.algorithm}[{where}]: no {what} {NOT_BOTH}"
    return DataWarning(database=files, table=None, message=message)


def _compared(pair: Common, how: Terms) -> ComparedWorkload:
    case, other = pair.a.case, pair.b.case
    differs = tuple(name for name in KEYS if getattr(case.key, name) != getattr(other.key, name))
    copied = pair.is_copy
    weights = pair.weights
    score_a, score_b = (ratios[1:] @ weights for ratios in pair.ratios)
    a = _side(pair.a, pair.index_a, score_a, how.declared_a, how)
    b = _side(pair.b, pair.index_b, score_b, how.declared_b, how)
    again = not differs and not copied
    wins = _winner(a, b, how.rules, again=again), _winner(b, a, how.rules, again=again)
    names = pair.names[1:]
    order = sorted(range(len(names)), key=lambda i: (-score_a[i], names[i]))
    return ComparedWorkload(
        algorithm=case.algorithm,
        workload=dict(case.workload),
        a=_told(a, wins[0], len(pair.columns_a)),
        b=_told(b, wins[1], len(pair.columns_b)),
        differs=differs,
        copy_of_rows=copied,
        agreement=_agreement(a, b, wins),
        order=order_of(score_a, score_b),
        difference=score_difference(pair, how.rules, same=again),
        points=point_differences(pair),
        scores=tuple(
            PairedScore(variant=names[i], a=float(score_a[i]), b=float(score_b[i])) for i in order
        ),
    )


def _side(
    scores: Scores, index: Integers, common: Floats, declared: DeclaredAxes, how: Terms
) -> _Side:
    """One side, with what it chooses by itself."""
    reader = SampleReader(scores.case, how.decoder, how.warn)
    choice = None
    if not is_partial(scores.case, how.axes):
        variants = leading(scores, how.rules.candidates + 1, how.rules, reader)
        choice = choose(variants, basis_of(scores, variants, None, declared), how.rules, None)
    return _Side(scores, reader, choice, declared, index, common)


def _told(side: _Side, winner: Winner | None, points: int) -> ComparedSide:
    case = side.scores.case
    return ComparedSide(
        **dict(case.key),
        databases=case.files,
        variants=side.scores.tried,
        only=len(set(side.scores.index.tolist()) - set(side.index.tolist())),
        runtime_only=sum(len(part.points) for part in case.parts) - points,
        approximate=side.scores.approximate,
        choice=side.choice,
        winner=winner,
    )


def _winner(own: _Side, other: _Side, rules: Rules, *, again: bool) -> Winner | None:
    """A side's winner, and what the other side says of it."""
    variant = own.winner
    if variant is None:
        return None
    place = own.place(variant)
    chosen = own.choice is not None and own.choice.decision == "use"
    told: dict[str, Any] = {}
    if place is None:
        score = float(own.scores.score[own.scores.index == variant][0])
        says, reason = "not measured", NOT_WHOLE
    else:
        score, there = float(own.common[place]), float(other.common[place])
        found = _judged(other, place, rules)
        told = {
            "rank": _rank(own.common, place),
            "other_score": there,
            "other_rank": _rank(other.common, place),
            "costs": 1 - there / float(other.common.max()),
            "verdict": None if found is None else found.verdict,
        }
        later = _confirmed(own, other, variant, rules) if again and chosen else None
        says, reason = _says(found, there, later, rules)
    return Winner(
        variant=own.scores.case.variants[variant],
        chosen=chosen,
        score=score,
        says=says if chosen else None,
        reason=reason if chosen else "",
        **{"rank": None, **told},
    )


def _rank(scores: Floats, place: int) -> int:
    """Of equal ones the first place."""
    return 1 + int((scores > scores[place]).sum())


def _judged(side: _Side, place: int, rules: Rules) -> Confidence | None:
    """What a side says of a variant that another one names; none where it has not all of it."""
    variant = int(side.index[place + 1])
    if variant not in side.scores.index:
        return None
    return judge(side.scores, variant, rules, side.reader, named=True)


def _confirmed(own: _Side, other: _Side, variant: int, rules: Rules) -> Confirmed | None:
    """What `db choose --confirm` would say of it, with the other side as the later run."""
    again, label = other.scores.case, own.scores.case.variants[variant]
    found = confirm(own.scores, finalists(own.scores, again, rules), again, rules, other.declared)
    return found.get(label)


def _says(
    found: Confidence | None, score: float, later: Confirmed | None, rules: Rules
) -> tuple[Says, str]:
    """What a side says of the other one's choice, and why."""
    if found is None:
        return "not measured", NOT_WHOLE
    if against := _against(found, score, rules):
        return against
    if later is None:
        told = f"{score:.6f} is too close to base to call"
        return ("holds", "") if found.verdict == "better" else ("not confirmed", told)
    refusal = later.refusal or ""
    return ("not confirmed" if refusal else "holds"), refusal.removeprefix("not confirmed: ")


def _against(found: Confidence, score: float, rules: Rules) -> tuple[Says, str] | None:
    """What is against a choice, whatever was found before."""
    if found.verdict is None and not rules.without_samples:
        return "not confirmed", "no samples tell how sure its score is"
    if found.loses:
        return "contradicts", f"a runtime workload at {found.worst.ratio:.4f}, less than is allowed"
    if found.verdict == "worse":
        return "contradicts", f"{score:.6f} is slower than base, beyond noise"
    return None


def _agreement(
    a: _Side, b: _Side, winners: tuple[Winner | None, Winner | None]
) -> Agreement | None:
    if a.choice is None or b.choice is None:
        return None
    chosen = [one for one in winners if one is not None and one.chosen]
    if not chosen:
        return "both keep base"
    place = a.place(a.winner)
    # Each may call it otherwise: it is the same place among the common ones.
    if len(chosen) == 2 and place is not None and place == b.place(b.winner):
        return "same variant"
    said = {one.says for one in chosen}
    return next(says for says in WORST if says in said)
