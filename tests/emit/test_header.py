import re

import pytest

from tests.emit.calls import examples, kernels, tuned_threads
from tests.emit.made import again, every_result, make
from tests.planning.wanted import GPUS, benchmark, scored
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]


@pytest.mark.slow
def test_what_a_database_says_stays_in_its_comment():
    one = benchmark("3.6.0", "reduce.deterministic")
    gpu = f"{GPUS['sm90'].partition(' ')[0]}\n#error \\"
    workload = {"T": "F32", "OffsetT": "I32"}
    result = scored(one, workload, "ipt_9.tpb_160", "3.6.0", gpu)
    hostile = result.model_copy(
        update={"databases": ("a\\\n#error b.db\\",), "ctk": "13\r\n#error"}
    )
    made = make("3.6.0", [hostile])
    head = made.text.partition("#pragma once")[0].rstrip().splitlines()
    assert all(row.startswith("//") and not row.endswith("\\") for row in head)
    assert "// Measured on H200 #error \\, CUDA 13 #error, CCCL v3.6.0: a\\ #error b.db" in head


@pytest.mark.slow
def test_selectors_of_one_policy_are_not_shown_in_one_environment():
    names = ("reduce.deterministic", "reduce.nondeterministic")
    workload = {"T": "F32", "OffsetT": "I32"}
    label = {
        "reduce.deterministic": "ipt_9.tpb_160",
        "reduce.nondeterministic": "ipt_9.tpb_160.ipv_1",
    }
    results = [
        scored(benchmark("3.6.0", name), workload, label[name], "3.6.0", GPUS["sm90"])
        for name in names
    ]
    made = make("3.6.0", results)
    assert [one.name for one in made.selectors] == [
        "deterministic_reduce",
        "nondeterministic_reduce",
    ]
    assert "//   cuda::execution::tune(" not in made.text


ARG_ALIASES = {
    "3.5.0": """
using arg_max = ::cub::detail::arg_max;
using arg_min = ::cub::detail::arg_min;
""",
    "3.6.0": """
using arg_max          = ::cub::detail::arg_max;
using arg_min          = ::cub::detail::arg_min;
using arg_min_last_max = ::cub::detail::arg_minmax_reduce_op<::cuda::std::less<>, true>;
template <typename T, typename IndexT>
using arg_minmax_accum = ::cub::detail::argminmax_accum_t<T, IndexT>;
""",
}
ARGS = {
    "reduce.arg_extrema": "ArgMin(in, extremum, index, num_items, env)",
    "reduce.arg_minmax": (
        "ArgMinLastMax(in, minimum, minimum_at, maximum, maximum_at, num_items, env)"
    ),
    "segmented_reduce.argmin": "ArgMin(in, out, num_segments, segment_size, env)",
}

ARG_CASES = [("3.5.0", name) for name in ARGS if "minmax" not in name]
ARG_CASES += [("3.6.0", name) for name in ARGS]


@pytest.mark.slow
@pytest.mark.parametrize("version", ARG_ALIASES)
def test_what_cub_keeps_to_itself_is_named_once_and_all_else_is_short(version):
    results = every_result(version, wanted=lambda name: name.removeprefix("cub.bench.") in ARGS)
    made = make(version, results)
    assert f"API.{ARG_ALIASES[version]}\n//! What" in made.text
    other = again(made.emitter, made.tuned, version, 17, "sm90")
    assert max(map(len, f"{made.text}{other.text}".splitlines())) <= 120
    code = made.text.partition(ARG_ALIASES[version])[2]
    assert set(re.findall(r"cub::detail::[\w:]+", code)) == {
        "cub::detail::reduce::policy_selector_from_types",
        "cub::detail::segmented_reduce::policy_selector_from_types",
    }


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name"), sampled(ARG_CASES, *ARG_CASES[-2:]))
def test_the_example_of_an_arg_reduction_is_the_call_that_finds_the_selector(
    version, name, tmp_path
):
    made = make(version, every_result(version, wanted=lambda one: one.endswith(name)))
    assert ARGS[name] in made.text
    found = kernels(tmp_path / "unit", made, "".join(examples(made.text)))
    (one,) = made.tuned
    assert tuned_threads(one) <= set(found[one.name].values())


@pytest.mark.slow
def test_the_example_for_maxima_alone_asks_for_maxima():
    one = benchmark("3.6.0", "reduce.arg_extrema")
    workload = {"T": "F32", "Operation": "arg_max"}
    result = scored(one, workload, "ipt_11.tpb_160.ipv_1", "3.6.0", GPUS["sm90"])
    text = make("3.6.0", [result]).text
    assert "cub::DeviceReduce::ArgMax(in, extremum, index, num_items, env)" in text
    assert "ArgMin" not in text
