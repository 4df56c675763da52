"""One TOML file is all that a new algorithm of CUB's needs, whatever it calls its values."""

import json
import shutil

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from policygen import rendering
from policygen.bindings import load
from tests.cli.tuned import run
from tests.probing import TUNINGS, changed_tree

FIXTURES = rendering.folder("schemas").parent / "fixtures/new_algorithm"
BLEND = "cub.bench.blend.over"
HEADER = "tuning_blend.cuh"


@pytest.fixture
def bindings(tmp_path, monkeypatch):
    """A copy of CUB's, to which files can be added."""
    folder = rendering.folder("schemas") / "bindings"
    made = shutil.copytree(folder, tmp_path / "schemas/bindings")
    monkeypatch.setattr(load, "folder", lambda name: tmp_path / name)
    for kept in (load.bindings, load.bound):
        kept.cache_clear()
    yield made
    for kept in (load.bindings, load.bound):
        kept.cache_clear()


def cub(folder, version):
    """A CUB that has the algorithm."""
    made = changed_tree(folder, version, {})
    shutil.copyfile(FIXTURES / f"tuning_blend_{version}.cuh", made / TUNINGS / HEADER)
    return made


@pytest.fixture
def source(tmp_path):
    """Its benchmark, in a checkout."""
    checkout = tmp_path / "checkout/cub"
    (checkout / "cub").mkdir(parents=True)
    (checkout / "cub/version.cuh").write_text("#define CUB_VERSION 300001\n")
    made = checkout / "benchmarks/bench/blend/over.cu"
    made.parent.mkdir(parents=True)
    return shutil.copyfile(FIXTURES / "over.cu", made)


def values(capsys, at):
    """The threads, pixels and layers that CUB selects for the benchmark's workloads."""
    status, out, err = run(capsys, "resolve", *at, "-R", BLEND, "--json")
    assert (status, err) == (0, "")
    return [list(row["values"].values()) for row in json.loads(out)["rows"]]


def test_without_the_file_it_is_not_bound(bindings, source, capsys):
    status, out, err = run(capsys, "bench", "--check", "-q", source)
    assert (status, err) == (1, "")
    assert "1 benchmark compared: 0 match their binding, 0 differ, 1 have none" in out


@pytest.mark.nvcc
@pytest.mark.trees
def test_a_header_without_the_file_is_refused_by_its_name(bindings, tmp_path, capsys):
    tree = cub(tmp_path, "3.6.0")
    status, out, err = run(capsys, "audit", "reach", HEADER, "--cub", tree)
    assert status == 0, err
    assert f"no binding covers {HEADER}: what they select is not known" in out
    status, out, err = run(capsys, "resolve", HEADER, "--cub", tree, "-q")
    assert (status, out) == (2, "")
    assert f"no binding covers {HEADER}\n  It takes a TOML file: docs/reference/bindings.md" in err


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.trees
@pytest.mark.parametrize(
    ("version", "mark", "written"),
    [
        pytest.param(
            "3.0.1",
            "pixels_4b",
            ("struct sm90_tuning<PixelT, 2>", "pixels_4b         = 6;"),
            marks=pytest.mark.slow,
        ),
        ("3.6.0", "pixels_per_thread", ("if (pixel_size == 2)", "blend_policy{192, 12, 4}")),
    ],
)
def test_with_the_file_all_commands_know_it(
    bindings, source, tmp_path, monkeypatch, capsys, version, mark, written
):
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(FIXTURES / "blend.toml", bindings / "blend.toml")
    tree = cub(tmp_path, version)
    at = ("-q", "--cub", tree, "--arch", "sm90")
    status, out, err = run(capsys, "bench", "--check", "-q", source)
    assert (status, err) == (0, ""), out
    status, out, err = run(capsys, "scan", "-q", "--cub", tree, "blend")
    assert (status, err) == (0, "")
    assert mark in out
    small = [[256, 32, 1], [128, [8, 4][version > "3.5"], 1], [128, 8, 2]]
    assert values(capsys, at) == small
    won = {("I8",): None, ("I16",): "ppt_12.bs_192.lay_2", ("F32",): "ppt_20.bs_1024.lay_3"}
    data = tmp_path / "run.db"
    benchmark_database(data, BLEND, version, GPUS["sm90"], won)
    assert run(capsys, "plan", *at, "--db", data)[0] == 0
    # No policy of the families follows that of sm90.
    later = ("--reaches", "sm100,sm103,sm107,sm110,sm120,sm121") if version == "3.0.1" else ()
    status, _, err = run(capsys, "apply", *at, "--db", data, *later)
    assert status == 0, err
    # What of 1,024 threads fits into shared memory, where CUB scales.
    assert values(capsys, at) == [[256, 32, 1], [192, 12, 4], [[640, 1024][version > "3.5"], 20, 8]]
    header = (tree / TUNINGS / HEADER).read_text()
    assert all(text in header for text in written), header
    assert run(capsys, "verify-effect", "-q", "--cub", tree)[0] == 0
    status, out, err = run(capsys, "audit", "lint", "-q", "--cub", tree, "blend")
    assert (status, err) == (0, ""), out
