"""The commands on a whole release of rocPRIM."""

import json
from itertools import product

import pytest
from jsonschema import Draft202012Validator

from policygen.cli.main import main
from policygen.json_schemas import schema_files
from tests.real_trees import rocprim_tree
from tests.tiers import sampled

pytestmark = pytest.mark.trees
DOCUMENTS = ("scan", "resolve", "audit coverage")


@pytest.fixture
def tree():
    return str(rocprim_tree("5.7.1"))


def run(capsys, *arguments):
    status = main([*arguments])
    told = capsys.readouterr()
    return status, told.out, told.err


@pytest.mark.parametrize(("command", "width"), sampled(product(DOCUMENTS, (80, 160)), ("scan", 80)))
def test_outputs_fit_and_call_the_library_by_its_name(capsys, monkeypatch, tree, command, width):
    monkeypatch.setenv("COLUMNS", str(width))
    status, out, err = run(capsys, *command.split(), "--cub", tree, "-R", ".*")
    assert status in {0, 1}, err
    lines = out.splitlines()
    assert max(len(line) for line in lines if tree not in line) <= width
    assert "rocPRIM 2.13.1" in out
    assert "CUB" not in out
    assert "gfx90a" in out
    assert "specializations" not in out


def test_a_scan_counts_configs(capsys, tree):
    status, out, _ = run(capsys, "scan", "--cub", tree)
    assert (status, out.splitlines()[-1]) == (
        0,
        "1,475 configs in 37 families of 14 headers; 0 disabled",
    )
    _, out, _ = run(capsys, "scan", "--cub", tree, "device_reduce", "--arch", "gfx90a,unknown")
    assert "default_reduce_config for gfx90a" in out
    assert "default_reduce_config for unknown" in out
    assert "gfx908" not in out
    assert out.splitlines()[-1] == "15 configs in 1 family of 1 header; 0 disabled"


def test_a_tree_is_looked_for_by_its_library(capsys, tree, monkeypatch, tmp_path):
    headers = tmp_path / "headers"
    (headers / "rocprim-5.7.1").mkdir(parents=True)
    (headers / "rocprim-5.7.1/include").symlink_to(tree)
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(headers))
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, "scan", "--library", "rocprim", "device_reduce")
    assert status == 0, err
    assert out.startswith("rocPRIM 2.13.1 (configs), ")


@pytest.mark.parametrize(
    ("arch", "told"),
    [
        ("gfx1", "'gfx1' is not a GPU architecture"),
        ("sm90", "nothing matches --arch sm90"),
        ("gfx950", "nothing matches --arch gfx950"),
        ("unknowns", "'unknowns' is not a GPU architecture"),
    ],
)
def test_a_wrong_architecture_is_told(capsys, tree, arch, told):
    status, out, err = run(capsys, "scan", "--cub", tree, "--arch", arch)
    assert (status, out) == (2, "")
    assert told in err


@pytest.mark.slow
@pytest.mark.parametrize("command", DOCUMENTS)
def test_documents_are_as_their_schemas_say(capsys, tree, command):
    _, out, _ = run(capsys, *command.split(), "--cub", tree, "--json", "-R", ".*reduce")
    document = json.loads(out)
    name = document["format"].removeprefix("policygen/").replace("/", "-")
    schema = json.loads(schema_files()[f"{name}.schema.json"])
    Draft202012Validator(schema).validate(document)
    cub = document["cub"] if "cub" in document else document["tree"]
    assert (cub["version"], cub["dialect"]) == ("2.13.1", "configs")
