"""Benchmarks that were written compile with NVBench; a variant has the policy that is measured."""

import subprocess

import pytest

from policygen.app.benchmarks import new_benchmark
from policygen.app.own_workloads import read_workload, with_own
from policygen.app.session import with_detected_bindings
from policygen.bindings.own_workloads import own_binding
from policygen.gpu.opened import ask_public
from policygen.model.workload import parse_label
from policygen.proof.kernel_calls import find_nvbench
from policygen.proof.toolchain import find_toolchain
from policygen.trees import open_tree
from tests.own.checkouts import HELPER, make_benchmarks, place_in
from tests.own.written import write_particles
from tests.tiers import slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
SIZES = "[[size]]\nelements = 65536\n"
SUM = f'algorithm = "DeviceScan::ExclusiveScan"\n[types]\nT = "I8"\nOffsetT = "I32"\n{SIZES}'
FLAGS = f'algorithm = "DeviceSelect::Flagged"\n[types]\nT = "F64"\nInPlace = "true"\n{SIZES}'
PARTITION = 'algorithm = "DevicePartition::If"\noperator = "::cuda::std::logical_not<>"\n'
PARTITION += f'[types]\nT = "I16"\nOffsetT = "I32"\n{SIZES}'
DELAYED = "ns_592.dcid_4.l2w_835"
OPTIONS = ("-ptx", "-w", "-std=c++17", "-DNDEBUG", "--extended-lambda", "-arch=sm_90")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    tree = make_benchmarks(tmp_path_factory.mktemp("cccl"))
    helper = tree / "nvbench_helper.cuh"
    helper.write_text(HELPER)
    return tree


def measured(checkout, workload, variant):
    """Every field of the policy that `policygen measure` gives a variant."""
    cub = with_own(with_detected_bindings(open_tree(checkout)), read_workload(workload))
    own = own_binding(cub.bindings)
    (one,) = ask_public(cub, [own.benchmark], "sm90", find_toolchain()).values()
    return one.policy(variant)


def compiles(checkout, source, text, folder):
    unit = folder / "unit.cu"
    unit.write_text(text)
    places = (source.parent, checkout, *find_nvbench(None, folder))
    command = [str(find_toolchain().nvcc), *OPTIONS, *(f"-I{one}" for one in places)]
    done = subprocess.run(
        [*command, str(unit), "-o", str(folder / "unit.ptx")],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:4000]
    return (folder / "unit.ptx").read_text()


def variant_of(checkout, folder, workload, arguments, label):
    """Compiles a variant, and asserts on the way that its policy is the measured one."""
    source = place_in(checkout, f"mine/{workload.stem}.cu")
    (one,) = new_benchmark(workload, source, force=True).benchmarks
    values = parse_label(label)
    assert list(values) == [each.label for each in one.parameters]
    lines = [f"#define {each.macro} {values[each.label]}" for each in one.parameters]
    lines += [f"#include <{source.name}>"]
    chosen = f"policy_selector<{arguments}>{{}}(::cuda::compute_capability{{90}})"
    lines += [f"constexpr auto chosen = {chosen};"]
    fields = measured(checkout, workload, values)
    assert fields
    lines += [f"static_assert(chosen.{path} == {value});" for path, value in fields.items()]
    return compiles(checkout, source, "\n".join([*lines, ""]), folder)


@pytest.mark.slow
def test_structs_and_functors_of_ones_own(checkout, tmp_path):
    """3 items of 24 bytes are made of 18 of 4, and fewer threads fit."""
    ptx = variant_of(
        checkout, tmp_path, write_particles(tmp_path),
        "sim::Particle, unsigned long long, sim::heavier", "ipt_18.tpb_1024.ipv_1",
    )  # fmt: skip
    assert "DeviceReduceKernel" in ptx


@pytest.mark.slow
def test_base_is_what_cub_selects(checkout, tmp_path):
    workload = tmp_path / "sum.toml"
    workload.write_text(SUM)
    source = place_in(checkout, "mine/base.cu")
    new_benchmark(workload, source)
    text = f"#define TUNE_BASE 1\n#define TUNE_T double\n#include <{source.name}>\n"
    ptx = compiles(checkout, source, text, tmp_path)
    assert "policy_selector_from_typesIPdS" in ptx


@slow
@pytest.mark.parametrize(
    ("text", "arguments", "label"),
    [
        (
            SUM,
            "::cuda::std::int8_t, ::cuda::std::int8_t, int, unsigned, ::cuda::std::plus<>",
            f"ipt_22.tpb_256.{DELAYED}.trp_1.ld_0",
        ),
        (FLAGS, "double, bool, true", f"trp_0.ld_1.ipt_9.tpb_320.{DELAYED}.pf_2"),
        (
            PARTITION,
            "::cuda::std::int16_t, cub::NullType, false, int",
            f"trp_1.ld_0.ipt_12.tpb_512.{DELAYED}",
        ),
    ],
    ids=["scan", "flagged", "partition"],
)
def test_policies_of_other_algorithms(checkout, tmp_path, text, arguments, label):
    workload = tmp_path / "other.toml"
    workload.write_text(text)
    variant_of(checkout, tmp_path, workload, arguments, label)
