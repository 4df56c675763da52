"""`policygen tune FILE` with a simulated GPU: a header for one's own types, and a program."""

import subprocess

import pytest

from policygen.cli.main import main
from policygen.model.tune import TunedProgram
from policygen.proof.toolchain import find_toolchain
from tests.app.searched import pretend, ratios
from tests.measure.simulated import Plan
from tests.own.written import write_particles
from tests.trees import tree

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


@pytest.mark.trees
@pytest.mark.nvcc
def test_a_header_and_a_program_are_for_ones_own_types(tune, capsys, tmp_path):
    assert tune("--json", "-q") == 0
    document = TunedProgram.model_validate_json(capsys.readouterr().out.splitlines()[-1])
    (workload,) = document.searched.workloads
    assert workload.benchmark == NAME
    assert workload.workload == {"T": "sim::Particle", "OffsetT": "I64", "Op": "sim::heavier"}
    (action,) = document.emitted.actions
    assert (action.decision, action.variant) == ("write", workload.best)
    assert document.emitted.proof.changed
    text = (tmp_path / "my_tunings.cuh").read_text()
    assert '#include "particle.cuh"' in text
    assert "is_same_v<AccumT, ::sim::Particle>" in text
    assert "is_same_v<OpT, ::sim::heavier>" in text
    program = tmp_path / "my_tunings_example.cu"
    nvcc = find_toolchain().nvcc
    command = [nvcc, "-std=c++20", "-arch=sm_90", f"-I{tree('3.6.0')}", "-c", "-o", "/dev/null"]
    made = subprocess.run([*command, program], capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
