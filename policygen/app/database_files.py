"""Databases as one database, as a table, or as a plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from policygen.app.inputs import ResultFiles, check_other, nothing_matches, open_inputs
from policygen.errors import InputError
from policygen.model.labels import BASE
from policygen.model.results import DbExport, DbPlot, MergeReport, RunKey
from policygen.report.plot_ratios import RatioPanel, ratio_plot
from policygen.report.plot_scores import score_map
from policygen.results.case import Case
from policygen.results.confidence import SampleReader
from policygen.results.decoder import Decoder
from policygen.results.export import export
from policygen.results.load import expand
from policygen.results.merge import merge
from policygen.results.plotdata import point_samples, score_cells
from policygen.results.score import score_case
from policygen.results.top import Warnings, open_cases

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
