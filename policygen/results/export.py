"""All rows of databases as one flat table: CSV or Parquet."""

import secrets
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.outputs import MAKER
from policygen.portable import portable_name
from policygen.results.database import Database, open_database
from policygen.results.fpzip_header import count_samples
from policygen.results.table import ResultTable, quote
from policygen.results.writing import remove, told

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["csv", "parquet"]
BATCH = 50_000
PLACE = ("database", "algorithm", "subbench", "gpu", "ctk", "cccl", "variant")
NUMBERS = ("elapsed", "center", "bw")
COLUMNS = (*PLACE, *NUMBERS, "samples")


def export(paths: Sequence[Path], out: Path, *, kind: Kind) -> int:
    """Writes all rows, sorted by file, table and key; returns how many there are."""
    if kind == "parquet" and find_spec("pyarrow") is None:
        raise MissingToolError("pyarrow", f"Install it: {add('parquet')}")
    out = out.resolve()
    if out.is_dir():
        raise InputError(f"{out}: a folder stands there")
    if any(path.resolve() == out for path in paths):
        raise InputError(f"{out}: is one of the databases to be exported", "Name another file.")
    axes = _all_axes(paths)
    temporary = out.with_name(f".{out.name}.{secrets.token_hex(8)}")
    write = _write_csv if kind == "csv" else _write_parquet
    with told(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with told(out):
            rows = write(temporary, _frames(paths, axes), [*COLUMNS, *axes.values()])
            temporary.replace(out)
    finally:
        remove(temporary)
    return rows


def _all_axes(paths: Sequence[Path]) -> dict[str, str]:
    """The axes of all tables, as they come, and the names of their columns."""
    axes: dict[str, str] = {}
    for path in paths:
        with open_database(path) as database:
            for table in database.tables:
                axes |= {axis: _column(axis) for axis in table.axes}
    return axes


def _column(axis: str) -> str:
    """An axis may be called as one of our own columns."""
    return f"{axis} (axis)" if axis in COLUMNS else axis


def _frames(paths: Sequence[Path], axes: dict[str, str]) -> Iterator["pd.DataFrame"]:
    for path in paths:
        with open_database(path) as database:
            for table in database.tables:
                yield from _table_frames(database, table, axes)


def _table_frames(
    database: Database, table: ResultTable, axes: dict[str, str]
) -> Iterator["pd.DataFrame"]:
    import pandas as pd

    own = [quote(axis) for axis in table.axes]
    order = ", ".join(("gpu", "ctk", table.version, "variant", *own))
    optional = [c if c in table.columns else f"NULL AS {c}" for c in (*NUMBERS, "samples")]
    wanted = ", ".join(("gpu", "ctk", f"{table.version} AS cccl", "variant", *optional, *own))
    cursor = database.connection.execute(
        f"SELECT {wanted} FROM {table.quoted} ORDER BY {order}"  # noqa: S608
    )
    names = [*PLACE[3:], *NUMBERS, "samples", *(axes[axis] for axis in table.axes)]
    while batch := cursor.fetchmany(BATCH):
        frame = pd.DataFrame(batch, columns=names)
        frame.insert(0, "database", portable_name(str(database.path)))
        frame.insert(1, "algorithm", table.algorithm)
        frame.insert(2, "subbench", table.subbench)
        for name in (*PLACE[3:], *(axes[axis] for axis in table.axes)):
            frame[name] = frame[name].map(_text)
        for name in NUMBERS:
            frame[name] = pd.to_numeric(frame[name], errors="coerce").astype("float64")
        frame["samples"] = pd.array([_count(blob) for blob in frame["samples"]], dtype="Int64")
        yield frame.reindex(columns=[*COLUMNS, *axes.values()])


def _text(cell: object) -> object:
    """What should be text, and may be bytes."""
    return cell if cell is None or isinstance(cell, str) else str(cell)


def _count(blob: object) -> int | None:
    """How many samples there are; none where the blob is none."""
    try:
        return count_samples(blob)
    except ValueError:
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
    whole = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(columns))
    texts = [name for name in columns if name not in {*NUMBERS, "samples"}]
    whole[texts] = whole[texts].astype("string")
    whole.attrs["made_by"] = MAKER
    whole.to_parquet(path, engine="pyarrow", index=False)
    return len(whole)
