"""What is counted of the house, on a small package."""

import re

import pytest

from benchmarks import house


def test_a_small_package_is_counted(tmp_path, monkeypatch):
    package = tmp_path / "policygen"
    for name, text in {
        "__init__.py": "from policygen.app import apply\n",
        "errors.py": "",
        "app/__init__.py": "",
        "app/apply.py": "from policygen.proof.place import there\nfound = there\n",
        "proof/__init__.py": "",
        "proof/place.py": "from policygen import errors\nfrom policygen.proof.keys import one\n",
        "proof/keys.py": "one = 1  # found\n",
        "planning/__init__.py": "",
        "planning/place.py": "def told():\n    from policygen.errors import one\n    return one\n",
        "report/__init__.py": "",
        "report/place.py": "",
    }.items():
        (package / name).parent.mkdir(exist_ok=True, parents=True)
        (package / name).write_text(text)
    monkeypatch.setattr(house, "ENTRY", "policygen.app.apply")
    monkeypatch.setattr(house, "_pages", lambda: ["The row of which it is told.", "Is asked."])
    assert house.measure(package) == {
        "lines": 9,
        "modules": 11,
        "modules that policygen.app.apply reaches": 4,
        "longest import chain": 4,
        "modules with one importer, in the same package": 1,
        "names that say nothing": 6,
        "puzzling phrases in code": 1,
        "puzzling phrases in pages": 2,
        "module names that exist three times": 1,
        "modules of app/": 2,
    }


@pytest.mark.slow
def test_no_figure_has_risen():
    """`make check` asks the same."""
    assert house.main() == 0


def test_a_figure_that_rises_is_an_error(monkeypatch, capsys):
    figures = {name: most for name, (most, _) in house.MOST.items()}
    monkeypatch.setattr(house, "measure", lambda: figures)
    assert house.main() == 0
    monkeypatch.setattr(house, "measure", lambda: {**figures, "modules": 10_000})
    assert house.main() == 1
    assert "has risen" in capsys.readouterr().out


def test_every_file_that_the_architecture_names_is_there():
    page = (house.ROOT / "docs/architecture.md").read_text("utf-8")
    paths = re.findall(r"`((?:policygen|tests|benchmarks)/[\w/]+\.py)`", page)
    paths += [
        f"policygen/{path}" for path in re.findall(r"`((?:store|headers|gpu)/\w+\.py)`", page)
    ]
    assert len(paths) >= 8
    assert [path for path in paths if not (house.ROOT / path).is_file()] == []
