"""Variants as changed headers before the tree: what is measured is what would be merged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.dialects.family_spot import FamilySpot
from policygen.dialects.protocol import EntryWrite
from policygen.errors import InputError, PolicygenError
from policygen.measure.entries import EntryWorkload
from policygen.measure.space import SearchSpace
from policygen.model.selection import Values
from policygen.model.workload import Point
from policygen.planning.judge import differs
from policygen.planning.plan import NotWritableError, Planner
from policygen.process import threads
from policygen.proof.overlay import overlay
from policygen.steps import Progress, follow

PHASE = "writing headers"
Select = Callable[[Mapping[str, bytes], Point, str], Values]
"""What the compiler selects for a workload on an architecture, with changed headers."""


@dataclass(frozen=True, slots=True)
class ChangedHeaders:
    """The headers of one variant."""

    folders: tuple[str, ...]
    """Before the tree's own; none where nothing changes: the variant is what CUB has."""
    values: Values
    """What the compiler says that the workload gets."""


@dataclass(frozen=True, slots=True)
class HeaderVariants:
    """Writes the variants of a workload, each proved to be what the workload gets."""

    planner: Planner
    meant: EntryWorkload
    select: Select
    progress: Progress | None = None

    def all(
        self, space: SearchSpace, labels: Sequence[str]
    ) -> dict[str, ChangedHeaders | PolicygenError]:
        """The headers of each variant, or why there are none."""
        with threads() as pool:
            futures = {pool.submit(self._attempt, space, label): label for label in labels}
            follow(futures, PHASE, self.progress)
            return {label: future.result() for future, label in futures.items()}

    def _attempt(self, space: SearchSpace, label: str) -> ChangedHeaders | PolicygenError:
        try:
            return self.one(space.variant(label), label)
        except PolicygenError as error:
            return error

    def one(self, variant: Mapping[str, int], label: str) -> ChangedHeaders:
        """The headers of a variant; refused where the header cannot say it, or does not heed it."""
        meant, wanted = self.meant, self.meant.expected(variant)
        if not differs(meant.spot.told.values, wanted):
            return ChangedHeaders((), wanted)
        changed = self._written(meant, variant, label)
        got = self.select(changed, meant.point, meant.arch)
        unsaid = meant.spot.unsaid(meant.benchmark, variant)
        left = {name: got[name] for name in unsaid if name in got and got[name] != unsaid[name]}
        if left and (spot := meant.spot.saying(meant.benchmark, left)):
            assert isinstance(spot, FamilySpot), "what says more of an entry is one"
            meant = replace(meant, spot=spot)
            changed = self._written(meant, variant, label)
            got = self.select(changed, meant.point, meant.arch)
        if other := differs(got, wanted):
            raise InputError(f"{meant.spot.header} cannot say {label}: the workload gets {other}")
        folders = tuple(overlay(name, data) for name, data in sorted(changed.items()))
        return ChangedHeaders(folders, got)

    def _written(
        self, meant: EntryWorkload, variant: Mapping[str, int], label: str
    ) -> Mapping[str, bytes]:
        """The changed headers, by name, as an apply writes them."""
        content = meant.spot.content(meant.members(variant), label)
        write = EntryWrite((meant.spot,), content, label, frozenset({meant.point}))
        try:
            return self.planner.drafted([write]).after
        except NotWritableError as error:
            raise InputError(error.reasons[meant.point]) from error
