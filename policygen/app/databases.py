"""Commands about tuning databases: what they hold, how good the variants are, which to choose."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from policygen.app.filters import parse_regex
from policygen.app.inputs import Inputs, ResultFiles, check_other, nothing_matches, open_inputs
from policygen.app.session import Note, tell_warnings
from policygen.errors import InputError, listed
from policygen.model.databases import ComparedWorkload, DbCompare, SideFiles
from policygen.model.results import (
    DbCoverage,
    DbExport,
    DbInfo,
    DbPlot,
    DbTop,
    MergeReport,
    Rules,
    RunKey,
    ScoredWorkload,
)
from policygen.model.workload import BASE
from policygen.outputs import write_output
from policygen.planning.measured import related
from policygen.report.agreement_views import render
from policygen.report.plots import (
    FORMATS,
    RatioPanel,
    check_suffix,
    pairs_plot,
    ratio_plot,
    score_map,
)
from policygen.results.agreement import NOT_BOTH, Terms, compare_cases, lone
from policygen.results.cases import Case, split
from policygen.results.choice import IsWritable, held_back
from policygen.results.contents import cover, describe, file_sha256
from policygen.results.database import expand
from policygen.results.decisions import ChosenFrom, ChosenRow, Store
from policygen.results.export import export, point_samples, score_cells
from policygen.results.imported import check_alike
from policygen.results.merge import merge
from policygen.results.ranking import Warnings, open_cases, rank
from policygen.results.samples import Decoder
from policygen.results.score import SampleReader, score_case
from policygen.results.together import Together, choose_next, choose_together

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
        document = rank(
            files.databases,
            pattern=results.where.pattern,
            axes=results.where.values,
            top=top or rules.candidates + 1,
            alpha=alpha,
            rules=rules,
            current=current,
            declared=files.declared,
            confirm_with=files.confirm,
            explain=explain,
        )
        workloads = tuple(files.named(workload) for workload in document.workloads)
    if not workloads and not document.warnings:
        raise nothing_matches(results.where, results.files)
    document = document.model_copy(update={"workloads": workloads})
    if record is not None:
        _keep_choices(record, document)
    return document


def _keep_choices(path: Path, document: DbTop) -> None:
    """Records the choices and the files that they come from."""
    now = datetime.now(UTC)
    rows = [
        ChosenRow(
            chosen_at=now,
            sources=tuple(
                ChosenFrom(path=name, sha256=file_sha256(Path(name))) for name in workload.databases
            ),
            algorithm=workload.algorithm,
            workload=workload.workload,
            gpu=workload.gpu,
            ctk=workload.ctk,
            cccl=workload.cccl,
            decision=workload.choice.decision,
            variant=workload.choice.variant,
            score=workload.choice.score,
            reason=workload.choice.reason,
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
    if not document.workloads and not document.warnings:
        raise nothing_matches(results.where, results.files)
    return document


def describe_databases(results: ResultFiles) -> DbInfo:
    """Describes what databases hold, and how long the search took."""
    if results.where.axes:
        raise InputError("db info takes no -a", "It shows all axes with their values.")
    document = describe(expand(results.files), parse_regex(results.where.regex))
    if results.where.regex and not any(database.tables for database in document.databases):
        raise nothing_matches(results.where, results.files)
    return document


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


# Merging, exporting, and plotting databases.


def merge_databases(files: Sequence[str], out: Path, *, force: bool = False) -> MergeReport:
    """Merges databases into one. If two rows differ, the first file's row wins."""
    return merge(expand(files), out, force=force)


def export_rows(files: Sequence[str], out: Path) -> DbExport:
    """Writes all rows as one flat table, .csv or .parquet."""
    kind = KINDS.get(out.suffix.lower())
    if kind is None:
        raise InputError(f"{out}: a table is written to .csv or .parquet")
    paths = expand(files)
    rows = export(paths, out, kind=kind)
    return DbExport(out=str(out), databases=tuple(map(str, paths)), rows=rows)


def plot_workload(
    results: ResultFiles,
    out: Path,
    *,
    variants: Sequence[str] = (),
    parameters: str | None = None,
    measured: MeasuredWhere = ANYWHERE,
) -> DbPlot:
    """Plots the ratios of variants to base, or their scores over two `parameters`: `ipt,tpb`."""
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
        where = ", ".join(f"{name}={value}" for name, value in case.workload.items())
        title = f"{case.algorithm}[{where}] on {case.key.gpu}"
        if parameters:
            x, comma, y = parameters.partition(",")
            if not comma:
                raise InputError(f"--map {parameters!r} is not of the form X,Y")
            cells = score_cells(scores, x, y)
            score_map(title, x, y, cells, out)
            details: dict[str, Any] = {"parameters": (x, y), "variants": (), "panels": len(cells)}
        else:
            names = [case.variants[index] for index in scores.index]
            plotted = tuple(variants) or tuple(name for name in names if name != BASE)[:1]
            with Decoder() as decoder:
                samples = point_samples(case, plotted, SampleReader(case, decoder, warnings.add))
            ratio_plot(
                title, [RatioPanel(p.row, p.column, p.base, p.variants) for p in samples], out
            )
            details = {"parameters": None, "variants": plotted, "panels": len(samples)}
        return DbPlot(
            out=str(out),
            algorithm=case.algorithm,
            workload=dict(case.workload),
            databases=tuple(n for p in case.files for n in files.made.get(p, (p,))),
            warnings=warnings.all,
            measured_on=case.key,
            **details,
        )


def _single_case(cases: Sequence[Case]) -> Case:
    if len(cases) == 1:
        return cases[0]
    names = "".join(
        f"\n    {case.algorithm}[{', '.join(f'{n}={v}' for n, v in case.workload.items())}]"
        f" on {case.key.gpu}, ctk {case.key.ctk}, cccl {case.key.cccl}, {' + '.join(case.files)}"
        for case in cases[:10]
    )
    suffix = f"\n    and {len(cases) - 10} more" if len(cases) > 10 else ""
    same_workload = len({(case.algorithm, *case.workload.values()) for case in cases}) == 1
    raise InputError(
        f"{len(cases)} workloads match, a plot shows one:{names}{suffix}",
        "They differ in what they were measured on: choose with --gpu, --ctk and --cccl."
        if same_workload
        else "Choose one with -R and -a, such as -a 'T{ct}=I32'.",
    )


@dataclass(frozen=True, slots=True)
class Ranked:
    """Open input files with their ranking."""

    files: Inputs
    top: DbTop
    rules: Rules
    left_out: tuple[ScoredWorkload, ...] = ()
    """Workloads that -R and -a exclude. Their results for a shared entry still count."""

    def workloads(self, version: str) -> tuple[ScoredWorkload, ...]:
        """Returns the selected workloads, and those that may share an entry with them."""
        selected = self.top.workloads
        return (*selected, *related(selected, self.left_out, version))

    def choose(self, workloads: Sequence[ScoredWorkload]) -> Together:
        """Chooses one variant for several workloads."""
        files = self.files
        return choose_together(
            files.databases, workloads, self.rules, files.declared, files.confirm
        )

    def next_best(self, workloads: Sequence[ScoredWorkload], can: IsWritable) -> Together:
        """Chooses again among the variants that can be expressed."""
        files, rules = self.files, self.rules
        return choose_next(files.databases, workloads, can, rules, files.declared, files.confirm)


# Ranked variants of open databases.


@contextmanager
def ranked(results: ResultFiles, rules: Rules, note: Note) -> Iterator[Ranked]:
    """Ranks the variants of databases and keeps the databases open."""
    if not results.files:
        raise InputError("no database is given", "Name one: --db cccl_meta_bench.db")
    with open_inputs(results) as files:
        top = rank(
            files.databases,
            top=rules.candidates + 1,
            rules=rules,
            declared=files.declared,
            confirm_with=files.confirm,
        )
        tell_warnings(top.warnings, note)
        workloads = [results.told(workload) for workload in top.workloads]
        selected, left_out = split(workloads, results.where.pattern, results.where.values)
        if not selected:
            raise nothing_matches(results.where, results.files)
        checked = tuple(held_back(workload, rules) for workload in selected)
        yield Ranked(files, top.model_copy(update={"workloads": checked}), rules, left_out)


PAGE = ".html"
PICTURES = frozenset({".eps", ".gif", ".jpeg", ".jpg", ".pdf", ".ps", ".webp"})


# Comparing two databases: two GPUs, two searches, or a search and its repeat.


def compare_databases(a: ResultFiles, b: ResultFiles, rules: Rules | None = None) -> DbCompare:
    """Compares the scores of variants that both sides measured."""
    rules = rules or Rules()
    warnings = Warnings()
    pattern, axes = a.where.pattern, a.where.values
    with (
        open_inputs(a) as first,
        open_inputs(b) as second,
        Decoder() as decoder,
        open_cases(first.databases, warnings, pattern, axes) as a_cases,
        open_cases(second.databases, warnings, b.where.pattern, b.where.values) as b_cases,
    ):
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
            workloads=tuple(_with_given_files(workload, first, second) for workload in compared),
            only_a=lone(a_cases, compared),
            only_b=lone(b_cases, compared),
            warnings=warnings.all,
        )


def is_plot(out: Path) -> bool:
    """Returns whether a file is a plot or a page with a plot.

    Raises an error for other image formats.
    """
    suffix = out.suffix.lower()
    if suffix in PICTURES:
        check_suffix(out)
    return suffix in {*FORMATS, PAGE}


def plot_comparison(document: DbCompare, out: Path, *, force: bool = False) -> None:
    """Plots B's scores over A's, one panel per workload. An .html page has all results."""
    if out.suffix.lower() == PAGE:
        write_output(out, render(document).encode("utf-8", "surrogateescape"), force=force)
    else:
        pairs_plot(document, out)


def _side(results: ResultFiles, cases: tuple[Case, ...]) -> SideFiles:
    keys = {tuple(case.key.model_dump().values()): case.key for case in cases}
    files = tuple(map(str, expand(results.files)))
    return SideFiles(databases=files, keys=tuple(keys[key] for key in sorted(keys)))


def _with_given_files(
    workload: ComparedWorkload, first: Inputs, second: Inputs
) -> ComparedWorkload:
    """Replaces database paths by the files that the user gave."""
    return workload.model_copy(update={"a": first.named(workload.a), "b": second.named(workload.b)})


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
        f"{name} has {_names(cases) or nothing}" for name, cases in zip("AB", sides, strict=True)
    ]
    reasons = [
        f"; {warning.message}" for warning in warnings.all if warning.message.endswith(NOT_BOTH)
    ]
    message = f"A and B have nothing in common{''.join(reasons[:1])}"
    return InputError(message, ".\n  ".join(contents))


def _names(cases: tuple[Case, ...]) -> str:
    return listed(
        f"{case.algorithm}[{', '.join(f'{name}={value}' for name, value in case.workload.items())}]"
        for case in cases
    )
