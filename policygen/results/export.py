"""Exports all rows of databases as one flat table: CSV or Parquet."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.model.databases import PointRatios
from policygen.model.searches import QUANTILES
from policygen.model.workload import BASE, parse_label
from policygen.outputs import MAKER
from policygen.portable import portable_name
from policygen.results.cases import Case, Part
from policygen.results.database import Database, check_not_input, open_database
from policygen.results.merge import replacing
from policygen.results.samples import Samples, count_samples
from policygen.results.score import SampleReader, Scores
from policygen.results.tables import ResultTable, quote

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["csv", "parquet"]
BATCH = 50_000
PLACE = ("database", "algorithm", "subbench", "gpu", "ctk", "cccl", "variant")
NUMBERS = ("elapsed", "center", "bw")
COLUMNS = (*PLACE, *NUMBERS, "samples")


def export(paths: Sequence[Path], out: Path, *, kind: Kind) -> int:
    """Writes all rows, sorted by file, table and key; returns their number."""
    if kind == "parquet" and find_spec("pyarrow") is None:
        raise MissingToolError("pyarrow", f"Install it: {add('parquet')}")
    out = out.resolve()
    if out.is_dir():
        raise InputError(f"{out}: this is a folder")
    check_not_input(out, paths)
    # The axes of all tables, in order of appearance, with the names of their columns.
    known_axes = (axis for _, table in _tables(paths) for axis in table.axes)
    axes = {axis: f"{axis} (axis)" if axis in COLUMNS else axis for axis in known_axes}
    write = _write_csv if kind == "csv" else _write_parquet
    with replacing(out) as temporary:
        frames = (_table_frames(run, table, axes) for run, table in _tables(paths))
        return write(temporary, chain.from_iterable(frames), [*COLUMNS, *axes.values()])


def _tables(paths: Sequence[Path]) -> Iterator[tuple[Database, ResultTable]]:
    for path in paths:
        with open_database(path) as database:
            for run in (database, *database.merged):
                yield from ((run, table) for table in run.tables)


def _table_frames(
    database: Database, table: ResultTable, axes: dict[str, str]
) -> Iterator["pd.DataFrame"]:
    import pandas as pd

    axis_columns = [quote(axis) for axis in table.axes]
    order = ", ".join(("gpu", "ctk", table.version, "variant", *axis_columns))
    optional = [
        column if column in table.columns else f"NULL AS {column}"
        for column in (*NUMBERS, "samples")
    ]
    selected = ", ".join(
        ("gpu", "ctk", f"{table.version} AS cccl", "variant", *optional, *axis_columns)
    )
    cursor = database.connection.execute(
        f"SELECT {selected} FROM {table.quoted} ORDER BY {order}"  # noqa: S608
    )
    names = [*PLACE[3:], *NUMBERS, "samples", *(axes[axis] for axis in table.axes)]
    while batch := cursor.fetchmany(BATCH):
        frame = pd.DataFrame(batch, columns=names)
        run = table.name.removesuffix(f"{table.algorithm}.{table.subbench}")
        frame.insert(0, "database", f"{portable_name(str(database.path))} {run}".rstrip(" ."))
        frame.insert(1, "algorithm", table.algorithm)
        frame.insert(2, "subbench", table.subbench)
        for name in (*PLACE[3:], *(axes[axis] for axis in table.axes)):
            frame[name] = frame[name].map(str, na_action="ignore")  # some databases hold bytes
        for name in NUMBERS:
            frame[name] = pd.to_numeric(frame[name], errors="coerce").astype("float64")
        frame["samples"] = pd.array([_count(blob) for blob in frame["samples"]], dtype="Int64")
        yield frame.reindex(columns=[*COLUMNS, *axes.values()])


def _count(blob: object) -> int | None:
    """Returns the number of samples; None if the blob is invalid."""
    with suppress(ValueError):
        return count_samples(blob)
    return None


def _write_csv(path: Path, frames: Iterator["pd.DataFrame"], columns: Sequence[str]) -> int:
    import pandas as pd

    rows = 0
    with path.open("x", encoding="utf-8", newline="") as file:
        pd.DataFrame(columns=list(columns)).to_csv(file, index=False, lineterminator="\n")
        for frame in frames:
            frame.to_csv(file, index=False, header=False, lineterminator="\n")
            rows += len(frame)
    return rows


def _write_parquet(path: Path, frames: Iterator["pd.DataFrame"], columns: Sequence[str]) -> int:
    import pandas as pd

    parts = list(frames)
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(columns))
    texts = [name for name in columns if name not in {*NUMBERS, "samples"}]
    table[texts] = table[texts].astype("string")
    table.attrs["made_by"] = MAKER
    table.to_parquet(path, engine="pyarrow", index=False)
    return len(table)


# The data behind plots: ratios by runtime workload, scores over two parameters.


def point_ratios(
    case: Case, variants: Sequence[str], reader: SampleReader
) -> tuple[PointRatios, ...]:
    """Returns the ratios of base to some variants, for every runtime workload with samples."""
    unknown = [name for name in variants if name not in case.variants]
    if unknown:
        raise InputError(
            f"variant {unknown[0]!r} was not measured for {case.algorithm}",
            f"Some of the {len(case.variants)} measured variants: {', '.join(case.variants[1:6])}.",
        )
    index = {name: case.variants.index(name) for name in variants}
    return tuple(point for part in case.parts for point in _points(part, index, reader))


def _points(part: Part, index: Mapping[str, int], reader: SampleReader) -> Iterator[PointRatios]:
    base = reader.base(part, 0)
    samples = {name: reader.read(part, variant, 0) for name, variant in index.items()}
    for column, point in enumerate(part.points):
        reference = base[column]
        ratios = {
            name: quantile_ratios(reference, own, least=1)
            for name, by_point in samples.items()
            if reference is not None and (own := by_point[column]) is not None
        }
        if ratios:
            yield PointRatios(part.table.subbench, part.table.by_axis(point), ratios)


def score_cells(scores: Scores, x: str, y: str) -> Mapping[tuple[int, int], Sequence[float]]:
    """Returns the scores for each pair of values of two parameters."""
    cells: dict[tuple[int, int], list[float]] = {}
    names: set[str] = set()
    for index, score in zip(scores.index, scores.score, strict=True):
        label = scores.case.variants[index]
        values = None if label == BASE else parse_label(label)
        names |= set(values or ())
        if values and x in values and y in values:
            cells.setdefault((values[x], values[y]), []).append(float(score))
    if not cells:
        raise InputError(
            f"no variant has the parameters {x!r} and {y!r}",
            f"Available: {', '.join(sorted(names)) or 'none'}.",
        )
    return cells


LEAST = 5
"""Minimum number of samples for quantiles that are reported."""


def quantile_ratios(base: Samples, variant: Samples, least: int = LEAST) -> tuple[float, ...]:
    """Returns base divided by the variant; empty if either has too few samples."""
    if base.size < least or variant.size < least:
        return ()
    ratios = np.quantile(base, QUANTILES) / np.quantile(variant, QUANTILES)
    return tuple(map(float, ratios))
