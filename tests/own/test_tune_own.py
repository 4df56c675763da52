"""`policygen tune FILE` with a simulated GPU: a header for one's own types, and a program."""

import subprocess

import pytest

from policygen.app.own_workloads import read_workload
from policygen.bindings.own_workloads import own_binding
from policygen.cli.main import main
from policygen.model.emitted import TunedProgram
from policygen.model.trees import BoundVersion
from policygen.proof.toolchain import find_toolchain
from tests.app.searched import pretend, ratios
from tests.gpu.simulated import Plan
from tests.own.written import write_particles
from tests.real_trees import tree

NAME = "own.particles"


@pytest.fixture
def tune(tmp_path, monkeypatch):
    """Runs the command on a workload's file."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, changed=(), worth=None):
        path = write_particles(tmp_path, *changed)
        pretend(tmp_path, monkeypatch, Plan(str(tmp_path), ratios=worth or ratios()))
        where = ("--cub", str(tree("3.6.0")), "--jobs", "1", "--budget", "30s")
        return main(["tune", str(path), *where, "-o", "my_tunings.cuh", *arguments])

    return run


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_a_header_and_a_program_are_for_ones_own_types(tune, capsys, tmp_path):
    assert tune("--json", "-q") == 0
    document = TunedProgram.model_validate_json(capsys.readouterr().out.splitlines()[-1])
    (workload,) = document.searched.workloads
    assert workload.benchmark == NAME
    assert workload.workload == {"T": "sim::Particle", "OffsetT": "I64", "Op": "sim::heavier"}
    (action,) = document.emitted.actions
    # On a slow machine the best of the search and what its last runs choose can be two variants.
    faster = {row.variant for row in workload.finalists if row.verdict == "faster"}
    assert workload.best in faster
    assert action.decision == "write"
    assert action.variant in faster
    assert document.emitted.proof.changed
    text = (tmp_path / "my_tunings.cuh").read_text()
    assert '#include "particle.cuh"' in text
    assert "is_same_v<AccumT, ::sim::Particle>" in text
    assert "is_same_v<ReductionOpT, ::sim::heavier>" in text
    program = tmp_path / "my_tunings_example.cu"
    assert document.example == program.name
    _emitted_again(capsys, tmp_path)
    nvcc = find_toolchain().nvcc
    command = [nvcc, "-std=c++20", "-arch=sm_90", f"-I{tree('3.6.0')}", "-c", "-o", "/dev/null"]
    made = subprocess.run([*command, program], capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")


def _emitted_again(capsys, folder):
    """The database does not say what the workload's types are: the file does."""
    given = ("emit", "-q", "--db", str(folder / "my_tunings.db"), "--arch", "sm90")
    given = (*given, "--cub", str(tree("3.6.0")), "--no-prove", "-o", "again.cuh")
    assert main([*given]) == 2
    assert "name its file with --workload FILE" in capsys.readouterr().err
    assert main([*given, "--workload", "particles.toml"]) == 0
    text = (folder / "my_tunings.cuh").read_text()
    assert (folder / "again.cuh").read_text() == text.replace("my_tunings", "again").replace(
        "again.db", "my_tunings.db"
    )


def test_what_is_there_already_is_refused_before_anything_is_measured(tune, capsys, tmp_path):
    (tmp_path / "my_tunings_example.cu").write_text("int main() {}\n")
    assert tune("-q") == 2
    assert "my_tunings_example.cu: exists already" in capsys.readouterr().err
    assert not (tmp_path / "my_tunings.db").exists()


def test_what_contradicts_a_workload_is_refused(tune, capsys):
    assert tune("-q", "-R", "cub.bench.reduce.sum$") == 2
    assert "-R chooses among CUB's benchmarks" in capsys.readouterr().err
    assert tune("-q", "--cub", str(tree("3.0.1"))) == 2
    assert "does not accept policy selectors" in capsys.readouterr().err


def test_a_header_that_is_missing_is_told(tune, capsys):
    assert tune("-q", changed=[('"particle.cuh"', '"other.cuh"')]) == 2
    assert "there is no header other.cuh next to it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["link.cuh", "folder/secret"])
def test_a_header_that_is_a_link_is_refused(tune, capsys, tmp_path, name):
    """The compiler would quote what it leads to."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret").write_text("token")
    (tmp_path / "link.cuh").symlink_to("elsewhere/secret")
    (tmp_path / "folder").symlink_to("elsewhere")
    assert tune("-q", changed=[('"particle.cuh"', f'"{name}"')]) == 2
    told = capsys.readouterr().err
    assert f"particles.toml: {name} is a symbolic link" in told
    assert "token" not in told


def test_what_is_tuned_has_to_be_said(capsys, tmp_path):
    assert main(["tune", "-o", str(tmp_path / "x.cuh")]) == 2
    assert "policygen tune --template reduce" in capsys.readouterr().err
    assert main(["tune", "mine.toml"]) == 2
    told = capsys.readouterr().err
    assert "Name what to write: a header with -o, or a folder with --overlay." in told


@pytest.mark.parametrize("name", ["reduce", "DeviceScan::ExclusiveScan", "radix_sort", "select"])
def test_a_template_is_a_start(capsys, tmp_path, name):
    """It is read as it is, where it names no functor that somebody has to write."""
    assert main(["tune", "--template", name]) == 0
    text = capsys.readouterr().out
    path = tmp_path / "mine.toml"
    path.write_text(text)
    maker = read_workload(path)
    assert own_binding(BoundVersion("3.6.0", maker)).benchmark.name == maker.name == "own.mine"
    assert main(["tune", "--template", "nothing"]) == 2
    assert "Available: " in capsys.readouterr().err
