"""What rocPRIM's newer benchmarks measured is planned in a tree, whose configs are base."""

import random
from pathlib import Path

import pytest

from policygen.cli.main import main
from tests.real_trees import rocprim_tree
from tests.results.primbench_files import document, meta_of, run_of, text_of
from tests.rocprim.tuned import as_json, config_of, on, row_for

pytestmark = pytest.mark.trees

CASES = {
    ("merge", ("key_type", "i32"), ("value_type", "i16")): ("int", "short"),
    ("merge", ("key_type", "half"), ("value_type", "empty")): (
        "rocprim::half",
        "rocprim::empty_type",
    ),
    ("scan", ("value_type", "f64"), ("exclusive", False)): ("double", "false"),
}
"""What benchmarks are of, and what the bindings call it."""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(document_of_tree, algorithm, types, bound):
    """A file of what the tree has for a workload, and of something that takes a fifth less."""
    workload = dict(zip(types, bound, strict=True))
    has = config_of(row_for(document_of_tree, algorithm, **workload))
    rng = random.Random(f"{types}")
    runs = [
        run_of(meta_of(algorithm, types, config), time, rng, batches=True)
        for config, time in ((has, 2.0), ({**has, "ipt": has["ipt"] + 1}, 1.6))
    ]
    path = Path(f"{algorithm}_{bound[0].rpartition(':')[2]}.json")
    path.write_text(text_of(document(runs, f"device_{algorithm}")))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("release", ["6.4.3", "7.2.4"])
def test_results_change_the_configs_of_their_types(capsys, release):
    tree = str(rocprim_tree(release))
    found = on(capsys, tree, "gfx942", "-R", "rocprim.device_(merge|scan)$")
    files = [write(found, name, dict(types), bound) for (name, *types), bound in CASES.items()]
    assert main(["db", "import", *files, "-o", "run.db", "--cub", tree]) == 0
    assert capsys.readouterr().out.count("base is what the tree has") == 2
    given = ("--db", "run.db", "--cub", tree, "--arch", "gfx942")
    status, plan = as_json(capsys, "plan", *given)
    assert status == 0
    assert {
        (one["benchmark"], *one["workload"].values()): one["decision"] for one in plan["actions"]
    } == {(f"rocprim.device_{name}", *bound): "update" for (name, *_), bound in CASES.items()}
