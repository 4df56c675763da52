"""Programs of a checkout's benchmarks are built: with nvcc, NVBench and cuRAND, each once."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from policygen.errors import ProcessError
from policygen.gpu import checkout as checkout_module
from policygen.gpu.checkout import (
    NvbenchLibrary,
    ProgramCompiler,
    build_programs,
    find_library,
    open_checkout,
)
from policygen.proof import compile as compiling
from policygen.proof.compile import RefusedError
from policygen.proof.toolchain import Toolchain, find_toolchain
from tests.gpu.own_checkout import NAME, SOURCE, make_checkout
from tests.tiers import slow

WORKLOAD = {"T{ct}": "F32", "OffsetT{ct}": "I32"}
GOOD, BAD, OTHER = "ipt_8.tpb_128", "ipt_99.tpb_128", "ipt_9.tpb_128"
# It preprocesses by copying, links by naming what it links, and refuses a variant.
NVCC = r"""#!/bin/sh
out= unit= command="$*"
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out=$2; shift ;;
    *main.cu) unit=$1 ;;
  esac
  shift
done
echo "$command" >> %(log)s
grep -q 'ITEMS 99' "$unit" && { echo 'sum.cu(7): error: too many items' >&2; exit 1; }
grep -q 'ITEMS 77' "$unit" && kill -9 $$
grep -q 'ITEMS 66' "$unit" && { echo 'no space left on device' >&2; exit 1; }
{ echo '# 1 "%(source)s"'; cat "$unit"; } > main.cpp1.ii
{ echo "$command"; cat "$unit"; } > "$out"
"""


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Builds with a compiler that only notes what it is asked."""
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    checkout = open_checkout(make_checkout(tmp_path / "cccl"), re.compile(NAME))
    nvcc = tmp_path / "cuda/bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    source = checkout.folder / "reduce/sum.cu"
    nvcc.write_text(NVCC % {"log": tmp_path / "log", "source": source})
    nvcc.chmod(0o755)
    for name in ("main.a", "libnvbench.so", "libcurand.so"):
        (tmp_path / name).write_text(name)
    library = NvbenchLibrary(
        (str(tmp_path / "include"),),
        tmp_path / "main.a",
        (tmp_path / "libnvbench.so", tmp_path / "libcurand.so"),
    )
    return ProgramCompiler(
        Toolchain(nvcc, "13.2.86", ("sm90",)), library, checkout, "sm90", tmp_path / "programs"
    )


def built(compiler, *labels, **more):
    return build_programs(compiler, compiler.checkout.benchmarks[NAME], WORKLOAD, labels, **more)


def commands(tmp_path):
    return (tmp_path / "log").read_text().splitlines()


@pytest.mark.trees
def test_base_and_variants_are_linked_with_the_helper_which_is_compiled_once(compiler, tmp_path):
    made = built(compiler, GOOD, OTHER, GOOD, "base", slots=2)
    assert made.failed == {}
    assert list(made.programs) == ["base", GOOD, OTHER]
    assert [path.name for path in made.programs.values()] == [
        f"{NAME}.base",
        f"{NAME}.variant",
        f"{NAME}.variant",
    ]
    assert len({path.parent for path in made.programs.values()}) == 3
    assert all(os.access(path, os.X_OK) for path in made.programs.values())
    assert "#define TUNE_ITEMS 9\n" in made.programs[OTHER].read_text()
    helper, *others = commands(tmp_path)
    assert " -c " in helper
    assert len(others) == 3
    for one in others:
        assert "arch=compute_90,code=sm_90" in one
        assert f"-rpath={tmp_path}" in one
        assert re.search(r"programs/\w+\.o ", one)
        assert one.index("main.a") < one.index("libnvbench.so") < one.index("libcurand.so")


@pytest.mark.trees
def test_what_was_built_is_kept_until_something_it_read_changes(compiler, tmp_path):
    first = built(compiler, GOOD)
    for path in first.programs.values():
        path.chmod(0o644)  # as a copy may be that was interrupted
    assert built(replace(compiler), GOOD) == first
    assert all(os.access(path, os.X_OK) for path in first.programs.values())
    assert len(commands(tmp_path)) == 3
    source = compiler.checkout.folder / "reduce/sum.cu"
    source.write_text(SOURCE + "// changed\n")
    built(replace(compiler), GOOD)
    assert len(commands(tmp_path)) == 6


@pytest.mark.trees
def test_a_variant_that_is_refused_costs_itself_alone(compiler):
    made = built(compiler, BAD, "ipt_77.tpb_128", GOOD)
    assert list(made.programs) == ["base", GOOD]
    assert made.failed == {
        BAD: "sum.cu:7: too many items",
        "ipt_77.tpb_128": "it was killed. Is there enough memory?",
    }


@pytest.mark.trees
def test_a_compiler_that_does_not_end_costs_the_variant(compiler, monkeypatch):
    def endless(command, **options):
        if "ITEMS 8\n" in Path(command[-1]).read_text():
            raise ProcessError(command, -15, "it did not finish within 600 seconds")
        return run(command, **options)

    run = compiling.run
    monkeypatch.setattr(compiling, "run", endless)
    made = built(compiler, GOOD)
    assert made.failed[GOOD].startswith("it did not finish within 600 seconds")


@pytest.mark.trees
def test_what_is_no_variants_fault_is_an_error(compiler, monkeypatch):
    with pytest.raises(RefusedError, match="no space left"):
        built(compiler, "ipt_66.tpb_128")
    # What base defines is refused, too.
    monkeypatch.setattr("policygen.gpu.checkout.BASE_MACROS", {"TUNE_ITEMS": "99"})
    with pytest.raises(RefusedError, match="too many items"):
        built(compiler, GOOD)


@pytest.mark.trees
def test_who_waits_is_told_what_is_built(compiler):
    told = []
    built(compiler, GOOD, progress=told.append)
    assert told[0].running == ("nvbench_helper.cu",)
    assert (told[-1].phase, told[-1].done, told[-1].total) == (checkout_module.PHASE, 2, 2)


@slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_real_programs_are_built_and_ask_for_a_driver(tmp_path):
    """Without a GPU they come as far as NVBench, or the driver's library that it needs."""
    checkout = open_checkout(make_checkout(tmp_path / "cccl"), re.compile(NAME))
    toolchain = find_toolchain()
    compiler = ProgramCompiler(
        toolchain, find_library(toolchain), checkout, "sm90", tmp_path / "programs"
    )
    made = built(compiler, GOOD, BAD)
    assert list(made.programs) == ["base", GOOD]
    assert made.failed.keys() == {BAD}
    assert made.failed[BAD].startswith("ptxas: it uses too much shared data")
    for program in made.programs.values():
        done = subprocess.run([program, "--list"], check=False, capture_output=True, text=True)
        assert done.returncode == 0 or re.search(
            r"libnvidia-ml\.so|libcuda\.so|CUDA driver|no CUDA-capable", done.stdout + done.stderr
        )
