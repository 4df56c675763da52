"""The strategies by their names, and which one fits a budget."""

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, get_args

from policygen.errors import InputError, MissingToolError
from policygen.gpu.local_search import LocalSearch, are_kinds
from policygen.gpu.strategy import (
    AskedVariant,
    Domain,
    Fresh,
    Strategy,
    Values,
    Walker,
    shuffled,
    some,
    walk,
)
from policygen.installation import add

StrategyName = Literal["exhaustive", "local", "optuna", "random"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)


def choose_strategy(distinct: int | None, left: int | None) -> StrategyName:
    """Everything where what is left of a budget pays for all distinct variants, else a search."""
    whole = distinct is not None and left is not None and distinct <= left
    return "exhaustive" if whole else "local"


def make_strategy(name: str, domain: Domain, seed: int, starts: Sequence[Values] = ()) -> Strategy:
    """A strategy for a space; `starts` are asked for first, such as what is in the header now."""
    match name:
        case "exhaustive":
            return Walker(domain, shuffled(domain, seed), starts, misses=None)
        case "random":
            return Walker(domain, shuffled(domain, seed), starts)
        case "local":
            return LocalSearch(domain, seed, starts)
        case "optuna":
            return TreeParzen(domain, seed, starts)
        case _:
            known = ", ".join(STRATEGIES)
            raise InputError(f"no strategy is called {name!r}", f"There are: {known}")


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


# Optuna's tree-structured Parzen estimator: an extra, to compare with.


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingToolError("optuna", add("search")) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
