"""Commands about tuning databases: what they hold, how good the variants are, which to choose."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from policygen.app.filters import EVERYTHING, Filter
from policygen.app.inputs import ResultFiles, check_other, nothing_matches, open_inputs
from policygen.cache import file_sha256
from policygen.errors import InputError, listed
from policygen.gpu.finalists import MOST_ROWS
from policygen.gpu.kernel_matrix import kernel_matrices
from policygen.gpu.search_report import report_workloads
from policygen.model.benchmarks import ParameterRange
from policygen.model.databases import DbCompare, PointRatios, SideFiles, WorkloadPlot
from policygen.model.measured import KernelMatrix, StrategyMatrix
from policygen.model.results import (
    CoveredWorkload,
    DatabaseInfo,
    DataWarning,
    DbCoverage,
    DbExport,
    DbInfo,
    DbPlot,
    DbTop,
    FailureCount,
    MergeReport,
    Rules,
    RunKey,
    TableInfo,
)
from policygen.model.searches import SearchReport
from policygen.model.workload import BASE
from policygen.results.agreement import NOT_BOTH, Terms, compare_cases, lone
from policygen.results.cases import Case, fits
from policygen.results.database import Database, Rows, expand, open_all, open_database, read_rows
from policygen.results.decisions import ChosenFrom, ChosenRow, Store
from policygen.results.export import export, point_ratios, score_cells
from policygen.results.imported import check_alike, imported_facts
from policygen.results.merge import merge
from policygen.results.ranking import ANY, Warnings, open_cases
from policygen.results.samples import Decoder
from policygen.results.score import SampleReader, score_case
from policygen.results.sessions import split

Told = DbTop | DbCoverage | DbInfo
"""Documents about databases that carry warnings."""


def rank_variants(
    results: ResultFiles,
    rules: Rules,
    *,
    top: int | None = None,
    alpha: float = 1.0,
    current: str | None = None,
    record: Path | None = None,
    explain: bool = False,
) -> DbTop:
    """Scores the variants of each workload, chooses among them, and returns the `top` ones.

    The choices are recorded in the store `record`. `explain` adds their reasons.
    """
    with open_inputs(results) as files:
        most = top or rules.candidates + 1
        document = files.rank(
            rules, results.where, top=most, alpha=alpha, current=current, explain=explain
        )
        workloads = tuple(files.named(workload) for workload in document.workloads)
        warnings = tuple(map(files.named_warning, document.warnings))
    if not workloads and not document.warnings:
        raise nothing_matches(results.where, results.files)
    document = document.model_copy(update={"workloads": workloads, "warnings": warnings})
    if record is not None:
        _keep_choices(record, document)
    return document


def _keep_choices(path: Path, document: DbTop) -> None:
    """Records the choices and the files that they come from."""
    now = datetime.now(UTC)
    rows = [
        ChosenRow(
            chosen_at=now,
            sources=tuple(map(ChosenFrom.of, workload.databases)),
            **workload.model_dump(include={"algorithm", "workload", "gpu", "ctk", "cccl"}),
            **workload.choice.model_dump(include={"decision", "variant", "score", "reason"}),
        )
        for workload in document.workloads
        if workload.choice is not None
    ]
    with Store.open(path) as store:
        store.record(rows)


def cover_spaces(results: ResultFiles) -> DbCoverage:
    """Reports how much of the search space was measured."""
    with open_inputs(results) as files:
        document = cover(files.databases, files.spaces, results.where.pattern, results.where.values)
        warnings = tuple(map(files.named_warning, document.warnings))
    if not document.workloads and not document.warnings:
        raise nothing_matches(results.where, results.files)
    return document.model_copy(update={"warnings": warnings})


def describe_databases(results: ResultFiles) -> DbInfo:
    """Describes what databases hold, and how long the search took."""
    if results.where.axes:
        raise InputError("db info takes no -a", "It lists all axes with their values.")
    warnings = Warnings()
    with open_all(expand(results.files)) as databases:
        infos = tuple(_database(file, results.where.pattern, warnings) for file in databases)
    if results.where.regex and not any(database.tables for database in infos):
        raise nothing_matches(results.where, results.files)
    return DbInfo(databases=infos, warnings=warnings.all)


KINDS: dict[str, Literal["csv", "parquet"]] = {".csv": "csv", ".parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class MeasuredWhere:
    """Where a workload was measured; unset fields match anything."""

    gpu: str | None = None
    """The GPU name in the database, or a prefix of it."""
    ctk: str | None = None
    cccl: str | None = None

    def has(self, key: RunKey) -> bool:
        """Returns whether a run matches."""
        fits = self.ctk in {None, key.ctk} and self.cccl in {None, key.cccl}
        return fits and key.gpu.startswith(self.gpu or "")


ANYWHERE = MeasuredWhere()


# Merging and exporting databases, and what their plots show.


def merge_databases(files: Sequence[str], out: Path, *, force: bool = False) -> MergeReport:
    """Merges databases into one. If two rows of a run differ, the first file's row wins."""
    return merge(expand(files), out, force=force)


def export_rows(files: Sequence[str], out: Path) -> DbExport:
    """Writes all rows as one flat table, .csv or .parquet."""
    kind = KINDS.get(out.suffix.lower())
    if kind is None:
        raise InputError(f"{out}: the name of an export must end with .csv or .parquet")
    paths = expand(files)
    rows = export(paths, out, kind=kind)
    return DbExport(out=str(out), databases=tuple(map(str, paths)), rows=rows)


def workload_plot(
    results: ResultFiles,
    out: Path,
    *,
    variants: Sequence[str] = (),
    parameters: str | None = None,
    measured: MeasuredWhere = ANYWHERE,
) -> WorkloadPlot:
    """Reads what a plot shows: ratios of variants to base, or scores over `parameters`: `ipt,tpb`.

    `out` is where the plot is to be written.
    """
    check_other(out, results)
    warnings = Warnings()
    pattern, chosen = results.where.pattern, results.where.values
    with (
        open_inputs(results) as files,
        open_cases(files.databases, warnings, pattern, chosen) as cases,
    ):
        matching = [case for case in cases if measured.has(case.key)]
        if not matching:
            raise nothing_matches(results.where, results.files)
        case = _single_case(matching)
        scores = score_case(case, files.declared)
        plotted: tuple[str, ...] = ()
        points: tuple[PointRatios, ...] = ()
        cells: Mapping[tuple[int, int], Sequence[float]] = {}
        x, comma, y = (parameters or "").partition(",")
        if not parameters:
            names = scores.names
            plotted = tuple(variants) or tuple(name for name in names if name != BASE)[:1]
            with Decoder() as decoder:
                points = point_ratios(case, plotted, SampleReader(case, decoder, warnings.add))
        elif comma:
            cells = score_cells(scores, x, y)
        else:
            raise InputError(f"--map {parameters!r} is not of the form X,Y")
        document = DbPlot(
            out=str(out),
            algorithm=case.algorithm,
            workload=dict(case.workload),
            databases=files.files_of(case.files),
            parameters=(x, y) if parameters else None,
            variants=plotted,
            panels=len(points) or len(cells),
            warnings=tuple(map(files.named_warning, warnings.all)),
            measured_on=case.key,
        )
    return WorkloadPlot(f"{case.title} on {case.key.gpu}", document, points, cells)


def _single_case(cases: Sequence[Case]) -> Case:
    if len(cases) == 1:
        return cases[0]
    names = "".join(
        f"\n    {case.title} on {case.key.gpu}, ctk {case.key.ctk}, cccl {case.key.cccl},"
        f" {' + '.join(case.files)}"
        for case in cases[:10]
    )
    suffix = f"\n    and {len(cases) - 10} more" if len(cases) > 10 else ""
    same_workload = len({(case.algorithm, *case.workload.values()) for case in cases}) == 1
    raise InputError(
        f"{len(cases)} workloads match, but a plot shows one:{names}{suffix}",
        "They were measured on different GPUs or versions: choose with --gpu, --ctk and --cccl."
        if same_workload
        else "Choose one with -R and -a, for example -a 'T{ct}=I32'.",
    )


# Comparing two databases: two GPUs, two searches, or a search and its repeat.


def compare_databases(a: ResultFiles, b: ResultFiles, rules: Rules | None = None) -> DbCompare:
    """Compares the scores of variants that both sides measured."""
    rules = rules or Rules()
    warnings = Warnings()
    pattern, axes = a.where.pattern, a.where.values
    with (
        open_inputs(replace(a, may_lack=True)) as first,
        open_inputs(replace(b, may_lack=True)) as second,
        Decoder() as decoder,
        open_cases(first.databases, warnings, pattern, axes) as a_cases,
        open_cases(second.databases, warnings, b.where.pattern, b.where.values) as b_cases,
    ):
        first.check_values(a.where, *second.databases)
        check_alike(database for case in (*a_cases, *b_cases) for database in case.databases)
        decoder.start()
        terms = Terms(rules, decoder, warnings.add, first.declared, second.declared, axes)
        compared = compare_cases(a_cases, b_cases, terms)
        if not compared:
            raise _nothing_common((a, b), (a_cases, b_cases), warnings)
        return DbCompare(
            a=_side(a, a_cases),
            b=_side(b, b_cases),
            rules=rules,
            workloads=tuple(
                # Database paths become the files that the user gave.
                row.model_copy(update={"a": first.named(row.a), "b": second.named(row.b)})
                for row in compared
            ),
            only_a=lone(a_cases, compared),
            only_b=lone(b_cases, compared),
            warnings=tuple(map(second.named_warning, map(first.named_warning, warnings.all))),
        )


def _side(results: ResultFiles, cases: tuple[Case, ...]) -> SideFiles:
    keys = {tuple(case.key.model_dump().values()): case.key for case in cases}
    files = tuple(map(str, expand(results.files)))
    return SideFiles(databases=files, keys=tuple(keys[key] for key in sorted(keys)))


def _nothing_common(
    results: tuple[ResultFiles, ResultFiles],
    sides: tuple[tuple[Case, ...], tuple[Case, ...]],
    warnings: Warnings,
) -> InputError:
    """Builds the error that lists what each side has if nothing can be compared."""
    if not any(sides):
        return nothing_matches(results[0].where, [file for side in results for file in side.files])
    filtered = any(side.where.regex or side.where.axes for side in results)
    nothing = f"nothing with a base{' that matches' if filtered else ''}"
    contents = [
        f"{name} has {listed(case.title for case in cases) or nothing}"
        for name, cases in zip("AB", sides, strict=True)
    ]
    reasons = [
        f"; {warning.message}" for warning in warnings.all if warning.message.endswith(NOT_BOTH)
    ]
    message = f"A and B have nothing in common{''.join(reasons[:1])}"
    return InputError(message, ".\n  ".join(contents))


# What searches and measurements left in databases.


def report_search(results: ResultFiles, rules: Rules | None = None) -> SearchReport:
    """Reports what searches or measurements found for each workload, and how."""
    rules, where, warnings = rules or Rules(), results.where, Warnings()
    with open_inputs(results) as files:
        ranked = files.rank(rules, where, top=MOST_ROWS + 1)
        for warning in ranked.warnings:
            warnings.add(warning)
        scored = [results.reported(workload) for workload in ranked.workloads]
        workloads, sessions, other_sessions = report_workloads(
            files.databases, scored, files.declared, where.pattern, where.values, warnings
        )
    if not workloads and not warnings.all:
        raise nothing_matches(where, results.files)
    return SearchReport(
        databases=files.files_of(files.databases),
        rules=rules,
        sessions=sessions,
        other_sessions=other_sessions,
        workloads=tuple(map(files.named, workloads)),
        warnings=tuple(map(files.named_warning, warnings.all)),
    )


def strategy_matrix(
    files: Sequence[str], where: Filter = EVERYTHING, by: str | None = None
) -> StrategyMatrix:
    """Compares the values of a parameter, using the best variant of each value at each size."""
    paths = expand(files)
    kernels: list[KernelMatrix] = []
    for path in paths:
        with open_database(path) as database:
            kernels += kernel_matrices(database, where.pattern, by)
    if not kernels:
        raise InputError(
            f"{', '.join(map(str, paths))} contains no measurements of your own kernels",
            "policygen measure --workload kernel.toml --all --db FILE measures all its variants.",
        )
    return StrategyMatrix(databases=tuple(map(str, paths)), kernels=tuple(kernels))


# What databases hold: algorithms, workloads, GPUs, versions, rows, failures, and time spent.


def _database(database: Database, pattern: re.Pattern[str], warnings: Warnings) -> DatabaseInfo:
    tables = tuple(
        _table(database, read_rows(database, table, {}, warnings.add))
        for run in (database, *database.merged)
        for table in run.tables
        if pattern.match(table.algorithm)
    )
    return DatabaseInfo(
        path=str(database.path),
        sha256=file_sha256(database.path),
        layout=database.layout,
        tables=tables,
        failures=tuple(
            failure for failure in _failures(database) if pattern.match(failure.algorithm)
        ),
        build_seconds=_seconds(database, "builds"),
        run_seconds=_seconds(database, "runs"),
    )


def _table(database: Database, rows: Rows) -> TableInfo:
    table = rows.table
    axes = {
        axis: tuple(dict.fromkeys(point[index] for point in rows.points))
        for index, axis in enumerate(table.rt_axes)
    }
    keys = sorted(rows.keys, key=lambda key: (key.gpu, key.ctk, key.cccl))
    return TableInfo(
        algorithm=table.algorithm,
        subbench=table.subbench,
        rows=int(rows.center.size) + rows.unusable,
        unusable=rows.unusable,
        variants=len(set(rows.variants) - {BASE}),
        workloads=tuple(dict(zip(table.ct_axes, values, strict=True)) for values in rows.workloads),
        keys=tuple(keys),
        axes=axes,
        declared=any(key[:2] == (table.algorithm, table.subbench) for key in database.declared),
        values={
            name: dict(texts)
            for (algorithm, name), texts in imported_facts(database).values.items()
            if algorithm == table.algorithm
        },
    )


def _failures(database: Database) -> Iterator[FailureCount]:
    for log in database.logs:
        rows = database.connection.execute(f"SELECT bench, code FROM {log}")  # noqa: S608  fixed
        counts = Counter(
            (split(str(bench))[0], str(code)) for bench, code in rows if str(code) != "0"
        )
        for (algorithm, code), count in sorted(counts.items()):
            kind = "build" if log == "builds" else "run"
            yield FailureCount(kind=kind, algorithm=algorithm, code=code, count=count)


def _seconds(database: Database, log: str) -> float | None:
    if log not in database.logs:
        return None
    rows = database.connection.execute(f"SELECT elapsed FROM {log}")  # noqa: S608
    finite = [cell for (cell,) in rows if isinstance(cell, float | int) and math.isfinite(cell)]
    total = float(sum(finite))
    return total if finite and math.isfinite(total) else None


# Coverage of the search space by workload.


def cover(
    paths: Sequence[Path],
    spaces: Mapping[str, Sequence[ParameterRange]],
    pattern: re.Pattern[str] = ANY,
    axes: Mapping[str, frozenset[str]] | None = None,
) -> DbCoverage:
    """Compares the complete variants with the size of the search space, without base."""
    warnings = Warnings()
    with open_cases(paths, warnings, pattern, axes) as cases:
        covered = tuple(_workload(case, spaces.get(case.algorithm), warnings) for case in cases)
    return DbCoverage(workloads=covered, warnings=warnings.all)


def _workload(
    case: Case, space: Sequence[ParameterRange] | None, warnings: Warnings
) -> CoveredWorkload:
    measured = [
        label
        for label, is_complete in zip(case.variants, case.complete, strict=True)
        if is_complete and label != BASE
    ]
    inside = measured if space is None else [label for label in measured if fits(label, space)]
    if len(inside) < len(measured):
        misfit = next(label for label in measured if label not in set(inside))
        warnings.add(
            DataWarning(
                database=" + ".join(case.files),
                table=case.algorithm,
                message=f"variants like {misfit} do not fit the search space",
                count=len(measured) - len(inside),
            )
        )
    total = None if space is None else math.prod(len(parameter.values) for parameter in space)
    return CoveredWorkload(
        **case.measured,
        covered=len(inside),
        variants=total,
        share=len(inside) / total if total else None,
    )
