"""Programs of which one object has an overlay and another has none: each gets its own policy.

Linked with a runtime that records launches: what the host decides shows without a GPU.
"""

import ctypes
import re
import subprocess
from itertools import permutations

import pytest

from fixtures.databases.every import benchmark_database
from policygen.app.effect import Planned
from policygen.app.inputs import ResultFiles
from policygen.app.overlay import make_overlay
from policygen.app.plan import Options, plan_tunings
from policygen.app.session import open_session
from policygen.bindings.load import bound
from policygen.bindings.words import words
from policygen.model.trees import BoundVersion
from policygen.process import run
from policygen.proof.kernel_calls import DeviceCall
from policygen.proof.probe import workloads
from policygen.proof.toolchain import find_toolchain
from policygen.rendering import fill
from tests.gpu.stub import stub
from tests.probing import root
from tests.tiers import sampled
from tests.toolchain import nvcc

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.slow]

GPU = "Demo H200 (6144, 132, eccon)"
CALLS = {
    "3.6.0": (
        "cub.bench.merge_sort.keys",
        ("I32", "I32"),
        "trp_1.ld_0.ipt_15.tpb_9",
        "#include <cub/device/device_merge_sort.cuh>",
        "cub::DeviceMergeSort::SortKeys(storage, *bytes, in, n, less{})",
        (256, 512),
    ),
    "2.8.2": (
        "cub.bench.partition.three_way",
        ("I32", "I32"),
        "trp_1.ipt_10.tpb_512.ns_404.dcid_1.l2w_710",
        "#include <cub/device/device_partition.cuh>",
        "cub::DevicePartition::If(storage, *bytes, in, in, in, in, in, n, below{}, below{})",
        (320, 512),
    ),
}  # fmt: skip
ORDERS = ["plain-first", "plain-last"]
SOURCE = """
{include}
struct less {{ __host__ __device__ bool operator()(int a, int b) const {{ return a < b; }} }};
struct below {{ __host__ __device__ bool operator()(int a) const {{ return a < 7; }} }};
extern "C" int {name}(void* storage, size_t* bytes, int* in, int n) {{ return {call}; }}
"""


@pytest.fixture(scope="module", params=CALLS)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def folder(version, tmp_path_factory):
    """An overlay, its tuning header alone, and an object of each and of none."""
    folder = tmp_path_factory.mktemp("linked")
    name, workload, label, include, call, _ = CALLS[version]
    benchmark_database(folder / "run.db", name, version, GPU, {workload: label})
    session = open_session(str(root(version)))
    planned: Planned = plan_tunings(
        session, ResultFiles([str(folder / "run.db")]), Options(arch="sm90")
    )
    overlay = make_overlay(session, planned, folder / "tuned-cub").overlay
    (path,) = overlay.replaced
    bare = folder / "bare" / path
    bare.parent.mkdir(parents=True)
    (data,) = planned.changed.values()
    bare.write_bytes(data)
    for side, includes in (("plain", ()), ("tuned", ("tuned-cub",)), ("bare", ("bare",))):
        source = folder / f"{side}.cu"
        function = "with_none" if side == "plain" else "with_overlay"
        source.write_text(SOURCE.format(include=include, name=function, call=call))
        flags = [*(f"-I{folder / name}" for name in includes), f"-I{root(version)}"]
        compiled(source, *flags)
    return folder


def compiled(source, *flags):
    # The last option is nvcc's default before release 13.
    command = [nvcc(), "-c", "-arch=sm_90", "-std=c++17", "-w", "-Xcompiler=-fPIC", *flags]
    command += ["-static-global-template-stub=false"]
    done = subprocess.run([*command, "-o", source.with_suffix(".o"), source], check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return source.with_suffix(".o")


def shared_symbols(first, second):
    """The weak symbols of CUB and Thrust in both objects."""
    both = weak_symbols(first) & weak_symbols(second)
    return {name for name in both if re.search(r"\b(?:cub|thrust)::", name)}


def weak_symbols(path):
    listing = run(["nm", "--defined-only", "-C", str(path)], install="binutils")
    rows = re.findall(r"^[0-9a-f]+ ([A-Za-z]) (.+)$", listing, re.M)
    return {name for kind, name in rows if kind in "WVu"}


def blocks(folder, order):
    """The threads of the largest block that each object launches, linked in an order."""
    runtime = stub()
    library = folder / f"{'-'.join(order)}.so"
    objects = [str(folder / f"{name}.o") for name in order]
    run(["g++", "-shared", "-o", str(library), *objects, str(runtime.path)], install="g++")
    loaded = ctypes.CDLL(str(library))
    launched = {}
    count = 1 << 20
    data = runtime.allocate(8 * count)
    for name in ("with_none", "with_overlay"):
        function, size = getattr(loaded, name), ctypes.c_size_t(0)
        assert function(None, ctypes.byref(size), ctypes.c_void_p(data), count) == 0
        storage = runtime.allocate(size.value)
        runtime.forget()
        place = ctypes.c_void_p(storage)
        assert function(place, ctypes.byref(size), ctypes.c_void_p(data), count) == 0
        rows = [launch for launch in runtime.launches if re.search("Merge|ThreeWay", launch.name)]
        launched[name] = max(launch.block[0] for launch in rows)
        runtime.release(storage)
    runtime.release(data)
    return launched["with_none"], launched["with_overlay"]


@pytest.mark.parametrize("order", [*permutations(["plain", "tuned"])], ids=ORDERS)
def test_each_object_launches_with_its_own_policy(folder, version, order):
    assert shared_symbols(folder / "plain.o", folder / "tuned.o") == set()
    assert blocks(folder, order) == CALLS[version][-1]


@pytest.mark.parametrize("order", [*permutations(["plain", "bare"])], ids=ORDERS)
def test_without_the_namespace_the_objects_share_a_policy_or_a_kernel(folder, version, order):
    """Otherwise the test above would show nothing."""
    shared = shared_symbols(folder / "plain.o", folder / "bare.o")
    none, tuned = CALLS[version][-1]
    if version == "3.6.0":  # the function that selects the policy and launches with it
        assert any("::merge_sort::dispatch<" in name for name in shared)
        assert blocks(folder, order) == ((none, none) if order[0] == "plain" else (tuned, tuned))
    else:  # host code is inlined: one kernel, for one block size, is launched with two
        assert any("DeviceThreeWayPartitionKernel<" in name for name in shared)
        assert blocks(folder, order) == (none, tuned)


# Every algorithm.

VERSIONS = ("2.8.2", "3.0.1", "3.2.0", "3.6.0")
ALGORITHMS = [
    (version, algorithm.algorithm)
    for version in VERSIONS
    for algorithm in bound(BoundVersion(version))
    if any(benchmark.algorithm_call for benchmark in algorithm.benchmarks)
]
REST = [case for case in ALGORITHMS if case != ("3.6.0", "scan")]


@pytest.fixture(scope="module")
def namespaces(tmp_path_factory):
    """The part of an overlay that names symbols, for each version."""
    folder = tmp_path_factory.mktemp("namespaces")
    for version in VERSIONS:
        major, minor, patch = map(int, version.split("."))
        values = {"version": "test", "cub": version, "tag": "policygen_0123456789ab"}
        values |= {"number": major * 100000 + minor * 100 + patch, "digest": "0123456789ab"}
        for library in words().namespaces:
            path = folder / version / library.header
            path.parent.mkdir(parents=True)
            library_values = {**values, "library": library.model_dump()}
            path.write_text(fill("overlay/namespace.cuh.j2", library_values))
    return folder


# namespace cub { inline namespace _V_300600_SM_900 { inline namespace policygen_0123456789ab {
OPENED = re.compile(r"\bnamespace (?:cub|thrust)\s*\{\s*([^{}]*\{?\s*[^{}]*[{}])")
HEADERS = "cub/cub.cuh thrust/sort.h thrust/scan.h thrust/reduce.h thrust/unique.h thrust/copy.h"


@pytest.mark.parametrize("version", VERSIONS)
def test_all_namespaces_of_the_libraries_are_those_of_the_overlay(version, namespaces, tmp_path):
    """What is declared in them has other symbols than without the overlay, whatever it is."""
    source, out = tmp_path / "all.cu", tmp_path / "all.ii"
    source.write_text("".join(f"#include <{name}>\n" for name in HEADERS.split()))
    flags = [f"-I{namespaces / version}", f"-I{root(version)}", "-Xcompiler=-P"]
    command = [str(nvcc()), "-E", "-arch=sm_90", "-std=c++17", "-w", *flags]
    run([*command, "-o", str(out), str(source)], install="cuda")
    rows = [" ".join(match[1].split()) for match in OPENED.finditer(out.read_text())]
    tagged = [row for row in rows if "inline namespace policygen_0123456789ab" in row]
    assert len(tagged) > 100
    # An empty one, and Thrust's own name for CUB
    assert {row for row in rows if row not in tagged} <= {"}", "using namespace ::cub; }"}


@pytest.mark.parametrize(
    ("version", "algorithm"), sampled(ALGORITHMS, ("3.6.0", "scan"), left=REST)
)
def test_no_symbol_of_an_algorithm_can_be_one_without_the_overlay(
    version, algorithm, namespaces, tmp_path
):
    (case,) = (a for a in bound(BoundVersion(version)) if a.algorithm == algorithm)
    benchmark = next(b for b in case.benchmarks if b.algorithm_call)
    dialect = open_session(str(root(version))).cub.dialect
    site = case.site(benchmark.site, dialect) or case.sites[0]
    workload = next(iter(workloads(benchmark, BoundVersion(version))))
    unit = DeviceCall(site, workload, BoundVersion(version), (str(root(version)),))
    source = tmp_path / "unit.cu"
    source.write_text(unit.text)
    made = compiled(source, f"-I{namespaces / version}", f"-I{root(version)}")
    assert untagged_names(made) == []


@pytest.mark.parametrize("macro", ["CUB_WRAPPED_NAMESPACE", "THRUST_CUB_WRAPPED_NAMESPACE"])
def test_no_symbol_of_a_wrapped_cub_can_be_one_without_the_overlay(macro, namespaces, tmp_path):
    *_, include, call, _ = CALLS["3.6.0"]
    source = tmp_path / "unit.cu"
    source.write_text(SOURCE.format(include=include, name="sort", call=f"mine::{call}"))
    flags = [f"-I{namespaces / '3.6.0'}", f"-I{root('3.6.0')}", f"-D{macro}=mine"]
    assert untagged_names(compiled(source, *flags)) == []


def untagged_names(made):
    """The weak symbols and kernels of an object that CUB or Thrust have without an overlay, too."""
    kernels = run([str(find_toolchain().nvcc.with_name("cuobjdump")), "-symbols", str(made)],
                  install="cuda")  # fmt: skip
    device = run(["c++filt"], install="binutils", given="\n".join(re.findall(r"_Z\w+", kernels)))
    names = [*weak_symbols(made), *device.splitlines()]
    assert len(names) > 20
    untagged = re.compile(r"\b(?:cub|thrust)::(?!(?:\w+::)?policygen_0123456789ab)")
    return [name for name in names if untagged.search(name)]
