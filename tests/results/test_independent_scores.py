"""Scores agree with a plain-Python implementation, on random databases and on measured ones."""

import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygen.model.results import DbTop
from policygen.results.ranking import rank
from tests.results.independent import Declared, Four, Key, cases, scores
from tests.tiers import sampled

MEASURED = Path(__file__).parents[2] / "fixtures/measured"
TOLERANCE = 1e-9

CT_AXES = ("T{ct}", "OffsetT{ct}", "Key 'T'{ct}")
RT_AXES = (
    "Elements{io}[pow2]",
    "Segments{io}",
    "Entropy",
    'My "odd" axis',
    "a=b",
    "Größe{io}",
)
# What axes hold in databases; never two spellings of one number.
NUMBERS = ("16", "20", "24", "28", "3", "1e3", "-2", "0.201")
WORDS = ("1.000", "'quoted'", '"both"', "x=y", "0.544", "lots", "", "I8")
TYPES = ("I8", "I16", "F32", "it's", "a=b")
VARIANTS = ("base", "ipt_19.tpb_512", "ipt_7.tpb_64", "ipt_-1.lbs_0", "not a label")
BAD = (None, math.inf, -math.inf, math.nan, 0.0, -1.5)

Row = tuple[str | float | None, ...]


@dataclass(frozen=True)
class Table:
    """One sub-benchmark and what a search measured of it."""

    algorithm: str
    bench: str
    axes: tuple[str, ...]
    rows: tuple[Row, ...]
    """ctk, cccl, gpu, variant, center, then the axes."""


@dataclass(frozen=True)
class Made:
    """A random database."""

    tables: tuple[Table, ...]
    declared: Declared
    version: str


centers = st.one_of(
    st.floats(1e-7, 10.0, allow_subnormal=False),
    st.sampled_from((1e-3, 2e-3, 1e-3, 1)),
)
keys = st.lists(
    st.tuples(
        st.sampled_from(("12.9", "13.0.88")),
        st.sampled_from(("v3.0.3", "v3.6.0.dev-204-g571f2fc3bc")),
        st.sampled_from(("H200 (6144, 132, eccon)", "B200 (8192, 148, eccon)")),
    ),
    min_size=1,
    max_size=3,
    unique=True,
)


@st.composite
def tables(draw: st.DrawFn, algorithm: str, bench: str, ct_axes: tuple[str, ...]) -> Table:
    """Rows of a full product of some values, some of them missing or bad, in any order."""
    rt_axes = tuple(draw(st.permutations(RT_AXES)))[: draw(st.sampled_from((2, 1, 3, 0, 2, 3)))]
    ct_values = [draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2)) for _ in ct_axes]
    rt_values = [
        draw(
            st.lists(
                st.sampled_from(draw(st.sampled_from((NUMBERS, WORDS)))),
                min_size=1,
                max_size=4,
                unique=True,
            )
        )
        for _ in rt_axes
    ]
    variants = draw(st.permutations(VARIANTS))[: draw(st.sampled_from((5, 3, 1)))]
    missing = draw(st.sampled_from((0, 0, 5, 30)))
    random = draw(st.randoms(use_true_random=False))
    center = [*draw(st.lists(centers, min_size=1, max_size=12)), *BAD[: draw(st.integers(0, 6))]]
    good = [value for value in center if value not in BAD]
    rows: list[Row] = []
    for key, variant, *point in product(
        draw(keys), variants, *map(dict.fromkeys, ct_values), *rt_values
    ):
        if random.randrange(100) >= missing:
            bad = random.randrange(10) == 0
            rows.append((*key, variant, random.choice(center if bad else good), *point))
    random.shuffle(rows)
    return Table(algorithm, bench, ct_axes + rt_axes, tuple(rows))


@st.composite
def databases(draw: st.DrawFn) -> Made:
    """One or two algorithms of one to three sub-benchmarks, with or without declared axes."""
    made: list[Table] = []
    for algorithm in draw(st.sampled_from((("cub.bench.a",), ("cub.bench.a", "cub.bench.b.c")))):
        ct_axes = tuple(draw(st.lists(st.sampled_from(CT_AXES), max_size=2, unique=True)))
        benches = draw(st.sampled_from((("base",), ("base", "large"), ("x", "y", 'z"z'))))
        made += [draw(tables(algorithm, bench, ct_axes)) for bench in benches]
    declared: dict[tuple[str, str, str], tuple[str, ...]] = {}
    if draw(st.sampled_from((True, True, False))):
        for table in made:
            for axis in table.axes:
                if "{io}" in axis and draw(st.integers(0, 3)):
                    values = draw(st.permutations((*NUMBERS, *WORDS)))
                    # Now and then a value was measured that is not declared any more.
                    cut = draw(st.sampled_from((0, 0, 0, 4)))
                    declared[table.algorithm, table.bench, axis] = tuple(values[cut:])
    return Made(tuple(made), declared, draw(st.sampled_from(("cccl", "cub"))))


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def write(made: Made, path: Path) -> None:
    """The database as CCCL lays it out."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE subbenches (algorithm TEXT NOT NULL, bench TEXT NOT NULL)")
        for table in made.tables:
            connection.execute(
                "INSERT INTO subbenches VALUES (?, ?)", (table.algorithm, table.bench)
            )
            name = quote(f"{table.algorithm}.{table.bench}")
            axes = "".join(f", {quote(axis)} TEXT" for axis in table.axes)
            connection.execute(
                f"CREATE TABLE {name} (ctk TEXT, {made.version} TEXT, gpu TEXT, variant TEXT,"
                f" center REAL{axes})"
            )
            marks = ", ".join("?" * (5 + len(table.axes)))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", table.rows)
        if made.declared:
            connection.execute(
                "CREATE TABLE axes (algorithm, bench, axis, idx INTEGER, value TEXT)"
            )
            rows = [(*k, i, v) for k, values in made.declared.items() for i, v in enumerate(values)]
            # The order of rows says nothing; `idx` does.
            connection.executemany("INSERT INTO axes VALUES (?, ?, ?, ?, ?)", reversed(rows))


def by_key(document: DbTop) -> dict[Key, dict[str, Four]]:
    return {
        (w.algorithm, tuple(w.workload.items()), w.gpu, w.ctk, w.cccl): {
            v.variant: (v.score, v.min, v.mean, v.max) for v in w.variants
        }
        for w in document.workloads
    }


def assert_same(found: dict[Key, dict[str, Four]], expected: dict[Key, dict[str, Four]]) -> None:
    assert found.keys() == expected.keys()
    for key, variants in expected.items():
        assert found[key].keys() == variants.keys(), key
        for variant, four in variants.items():
            assert found[key][variant] == pytest.approx(four, rel=TOLERANCE, abs=0), (key, variant)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(databases())
def test_scores_of_random_databases_agree(made: Made) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cccl_meta_bench.db"
        write(made, path)
        document = rank([path], samples=False)
        expected = cases(path, made.declared)
    assert_same(by_key(document), {key: case.scores for key, case in expected.items()})
    for workload in document.workloads:
        ct_point = tuple(workload.workload.items())
        key = (workload.algorithm, ct_point, workload.gpu, workload.ctk, workload.cccl)
        assert workload.database == str(path)
        assert workload.approximate == expected[key].approximate
        assert workload.runtime_workloads == expected[key].runtime_workloads
        order = [variant.score for variant in workload.variants]
        assert order == sorted(order, reverse=True)


@pytest.mark.parametrize("share", sampled(range(4), 0))
@settings(max_examples=13, deadline=None)
@given(made=databases())
def test_declared_axes_given_by_the_caller_count_as_those_of_the_database(
    share: int, made: Made
) -> None:
    bare = Made(made.tables, {}, made.version)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cccl_meta_bench.db"
        write(bare, path)
        given_ones = {key: tuple(values) for key, values in made.declared.items()}
        document = rank([path], samples=False, declared=given_ones)
        assert_same(by_key(document), scores(path, made.declared))


@pytest.mark.parametrize("share", sampled(range(4), 0))
@settings(max_examples=13, deadline=None)
@given(one=databases(), other=databases())
def test_databases_of_different_gpus_do_not_touch_each_other(
    share: int, one: Made, other: Made
) -> None:
    far = tuple(
        Table(
            t.algorithm,
            t.bench,
            t.axes,
            tuple((*row[:2], f"other {row[2]}", *row[3:]) for row in t.rows),
        )
        for t in other.tables
    )
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / "one.db", Path(folder) / "other.db"]
        write(one, paths[0])
        write(Made(far, other.declared, other.version), paths[1])
        document = rank(paths, samples=False)
        expected = scores(paths[0], one.declared) | scores(paths[1], other.declared)
        assert_same(by_key(document), expected)
        for workload in document.workloads:
            assert workload.database == str(paths[workload.gpu.startswith("other")])


# "cub.bench.reduce.sum[T{ct}=I32, OffsetT{ct}=I32]:"
HEADING = re.compile(r"(\S+)\[(.*)\]:")
# "2   ipt_16.tpb_256.ipv_2 ()  1.011547  0.999489  1.013868  1.033654"
RANKED = re.compile(r"\d+\s+(\S+) \(\)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)")

Printed = tuple[str, str, str, tuple[str, ...]]


def printed(path: Path) -> Iterator[Printed]:
    """Algorithm, workload, variant and numbers of each row that CCCL's analyze.py printed."""
    algorithm = workload = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if heading := HEADING.fullmatch(line):
            algorithm, workload = heading.groups()
        elif row := RANKED.fullmatch(line):
            yield algorithm, workload, row[1], row.groups()[1:]


def rounded(found: dict[Key, dict[str, Four]]) -> set[Printed]:
    return {
        (
            key[0],
            ", ".join(f"{axis}={value}" for axis, value in key[1]),
            variant,
            tuple(f"{number:.6f}" for number in four),
        )
        for key, variants in found.items()
        for variant, four in variants.items()
    }


def transcripts() -> list[Path]:
    return sorted(MEASURED.glob("*/analyze*.txt"))


def test_every_measured_database_has_a_transcript_with_rows() -> None:
    folders = {path.parent for path in MEASURED.glob("*/*.db")}
    assert folders
    assert folders == {path.parent for path in transcripts() if list(printed(path))}


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_scores_are_those_that_cccl_printed(path: Path) -> None:
    database = path.parent / "cccl_meta_bench.db"
    rows = set(printed(path))
    assert rows <= rounded(scores(database))
    assert rows <= rounded(by_key(rank([database], samples=False)))


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_all_variants_of_measured_databases_agree(path: Path) -> None:
    database = path.parent / "cccl_meta_bench.db"
    assert_same(by_key(rank([database], samples=False)), scores(database))
