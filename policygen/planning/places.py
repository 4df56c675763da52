"""Measured workloads with the places where their results would be written."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.errors import InputError
from policygen.model.cub import Cub
from policygen.model.plan import Action, Options
from policygen.model.selection import Selected
from policygen.model.tuning import TuningHeader
from policygen.model.workload import Point
from policygen.planning.branches import branch_destination
from policygen.planning.cases import Case, Destination
from policygen.planning.destination import destination, next_arch
from policygen.planning.measured import Measurement, in_line
from policygen.planning.new_returns import NewReturns
from policygen.planning.oracle import Oracle


@dataclass(frozen=True, slots=True)
class Sources:
    """A tree: what its headers hold, and their bytes."""

    cub: Cub
    headers: Mapping[str, TuningHeader]
    data: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Places:
    """Finds them in one tree, for one architecture."""

    sources: Sources
    options: Options
    oracle: Oracle

    def cases(self, known: Sequence[Measurement]) -> tuple[list[Case], list[Action]]:
        """Each measurement with its place; the rest with the reason."""
        found, actions = [], []
        for one in known:
            if one.benchmark.writable:
                found.append(one)
            else:
                actions.append(one.rejected(one.benchmark.edit or "CUB has no entries for it"))
        selectors = self.sources.cub.dialect == "selectors"
        cases, refused = self._branches(found) if selectors else self._entries(found)
        return cases, actions + refused

    def _entries(self, known: Sequence[Measurement]) -> tuple[list[Case], list[Action]]:
        """In the families that the architecture's policies read, or are to read."""
        cub, arch = self.sources.cub, self.options.arch
        found, cases, actions = [], [], []
        for one in known:
            try:
                found.append((one, destination(one.benchmark, cub, self.sources.headers, arch)))
            except InputError as error:
                actions.append(one.rejected(in_line(error)))
        told = self.oracle.tell([one.point for one, _ in found], arch)
        for one, to in found:
            if one.point not in told:
                actions.append(one.rejected("the compiler refuses its header"))
                continue
            case = Case(told=told[one.point], to=to, measurement=one)
            try:
                case.target()
                cases.append(case)
            except InputError as error:
                actions.append(one.rejected(in_line(error), before=case.told.values))
        return cases, actions

    def _branches(self, known: Sequence[Measurement]) -> tuple[list[Case], list[Action]]:
        """In the selector dialect: in the return that decides it, or in a new one."""
        cases, actions = [], []
        told = self.oracle.tell([one.point for one in known], self.options.arch)
        new = self._new_returns()
        for one in known:
            if one.point not in told:
                actions.append(one.rejected("the compiler refuses its header"))
                continue
            shown = told[one.point]
            try:
                cases.append(Case(shown, self._return(one, shown, new), one))
            except InputError as error:
                actions.append(one.rejected(in_line(error), before=shown.values))
        return cases, actions

    def _return(self, one: Measurement, told: Selected, new: NewReturns) -> Destination:
        """The return that decides, or a new one where that is not the architecture's own."""
        try:
            to = branch_destination(one, told, self.sources.cub, self.options.arch)
        except InputError as error:
            try:
                return new.beside(one, told)
            except InputError as none:
                raise InputError(f"{in_line(error)}; {in_line(none)}") from none
        with contextlib.suppress(InputError):
            return new.now(to, told)
        return to

    def bounded(
        self, cases: Sequence[Case], lost: Mapping[Point, str]
    ) -> tuple[list[Case], set[Point]]:
        """The same with returns that later architectures do not get to, where there can be such."""
        new, found, moved = self._new_returns(), list(cases), set()
        for number, case in enumerate(cases):
            one, at = case.measurement, case.to.new
            if one.point in lost and new.below and not (at and at.bounded):
                with contextlib.suppress(InputError):
                    found[number] = replace(case, to=new.bounded(one, case.told, case.to))
                    moved.add(one.point)
        return found, moved

    def _new_returns(self) -> NewReturns:
        cub, arch = self.sources.cub, self.options.arch
        only = self.options.reach == "only" and cub.dialect == "selectors"
        below = next_arch(arch) if only else None
        return NewReturns(cub, self.sources.headers, self.sources.data, arch, below)
