import math
import sqlite3
from collections import Counter
from contextlib import closing

import numpy as np
import pytest

from fixtures.databases.generate import (
    SOME_MESS,
    Mess,
    demo_database,
    generate,
    labels,
    main,
    search_space,
)
from policygen.demo import database as demo
from policygen.results.database import open_database
from policygen.results.samples import decode

TABLE = '"cub.bench.radix_sort.keys.base"'


def query(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_the_same_seed_gives_the_same_rows(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate(tmp_path / name, seed=seed)
    a, b, c = (query(tmp_path / name, f"SELECT * FROM {TABLE}") for name in "abc")
    assert a == b
    assert a != c
    assert len(a) == 4 * 6 * 11


def test_the_center_is_the_median_of_the_stored_samples(tmp_path):
    generate(tmp_path / "a.db", samples=8)
    for center, blob in query(tmp_path / "a.db", f"SELECT center, samples FROM {TABLE}"):
        assert center == np.median(decode(blob).astype(np.float32))


@pytest.mark.parametrize("layout", ["cccl", "cub"])
@pytest.mark.parametrize("declared", [True, False])
def test_every_layout_is_found_by_looking(tmp_path, layout, declared):
    path = tmp_path / "a.db"
    generate(path, layout=layout, declared=declared, subbenches=2, gpus=2, workloads=3)
    with open_database(path) as database:
        assert database.layout == layout
        assert [table.subbench for table in database.tables] == ["base", "segments1"]
        assert bool(database.declared) == declared
        assert database.logs == ("builds", "runs")
    gpus = query(path, f"SELECT DISTINCT gpu FROM {TABLE}")
    assert gpus == [("Pretend GPU 1 (5120, 80, eccon)",), ("Pretend GPU 2 (5120, 81, eccon)",)]


def test_bandwidth_and_logs_can_be_missing(tmp_path):
    path = tmp_path / "a.db"
    generate(path, bandwidth=False, logs=False)
    with open_database(path) as database:
        assert database.logs == ()
        assert "bw" not in database.tables[0].columns


def test_what_goes_wrong_in_the_wild_is_there_when_asked_for(tmp_path):
    path = tmp_path / "a.db"
    generate(path, variants=10, mess=SOME_MESS)
    codes = Counter(code for (code,) in query(path, "SELECT code FROM builds"))
    assert codes == {"0": 9, "2": 2}
    assert query(path, "SELECT count(*) FROM runs WHERE code = '255'") == [(1,)]
    counts = dict(query(path, f"SELECT variant, count(*) FROM {TABLE} GROUP BY 1"))
    assert len(counts) == 8
    assert sorted(counts.values())[:3] == [11, 11, 11]
    assert counts["base"] == 4 * 6 - 1
    centers = [center for (center,) in query(path, f"SELECT center FROM {TABLE}")]
    bad = [c for c in centers if c is None or not 0 < c < math.inf]
    assert Counter(bad) == {None: 1, math.inf: 1, 0.0: 1, -1.0: 1}


def test_the_search_space_has_as_many_variants_as_are_asked_for():
    assert len(set(labels(522))) == 522
    assert len(set(labels(523))) == 523
    assert "rb_" in labels(523)[0]
    with pytest.raises(ValueError, match="2610 variants"):
        labels(2611)
    assert search_space(522).splitlines()[1:] == [
        "cccl_revision,v3.0.3",
        "cub.bench.radix_sort.keys,TUNE_ITEMS_PER_THREAD|ipt=7:24:1,"
        "TUNE_THREADS_PER_BLOCK|tpb=128:1024:32",
    ]
    assert search_space(523).endswith("TUNE_RADIX_BITS|rb=4:8:1\n")


def test_the_command_line_writes_both_kinds(tmp_path):
    main([str(tmp_path / "a.db"), "--workloads=2", "--runtime=2", "--variants=9", "--mess"])
    assert query(tmp_path / "a.db", "SELECT count(*) FROM builds") == [(10,)]
    main([str(tmp_path / "b.db"), "--demo"])
    assert query(tmp_path / "b.db", f"SELECT DISTINCT gpu FROM {TABLE}") == [(demo.GPU,)]


def ratios(path, key_type):
    """The ratio to base of every variant on every runtime workload."""
    rows = query(
        path,
        f'SELECT variant, "Elements{{io}}[pow2]", "Entropy", center FROM {TABLE}'
        f" WHERE \"T{{ct}}\" = '{key_type}'",
    )
    base = {
        point: center
        for variant, *point, center in rows
        if variant == "base"
        for point in [tuple(point)]
    }
    found = {}
    for variant, *point, center in rows:
        found.setdefault(variant, {})[tuple(point)] = base[tuple(point)] / center
    return found


def score(found):
    """As the design states it, in plain words."""
    begin, end = -math.log(1 - 0.6), -math.log(1 - 0.999)
    weights = {
        size: 1 - math.exp(-(begin + place * (end - begin) / len(demo.SIZES)))
        for place, size in enumerate(demo.SIZES)
    }
    total = sum(weights[size] for size, _ in found)
    return sum(weights[point[0]] * ratio for point, ratio in found.items()) / total


def test_the_demo_tells_its_story(tmp_path):
    path = tmp_path / "demo.db"
    demo_database(path)
    best = {}
    for key_type in demo.SPEEDS:
        found = ratios(path, key_type)
        assert len(found) == len(demo.VARIANTS)  # with base, without the one that does not build
        del found["base"]
        best[key_type] = sorted(((score(f), v, min(f.values())) for v, f in found.items()))[::-1]
    clear, close, mixed, none = best.values()
    assert clear[0][1] == "ipt_19.tpb_384"
    assert clear[0][0] > 1.08
    assert clear[0][2] > 1.08
    assert close[0][1] == "ipt_19.tpb_384"
    assert 1.0 < close[0][0] < 1.012
    assert mixed[0][1] == "ipt_23.tpb_384"
    assert mixed[0][0] > 1.07
    assert mixed[0][2] < 0.6
    assert mixed[1][1] == "ipt_19.tpb_256"
    assert mixed[1][0] > 1.03
    assert mixed[1][2] > 1.02
    assert none[0][0] < 1.0


def test_the_demo_has_one_failed_build(tmp_path):
    demo_database(tmp_path / "demo.db")
    failed = query(tmp_path / "demo.db", "SELECT bench FROM builds WHERE code != '0'")
    assert failed == [("cub.bench.radix_sort.keys.ipt_23.tpb_512",)]


def test_no_mess_is_the_default():
    assert Mess() == Mess(0, 0, 0, 0, 0)
