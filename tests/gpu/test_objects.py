"""Shared objects of small units, by the real compiler; they need no GPU to be loaded."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from policygen.errors import ProcessError
from policygen.gpu.compiling import (
    ObjectCompiler,
    ObjectSource,
    is_code_error,
    named_culprits,
    reason,
    runtime_flags,
)
from policygen.proof.compile import Listings, RefusedError
from policygen.proof.toolchain import Toolchain, find_toolchain

UNIT = """\
#include <cuda_runtime.h>
{include}
template <int Number> struct policygen_selector_{number} {{}};
template <class Selector> __global__ void kernel(int* out)
{{
  __shared__ int tile[{tile}];
  tile[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[blockDim.x - threadIdx.x];
}}
struct policygen_workload {{ struct policygen_selector_{number} {{}}; }};
inline int counted() {{ static int count = 0; return ++count; }}
extern "C" __attribute__((visibility("default"))) int policygen_run_0(int* out, cudaStream_t stream)
{{
  kernel<policygen_workload::policygen_selector_{number}><<<1, 32, 0, stream>>>(out);
  return counted();
}}
"""
FITS, TOO_LARGE = 64, 16384
SHARED = "ptxas: it uses too much shared data (0x10000 bytes, 0xc000 max)"


def source(tile=FITS, number=3, include="", folders=()):
    return ObjectSource(
        UNIT.format(tile=tile, number=number, include=include), tuple(map(str, folders)), "sm90"
    )


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    return ObjectCompiler(find_toolchain(), tmp_path / "objects", Listings())


@pytest.mark.nvcc
def test_an_object_exports_its_functions_and_nothing_else(compiler):
    path = compiler.make(source())
    told = subprocess.run(
        ["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True
    )
    assert [line.split()[-1] for line in told.stdout.splitlines()] == ["policygen_run_0"]
    needed = subprocess.run(
        ["readelf", "-d", path], check=True, capture_output=True, text=True
    ).stdout
    assert "libcudart.so" in needed, "the runtime of the process that loads it"


@pytest.mark.slow
@pytest.mark.nvcc
def test_two_objects_share_nothing(compiler):
    """Each has its own of what both define, and the runtime of the process."""
    (runtime,) = sorted(compiler.toolchain.nvcc.parent.parent.glob("lib/libcudart.so.*"))
    paths = [compiler.make(source(number=number)) for number in (1, 2)]
    # In a process of its own: tests of this one have a runtime that needs no GPU.
    told = subprocess.run(
        [sys.executable, "-c", SHARE, runtime, *paths], check=True, capture_output=True, text=True
    )
    assert told.stdout.split() == ["1", "1", "2"]


SHARE = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
runs = [ctypes.CDLL(path).policygen_run_0 for path in sys.argv[2:]]
print(*(run(None, None) for run in (*runs, runs[0])))
"""


@pytest.mark.slow
@pytest.mark.nvcc
def test_what_was_made_is_not_made_again(compiler, monkeypatch, tmp_path):
    (tmp_path / "tree").mkdir()
    header = tmp_path / "tree" / "one.cuh"
    header.write_text("#define ONE 1\n")
    known = source(include="#include <one.cuh>", folders=[tmp_path / "tree"])
    first = compiler.make(known)
    elsewhere = replace(compiler, folder=tmp_path / "elsewhere")
    monkeypatch.setattr("policygen.gpu.compiling.compile_file", lambda *_: pytest.fail("again"))
    again = elsewhere.make(known)
    assert again.read_bytes() == first.read_bytes()
    monkeypatch.undo()
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    header.write_text("#error changed\n")
    with pytest.raises(RefusedError, match="changed"):
        replace(compiler, there=Listings()).make(known)


@pytest.mark.nvcc
def test_what_is_refused_is_known_to_be(compiler, monkeypatch):
    with pytest.raises(RefusedError) as refused:
        compiler.make(source(TOO_LARGE))
    assert named_culprits(refused.value) == {3: SHARED}
    assert reason(refused.value) == SHARED
    monkeypatch.setattr("policygen.gpu.compiling.compile_file", lambda *_: pytest.fail("again"))
    with pytest.raises(RefusedError) as again:
        compiler.make(source(TOO_LARGE))
    assert named_culprits(again.value) == {3: SHARED}


@pytest.mark.nvcc
def test_a_refusal_has_its_line(compiler):
    broken = replace(source(), text='static_assert(sizeof(int) == 5, "no such size");\n')
    with pytest.raises(RefusedError) as refused:
        compiler.make(broken)
    assert reason(refused.value) == 'static assertion failed with "no such size"'


def refused(words):
    return RefusedError(["nvcc main.cu"], 1, words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("/t/a.cuh(3): error: static assertion failed", True),
        ("ptxas error   : Entry function '_Z1k' uses too much shared data (0x1, 0x0 max)", True),
        ("ptxas fatal   : Memory allocation failure", False),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", False),
        ("/usr/bin/as: main.o: No space left on device", False),
    ],
)
def test_what_is_kept_is_said_of_code(words, said):
    assert is_code_error(refused(words)) is said


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (refused("/t/a.cuh(3): error: no"), "a.cuh:3: no"),
        (
            refused("ptxas fatal   : Memory allocation failure"),
            "ptxas fatal   : Memory allocation failure",
        ),
        (
            refused("ptxas error   : Entry function '_Z1k' uses too much local data"),
            "ptxas: it uses too much local data",
        ),
        (ProcessError(["nvcc"], -9, "it was killed\n", "More?"), "it was killed. More?"),
        (ProcessError(["nvcc"], -15, "it did not finish"), "it did not finish"),
    ],
)
def test_a_reason_is_a_line(error, words):
    assert reason(error) == words


def test_only_an_assembler_names_culprits():
    assert named_culprits(refused("/t/a.cuh(3): error: no")) == {}
    assert named_culprits(ProcessError(["nvcc"], -9, "policygen_selector_1E")) == {}


def test_the_runtime_is_linked_as_the_toolkit_has_it(tmp_path):
    (tmp_path / "bin").mkdir()
    toolchain = Toolchain(tmp_path / "bin" / "nvcc", "13.2.0", ("sm90",))
    assert runtime_flags(toolchain) == ["-cudart", "shared"]
    runtime = tmp_path / "lib" / "libcudart.so.13"
    runtime.parent.mkdir()
    runtime.touch()
    assert runtime_flags(toolchain)[-1] == f"--no-as-needed,{runtime}"


def test_an_object_is_for_its_architecture_alone():
    flags = replace(source(), arch="sm100").flags
    assert flags[-2:] == ["-gencode", "arch=compute_100,code=sm_100"]
    assert {"-shared", "-DNDEBUG", "-O3"} <= {*flags}
    assert Path(flags[0]).name == "-std=c++17"
