"""`policygen emit --workload kernel.toml`: a kernel's header from a database, without a GPU."""

import pytest

from policygen.cli.main import main
from policygen.rendering import folder
from tests.real_trees import tree

ROOT = folder("schemas").parent
MEASURED = ROOT / "fixtures/measured/D_saxpy.db"
GIVEN = ("--workload", str(ROOT / "docs/examples/saxpy/saxpy.toml"), "--db", str(MEASURED))

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]


@pytest.fixture
def emit(tmp_path, capsys):
    def run(*arguments):
        status = main(["emit", "--cub", str(tree("3.6.0")), *GIVEN, *map(str, arguments)])
        return status, *capsys.readouterr()

    return run


@pytest.mark.slow
def test_what_was_measured_goes_into_the_header(emit, tmp_path):
    header = tmp_path / "saxpy_tuning.cuh"
    arguments = ("--arch", "sm90", "--accept-unconfirmed", "-o", header)
    status, out, _ = emit(*arguments)
    assert status == 0
    assert "threads 256 → 128  items 1 → 8" in out
    assert "proved: 1 workload changed as written, 3 as before" in out
    assert "static constexpr int items           = 8;\n" in header.read_text()
    status, out, _ = emit(*arguments, "--json")
    assert (status, '"is_new": false' in out) == (1, True)


@pytest.mark.parametrize("arguments", [("--arch", "sm90"), ("-o", "x.cuh")])
def test_a_header_is_of_one_architecture_and_a_file(emit, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    status, _, err = emit(*arguments)
    assert status == 2
    assert "Give both: --arch sm90 -o FILE" in err
