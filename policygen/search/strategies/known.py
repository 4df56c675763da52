"""The strategies by their names, and which one fits a budget."""

from collections.abc import Sequence
from typing import Literal, get_args

from policygen.errors import InputError
from policygen.search.domain import Domain, Values
from policygen.search.strategies.local import LocalSearch
from policygen.search.strategies.tpe import TreeParzen
from policygen.search.strategies.walk import Walker, shuffled
from policygen.search.strategy import Strategy

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
