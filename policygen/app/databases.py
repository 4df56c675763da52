"""What tuning databases hold, how good the variants are, which ones to take."""

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
from policygen.results.choice import Can, held_back
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
"""What tells of databases, with warnings."""


def rank_variants(
    given: ResultFiles,
    rules: Rules,
    *,
    top: int | None = None,
    alpha: float = 1.0,
    current: str | None = None,
    record: Path | None = None,
    explain: bool = False,
) -> DbTop:
    """Scores the variants of each workload and chooses among them; tells the `top` ones.

    The choices are kept in the store `record`; `explain` adds what they rest on.
    """
    with open_inputs(given) as files:
        document = rank(
            files.databases,
            pattern=given.where.pattern,
            axes=given.where.values,
            top=top or rules.candidates + 1,
            alpha=alpha,
            rules=rules,
            current=current,
            declared=files.declared,
            confirm_with=files.confirm,
            explain=explain,
        )
        named = tuple(files.named(workload) for workload in document.workloads)
    if not named and not document.warnings:
        raise nothing_matches(given.where, given.files)
    document = document.model_copy(update={"workloads": named})
    if record is not None:
        _keep_choices(record, document)
    return document


def _keep_choices(path: Path, document: DbTop) -> None:
    """Keeps what was decided, from which files."""
    now = datetime.now(UTC)
    rows = [
        ChosenRow(
            chosen_at=now,
            sources=tuple(
                ChosenFrom(path=name, sha256=file_sha256(Path(name))) for name in found.databases
            ),
            algorithm=found.algorithm,
            workload=found.workload,
            gpu=found.gpu,
            ctk=found.ctk,
            cccl=found.cccl,
            decision=found.choice.decision,
            variant=found.choice.variant,
            score=found.choice.score,
            reason=found.choice.reason,
        )
        for found in document.workloads
        if found.choice is not None
    ]
    with Store.open(path) as store:
        store.record(rows)


def cover_spaces(given: ResultFiles) -> DbCoverage:
    """Tells how much of the search space was measured."""
    with open_inputs(given) as files:
        document = cover(files.databases, files.spaces, given.where.pattern, given.where.values)
    if not document.workloads and not document.warnings:
        raise nothing_matches(given.where, given.files)
    return document


def describe_databases(given: ResultFiles) -> DbInfo:
    """Tells what databases hold, and what the search took."""
    if given.where.axes:
        raise InputError("db info takes no -a", "It shows all axes with their values.")
    document = describe(expand(given.files), parse_regex(given.where.regex))
    if given.where.regex and not any(database.tables for database in document.databases):
        raise nothing_matches(given.where, given.files)
    return document


KINDS: dict[str, Literal["csv", "parquet"]] = {".csv": "csv", ".parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class MeasuredWhere:
    """Where a workload was measured; anywhere where nothing is said."""

    gpu: str | None = None
    """The GPU as the database names it, or its beginning."""
    ctk: str | None = None
    cccl: str | None = None

    def has(self, key: RunKey) -> bool:
        """Whether that is where it was."""
        fits = self.ctk in {None, key.ctk} and self.cccl in {None, key.cccl}
        return fits and key.gpu.startswith(self.gpu or "")


ANYWHERE = MeasuredWhere()


# Databases as one database, as a table, or as a plot.


def merge_databases(files: Sequence[str], out: Path, *, force: bool = False) -> MergeReport:
    """Writes databases into one; of two rows that differ, the first file's counts."""
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
    given: ResultFiles,
    out: Path,
    *,
    variants: Sequence[str] = (),
    parameters: str | None = None,
    measured: MeasuredWhere = ANYWHERE,
) -> DbPlot:
    """Plots the ratios of variants to base, or their scores over two `parameters`: `ipt,tpb`."""
    check_other(out, given)
    warnings = Warnings()
    pattern, chosen = given.where.pattern, given.where.values
    with (
        open_inputs(given) as files,
        open_cases(files.databases, warnings, pattern, chosen) as cases,
    ):
        there = [case for case in cases if measured.has(case.key)]
        if not there:
            raise nothing_matches(given.where, given.files)
        case = _only(there)
        scores = score_case(case, files.declared)
        where = ", ".join(f"{name}={value}" for name, value in case.workload.items())
        title = f"{case.algorithm}[{where}] on {case.key.gpu}"
        if parameters:
            x, comma, y = parameters.partition(",")
            if not comma:
                raise InputError(f"--map {parameters!r} is not of the form X,Y")
            cells = score_cells(scores, x, y)
            score_map(title, x, y, cells, out)
            told: dict[str, Any] = {"parameters": (x, y), "variants": (), "panels": len(cells)}
        else:
            names = [case.variants[index] for index in scores.index]
            wanted = tuple(variants) or tuple(name for name in names if name != BASE)[:1]
            with Decoder() as decoder:
                found = point_samples(case, wanted, SampleReader(case, decoder, warnings.add))
            ratio_plot(title, [RatioPanel(p.row, p.column, p.base, p.variants) for p in found], out)
            told = {"parameters": None, "variants": wanted, "panels": len(found)}
        return DbPlot(
            out=str(out),
            algorithm=case.algorithm,
            workload=dict(case.workload),
            databases=tuple(n for p in case.files for n in files.made.get(p, (p,))),
            warnings=warnings.all,
            measured_on=case.key,
            **told,
        )


def _only(cases: Sequence[Case]) -> Case:
    if len(cases) == 1:
        return cases[0]
    names = "".join(
        f"\n    {case.algorithm}[{', '.join(f'{n}={v}' for n, v in case.workload.items())}]"
        f" on {case.key.gpu}, ctk {case.key.ctk}, cccl {case.key.cccl}, {' + '.join(case.files)}"
        for case in cases[:10]
    )
    more = f"\n    and {len(cases) - 10} more" if len(cases) > 10 else ""
    same = len({(case.algorithm, *case.workload.values()) for case in cases}) == 1
    raise InputError(
        f"{len(cases)} workloads match, a plot shows one:{names}{more}",
        "They differ in what they were measured on: choose with --gpu, --ctk and --cccl."
        if same
        else "Choose one with -R and -a, such as -a 'T{ct}=I32'.",
    )


@dataclass(frozen=True, slots=True)
class Ranked:
    """What was given, and what is best in it."""

    files: Inputs
    top: DbTop
    rules: Rules
    left_out: tuple[ScoredWorkload, ...] = ()
    """Workloads that -R and -a leave out: what they say of an entry still counts."""

    def workloads(self, version: str) -> tuple[ScoredWorkload, ...]:
        """What is asked for, and what may share an entry with it."""
        asked = self.top.workloads
        return (*asked, *related(asked, self.left_out, version))

    def choose(self, wanted: Sequence[ScoredWorkload]) -> Together:
        """Chooses one variant for several workloads."""
        files = self.files
        return choose_together(files.databases, wanted, self.rules, files.declared, files.confirm)

    def next_best(self, wanted: Sequence[ScoredWorkload], can: Can) -> Together:
        """Chooses again, of those that can be said."""
        files, rules = self.files, self.rules
        return choose_next(files.databases, wanted, can, rules, files.declared, files.confirm)


# The best variants of databases, for all that writes them somewhere.


@contextmanager
def ranked(given: ResultFiles, rules: Rules, note: Note) -> Iterator[Ranked]:
    """The variants of databases, while these are open."""
    if not given.files:
        raise InputError("no database is given", "Name one: --db cccl_meta_bench.db")
    with open_inputs(given) as files:
        top = rank(
            files.databases,
            top=rules.candidates + 1,
            rules=rules,
            declared=files.declared,
            confirm_with=files.confirm,
        )
        tell_warnings(top.warnings, note)
        told = [given.told(one) for one in top.workloads]
        asked, left_out = split(told, given.where.pattern, given.where.values)
        if not asked:
            raise nothing_matches(given.where, given.files)
        written = tuple(held_back(one, rules) for one in asked)
        yield Ranked(files, top.model_copy(update={"workloads": written}), rules, left_out)


PAGE = ".html"
PICTURES = frozenset({".eps", ".gif", ".jpeg", ".jpg", ".pdf", ".ps", ".webp"})


# Two databases beside each other: two GPUs, two searches, a search and its repeat.


def compare_databases(a: ResultFiles, b: ResultFiles, rules: Rules | None = None) -> DbCompare:
    """Compares what two sides say of the variants that both have measured."""
    rules = rules or Rules()
    warnings = Warnings()
    pattern, axes = a.where.pattern, a.where.values
    with (
        open_inputs(a) as first,
        open_inputs(b) as second,
        Decoder() as decoder,
        open_cases(first.databases, warnings, pattern, axes) as ones,
        open_cases(second.databases, warnings, b.where.pattern, b.where.values) as others,
    ):
        check_alike(one for case in (*ones, *others) for one in case.databases)
        decoder.start()
        how = Terms(rules, decoder, warnings.add, first.declared, second.declared, axes)
        found = compare_cases(ones, others, how)
        if not found:
            raise _nothing_common((a, b), (ones, others), warnings)
        return DbCompare(
            a=_side(a, ones),
            b=_side(b, others),
            rules=rules,
            workloads=tuple(_named(one, first, second) for one in found),
            only_a=lone(ones, found),
            only_b=lone(others, found),
            warnings=warnings.all,
        )


def is_plot(out: Path) -> bool:
    """Whether a file is to be a plot, or a page with one; another picture is refused."""
    suffix = out.suffix.lower()
    if suffix in PICTURES:
        check_suffix(out)
    return suffix in {*FORMATS, PAGE}


def plot_comparison(document: DbCompare, out: Path, *, force: bool = False) -> None:
    """Plots B's scores over A's, a panel for each workload; .html is a page that tells the rest."""
    if out.suffix.lower() == PAGE:
        write_output(out, render(document).encode("utf-8", "surrogateescape"), force=force)
    else:
        pairs_plot(document, out)


def _side(given: ResultFiles, cases: tuple[Case, ...]) -> SideFiles:
    keys = {tuple(case.key.model_dump().values()): case.key for case in cases}
    files = tuple(map(str, expand(given.files)))
    return SideFiles(databases=files, keys=tuple(keys[one] for one in sorted(keys)))


def _named(one: ComparedWorkload, first: Inputs, second: Inputs) -> ComparedWorkload:
    """With the files that the user gave."""
    return one.model_copy(update={"a": first.named(one.a), "b": second.named(one.b)})


def _nothing_common(
    given: tuple[ResultFiles, ResultFiles],
    sides: tuple[tuple[Case, ...], tuple[Case, ...]],
    warnings: Warnings,
) -> InputError:
    """What there is, where nothing is compared with anything."""
    if not any(sides):
        return nothing_matches(given[0].where, [file for one in given for file in one.files])
    asked = any(one.where.regex or one.where.axes for one in given)
    none = f"nothing with a base{' that matches' if asked else ''}"
    told = [f"{name} has {_names(cases) or none}" for name, cases in zip("AB", sides, strict=True)]
    why = [f"; {one.message}" for one in warnings.all if one.message.endswith(NOT_BOTH)]
    message = f"A and B have nothing in common{''.join(why[:1])}"
    return InputError(message, ".\n  ".join(told))


def _names(cases: tuple[Case, ...]) -> str:
    return listed(
        f"{case.algorithm}[{', '.join(f'{name}={value}' for name, value in case.workload.items())}]"
        for case in cases
    )
