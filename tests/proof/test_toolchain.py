import sysconfig
from pathlib import Path

import pytest

from policygen.errors import MissingToolError, ProcessError
from policygen.installation import add
from policygen.proof import toolchain
from policygen.proof.toolchain import Toolchain, find_toolchain, to_install

VERSION = """nvcc: NVIDIA (R) Cuda compiler driver
Built on Wed_Jan_14_20:29:13_PST_2026
Cuda compilation tools, release 13.2, V13.2.51
Build cuda_13.2.r13.2/compiler.37384621_0"""
ARCHS = "compute_100 compute_75 compute_120 compute_90 compute_103"


def fake_nvcc(path: Path, version: str = VERSION, archs: str = ARCHS, status: int = 0) -> Path:
    """A shell script that tells what nvcc tells of itself."""
    listed = "\n".join(archs.split())
    path.parent.mkdir(parents=True)
    path.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        f"--version) cat <<'END'\n{version}\nEND\n;;\n"
        f"--list-gpu-arch) cat <<'END'\n{listed}\nEND\n;;\n"
        "esac\n"
        f"exit {status}\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine without nvcc: its environment."""
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "site-packages"))
    monkeypatch.setattr(toolchain, "INSTALLED", tmp_path / "usr/local/cuda/bin/nvcc")
    (tmp_path / "path").mkdir()
    return {"PATH": str(tmp_path / "path")}


def test_the_release_and_the_architectures_are_read(tmp_path: Path, bare: dict[str, str]) -> None:
    nvcc = fake_nvcc(tmp_path / "cuda/bin/nvcc")
    found = find_toolchain({"CUDA_HOME": str(tmp_path / "cuda")})
    archs = ("sm75", "sm90", "sm100", "sm103", "sm120")
    assert found == Toolchain(nvcc, "13.2.51", archs)
    assert found.newest == "sm120"
    assert str(found) == f"nvcc 13.2.51 ({nvcc})"


def test_architectures_of_one_chip_alone_are_no_architectures(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    fake_nvcc(tmp_path / "cuda/bin/nvcc", archs="compute_90 compute_90a compute_100f")
    assert find_toolchain({"CUDA_HOME": str(tmp_path / "cuda")}).archs == ("sm90",)


PLACES = [
    "home/bin/nvcc",
    "site-packages/nvidia/cu13/bin/nvcc",
    "path/nvcc",
    "usr/local/cuda/bin/nvcc",
]


@pytest.mark.parametrize("first", range(len(PLACES)))
def test_places_are_searched_in_order(tmp_path: Path, bare: dict[str, str], first: int) -> None:
    (tmp_path / "path").rmdir()
    for place in PLACES[first:]:
        fake_nvcc(tmp_path / place)
    environment = bare | ({"CUDA_HOME": str(tmp_path / "home")} if first == 0 else {})
    assert find_toolchain(environment).nvcc == tmp_path / PLACES[first]


def test_without_an_environment_it_is_the_process_own(
    tmp_path: Path, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert fake_nvcc(tmp_path / "cuda/bin/nvcc") == find_toolchain().nvcc


def test_the_wheel_of_the_newest_cuda_is_taken(tmp_path: Path, bare: dict[str, str]) -> None:
    for release in (12, 14, 13):
        fake_nvcc(tmp_path / f"site-packages/nvidia/cu{release}/bin/nvcc")
    assert "cu14" in str(find_toolchain(bare).nvcc)


def test_an_empty_cuda_home_is_none(tmp_path: Path, bare: dict[str, str]) -> None:
    nvcc = fake_nvcc(tmp_path / "usr/local/cuda/bin/nvcc")
    assert find_toolchain(bare | {"CUDA_HOME": ""}).nvcc == nvcc


def test_a_cuda_home_without_nvcc_is_refused(tmp_path: Path, bare: dict[str, str]) -> None:
    """Another compiler than the one that was asked for would answer for it."""
    fake_nvcc(tmp_path / "site-packages/nvidia/cu13/bin/nvcc")
    with pytest.raises(MissingToolError) as raised:
        find_toolchain({"CUDA_HOME": str(tmp_path / "absent")})
    assert str(raised.value) == (
        f"{tmp_path}/absent/bin/nvcc (from CUDA_HOME) is missing\n  Unset CUDA_HOME or correct it."
    )


def test_what_to_install_is_told_when_there_is_none(bare: dict[str, str]) -> None:
    with pytest.raises(MissingToolError) as raised:
        find_toolchain(bare)
    assert raised.value.exit_code == 3
    assert str(raised.value) == (
        f"nvcc is missing\n  Install it: {add('cuda')}; or set CUDA_HOME to an installed toolkit."
    )


@pytest.mark.parametrize(
    ("version", "archs"),
    [("nvcc of another kind", ARCHS), (VERSION, ""), (VERSION, "sm_90")],
)
def test_an_nvcc_that_does_not_tell_is_refused(
    tmp_path: Path, bare: dict[str, str], version: str, archs: str
) -> None:
    nvcc = fake_nvcc(tmp_path / "cuda/bin/nvcc", version, archs)
    with pytest.raises(MissingToolError) as raised:
        find_toolchain({"CUDA_HOME": str(tmp_path / "cuda")})
    assert str(raised.value) == (
        f"a working nvcc ({nvcc} does not report its release) is missing\n  {to_install()}"
    )


def test_an_nvcc_that_fails_is_shown(tmp_path: Path, bare: dict[str, str]) -> None:
    nvcc = fake_nvcc(tmp_path / "cuda/bin/nvcc", status=5)
    with pytest.raises(ProcessError) as raised:
        find_toolchain({"CUDA_HOME": str(tmp_path / "cuda")})
    assert str(raised.value) == f"command failed with status 5: {nvcc} --version"


@pytest.mark.parametrize(
    ("data", "mode"),
    [(b"\x7fELF of another machine", 0o755), (b"#!/absent/shell\n", 0o755), (b"", 0o644)],
)
def test_an_nvcc_that_cannot_be_started_is_missing(
    tmp_path: Path, bare: dict[str, str], data: bytes, mode: int
) -> None:
    """`CUDA_HOME` of another platform: a cross toolkit, a shared home."""
    nvcc = tmp_path / "cuda/bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_bytes(data)
    nvcc.chmod(mode)
    with pytest.raises(MissingToolError) as raised:
        find_toolchain({"CUDA_HOME": str(tmp_path / "cuda")})
    assert str(raised.value) == f"{nvcc} is missing\n  {to_install()}"


@pytest.mark.nvcc
def test_the_real_one_is_found() -> None:
    found = find_toolchain()
    assert {"sm75", "sm80", "sm90", "sm100", "sm120"} <= set(found.archs)
    assert found.version[0].isdigit()
