"""What is published: a wheel and an sdist, installed where nothing else of policygen is."""

import email
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from policygen import __version__
from tests.tiers import slow

ROOT = Path(__file__).parent.parent
BUILD = "from hatchling import build; import sys; build.build_{}(sys.argv[1])"
MINI = "from policygen.rendering import folder; print(folder('cub_headers') / 'mini')"
SCHEMAS = (
    "from policygen.json_schemas import schema_files; from policygen.rendering import folder;"
    "there = {p.name: p.read_text('utf-8') for p in (folder('schemas') / 'json').iterdir()};"
    "assert there == schema_files(); print(len(there), folder('templates'))"
)


def build(kind, source, folder):
    """Builds as `pip` would; the last thing that is printed is no part of it."""
    command = [sys.executable, "-c", BUILD.format(kind), str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is made of it."""
    folder = tmp_path_factory.mktemp("dist")
    build("sdist", ROOT, folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(folder / "source")
    build("wheel", folder / "source" / f"policygen-{__version__}", folder)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


class Installed:
    """An environment of its own, and its commands, run from an empty folder."""

    def __init__(self, folder: Path, *, pip: bool) -> None:
        self.bin, self.work = folder / "env/bin", folder / "work"
        self.work.mkdir()
        venv.create(folder / "env", with_pip=pip, symlinks=True)
        self.environment = {
            "HOME": str(folder), "PATH": f"{self.bin}:/usr/bin:/bin", "COLUMNS": "80",
            "POLICYGEN_CACHE": str(folder / "cache"),
            **{name: os.environ[name] for name in os.environ if name.startswith("PIP_")},
        }  # fmt: skip

    def run(self, program, *words, statuses=(0,)):
        done = subprocess.run(
            [self.bin / program, *words],
            cwd=self.work, env=self.environment, check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode in statuses, done.stderr
        return done.stdout

    def works(self):
        """As who installed it would try it."""
        assert self.run("policygen", "--version") == f"policygen, version {__version__}\n"
        mini = self.run("python", "-c", MINI).strip()
        assert mini.startswith(str(self.bin.parent))
        assert self.run("policygen", "scan", "--cub", mini).endswith(
            "13 specializations in 7 families of 2 headers; 6 disabled; 2 policy chains\n"
        )
        count, templates = self.run("python", "-c", SCHEMAS).split()
        assert int(count) > 20
        assert templates.startswith(str(self.bin.parent))
        assert "complete -o nosort -F" in self.run("policygen", "completion", "bash")


@pytest.fixture
def installed(built, tmp_path):
    """The wheel alone; what it needs is that of the tests."""
    made = Installed(tmp_path, pip=False)
    command = [sys.executable, "-m", "pip", "--python", made.bin / "python", "install", "--quiet"]
    subprocess.run([*command, "--no-index", "--no-deps", built[1]], check=True)
    (site,) = (tmp_path / "env/lib").glob("python*/site-packages")
    paths = {sysconfig.get_path("purelib"), *(p for p in sys.path if p.endswith("site-packages"))}
    (site / "tests.pth").write_text("\n".join(sorted(paths)))
    return made


@pytest.mark.slow
def test_the_wheel_works_where_nothing_else_is(installed):
    installed.works()


@pytest.mark.slow
def test_an_installed_package_says_what_works_for_it(installed):
    document = json.loads(installed.run("policygen", "doctor", "--json", statuses=(0, 1)))
    assert document["installed"] == "package"
    checks = {one["name"]: one for one in document["checks"]}
    assert "extra dev" not in checks
    assert "extra cuda" in checks
    words = "from policygen.installation import add; print(add('cuda'))"
    told = installed.run("python", "-c", words).strip()
    assert told == f"{installed.bin}/python -m pip install 'policygen[cuda]'"
    (installed.bin / "pip").touch(mode=0o755)
    assert installed.run("python", "-c", words) == "pip install 'policygen[cuda]'\n"


@slow
def test_the_wheel_installs_with_all_that_it_needs(built, tmp_path):
    """From the index, into an environment that has pip alone."""
    made = Installed(tmp_path, pip=True)
    made.run("pip", "install", "--quiet", "--disable-pip-version-check", str(built[1]))
    made.works()
    assert made.run("pip", "check", "--disable-pip-version-check").startswith("No broken")


@pytest.mark.slow
def test_an_index_would_take_both(built):
    pytest.importorskip("twine", reason="the extra dev has it")
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *built]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2
    assert "warning" not in done.stdout.lower()


@pytest.mark.slow
def test_the_wheel_of_the_sdist_is_that_of_the_checkout(built, tmp_path):
    build("wheel", ROOT, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert contents(wheel) == contents(built[1])


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.slow
def test_the_sdist_has_what_a_test_of_it_needs_and_nothing_of_nvidia(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", "action.yml"} <= names
    assert {"tests/test_package.py", "schemas/json/scan-1.schema.json", "docs/ci.md"} <= names
    assert "actions/comment/action.yml" in names
    headers = {name for name in names if name.startswith("cub_headers/")}
    assert {name.split("/")[1] for name in headers} <= {"manifest.toml", "mini"}
    assert not [name for name in names if name.endswith((".db-journal", ".pyc"))]


def test_the_metadata_is_complete(built):
    with zipfile.ZipFile(built[1]) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        found = email.message_from_string(archive.read(name).decode())
        licenses = [one for one in archive.namelist() if "/licenses/" in one]
    assert (found["Name"], found["Version"]) == ("policygen", __version__)
    assert found["License-Expression"] == "Apache-2.0"
    assert found.get_all("License-File") == ["LICENSE"]
    assert licenses == [f"policygen-{__version__}.dist-info/licenses/LICENSE"]
    assert found["Requires-Python"] == ">=3.11"
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_payload() == (ROOT / "README.md").read_text("utf-8")
    assert found["Author"]
    assert found["Summary"].endswith(".")
    assert found["Keywords"]
    assert found.get_all("Project-URL")
    classifiers = found.get_all("Classifier")
    assert classifiers == sorted(classifiers)
    # A licence expression and a classifier of one exclude each other.
    assert not [one for one in classifiers if one.startswith("License ::")]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(found.get_all("Provides-Extra")) == set(extras["optional-dependencies"])
