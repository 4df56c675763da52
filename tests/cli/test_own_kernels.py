"""Policy headers of one's own kernels: a tree, a binding, results, and a change with its proof."""

import shutil

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from policygen.bindings import load
from policygen.rendering import folder
from tests.cli.tuned import run
from tests.results.tuner_files import document, text_of

FIXTURES = folder("schemas").parent / "fixtures"

# Its policy of sm90 is the newest.
ON_SM90 = ("--arch", "sm90", "--reaches", "sm100,sm103,sm107,sm110,sm120,sm121")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The documentation's example; bindings are read once a process, and the tests share one."""
    made = shutil.copytree(FIXTURES / "own_kernels", tmp_path / "own")
    monkeypatch.chdir(made)
    monkeypatch.setenv("POLICYGEN_CONFIG", "policygen.toml")
    for kept in (load.bindings, load.bound):
        kept.cache_clear()
    yield made
    for kept in (load.bindings, load.bound):
        kept.cache_clear()


def test_what_a_strangers_checkout_says_of_itself_is_not_believed(project, monkeypatch, capsys):
    """Its bindings are C++ that would be compiled, its rules decide, its folders pass for CUB's."""
    monkeypatch.delenv("POLICYGEN_CONFIG")
    monkeypatch.delenv("POLICYGEN_CUB_HEADERS", raising=False)
    strange = project / "cub_headers/3.0.1/cub"
    strange.mkdir(parents=True)
    (project / "cub_headers/manifest.toml").touch()
    for name, text in (("version.cuh", "#define CUB_VERSION 300001\n"), ("cub.cuh", "")):
        (strange / name).write_text(text)
    own = project / "policygen.toml"
    _, out, _ = run(capsys, "headers", "path", "3.0.1")
    assert str(project) not in out
    _, _, err = run(capsys, "scan", "--cub", "include", "-q")
    assert err.startswith(f"policygen: note: {own} is not read; --config {own} reads it\n")
    assert "mine.blend" not in {b.name for each in load.bindings() for b in each.benchmarks}


def test_settings_that_are_named_are_read(project, monkeypatch, capsys):
    monkeypatch.delenv("POLICYGEN_CONFIG")
    status, out, err = run(capsys, "headers", "path", "--config", "policygen.toml")
    assert (status, out, err) == (0, f"{project}/include\n", "")
    assert "mine.blend" in {b.name for each in load.bindings() for b in each.benchmarks}


@pytest.mark.nvcc
@pytest.mark.slow
def test_results_are_written_into_the_own_header(project, capsys):
    won = {("I8",): None, ("I16",): "ipt_12.tpb_192", ("F32",): "ipt_20.tpb_256"}
    data = project / "run.db"
    benchmark_database(data, "mine.blend", "3.0.1", GPUS["sm90"], won)
    status, out, err = run(capsys, "apply", "-q", "--db", data, *ON_SM90, "--diff")
    assert status == 0, err
    assert "-  static constexpr int items   = 8;\n" in out
    assert "+struct sm90_tuning<PixelT, 2>\n" in out
    assert run(capsys, "apply", "-q", "--db", data, *ON_SM90)[0] == 0
    status, out, _ = run(capsys, "resolve", "-q", "--arch", "sm90")
    assert status == 0
    assert [row.strip() for row in out.splitlines() if "threads=" in row] == [
        "threads=256  items=16",
        "threads=192  items=12",
        "threads=256  items=20",
    ]
    assert run(capsys, "verify-effect", "-q")[0] == 0
    status, out, err = run(capsys, "review", "-q")
    assert status == 0, err
    assert "mine.blend" in out


@pytest.mark.slow
@pytest.mark.nvcc
def test_what_another_tuner_measured_is_written_into_the_own_header(project, capsys):
    space = {"ipt": [8, 12, 16], "tpb": [128, 192, 256]}
    made = document(kernel="blend_kernel", space=space)
    for cells in made["cache"].values():
        factor = 0.7 if (cells["ipt"], cells["tpb"]) == (12, 192) else 1.0
        times = [factor * (1 + number / 1000) for number in range(16)]
        cells |= {"time": sum(times) / 16, "times": times}
    (project / "cache.json").write_text(text_of(made))
    said = (
        "--name",
        "mine.blend",
        "--type",
        "T=I16",
        "--cccl",
        "3.0.1",
        "--base",
        "ipt=16,tpb=256",
    )
    status, out, err = run(capsys, "db", "import", "cache.json", "-o", "run.db", *said)
    assert (status, out.splitlines()[0]) == (
        0,
        "mine.blend[T{ct}=I16]  H200 · sm90 · cccl 3.0.1",
    ), err
    status, out, err = run(capsys, "apply", "-q", "--db", "run.db", *ON_SM90)
    assert status == 0, err
    status, out, _ = run(capsys, "resolve", "-q", "--arch", "sm90", "-a", "T=I16")
    assert [row.strip() for row in out.splitlines() if "threads=" in row] == [
        "threads=192  items=12"
    ]
    assert run(capsys, "verify-effect", "-q")[0] == 0


def test_what_is_bound_already_is_told_with_both_places(project, capsys):
    own = project / "bindings/blend.toml"
    own.write_text(own.read_text().replace('"blend"', '"scan"', 1))
    status, _, err = run(capsys, "resolve", "-q")
    assert status == 2
    assert "bindings/blend.toml: scan is already bound" in err
    assert "schemas/bindings/scan.toml has it." in err


def test_a_folder_that_is_not_there_is_told(project, capsys):
    (project / "policygen.toml").write_text('cub = "include"\nbindings = "none"\n')
    status, _, err = run(capsys, "resolve", "-q")
    assert status == 2
    assert err.startswith(f"policygen: error: {project}/policygen.toml: bindings: there is no fol")
