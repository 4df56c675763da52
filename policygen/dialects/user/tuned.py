"""Selectors of a user's own: what they return, and what CUB selects by itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from policygen.dialects.selectors.aggregates import Field
from policygen.dialects.user.arguments import Arguments, Key
from policygen.dialects.user.place import UserReturn
from policygen.dialects.user.public import PublicSelector
from policygen.model.emit import EmitAction
from policygen.model.policies import Policies
from policygen.model.workload import Point, in_words


@dataclass(frozen=True, slots=True)
class TunedReturn:
    """Workloads with the same template arguments, and the policy that they get, if any."""

    spots: tuple[UserReturn, ...]
    actions: tuple[EmitAction, ...]
    values: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TunedSelector:
    """One selector: its benchmarks, all that CUB selects for them, and what it is to return."""

    serves: tuple[PublicSelector, ...]
    """It, for each of its benchmarks."""
    fields: tuple[Field, ...]
    parts: tuple[TunedReturn, ...]
    policies: Policies
    """What CUB selects by itself."""
    arguments: Mapping[Point, Arguments]

    @property
    def name(self) -> str:
        """What the selector is called."""
        return self.serves[0].selector.name

    @property
    def written(self) -> tuple[TunedReturn, ...]:
        """What it returns."""
        return tuple(part for part in self.parts if part.values is not None)

    @property
    def spots(self) -> list[UserReturn]:
        """The workloads that it returns something for."""
        return [spot for part in self.written for spot in part.spots]

    @property
    def actions(self) -> list[EmitAction]:
        """What becomes of those."""
        return [action for part in self.written for action in part.actions]

    @property
    def wanted(self) -> dict[Key, Mapping[str, str]]:
        """The policy for each key."""
        return {
            part.spots[0].arguments.key: part.values
            for part in self.parts
            if part.values is not None
        }

    @property
    def shared(self) -> list[str]:
        """Workloads that were not measured, and that it tells from no measured one."""
        measured, wanted = {action.name for action in self.actions}, self.wanted
        names = {in_words(name, dict(axes)): one for (name, axes), one in self.arguments.items()}
        return [name for name, one in names.items() if one.key in wanted and name not in measured]
