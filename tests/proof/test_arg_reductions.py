"""Reductions that tell where the extremum is: what the API's own calls select, and `resolve`."""

import re
import subprocess

import pytest

from policygen.app.filters import Filter
from policygen.app.resolve import ask_values
from policygen.proof.reading import read_tree
from policygen.trees import open_tree
from tests.probing import root
from tests.tiers import sampled
from tests.toolchain import compile_to_ptx

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

INCLUDED = "#include <cub/device/device_reduce.cuh>\n"
CALLS = """
void call(void* storage, size_t& bytes, const int* a, const double* b, const signed char* c,
          int* a_out, double* b_out, signed char* c_out, long* at, long n)
{
  cub::DeviceReduce::ArgMin(storage, bytes, a, a_out, at, n, cuda::std::less{});
  cub::DeviceReduce::ArgMax(storage, bytes, b, b_out, at, n, cuda::std::less{});
"""
BOTH = "  cub::DeviceReduce::ArgMinLastMax(storage, bytes, c, c_out, at, c_out, at, n);\n"
ROW = """
constexpr auto policy_{i} = ({selector}{{}})(::cuda::compute_capability{{{cc}}}).multi_tile;
template <int...> struct answer_{i} {{}};
__global__ void kernel_{i}(answer_{i}<
  policy_{i}.threads_per_block, policy_{i}.items_per_thread, policy_{i}.vec_size,
  policy_{i}.load_modifier == cub::LOAD_DEFAULT, policy_{i}.load_modifier == cub::LOAD_LDG>) {{}}
"""
ARCHS = {"sm90": "9, 0", "sm100": "10, 0", "sm107": "10, 7"}
LOADS = {("1", "0"): "LOAD_DEFAULT", ("0", "1"): "LOAD_LDG"}


def compiled_names(folder, version, text):
    """The demangled names of the kernels of a source."""
    source = folder / "asked.cu"
    source.write_text(INCLUDED + text)
    done = compile_to_ptx(source, root(version))
    assert done.returncode == 0, done.stderr
    mangled = re.findall(r"\.entry (\w+)", source.with_suffix(".ptx").read_text())
    named = subprocess.run(["c++filt", *mangled], capture_output=True, text=True, check=True)
    return named.stdout.splitlines()


def called(selector):
    """The workload whose kernels have a policy selector."""
    if "argminmax_accum_t" in selector:
        return "cub.bench.reduce.arg_minmax", "I8", None
    if "swap_args" in selector:
        return "cub.bench.reduce.arg_extrema", "F64", "arg_max"
    return "cub.bench.reduce.arg_extrema", "I32", "arg_min"


def selected(folder, version, calls):
    """What the selectors of the calls' kernels say, by workload and architecture."""
    names = compiled_names(folder, version, CALLS + calls + "}")
    of = r"DeviceReduceKernel<(.*?policy_selector_from_types<.*?, \(.*?__determinism_t\)\d>)"
    selectors = sorted({found[1] for name in names if (found := re.search(of, name))})
    keys = [(selector, arch) for selector in selectors for arch in ARCHS]
    rows = [ROW.format(i=i, selector=s, cc=ARCHS[a]) for i, (s, a) in enumerate(keys)]
    told = {}
    for name in compiled_names(folder, version, "".join(rows)):
        i, values = re.fullmatch(r"kernel_(\d+)\(answer_\d+<(.*)>\)", name).groups()
        threads, items, vectors, *load = values.replace("(bool)", "").split(", ")
        selector, arch = keys[int(i)]
        told[*called(selector), arch] = (
            int(threads),
            int(items),
            int(vectors),
            LOADS[tuple(load)],
        )
    return told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "calls"), sampled([("3.6.0", BOTH), ("3.5.0", "")], ("3.6.0", BOTH))
)
def test_they_get_what_the_kernels_of_the_real_calls_have(version, calls, tmp_path):
    real = selected(tmp_path, version, calls)
    asked = Filter(("reduce",), "cub.bench.reduce.arg_", ("T=[I8,I32,F64]",), tuple(ARCHS))
    found, errors = ask_values(read_tree(open_tree(root(version)), asked.headers), asked)
    names = ("threads", "items", "items_per_vec_load", "load_modifier")
    ours = {
        (row.benchmark, row.workload["T"], row.workload.get("Operation"), row.arch): tuple(
            row.values[name] for name in names
        )
        for row in found.rows
    }
    assert errors == ()
    assert len(real) == len(ARCHS) * (3 if calls else 2)
    assert {key: ours[key] for key in real} == real
    if version == "3.6.0":
        assert real["cub.bench.reduce.arg_extrema", "I32", "arg_min", "sm107"] == (
            *(256, 16, 4),
            "LOAD_DEFAULT",
        )
