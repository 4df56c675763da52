"""What is here, what is not, who needs it, and what mends it."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from policygen import rendering
from policygen.app import doctor
from policygen.errors import InputError
from policygen.installation import Requirement, add
from policygen.model.machine import Doctor
from policygen.proof import toolchain
from policygen.store.journal import Journal
from tests.cli.tuned import run
from tests.proof.test_toolchain import ARCHS, VERSION, fake_nvcc
from tests.trees.places import empty_machine
from tests.trees.toys import make_checkout, make_root

MINI = rendering.folder("cub_headers") / "mini"
# What an H200 says of itself.
H200 = "NVIDIA H200, 9.0, 143771 MiB, 580.159.04"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A machine that has nothing but Python."""
    found = empty_machine(tmp_path, monkeypatch)
    monkeypatch.setattr(toolchain, "INSTALLED", tmp_path / "usr/local/cuda/bin/nvcc")
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda _: str(found.site))
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cat").symlink_to("/bin/cat")
    return found


def program(places, name, text="", status=0):
    path = places.base / "bin" / name
    path.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{text}\nEND\nexit {status}\n")
    path.chmod(0o755)
    return path


def checks(capsys, *more, status):
    found, out, err = run(capsys, "doctor", "--json", *more)
    assert (found, err) == (status, "")
    document = Doctor.model_validate_json(out)
    jsonschema.validate(json.loads(out), Doctor.model_json_schema(mode="serialization"))
    return {one.name: one for one in document.checks}


def test_a_machine_without_anything_is_told_all_of_it(places, capsys):
    found = checks(capsys, status=1)
    states = {name: one.state for name, one in found.items() if not name.startswith("extra ")}
    assert states == {
        "Python": "fine", "packages": "fine",
        "nvcc": "missing", "c++filt": "missing", "hipcc": "optional", "git": "missing",
        "GPU": "optional",
        "settings": "optional", "tree": "missing", "fetched": "optional", "checkout": "optional",
        "wheel": "optional", "toolkit": "optional", "cache": "fine", "store": "optional",
    }  # fmt: skip
    assert found["nvcc"].remedy.endswith("[cuda]'")
    assert found["tree"].remedy == found["fetched"].remedy == "policygen headers fetch 3.0.1"
    assert "verify-sass" in found["nvcc"].needed_by


def test_what_is_to_be_mended_is_printed_with_its_command(places, capsys):
    status, out, err = run(capsys, "doctor", "-q")
    assert (status, err) == (1, "")
    assert out == (
        "missing  nvcc     nvcc is missing\n"
        "                  needed by: resolve, plan, apply, emit, review, audit, demo,\n"
        "                    verify-effect, verify-sass\n"
        f"                  install it: {add('cuda')}\n"
        "missing  c++filt  c++filt is missing\n"
        "                  needed by: verify-sass, review --run-sass, demo\n"
        "                  install it: apt-get install binutils\n"
        "missing  git      git is missing\n"
        "                  needed by: --base REVISION, --compare REVISION\n"
        "                  install it: apt-get install git\n"
        "missing  tree     no CUB\n"
        "                  needed by: scan, headers path, resolve, plan, apply, emit,\n"
        "                    review, audit, demo, verify-effect, verify-sass\n"
        "                  install it: policygen headers fetch 3.0.1\n"
    )
    _, out, _ = run(capsys, "doctor")
    assert out.endswith("\n4 things to fix: nvcc, c++filt, git, tree\n")


def test_everything_that_commands_need_may_be_here(places, capsys, monkeypatch):
    cuda = places.base / "cuda"
    fake_nvcc(cuda / "bin/nvcc")
    monkeypatch.setattr(doctor, "compile_trial", lambda _: None)
    for name in ("cuobjdump", "nvdisasm"):
        program(places, name, "Cuda compilation tools, release 13.2, V13.2.78").rename(
            cuda / "bin" / name
        )
    program(places, "c++filt", "GNU c++filt (GNU Binutils for Debian) 2.40")
    program(places, "git", "git version 2.39.5")
    program(places, "nvidia-smi", f"{H200}\n{H200}")
    monkeypatch.setenv("CUDA_HOME", str(cuda))
    make_root(places.headers / "3.0.1")
    make_root(places.site / "nvidia/cu13/include/cccl", "3.2.0")
    make_checkout(places.work / "cccl", "3.6.0")
    monkeypatch.chdir(places.work / "cccl/thrust")
    found = checks(capsys, status=0)
    told = {name: one.found for name, one in found.items()}
    assert told["nvcc"].startswith("13.2.51, sm75 to sm120, ")
    assert told["cuobjdump"].startswith("13.2.78, nvdisasm too, ")
    assert (told["c++filt"], told["git"]) == ("2.40", "2.39.5")
    assert told["GPU"] == "; ".join(["NVIDIA H200 (sm90, 140 GiB), driver 580.159.04"] * 2)
    assert told["tree"].startswith("CUB 3.6.0 (")
    assert told["tree"].endswith(" [checkout]")
    assert told["fetched"].startswith("3.0.1 (current, changed) in ")
    assert told["wheel"].startswith("CUB 3.2.0, ")
    assert told["checkout"].startswith("CUB 3.6.0, ")
    assert run(capsys, "doctor", "-q") == (0, "", "")


def test_a_driver_that_does_not_answer_is_no_failure(places, capsys):
    program(places, "nvidia-smi", "NVIDIA-SMI has failed", status=9)
    gpu = checks(capsys, status=1)["GPU"]
    assert gpu.state == "optional"
    assert gpu.found.startswith("nvidia-smi does not respond")
    program(places, "nvidia-smi", "")
    gpu = checks(capsys, status=1)["GPU"]
    assert (gpu.found, gpu.needed_by) == ("no GPU on this machine", doctor.MEASURING)
    program(places, "nvidia-smi", "a GPU of [N/A] kind")
    assert checks(capsys, status=1)["GPU"].found == "a GPU of [N/A] kind"


def test_a_cuda_home_that_leads_nowhere_is_not_mended_by_an_installation(
    places, capsys, monkeypatch
):
    monkeypatch.setenv("CUDA_HOME", str(places.base / "none"))
    nvcc = checks(capsys, status=1)["nvcc"]
    assert (nvcc.state, nvcc.remedy) == ("missing", "Unset CUDA_HOME or correct it.")
    monkeypatch.setenv("CUDA_HOME", "cuda")
    nvcc = checks(capsys, status=1)["nvcc"]
    assert (nvcc.state, nvcc.found) == ("broken", "CUDA_HOME='cuda' is not an absolute path")


@pytest.mark.parametrize(
    ("chosen", "host", "remedy"),
    [
        ("", False, "apt-get install g++"),
        ("", True, "export NVCC_CCBIN=COMPILER"),
        ("gcc-99", True, "unset NVCC_CCBIN"),
    ],
)
def test_a_compiler_that_cannot_compile_is_broken(
    places, capsys, monkeypatch, chosen, host, remedy
):
    cuda = places.base / "cuda"
    script = f"""#!/bin/sh
case "$*" in
  --version) echo '{VERSION}' ;;
  --list-gpu-arch) echo '{ARCHS}' ;;
  *) echo 'remark' >&2; echo 'nvcc fatal: Failed to preprocess.' >&2; exit 1 ;;
esac
"""
    (cuda / "bin").mkdir(parents=True)
    (cuda / "bin/nvcc").write_text(script)
    (cuda / "bin/nvcc").chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(cuda))
    monkeypatch.setenv("NVCC_CCBIN", chosen)
    if host:
        program(places, "g++")
    compiling = checks(capsys, status=1)["compiling"]
    assert compiling.state == "broken"
    assert compiling.found == "nvcc fatal: Failed to preprocess."
    assert compiling.remedy == remedy


@pytest.mark.slow
@pytest.mark.nvcc
def test_the_compiler_of_the_extra_compiles(capsys):
    found = checks(
        capsys, "--cub", Path(__file__).parent.parent.parent / "cub_headers/mini", status=0
    )
    assert re.fullmatch(r"compiles a kernel for sm\d+", found["compiling"].found)
    assert found["cuobjdump"].state == found["c++filt"].state == found["git"].state == "fine"


def test_extras_are_optional_and_packages_are_not(places, capsys, monkeypatch):
    absent = Requirement("pyarrow>=15", "pyarrow", None, fits=False)
    old = Requirement("nvidia-cuda-nvcc==13.2.*", "nvidia-cuda-nvcc", "13.0.48", fits=False)
    lot = {"": (absent, old), "parquet": (absent,), "cuda": (old,)}
    monkeypatch.setattr(doctor, "requirements", lambda: lot)
    found = checks(capsys, status=1)
    assert found["packages"].state == "missing"
    both = "no pyarrow; nvidia-cuda-nvcc 13.0.48, but nvidia-cuda-nvcc==13.2.* is needed"
    assert found["packages"].found == both
    assert "install" in found["packages"].remedy
    parquet = found["extra parquet"]
    assert (parquet.state, parquet.found) == ("optional", "not installed")
    assert parquet.needed_by == ("db export -o FILE.parquet",)
    assert found["extra cuda"].found == both.partition("; ")[2]


def test_cuda_wheels_are_of_one_release(places, capsys, monkeypatch):
    def extra(nvvm):
        rows = (("nvidia-cuda-cccl", "13.3.5.0.6"), ("nvidia-cuda-nvcc", "13.5.37"))
        asked = ">=13.2,<13.6"
        lot = [
            Requirement(f"{name}{asked}", name, version, fits=True)
            for name, version in (*rows, ("nvidia-nvvm", nvvm))
        ]
        monkeypatch.setattr(doctor, "requirements", lambda: {"cuda": tuple(lot)})
        return checks(capsys, status=1)["extra cuda"]

    assert extra("13.5.40").state == "fine"
    mixed = extra("13.2.86")
    assert (mixed.state, mixed.found) == ("broken", "wheels of CUDA 13.2 and 13.5 are mixed")
    assert mixed.remedy.endswith("pip install 'nvidia-cuda-nvcc==13.5.*' 'nvidia-nvvm==13.5.*'")


def test_a_tree_that_is_named_and_not_there_is_broken(places, capsys):
    tree = checks(capsys, "--cub", "none", status=1)["tree"]
    assert tree.state == "broken"
    assert tree.found.startswith("no such file or folder: ")


def test_a_cache_that_cannot_be_written_is_broken(places, capsys, monkeypatch):
    cache = checks(capsys, status=1)["cache"]
    assert cache.state == "fine"
    assert cache.found.endswith("cache, not made yet, writable")
    assert not places.cache.exists()
    (places.cache / "scan").mkdir(parents=True)
    (places.cache / "scan/one").write_bytes(b"x" * 3000)
    assert checks(capsys, status=1)["cache"].found.endswith("cache, 3 KiB in 1 file, writable")
    (places.base / "file").write_text("")
    monkeypatch.setenv("POLICYGEN_CACHE", str(places.base / "file"))
    cache = checks(capsys, status=1)["cache"]
    assert (cache.state, cache.remedy) == ("broken", "export POLICYGEN_CACHE=FOLDER")
    assert cache.found.endswith("file cannot be written: it is not a folder")


def test_the_store_is_looked_into_where_it_is_ones_own(places, capsys):
    with Journal.open(Path("policygen.db")):
        pass
    store = checks(capsys, status=1)["store"]
    assert store.state == "fine"
    assert store.found.endswith(", 0 applies, 0 of them in a tree, writable")
    Path("policygen.db").rename("other.db")
    Path("policygen.db").write_bytes(Path("other.db").read_bytes()[:100])
    store = checks(capsys, status=1)["store"]
    assert (store.state, store.remedy) == ("optional", "policygen status --store policygen.db")
    assert store.found == "policygen.db may belong to someone else and is not read"


def test_no_document_names_a_path_of_the_machine(places, capsys):
    make_root(places.headers / "3.0.1")
    _, out, _ = run(capsys, "doctor", "--json")
    assert str(places.base) not in out
    assert str(Path.home()) + "/" not in out


def test_a_tree_that_cannot_be_read_is_broken_wherever_it_stands(places, capsys):
    for root in (places.site / "nvidia/cu13/include/cccl", places.headers / "3.0.1"):
        (make_root(root) / "cub/version.cuh").write_text("no version\n")
    found = checks(capsys, status=1)
    assert {found[name].state for name in ("tree", "wheel")} == {"broken"}
    assert "version.cuh" in found["wheel"].found


def test_a_folder_of_fetched_trees_that_cannot_be_listed_is_broken(places, capsys, monkeypatch):
    def fail(folder, _library):
        raise InputError(f"cannot list {folder}: Permission denied", "make it readable")

    monkeypatch.setattr(doctor, "fetched", fail)
    fetched = checks(capsys, status=1)["fetched"]
    assert (fetched.state, fetched.remedy) == ("broken", "make it readable")


def test_a_home_that_is_not_there_leaves_no_place_for_a_cache(places, capsys, monkeypatch):
    monkeypatch.delenv("POLICYGEN_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", classmethod(lambda _: Path("none")))
    cache = checks(capsys, status=1)["cache"]
    assert cache.found == "there is no home folder for the cache"
    assert cache.remedy == "Set POLICYGEN_CACHE to a folder that can be written."


@pytest.mark.usefixtures("places")
def test_a_store_that_cannot_be_written_or_read_is_broken(capsys, monkeypatch):
    with Journal.open(Path("policygen.db")):
        pass
    with monkeypatch.context() as patch:
        patch.setattr(doctor.os, "access", lambda *_: False)
        store = checks(capsys, status=1)["store"]
    assert (store.state, store.remedy) == ("broken", "chmod u+w policygen.db .")

    def fail(path):
        raise InputError(f"{path}: the store is damaged: odd", "Move it away.")

    monkeypatch.setattr(doctor, "history", fail)
    store = checks(capsys, status=1)["store"]
    assert (store.found, store.remedy) == (
        "policygen.db: the store is damaged: odd", "Move it away."
    )  # fmt: skip


def test_the_settings_that_are_named_are_told(places, capsys, monkeypatch):
    Path("mine.toml").write_text("")
    monkeypatch.setenv("POLICYGEN_CONFIG", "mine.toml")
    assert checks(capsys, status=1)["settings"].found == "mine.toml"
    Path("mine.toml").write_text("cub = 1\n")
    assert checks(capsys, status=1)["tree"].state == "broken"


@pytest.mark.usefixtures("places")
def test_who_needs_what_is_told_with_v(capsys):
    _, out, _ = run(capsys, "doctor", "-v")
    assert "\n                           needed by: every command\n" in out
