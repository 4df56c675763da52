"""What replays share: what a tree selects, the labels that say so, made results, the outcome."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fixtures.databases.every import GPUS, Workload, benchmark_database, benchmark_of, is_variant
from policygen import Filter, Options, Planned, ResultFiles, plan_tunings, resolve_workloads
from policygen.app.session import Session
from policygen.bindings.load import site_of
from policygen.bindings.variants import value_name
from policygen.bindings.words import archs
from policygen.model.plans import Action
from policygen.model.selection import ResolvedRow, Values
from policygen.model.tuning import Entry, Family, TuningHeader, Value
from policygen.model.workload import Point
from policygen.planning.judge import differs
from policygen.proof.reading import read_tree
from policygen.trees.manifest import shipped

SAME, SAID_OTHERWISE = "same", "label says otherwise"
REJECTED, WRONG = "rejected", "tool wrong"
BY_OTHERS = "by entries that other workloads' labels wrote"
Rows = Mapping[Point, ResolvedRow]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A workload whose label shall win."""

    point: Point
    label: str
    means: Values
    """What the label means for its policy."""
    said: frozenset[str]
    """The values of its policy that a label says."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the compiler says of the workloads of some headers on an architecture."""

    rows: Rows
    left: tuple[str, ...] = ()
    """Benchmarks on which it reports nothing, each with the reason."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of one workload."""

    point: Point
    label: str
    ending: str
    """As upstream had it, as its label says in place of that, not written, or a fault of ours."""
    reason: str = ""


def tunings() -> str:
    """The folder of tuning headers in an include folder."""
    return shipped().tree.tunings


def ask(session: Session, arch: str, headers: Iterable[str] = ()) -> Told:
    """What each workload gets, as far as the compiler answers."""
    meant = Filter(headers=tuple(sorted(headers)), archs=(arch,))
    document, errors = resolve_workloads(session, meant)
    if errors and not document.rows:
        raise errors[0]
    left = [f"{one.benchmark}: {one.reason}" for one in document.unresolved]
    return Told({row.point: row for row in document.rows}, tuple(left))


def labels(
    session: Session, found: Rows, arch: str, headers: Iterable[str] = ()
) -> Iterator[tuple[Point, str]]:
    """The label of the entry that each workload selects, where its benchmark has that variant."""
    read = read_tree(session.cub, tuple(sorted(headers))).headers
    by_name = {header.name: header for header in read}
    for point, row in found.items():
        entry = _entry(by_name, row, arch)
        kept = (one.variant for one in entry.labels if not one.rejected) if entry else iter(())
        label = next(kept, None)
        if label and is_variant(benchmark_of(point[0], session.cub.bindings.text), label):
            yield point, label


def families(header: TuningHeader) -> tuple[Family, ...]:
    """Its families of entries, and those of guarded returns."""
    return (*header.families, *header.selectors)


def _entry(headers: Mapping[str, TuningHeader], row: ResolvedRow, arch: str) -> Entry | None:
    if row.entry is None:
        return None
    for family in families(headers[row.entry.header]):
        if family.arch == arch and family.namespace == row.entry.namespace:
            for entry in family.specializations:
                if entry.line == row.entry.line:
                    return entry
    return None


def planned(
    session: Session,
    folder: Path,
    arch: str,
    winners: Mapping[Point, str | None],
    *,
    prove: bool = True,
) -> Planned:
    """The plan for results in which each workload's label wins, or base where it has none."""
    files = list(_databases(folder, session.cub.bindings.text, arch, winners))
    options = Options(arch=arch)
    return plan_tunings(session, ResultFiles([*map(str, files)]), options, prove=prove)


def _databases(
    folder: Path, version: str, arch: str, winners: Mapping[Point, str | None]
) -> Iterator[Path]:
    """A database for each benchmark."""
    for name in dict.fromkeys(name for name, _ in winners):
        won: dict[Workload | None, str | None] = {
            tuple(value for _, value in workload): label
            for (benchmark, workload), label in winners.items()
            if benchmark == name
        }
        path = folder / f"{name}.db"
        benchmark_database(path, name, version, _gpu(arch), won)
        yield path


def _gpu(arch: str) -> str:
    """A GPU of an architecture, as databases name it."""
    return GPUS.get(arch) or f"Demo {archs()[arch].gpus[0]} (8192, 148, eccon)"


def written(made: Planned, tree: Path) -> None:
    """Writes the headers that a plan changes to the include folder of a copy."""
    for name, data in made.changed.items():
        path = tree / tunings() / name
        path.unlink()
        path.write_bytes(data)


def label_means(
    session: Session, folder: Path, arch: str, labelled: Mapping[Point, str]
) -> dict[Point, Mapping[str, Value]]:
    """What the labels mean for the policies of a tree, whatever its entries hold."""
    made = planned(session, folder, arch, labelled, prove=False)
    return {action.point: action.after or {} for action in made.plan.actions}


def said(session: Session, benchmark: str) -> frozenset[str]:
    """The values that labels of a benchmark say, as the policies of a tree call them."""
    algorithm, site = site_of(
        benchmark_of(benchmark, session.cub.bindings.text),
        session.cub.bindings,
        session.cub.dialect,
    )
    rules = (
        rule
        for family in algorithm.families
        if family.site == site.name
        for rule in (*family.members.items(), *family.optional.items())
        if rule[1].parameters
    )
    return frozenset(name for rule in rules if (name := value_name(site, *rule)))


def ending(
    replayed: Wanted, upstream: Values, after: Values | None, action: Action | None
) -> Replayed:
    """How one workload ends; what its label means is what upstream's own tree makes of it."""
    point, label = replayed.point, replayed.label
    if action is None or after is None:
        lacking = "plan" if action is None else "tree that was written"
        return Replayed(point, label, WRONG, f"the {lacking} does not have it")
    other = {name: value for name, value in upstream.items() if after.get(name) != value}
    if action.decision == "reject":
        ended = (REJECTED, action.reason) if other else (SAME, BY_OTHERS)
        return Replayed(point, label, *ended)
    if action.decision == "fallback":
        return Replayed(point, label, WRONG, f"its winner is rejected: {action.reason}")
    if action.variant != label:
        return Replayed(point, label, WRONG, f"{action.variant} is written, and not its label")
    lost = {n: replayed.means[n] for n in other if n in replayed.said and n in replayed.means}
    if left := differs(after, lost):
        return Replayed(point, label, WRONG, f"neither label nor upstream: {left}")
    return Replayed(point, label, SAID_OTHERWISE if other else SAME, differs(after, other))
