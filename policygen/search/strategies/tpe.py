"""Optuna's tree-structured Parzen estimator: an extra, to compare with."""

from collections.abc import Sequence
from random import Random
from typing import Any

from policygen.errors import MissingToolError
from policygen.installation import add
from policygen.search.domain import Domain, Values
from policygen.search.strategies.features import are_kinds
from policygen.search.strategies.fresh import Fresh
from policygen.search.strategies.walk import shuffled, some, walk
from policygen.search.strategy import AskedVariant

TRIES = 4
"""Proposals for each variant of a batch; those that were asked for before count for nothing."""


class TreeParzen:
    """Asks a study; what it proposes twice, or cannot be, is told to it as failed."""

    def __init__(self, domain: Domain, seed: int, starts: Sequence[Values] = ()) -> None:
        self._optuna = _optuna()
        draw = Random(seed)  # noqa: S311  it keeps no secret
        sampler = self._optuna.samplers.TPESampler(
            seed=draw.getrandbits(32), multivariate=True, constant_liar=True
        )
        self._study = self._optuna.create_study(direction="maximize", sampler=sampler)
        self._ranges = {label: tuple(values) for label, values in domain.ranges.items()}
        self._spread = {label: self._values(label) for label in self._ranges}
        self._fresh, self._starts = Fresh(domain), iter(starts)
        self._rest = walk(self._fresh, shuffled(domain, draw.getrandbits(64)))
        self._open: dict[Values, Any] = {}

    def ask(self, count: int) -> list[Values]:
        """What the study proposes, and drawn ones where it knows no more."""
        found = some(filter(self._fresh.take, self._starts), count)
        for _ in range(TRIES * (count - len(found))):
            if len(found) == count:
                break
            trial = self._study.ask(self._spread)
            values = tuple(self._value(label, trial.params[label]) for label in self._ranges)
            if self._fresh.take(values):
                self._open[values] = trial
                found.append(values)
            else:
                self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        return found + some(self._rest, count - len(found))

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """Tells the study, also of what it has not proposed."""
        states = self._optuna.trial.TrialState
        for one in outcomes:
            self._fresh.take(one.values)
            state = states.FAIL if one.score is None else states.COMPLETE
            if (trial := self._open.pop(one.values, None)) is not None:
                self._study.tell(trial, one.score, state=state)
            elif all(map(self._has, self._ranges, one.values)):
                self._study.add_trial(
                    self._optuna.trial.create_trial(
                        params=dict(map(self._param, self._ranges, one.values)),
                        distributions=self._spread,
                        value=one.score,
                        state=state,
                    )
                )

    def _values(self, label: str) -> Any:
        """Kinds are told apart; of many values the place in their order counts."""
        distributions, values = self._optuna.distributions, self._ranges[label]
        if are_kinds(values):
            return distributions.CategoricalDistribution(values)
        return distributions.IntDistribution(0, len(values) - 1)

    def _value(self, label: str, given: int) -> int:
        values = self._ranges[label]
        return given if are_kinds(values) else values[given]

    def _param(self, label: str, value: int) -> tuple[str, int]:
        values = self._ranges[label]
        return label, value if are_kinds(values) else values.index(value)

    def _has(self, label: str, value: int) -> bool:
        return value in self._ranges[label]


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingToolError("optuna", add("search")) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
