"""The notebook of the library, cell by cell as Jupyter runs it: it prints what it shows.

UPDATE_GOLDENS=1 keeps what it prints now.
"""

import ast
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.real_trees import tree

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs/examples/library.ipynb"


def source(cell):
    return "".join(cell["source"])


def lines(text):
    return text.splitlines(keepends=True)


def executed(cell, known, capsys):
    """What a cell prints, and the value of its last line where that is one."""
    body = ast.parse(source(cell)).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), known)
    value = (
        None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), known)
    )
    outputs = []
    if printed := capsys.readouterr().out:
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed)})
    if value is not None:
        outputs.append(
            {
                "data": {"text/plain": lines(repr(value))},
                "execution_count": None,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


@pytest.fixture
def folder(tmp_path, tmp_path_factory, monkeypatch):
    """The folder of the notebook in a clone, after `policygen headers fetch 3.6.0`."""
    headers, examples = tmp_path / "cub_headers", tmp_path / "docs/examples"
    headers.mkdir()
    examples.mkdir(parents=True)
    shutil.copy(ROOT / "cub_headers/manifest.toml", headers)
    (headers / "3.6.0").symlink_to(tree("3.6.0"))
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(headers))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("out")))
    monkeypatch.chdir(examples)
    return tmp_path


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_the_notebook_prints_what_it_shows(folder, capsys):
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    shown = json.dumps(notebook)
    known = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = executed(cell, known, capsys)
    assert {path.name for path in folder.iterdir()} == {"cub_headers", "docs", "fixtures"}
    assert list((folder / "docs/examples").iterdir()) == []  # what it writes is elsewhere
    if os.environ.get("UPDATE_GOLDENS"):
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return
    for now, before in zip(notebook["cells"], json.loads(shown)["cells"], strict=True):
        assert now == before, source(now)


def test_the_notebook_is_one_that_jupyter_reads_and_names_no_machine():
    text = NOTEBOOK.read_text("utf-8")
    notebook = json.loads(text)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(names) == len(set(names)) > 10
    for cell in notebook["cells"]:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        assert cell.get("execution_count") is None
    assert [place for place in ("/tmp/", "/home/", "/root/", "/work/") if place in text] == []
