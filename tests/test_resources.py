"""Our data folders are found in a checkout, in an editable install and in a wheel."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import policygen
from policygen import rendering

ROOT = Path(policygen.__file__).parent.parent


@pytest.mark.parametrize("name", ["templates", "schemas", "cub_headers"])
def test_a_checkout_has_its_folders_beside_the_package(name):
    assert rendering.folder(name) == ROOT / name


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"own folder 'templates' is missing"):
        rendering.folder("templates", tmp_path / "policygen")


@pytest.mark.slow
def test_a_wheel_has_them_inside_and_works_without_the_checkout(tmp_path):
    build = "from hatchling.build import build_wheel; import sys; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert "policygen/templates/edit/block.h.j2" in names
    assert "policygen/cub_headers/manifest.toml" in names
    assert "policygen/schemas/json/scan-1.schema.json" in names
    assert "policygen/demo/database.py" in names
    assert not [n for n in names if "fixtures" in n]
    assert not [n for n in names if n.startswith("policygen/cub_headers/") and "/cuda/" in n]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-m", "policygen", "scan", "--cub", str(ROOT / "cub_headers/mini")]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(
        "13 specializations in 7 families of 2 headers; 6 disabled; 2 policy chains\n"
    )
    code = "import pathlib; from policygen.app.demo import write_database as write"
    command = [sys.executable, "-c", f"{code}; write(pathlib.Path('run.db'))"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "run.db").read_bytes().startswith(b"SQLite format 3")
    # Samples are decoded by another Python, which must find the same policygen.
    command = [sys.executable, "-m", "policygen", "db", "top", "--json", "run.db"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["warnings"] == []
    assert document["workloads"][0]["variants"][0]["interval"]
