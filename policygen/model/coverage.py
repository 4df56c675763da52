"""Which workloads are tuned for which architectures."""

from collections import Counter
from typing import Literal, get_args

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.base import Document, Problem, Record
from policygen.model.cub import Cub
from policygen.model.resolve import EntryPlace, Unresolved
from policygen.model.workload import OnArch

CellStatus = Literal["tuned", "inherited", "default", "disabled", "unreachable"]
"""How CUB comes to the values of a workload on an architecture.

`tuned`: by an entry for it. `inherited`: by one for an earlier architecture. `default`: by none.
`disabled`: there is an entry for it that is commented out. `unreachable`: there is a live one with
its key, and the compiler does not take it. In the last two cases `since` says what it gets instead.
"""
STATUSES: tuple[CellStatus, ...] = get_args(CellStatus)


class Cell(OnArch):
    """One workload on one architecture."""

    status: CellStatus
    since: Arch | None
    """The architecture that the values were tuned for; none for defaults."""
    entry: EntryPlace | None
    """The entry that decides, or the one that should."""
    reason: str | None = None
    """Why an entry does not decide, as far as the header says."""


class Share(Record):
    """How many workloads of a benchmark, or of all, have which status on an architecture."""

    benchmark: str | None
    """None: of all."""
    arch: Arch
    workloads: int
    counts: dict[CellStatus, int]

    def percent(self, statuses: tuple[CellStatus, ...]) -> float:
        """The share of some statuses."""
        return 100 * sum(self.counts[status] for status in statuses) / self.workloads


class Fillable(OnArch):
    """A cell that is not tuned, and what a database has for it."""

    status: CellStatus
    variant: str
    score: float
    databases: tuple[str, ...]


class Unfilled(Fillable):
    """A cell that is not tuned, and a variant of a database that `plan` rejects for it."""

    reason: str


TurnedKind = Literal["lost", "gained", "other", "only before", "only after"]
TURNED: tuple[TurnedKind, ...] = get_args(TurnedKind)
"""In the order in which a release manager wants to see them."""


class Turned(OnArch):
    """A cell whose status is another in another tree; none where that tree lacks the workload."""

    before: CellStatus | None
    after: CellStatus | None

    @property
    def kind(self) -> TurnedKind:
        """What became of it; a workload that one tree lacks was neither gained nor lost."""
        if self.before is None or self.after is None:
            return "only after" if self.before is None else "only before"
        if self.before == "tuned":
            return "lost"
        return "gained" if self.after == "tuned" else "other"


class Compared(Record):
    """What became of another tree's coverage."""

    cub: Cub
    turned: tuple[Turned, ...]

    @property
    def ordered(self) -> list[Turned]:
        """What matters most first."""
        return sorted(self.turned, key=lambda one: TURNED.index(one.kind))

    @property
    def in_words(self) -> str:
        """`14 gained, 2 lost; tuned workloads that one tree alone has: 4 before`."""
        counts = Counter(one.kind for one in self.turned)
        found = f"{counts['gained']:,} gained, {counts['lost']:,} lost"
        if counts["other"]:
            found += f", {counts['other']:,} other changes"
        alone = [(counts["only before"], "before"), (counts["only after"], "now")]
        if any(count for count, _ in alone):
            told = ", ".join(f"{count:,} {when}" for count, when in alone if count)
            found += f"; tuned workloads that one tree alone has: {told}"
        return found


class Coverage(Document):
    """What `policygen audit coverage --json` prints."""

    format: Literal["policygen/audit-coverage/1"] = "policygen/audit-coverage/1"
    cub: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    shares: tuple[Share, ...]
    """Of all benchmarks by architecture, then of each one."""
    cells: tuple[Cell, ...]
    fillable: tuple[Fillable, ...] | None = None
    """What `apply` would write of databases, the best first; none when none was given."""
    unfilled: tuple[Unfilled, ...] = ()
    """What it would not write, the best first, and why."""
    compared: Compared | None = None
    remarks: tuple[str, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    problems: tuple[Problem, ...] = Field(default=())

    @property
    def totals(self) -> dict[str, Share]:
        """The shares of all benchmarks, by architecture."""
        return {share.arch: share for share in self.shares if share.benchmark is None}
