"""The kernels of each device API call carry the policy that the binding asks for."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from policygen.bindings.load import bound
from policygen.errors import PolicygenError
from policygen.model.trees import BoundVersion
from policygen.paths import cache_folder
from policygen.process import threads, workers_of
from policygen.proof.kernel_build import Tools
from policygen.proof.kernel_calls import WorkloadFilters, calls
from policygen.proof.kernel_units import KernelCompiler
from policygen.proof.probe import workloads
from policygen.proof.toolchain import find_toolchain
from policygen.proof.units import SiteQuery, context
from policygen.trees import open_tree
from tests.real_trees import tree
from tests.tiers import sampled
from tests.toolchain import compile_to_ptx

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

UNIT = """
{includes}
#include <cuda/std/functional>
CUB_NAMESPACE_BEGIN
namespace policygen_probe {{
struct user_op {{
  template <class T> __host__ __device__ bool operator()(const T&) const {{ return true; }}
  template <class T> __host__ __device__ T operator()(const T& l, const T&) const {{ return l; }}
}};
struct user_map {{
  template <class T> __host__ __device__ T operator()(T value) const {{ return value; }}
  template <class T> __host__ __device__ T operator()(T a, T b, T c) const {{ return a + b * c; }}
}};
template <class Op, class T> using accumulator = ::cuda::std::decay_t<
  decltype(::cuda::std::declval<Op&>()(::cuda::std::declval<T>(), ::cuda::std::declval<T>()))>;
template <class T> using offset =
  ::cuda::std::conditional_t<(sizeof(T) <= 4), ::cuda::std::uint32_t, unsigned long long>;
template <class Policy> __global__ void marker() {{}}
}}
{opening}
namespace policygen_call {{
using namespace policygen_probe;
struct axis {{ {axes} }};
{roles}
using hub = {hub};
void call(void* storage, size_t& bytes, int n) {{
  marker<{policy}><<<1, 1>>>();
  {call};
}}
}}
{closing}
CUB_NAMESPACE_END
"""


def unit(site, benchmark, version):
    section = SiteQuery(site, workloads(benchmark, BoundVersion(version))[:1], ("sm90",))
    known = context([section], BoundVersion(version))
    (row,) = known["sections"][0]["workloads"]
    namespaces = site.namespace.split("::")
    roles = [f"using {name} = {cpp};" for name, cpp in row["roles"].items()]
    roles += [f"static constexpr auto {n} = {cpp};" for n, cpp in row["constants"].items()]
    newest = f"typename hub::{site.max_policy}"
    return UNIT.format(
        includes="\n".join(f"#include <{h}>" for h in (benchmark.call_header, *known["includes"])),
        opening=" ".join(f"namespace {name} {{" for name in namespaces),
        closing="}" * len(namespaces),
        axes=" ".join(row["axes"]),
        roles="\n".join(roles),
        hub=site.hub,
        policy="hub" if site.dialect == "selectors" else newest,
        call=benchmark.algorithm_call,
    )


def kernels(ptx):
    """The demangled names of the kernels, that of the marker apart."""
    names = re.findall(r"\.entry (\w+)", ptx)
    done = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
    )
    marker, *_ = [n for n in done.stdout.splitlines() if "policygen_probe::marker<" in n]
    policy = marker.partition("marker<")[2].rpartition(">(")[0].strip()
    return policy, [name for name in done.stdout.splitlines() if "marker<" not in name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "dialect", "share"),
    sampled(
        [
            (version, dialect, share)
            for version, dialect in [("3.0.1", "specializations"), ("3.6.0", "selectors")]
            for share in range(6)
        ],
        ("3.6.0", "selectors", 0),
    ),
)
def test_the_kernels_of_each_call_carry_the_policy_that_the_binding_names(
    version, dialect, share, tmp_path
):
    called = [
        (site, benchmark) for site, benchmark in called_at(version, dialect) if benchmark.writable
    ]
    assert len(called) >= 18
    check_policies(called[share::6], version, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "dialect", "count"),
    sampled(
        [
            ("2.8.2", "specializations", 2),
            ("3.1.4", "specializations", 3),
            ("3.6.0", "selectors", 6),
        ],
        ("3.6.0", "selectors", 6),
    ),
)
def test_those_of_benchmarks_without_a_search_space_do_so_too(version, dialect, count, tmp_path):
    called = [(s, b) for s, b in called_at(version, dialect) if not b.parameters]
    assert len(called) == count
    check_policies(called, version, tmp_path)


def called_at(version, dialect):
    """The benchmarks that have a call, with the sites that decide them."""
    return [
        (site, benchmark)
        for algorithm in bound(BoundVersion(version))
        for benchmark in algorithm.benchmarks
        if benchmark.algorithm_call
        if (site := algorithm.site(benchmark.site, dialect)) is not None
    ]


def check_policies(called, version, folder):
    """Compiles each call, and looks whether a kernel's name has the policy in it."""
    root = tree(version)

    def one(job):
        site, benchmark = job
        source = folder / f"{benchmark.name}.cu"
        source.write_text(unit(site, benchmark, version))
        done = compile_to_ptx(source, root)
        assert done.returncode == 0, f"{benchmark.name}: {done.stderr[:3000]}"
        policy, names = kernels(source.with_suffix(".ptx").read_text())
        return benchmark.name, policy, names

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, policy, names in pool.map(one, called):
            assert any(policy in kernel for kernel in names), f"{name}: {policy}\n{names}"


# Clusters of blocks need it: elsewhere there is no kernel at all.
NEEDS = {"cub.bench.segmented_topk.variable.indexed.cluster": "sm90"}
ARCHS = ("sm75", "sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm110", "sm120", "sm121")


SHARES = 18
VERSIONS = ("2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0")
EACH = [(version, share) for version in VERSIONS for share in range(SHARES)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "share"),
    sampled(
        EACH,
        ("3.0.1", 0),
        left=[(version, share) for version, share in EACH if share and version != "3.6.0"],
    ),
)
def test_every_benchmark_compiles_to_machine_code(version, share):
    """One workload of each, the architectures in turns; the benchmarks in shares."""
    cub = open_tree(tree(version))
    found, _ = calls(cub, cub.include_folders, WorkloadFilters(re.compile(""), {}))
    names = {benchmark.name for a in bound(BoundVersion(version)) for benchmark in a.benchmarks}
    without = {name for name in names if name.startswith("cub.bench.transform.tile.")}
    assert {benchmark for benchmark, _ in found} == names - without
    last = {
        benchmark: (point, called) for point, called in found.items() for benchmark in [point[0]]
    }
    wanted = [
        ((point, NEEDS.get(name, ARCHS[i % len(ARCHS)])), called)
        for i, (name, (point, called)) in enumerate(sorted(last.items()))
        if i % SHARES == share
    ]
    toolchain = find_toolchain()
    tools = Tools.of(toolchain)
    with threads(workers_of(None)) as pool:
        compiler = KernelCompiler(tools, cache_folder(), pool)
        # A release is always the same: nobody has to ask the preprocessor what its headers hold.
        contents = {unit.headers(arch): f"CUB {version}" for (_, arch), unit in wanted}
        made = compiler.kernels(wanted, contents, listed=False)
    refused = [
        f"{spot}: {one}"
        for (spot, _), one in zip(wanted, made, strict=True)
        if isinstance(one, PolicygenError)
    ]
    assert not refused, "\n".join(refused)
    for (spot, _), kernels in zip(wanted, made, strict=True):
        assert [k.name for k in kernels if "EmptyKernel" not in k.name], spot
