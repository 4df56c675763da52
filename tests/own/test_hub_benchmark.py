"""`policygen bench new` for CUB 2.8 to 3.4: a hub in the source, and who can be given none."""

import json
import re
import tomllib

import pytest

from policygen.app.benchmarks import binding_of
from policygen.bindings import load
from policygen.model.bindings import Binding
from policygen.model.trees import BoundVersion
from tests.cli.tuned import run
from tests.own.checkouts import make_benchmarks, place_in
from tests.own.test_new_benchmark import SIZES, SUM, made, new, unknown, written  # noqa: F401
from tests.own.written import write_particles
from tests.tiers import sampled

pytestmark = [pytest.mark.trees]
TREES = ("2.8.2", "3.0.1", "3.1.4", "3.2.0")
CALLS = [
    (version, call)
    for version in TREES
    for algorithm in load.bound(BoundVersion(version))
    for call in algorithm.own
]


def called(value):
    """Names a test by the algorithm that is called."""
    return getattr(value, "algorithm", value)


LATER = sorted(
    {call.algorithm for one in load.bound(BoundVersion("3.6.0")) for call in one.own}
    - {call.algorithm for one in load.bound(BoundVersion("3.0.1")) for call in one.own}
)
FLAGS = f'algorithm = "DeviceSelect::Flagged"\n[types]\nT = "I8"\nInPlace = "true"\n{SIZES}'
PARTITION = 'algorithm = "DevicePartition::If"\noperator = "::cuda::std::logical_not<>"\n'
PARTITION += '[types]\nT = "I8"\n'


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    return {version: make_benchmarks(tmp_path_factory.mktemp("cccl"), version) for version in TREES}


def workload_of(call, like):
    lines = [f'algorithm = "{call.algorithm}"']
    if call.operator:
        lines.append(f'operator = "{call.plain or "::cuda::std::logical_not<>"}"')
    values = {axis: call.defaults.get(axis, "F32") for axis in call.types if axis in like.axes}
    types = [f'{axis} = "{value}"' for axis, value in values.items()]
    return "\n".join([*lines, "[types]", *types, SIZES])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "call"),
    sampled(CALLS, *[one for one in CALLS if one[0] == "3.0.1"][::6]),
    ids=called,
)
def test_every_algorithm_is_written_with_a_binding_that_is_one(
    capsys, trees, tmp_path, version, call
):
    tree = trees[version]
    (like,) = (
        one
        for each in load.bound(BoundVersion(version))
        for one in each.benchmarks
        if one.name == call.like
    )
    source = place_in(tree, f"every/{re.sub(r'[^a-z]+', '_', call.algorithm.lower())}.cu")
    status, out, err = new(capsys, written(tmp_path, workload_of(call, like)), source, "--json")
    assert (status, err) == (0, "")
    (read,) = json.loads(out)["benchmarks"]
    assert {one["label"] for one in read["parameters"]} == {*like.parameters}
    assert all(axis["complete"] for axis in read["subbenches"][0]["axes"])
    binding = Binding.model_validate(tomllib.loads(binding_of(source).read_text()))
    (one,) = binding.benchmarks
    assert one.like == call.like
    assert load.numbers(one.below) <= (3, 6)
    text = source.read_text()
    assert "axis::" not in text
    # What a search varies is in the hub.
    hub = text.partition("#if !TUNE_BASE")[2].partition("#endif")[0]
    assert {*re.findall(r"%RANGE% (\w+)", text)} == {*re.findall(r"\bTUNE_\w+", hub)}
    assert text.count("policy_hub_t") == 2
    assert max(map(len, hub.splitlines())) <= 120


@pytest.mark.slow
def test_the_source_is_what_one_would_write(capsys, trees, tmp_path):
    source, binding = made(capsys, trees["3.0.1"], tmp_path, SUM, "mine/sum.cu")
    for part in (
        "#if !TUNE_BASE\ntemplate <typename AccumT>\nstruct policy_hub_t\n{\n"
        "  struct policy_t : cub::ChainedPolicy<300, policy_t, policy_t>\n",
        "    using delay_constructor_t = nvbench::tl::get<\n      TUNE_DCID,\n",
        "        cub::detail::no_delay_constructor_t<TUNE_L2W>,",
        "static constexpr auto load_modifier = TUNE_LD == 0 ? cub::LOAD_DEFAULT : cub::LOAD_CA;\n",
        "    using ScanPolicyT = cub::AgentScanPolicy<\n      TUNE_TPB, TUNE_IPT, AccumT,",
        "  using MaxPolicy = policy_t;\n",
        "#if TUNE_BASE\n  using dispatch_t = cub::DispatchScan<\n",
        "cub::ForceInclusive::No, policy_hub_t<accum_t>>;\n#endif // !TUNE_BASE\n",
        "  NVBENCH_CUDA_CALL(run(nullptr, bytes, nullptr));\n",
        "  state.exec(nvbench::exec_tag::no_batch, [&](nvbench::launch& launch) {\n",
        "storage.data()), bytes, launch.get_stream()));\n",
    ):
        assert part in source
    assert "cub_bench_env" not in source
    one = binding["benchmark"][0]
    assert ("since" in one, one["since"], one["below"]) == (True, "3.0", "3.5")


@pytest.mark.slow
def test_an_earlier_one_has_the_template_arguments_of_its_version(capsys, trees, tmp_path):
    source, binding = made(capsys, trees["2.8.2"], tmp_path, SUM, "mine/sum.cu")
    assert "offset_t, accum_t, policy_hub_t<accum_t>>;" in source
    one = binding["benchmark"][0]
    assert (one.get("since"), one["below"]) == (None, "3.0")


@pytest.mark.slow
def test_a_run_that_changes_nothing_it_reads_is_timed_as_a_whole(capsys, trees, tmp_path):
    source, _ = made(capsys, trees["3.2.0"], tmp_path, FLAGS, "mine/flags.cu")
    assert "timer" not in source
    assert "InPlace::value ? cub::SelectImpl::SelectPotentiallyInPlace" in source


def test_a_functor_that_no_header_has_is_declared(capsys, trees, tmp_path):
    text = f'algorithm = "DevicePartition::If three ways"\n[types]\nT = "I16"\n{SIZES}'
    source, _ = made(capsys, trees["3.0.1"], tmp_path, text, "mine/thirds.cu")
    assert "struct less_than_t\n" in source
    assert "less_then_t" not in source
    assert "less_than_t<T>{third}" in source


@pytest.mark.slow
def test_names_of_ones_own_reach_the_source(capsys, trees, tmp_path):
    source = place_in(trees["2.8.2"], "mine/particles.cu")
    assert new(capsys, write_particles(tmp_path), source)[0] == 0
    text = source.read_text()
    assert '#include "particle.cuh"\n' in text
    assert "using op_t = ::sim::heavier;" in text
    assert "  using dispatch_t = cub::DispatchReduce<const T*" in text


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", LATER)
def test_what_can_be_given_no_policy_is_refused(capsys, trees, tmp_path, algorithm):
    source = place_in(trees["3.0.1"], "refused/other.cu")
    text = f'algorithm = "{algorithm}"\n[types]\nT = "F32"\n{SIZES}'
    status, _, err = new(capsys, written(tmp_path, text), source)
    assert status == 2
    assert f"CUB 3.0.1 does not accept a policy for {algorithm}\n  CUB 3." in err
    assert "name such a tree with --cub." in err
    assert not source.exists()


def test_a_workload_that_no_class_runs_is_refused(capsys, trees, tmp_path):
    source = place_in(trees["3.0.1"], "refused/distinct.cu")
    text = f'{PARTITION}DistinctPartitions = "true"\n{SIZES}'
    status, _, err = new(capsys, written(tmp_path, text), source)
    assert status == 2
    assert "CUB 3.0.1 does not accept a policy for cub.bench.partition.if T=I8" in err
    assert "DistinctPartitions=true" in err
    assert "CUB 3.5 and later do" in err


@pytest.mark.slow
def test_other_commands_need_a_public_api_that_takes_policies(capsys, trees, tmp_path):
    workload = written(tmp_path, SUM)
    status, _, err = run(
        capsys, "measure", "--workload", workload, "--cub", trees["3.0.1"], "--compile-only"
    )
    assert status == 2
    assert "CUB 3.0.1 does not accept policy selectors in its public API" in err


@pytest.mark.slow
@pytest.mark.nvcc
def test_commands_know_it_by_its_binding(capsys, trees, tmp_path, unknown):  # noqa: F811
    tree, name = trees["3.0.1"], "cub.bench.known.sum"
    source = place_in(tree, "known/sum.cu")
    assert new(capsys, written(tmp_path, SUM), source)[0] == 0
    settings = tmp_path / "settings.toml"
    settings.write_text(f"bindings = {json.dumps(str(binding_of(source)))}\n")
    load.bindings.cache_clear()
    load.bound.cache_clear()
    given = ("--config", settings, "--cub", tree, "-R", name, "--arch", "sm90")
    status, out, err = run(capsys, "resolve", *given, "--json")
    assert status == 0, err
    (row,) = json.loads(out)["rows"]
    assert (row["benchmark"], row["status"]) == (name, "tuned")
