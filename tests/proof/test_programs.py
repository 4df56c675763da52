"""Policies are read from the names of kernels, and flags of files start nothing."""

import json
from pathlib import Path

import pytest

from policygen.app import calls
from policygen.bindings.load import bound
from policygen.errors import InputError
from policygen.model.trees import BoundVersion
from policygen.proof.programs import (
    benchmark_of,
    headers_in,
    hides_release,
    is_of_library,
    open_object,
    overlay_of,
    policy_in,
    release_of,
    units_of,
    value_type,
)

TAG = "policygen_add143b5e6c3"
IN_360 = "cub::_V_300600_SM_900::"
SORT = (
    f"void {IN_360}detail::merge_sort::DeviceMergeSortBlockSortKernel<{IN_360}detail::merge_sort::"
    "policy_selector_from_types<thrust::_V_300600_SM_900::detail::normal_iterator<"
    "thrust::_V_300600_SM_900::device_ptr<int> > >, int*, less_mod>(bool, int*)"
)
SCAN = (
    f"void {IN_360}{TAG}::detail::scan::DeviceScanKernel<{IN_360}{TAG}::detail::scan::"
    "policy_selector_from_types<signed char*, signed char*, int, unsigned int, "
    f"cuda::std::__4::plus<void>, false>, signed char*, {IN_360}{TAG}::NullType>(signed char*)"
)
OWN = (
    f"void {IN_360}detail::merge_sort::DeviceMergeSortMergeKernel<{IN_360}detail::merge_sort::"
    "policy_selector_from_types<mine::record<int, 3>*>, int>(int)"
)
OLDER = (
    "void cub::CUB_200802_SM_900::detail::radix::DeviceRadixSortOnesweepKernel<"
    "cub::CUB_200802_SM_900::detail::radix::policy_hub<short, cub::CUB_200802_SM_900::NullType, "
    "unsigned int>::Policy900, false, short>(short*)"
)
PAIRS = OLDER.replace("cub::CUB_200802_SM_900::NullType", "int")
WRAPPED = SCAN.replace(f"{IN_360}{TAG}::", "at_cuda_detail::cub::")
THRUST = "void thrust::_V_300600_SM_900::cuda_cub::core::detail::kernel_agent<int>(int)"
READ = [
    (SORT, "3.6.0", "cub.bench.merge_sort.keys", {"T": "I32"}, None),
    (SCAN, "3.6.0", "cub.bench.scan.exclusive.sum", {"T": "I8", "OffsetT": "I32"}, TAG),
    (OWN, "3.6.0", "cub.bench.merge_sort.keys", {}, None),
    (OLDER, "2.8.2", "cub.bench.radix_sort.keys", {"T": "I16", "OffsetT": "I32"}, None),
    (PAIRS, "2.8.2", "cub.bench.radix_sort.pairs",
     {"KeyT": "I16", "ValueT": "I32", "OffsetT": "I32"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "release", "benchmark", "axes", "tag"), READ)
def test_a_name_has_the_algorithm_the_types_and_the_overlay(name, release, benchmark, axes, tag):
    version = BoundVersion(release)
    use = policy_in(name, bound(version))
    found, values = benchmark_of(use, version)
    assert (found.name, values) == (benchmark, axes)
    assert (release_of(name), overlay_of(name)) == (release, tag)
    assert is_of_library(name)


def test_calls_of_a_version_without_a_tree_are_listed_without_values(monkeypatch):
    reason = "no tree of CUB 3.6.0 is here"
    monkeypatch.setattr(calls, "_read", lambda *_: ("sm90", {SORT: 256, "own_kernel(int)": 64}))
    monkeypatch.setattr(calls, "_tree", lambda *_: (None, reason))
    document = calls.list_calls([Path("program.o")], [])
    (call,) = document.calls
    assert (call.algorithm, call.cub, call.benchmark, call.axes) == (
        "merge_sort", "3.6.0", "cub.bench.merge_sort.keys", {"T": "I32"},
    )  # fmt: skip
    assert (call.values, call.why, document.remarks) == ({}, reason, (reason,))
    assert (document.untuned, document.others) == ((), 1)


def test_a_wrapped_namespace_hides_the_version_and_not_the_policy():
    use = policy_in(WRAPPED, bound(BoundVersion("3.6.0")))
    assert use.arguments[:3] == ("signed char*", "signed char*", "int")
    assert (release_of(WRAPPED), is_of_library(WRAPPED)) == (None, True)


HIDING = [
    (WRAPPED, True),
    (f"void at_cuda_detail::cub::{TAG}::detail::EmptyKernel<void>()", True),
    ("void mine::cub::DeviceReduceKernel<mine::cub::NullType>(int)", True),
    (SCAN, False),
    (OLDER, False),
    (THRUST, False),
    ("kernel(int)", False),
]


@pytest.mark.parametrize(("name", "hides"), HIDING)
def test_only_a_wrapped_kernel_of_cub_hides_its_version(name, hides):
    assert hides_release(name) == hides


# PyTorch has a namespace at::cuda::cub of its own.
OTHERS = [
    "void mine::kernel<cub::NullType>(int)",
    "kernel(int)",
    "void at::cuda::cub::impl::transform_vals<int*, cuda::std::__4::plus<void> >(int*)",
    "void at::cuda::cub::final_scan_kernel<256, 16, int>(int const*)",
]


@pytest.mark.parametrize("name", [THRUST, *OTHERS])
def test_other_kernels_have_no_policy(name):
    assert policy_in(name, bound(BoundVersion("3.6.0"))) is None
    assert is_of_library(name) == (name == THRUST)


def scan_of(operator):
    """A scan of 64-bit integers with an operator, as a name has it."""
    return SCAN.replace("signed char*, signed char*, int", "long*, long*, long").replace(
        "cuda::std::__4::plus<void>", operator
    )


@pytest.mark.parametrize(
    ("operator", "benchmark"),
    [
        ("cuda::std::__4::plus<void>", "cub.bench.scan.exclusive.sum"),
        ("cuda::std::__4::plus<long>", "cub.bench.scan.exclusive.sum"),
        ("cuda::__4::maximum<void>", None),
        ("at::cuda::cub::(anonymous namespace)::SumOp<long>", None),
        ("std::plus<long>", None),
    ],
)
def test_a_call_is_that_of_a_benchmark_only_with_its_operator(operator, benchmark):
    """CUB has other policies for operators that it does not know: also for `std::plus`."""
    version = BoundVersion("3.6.0")
    found, axes = benchmark_of(policy_in(scan_of(operator), bound(version)), version)
    assert (found.name if axes else None) == benchmark


def test_the_headers_of_a_kernel_are_those_of_its_algorithm():
    assert headers_in(SORT, bound(BoundVersion("3.6.0"))) == {"tuning_merge_sort.cuh"}
    assert headers_in(THRUST, bound(BoundVersion("3.6.0"))) == frozenset()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int const*", "int"),
        ("int* const", "int"),
        ("thrust::detail::normal_iterator<thrust::device_ptr<int const> >", "int"),
        ("thrust::pointer<char, thrust::cuda_cub::tag, thrust::use_default>", "char"),
        ("mine::iterator<int>", "mine::iterator<int>"),
    ],
)
def test_an_iterator_stands_for_its_values(text, value):
    assert value_type(text) == value


# Flags.


def test_typed_flags_are_passed_on_without_architecture_and_output(tmp_path):
    source = tmp_path / "a.cu"
    source.write_text("")
    flags = "-O3 -I inc -gencode arch=compute_80,code=sm_80 -arch=sm_70 -c -dc -o a.o -MD -MF a.d"
    (unit,) = units_of(source, [*flags.split(), "-Xcompiler=-fPIC", "-ccbin", "g++"])
    assert unit.flags == ("-O3", "-Iinc", "-rdc=true", "-Xcompiler=-fPIC", "-ccbin", "g++")


def commands(folder, *rows):
    path = folder / "compile_commands.json"
    path.write_text(json.dumps([{"directory": str(folder), **row} for row in rows]))
    return path


def test_a_database_of_commands_gives_its_cuda_units(tmp_path):
    (tmp_path / "flags.rsp").write_text("-isystem /opt/cccl -DN=2 --run")
    command = "/usr/bin/nvcc -ccbin evil --options-file flags.rsp -I/in -std=c++17 -c a.cu -o a.o"
    path = commands(
        tmp_path,
        {"command": command, "file": "a.cu"},
        {"command": "g++ -c b.cpp", "file": "b.cpp"},
        {"arguments": ["clang++", "-x", "cu", "-Xclang", "-load", "c.cpp"], "file": "c.cpp"},
    )
    first, second = units_of(path, [])
    assert first.source == tmp_path / "a.cu"
    assert first.flags == ("-isystem=/opt/cccl", "-DN=2", "-I/in", "-std=c++17")
    assert first.left_out == ("-ccbin", "evil")
    assert (second.flags, second.left_out) == (("-x=cu",), ("-Xclang", "-load"))


HOSTILE = ["-ccbin=/tmp/evil", "-Xcompiler=-fplugin=x.so", "--run", "-keep", "@more", "-optf=x"]


@pytest.mark.parametrize("flag", [*HOSTILE, "--dryrun", "-Xptxas=-v", "--pre-include=/etc/passwd"])
def test_flags_of_a_file_start_and_load_nothing(tmp_path, flag):
    path = commands(tmp_path, {"arguments": ["nvcc", flag, "-c", "a.cu"], "file": "a.cu"})
    (unit,) = units_of(path, [])
    assert unit.flags == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "names no unit of CUDA"),
        ("{", "is not a database of compile commands"),
        ('[{"file": "a.cu"}]', "is not a database of compile commands: 'command'"),
        (
            '[{"file": 1, "directory": "/", "command": "x"}]',
            "is not a database of compile commands",
        ),
    ],
)
def test_a_file_that_is_no_database_of_commands_is_refused(tmp_path, text, words):
    path = tmp_path / "compile_commands.json"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        units_of(path, [])


def test_a_source_that_is_missing_is_reported(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        units_of(tmp_path / "a.cu", [])


def test_an_overlay_comes_first_unless_the_flags_place_it(tmp_path):
    source, overlay = tmp_path / "a.cu", tmp_path / "tuned-cub"
    source.write_text("")
    (unit,) = units_of(source, ["-I/cccl"])
    assert unit.with_overlay(overlay) == (("-I/cccl",), (f"-I{overlay}", "-I/cccl"))
    (placed,) = units_of(source, ["-I/cccl", "-isystem", str(overlay)])
    assert placed.with_overlay(overlay) == (
        ("-I/cccl",),
        ("-I/cccl", f"-isystem={overlay}"),
    )


def test_relative_folders_are_those_of_the_command(tmp_path):
    path = commands(tmp_path, {"command": "nvcc -Ituned-cub -I/cccl -c a.cu", "file": "a.cu"})
    (unit,) = units_of(path, [])
    assert unit.with_overlay(tmp_path / "tuned-cub")[0] == ("-I/cccl",)
    assert unit.folder == Path(tmp_path)


def test_an_object_without_machine_code_says_what_to_name(tmp_path):
    path = tmp_path / "host.o"
    path.touch()
    with pytest.raises(InputError) as caught:
        open_object(path, None, "false", tmp_path)
    assert str(caught.value) == (
        f"{path} holds no machine code for GPUs\n  Name a source with its flags."
    )
