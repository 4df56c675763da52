"""Search strategies by name, and the choice of one for a budget."""

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
    take_next,
    walk,
)
from policygen.installation import add

StrategyName = Literal["exhaustive", "local", "optuna", "random"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)


def choose_strategy(distinct: int | None, affordable: int | None) -> StrategyName:
    """Choose an exhaustive search if the budget covers all distinct variants, else a local one."""
    is_exhaustive = distinct is not None and affordable is not None and distinct <= affordable
    return "exhaustive" if is_exhaustive else "local"


def make_strategy(name: str, domain: Domain, seed: int, starts: Sequence[Values] = ()) -> Strategy:
    """Create a strategy for a space; `starts` are proposed first, such as the current values."""
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
            names = ", ".join(STRATEGIES)
            raise InputError(f"no strategy is called {name!r}", f"There are: {names}")


TRIES = 4
"""Proposals per variant of a batch; duplicates are discarded."""


class TreeParzen:
    """Strategy based on an Optuna study; it is told invalid and duplicate proposals as failed."""

    def __init__(self, domain: Domain, seed: int, starts: Sequence[Values] = ()) -> None:
        self._optuna = _optuna()
        draw = Random(seed)  # noqa: S311  it keeps no secret
        sampler = self._optuna.samplers.TPESampler(
            seed=draw.getrandbits(32), multivariate=True, constant_liar=True
        )
        self._study = self._optuna.create_study(direction="maximize", sampler=sampler)
        self._ranges = {label: tuple(values) for label, values in domain.ranges.items()}
        self._distributions = {label: self._distribution(label) for label in self._ranges}
        self._fresh, self._starts = Fresh(domain), iter(starts)
        self._remaining = walk(self._fresh, shuffled(domain, draw.getrandbits(64)))
        self._open_trials: dict[Values, Any] = {}

    def ask(self, count: int) -> list[Values]:
        """Return the study's proposals, completed by random variants."""
        variants = take_next(filter(self._fresh.take, self._starts), count)
        for _ in range(TRIES * (count - len(variants))):
            if len(variants) == count:
                break
            trial = self._study.ask(self._distributions)
            values = tuple(self._value(label, trial.params[label]) for label in self._ranges)
            if self._fresh.take(values):
                self._open_trials[values] = trial
                variants.append(values)
            else:
                self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        return variants + take_next(self._remaining, count - len(variants))

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """Tell the study all outcomes, also of variants that it has not proposed."""
        states = self._optuna.trial.TrialState
        for outcome in outcomes:
            self._fresh.take(outcome.values)
            state = states.FAIL if outcome.score is None else states.COMPLETE
            if (trial := self._open_trials.pop(outcome.values, None)) is not None:
                self._study.tell(trial, outcome.score, state=state)
            elif all(map(self._has, self._ranges, outcome.values)):
                self._study.add_trial(
                    self._optuna.trial.create_trial(
                        params=dict(map(self._param, self._ranges, outcome.values)),
                        distributions=self._distributions,
                        value=outcome.score,
                        state=state,
                    )
                )

    def _distribution(self, label: str) -> Any:
        """Return a categorical distribution for kinds, and one of value positions for amounts."""
        distributions, values = self._optuna.distributions, self._ranges[label]
        if are_kinds(values):
            return distributions.CategoricalDistribution(values)
        return distributions.IntDistribution(0, len(values) - 1)

    def _value(self, label: str, raw: int) -> int:
        values = self._ranges[label]
        return raw if are_kinds(values) else values[raw]

    def _param(self, label: str, value: int) -> tuple[str, int]:
        values = self._ranges[label]
        return label, value if are_kinds(values) else values.index(value)

    def _has(self, label: str, value: int) -> bool:
        return value in self._ranges[label]


# Optuna is an optional dependency, used for comparison


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingToolError("optuna", add("search")) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
