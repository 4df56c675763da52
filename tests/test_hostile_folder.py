"""Nothing of the current folder is run, whatever it is called."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import policygen
from policygen.errors import InputError, MissingToolError
from policygen.process import for_child, module, python, run, which
from policygen.proof.toolchain import find_toolchain
from policygen.results.samples import Decoder, encode
from tests.results.build import Builder, simple

SITE = Path(policygen.__file__).parent.parent
MODULES = ("policygen", "pip", "numpy", "fpzip", "json", "runpy", "contextlib", "sitecustomize")
PROGRAMS = ("git", "nvcc", "cuobjdump", "c++filt", "python", "gcc", "g++", "nvidia-smi")


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A file that whatever is run of the current folder makes."""
    made, folder = tmp_path / "canary", tmp_path / "hostile"
    for name in MODULES:
        (folder / name).mkdir(parents=True)
        for file in ("__init__.py", "__main__.py"):
            (folder / name / file).write_text(f"open({str(made)!r}, 'w')\n")
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\ntouch '{made}'\n")
        (folder / name).chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}:")
    return made


def command_line(*arguments, **variables):
    """The console script, as a person calls it here."""
    script = Path(sys.executable).parent / "policygen"
    environment = {**os.environ, **variables}
    return subprocess.run(
        [script, *arguments],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def database(path):
    simple(path, base={"16": 2.0}, ipt_1={"16": 1.0})
    return path


def test_the_folder_would_be_run(canary):
    """Else the other tests would hold for nothing."""
    for command in (
        ["nvcc"],
        [sys.executable, "-m", "pip"],
        [sys.executable, "-c", "import numpy"],
    ):
        subprocess.run(command, check=False, capture_output=True)
        assert canary.exists(), command
        canary.unlink()


@pytest.mark.slow
def test_a_database_with_samples_is_read(canary, tmp_path):
    Builder(database(tmp_path / "run.db"))
    done = command_line("db", "top", "run.db")
    assert done.returncode == 2
    done = command_line("db", "top", str(tmp_path / "run.db"))
    assert (done.returncode, done.stderr) == (0, "")
    assert not canary.exists()


@pytest.mark.slow
@pytest.mark.nvcc
def test_who_looks_for_all_programs_starts_none_of_the_folder(canary):
    done = command_line("doctor")
    assert done.returncode in {0, 1}, done.stderr
    assert not canary.exists()


@pytest.mark.parametrize("paths", ["", ".", ":", f".:{SITE}"])
def test_the_decoder_imports_what_this_process_has_imported(canary, monkeypatch, paths):
    monkeypatch.setenv("PYTHONPATH", paths)
    with Decoder() as found:
        (answer,) = found.decode([encode([2.0, 1.0])])
    assert list(answer) == [1.0, 2.0]
    assert not canary.exists()


def test_a_module_comes_from_where_this_python_imports(canary, tmp_path, monkeypatch):
    site = tmp_path / "site"
    site.mkdir()
    (site / "ours.py").write_text("import sys; print(__name__, sys.argv[1:])\n")
    Path("ours.py").write_text(f"open({str(canary)!r}, 'w')\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.syspath_prepend(str(Path.cwd()))  # as `python -m` does
    assert run([*module("ours"), "x"], install="") == "__main__ ['x']\n"
    assert not canary.exists()


def test_a_checkout_is_imported_from_the_current_folder(monkeypatch):
    """`python -m policygen` in the checkout itself, which is installed nowhere."""
    monkeypatch.chdir(SITE)
    monkeypatch.setattr(sys, "path", [str(SITE), *sys.path])
    with Decoder() as found:
        assert list(found.decode([encode([1.0])])[0]) == [1.0]


@pytest.mark.parametrize("written", [True, False])
def test_bytecode_is_written_as_this_process_writes_it(monkeypatch, written):
    monkeypatch.setattr(sys, "dont_write_bytecode", not written)
    code = "import sys; print(sys.dont_write_bytecode)"
    assert run(python("-c", code), install="") == f"{not written}\n"


def test_pip_is_the_installed_one(canary):
    assert run(python("-m", "pip", "--version"), network=True, install="").startswith("pip ")
    assert not canary.exists()


@pytest.mark.parametrize("path", [".", "", ":", ".:", "bin:../hostile"])
def test_programs_are_not_looked_for_here(canary, monkeypatch, path):
    monkeypatch.setenv("PATH", path)
    for name in PROGRAMS:
        assert which(name) is None
        with pytest.raises(MissingToolError):
            run([name], install="")
        with pytest.raises(MissingToolError):
            run([f"./{name}"], install="")
    assert not canary.exists()


def test_what_a_program_starts_is_not_looked_for_here_either(canary):
    assert run(["sh", "-c", 'echo "$PATH"; c++filt < /dev/null'], install="").split(":")[0] != "."
    assert not canary.exists()


def test_python_with_m_leaves_the_libraries_of_the_folder_alone(canary):
    """Not those that Python itself imports before policygen, for which there is `-P`."""
    for name in ("policygen", "contextlib", "runpy", "json", "sitecustomize"):
        for path in Path(name).iterdir():
            path.unlink()
        Path(name).rmdir()
    for name in ("click", "pydantic", "tomllib"):
        Path(f"{name}.py").write_text(f"open({str(canary)!r}, 'w')\n")
    command = [sys.executable, "-m", "policygen", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"policygen, version {policygen.__version__}\n"
    assert not canary.exists()


def test_python_with_m_and_p_runs_nothing_of_the_folder(canary, tmp_path):
    path = database(tmp_path / "run.db")
    command = [sys.executable, "-P", "-m", "policygen", "db", "top", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not canary.exists()


def test_a_relative_cuda_home_is_refused(canary):
    Path("bin").mkdir()
    Path("nvcc").rename("bin/nvcc")
    with pytest.raises(InputError) as caught:
        find_toolchain({"CUDA_HOME": "."})
    assert str(caught.value) == (
        "CUDA_HOME='.' is not an absolute path\n  Unset CUDA_HOME or correct it."
    )
    assert not canary.exists()


def test_a_program_is_told_what_it_needs_and_no_more(tmp_path, monkeypatch):
    for name in list(os.environ):
        monkeypatch.delenv(name)
    plain = {"HOME": "/home/me", "NVCC_CCBIN": "g++-13", "OPENBLAS_NUM_THREADS": "1"}
    network = {
        "https_proxy": "http://proxy",
        "NO_PROXY": "here",
        "PIP_INDEX_URL": "https://me:secret@index",
        "SSL_CERT_FILE": "/certificates",
        "REQUESTS_CA_BUNDLE": "/bundle",
        "XDG_CONFIG_HOME": "/config",
    }
    secret = {
        "GITHUB_TOKEN": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "LD_PRELOAD": "x.so",
        "PYTHONPATH": ".",
        "PYTHONSTARTUP": "x.py",
        "GIT_DIR": "x",
        "GIT_SSH_COMMAND": "x",
        "NVCC_PREPEND_FLAGS": "-DX",
        "NVCC_APPEND_FLAGS": "-DX",
        "CPATH": "",
        "CPLUS_INCLUDE_PATH": "",
        "GCC_EXEC_PREFIX": "x",
        "LANG": "de_DE.UTF-8",
    }
    for name, value in {**plain, **network, **secret}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", "/a::.:b:/c:~/d")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/e:")
    always = {**plain, "PATH": "/a:/c", "LD_LIBRARY_PATH": "/e", "LC_ALL": "C.UTF-8"}
    always |= {"TMPDIR": str(tmp_path)}
    assert for_child(tmp_path) == always
    assert for_child(tmp_path, network=True) == always | network


@pytest.mark.parametrize(
    ("compiler", "told"),
    [("g++-13", True), ("/opt/g++", True), ("./g++", False), ("bin/g++", False), ("", False)],
)
def test_a_host_compiler_is_a_name_or_an_absolute_path(tmp_path, monkeypatch, compiler, told):
    monkeypatch.setenv("NVCC_CCBIN", compiler)
    assert ("NVCC_CCBIN" in for_child(tmp_path)) == told
