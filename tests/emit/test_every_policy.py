"""Every public policy: what the header says is selected, and what kernels are compiled for."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from policygen.bindings.load import bound
from policygen.model.trees import BoundVersion
from tests.emit.calls import examples, kernels, tuned_threads
from tests.emit.made import again, every_result, make, opened, proved, working
from tests.planning.wanted import GPUS, benchmark, points, scored
from tests.tiers import slow

# The fast tier has the headers of `policygen emit` in tests/cli/test_emit.py.
pytestmark = [pytest.mark.trees, pytest.mark.nvcc, slow]
VERSIONS = {"3.5.0": 17, "3.6.0": 20}
LOOKAHEAD = re.compile(r"lookahead$|warpspeed$")
UNBOUNDED = {"adjacent_difference"}
"""CUB gives its kernel no launch bounds."""
PLAIN = """
cudaError_t plain(const float* in, float* out, int n, cudaStream_t stream)
{
  const auto env = cuda::std::execution::env{cuda::stream_ref{stream}};
  if (const auto error = cub::DeviceReduce::Reduce(in, out, n, cuda::std::plus<>{}, 0.0f, env))
  {
    return error;
  }
  return cub::DeviceScan::ExclusiveScan(in, out, cuda::std::plus<>{}, 0.0f, n, env);
}
"""
BOTH = """
cudaError_t both(const float* in, float* out, unsigned n, cudaStream_t stream)
{
  using mode  = cuda::execution::determinism::__determinism_t;
  using sums  = my_tunings::reduce<float, unsigned, cuda::std::plus<>, mode::__run_to_run>;
  using scans = my_tunings::scan<const float*, float*, float, unsigned, cuda::std::plus<>, false>;
  const auto env =
    cuda::std::execution::env{cuda::stream_ref{stream}, cuda::execution::tune(sums{}, scans{})};
  if (const auto error = cub::DeviceReduce::Reduce(in, out, n, cuda::std::plus<>{}, 0.0f, env))
  {
    return error;
  }
  return cub::DeviceScan::ExclusiveScan(in, out, cuda::std::plus<>{}, 0.0f, n, env);
}
"""


def results(version):
    """A variant for a few workloads of each benchmark, and for those that two algorithms share."""
    found = every_result(version, wanted=lambda name: not LOOKAHEAD.search(name))
    for name in ("reduce.sum", "scan.exclusive.sum"):
        one = benchmark(version, name)
        found += [
            scored(one, workload, working(one), version, GPUS["sm90"])
            for workload in points(one, version)
            if workload == {"T": "F32", "OffsetT": "I32"}
        ]
    return found


@pytest.fixture(scope="module", params=VERSIONS)
def made(request):
    return make(request.param, results(request.param), VERSIONS[request.param])


def test_every_public_policy_has_a_selector_and_both_languages_say_the_same(made):
    version = made.target.version.text
    named = {s.name for a in bound(BoundVersion(version)) for s in a.selectors}
    assert {one.name for one in made.selectors} == named
    rejected = {a.reason for a in made.actions if a.decision != "write"}
    assert rejected <= {"the variant means different values for each of them"}
    other = again(made.emitter, made.tuned, version, 37 - made.target.std, "sm90")
    with ThreadPoolExecutor() as pool:
        (proof, wrong), (again_proof, again_wrong) = pool.map(proved, (made, other))
    assert wrong == again_wrong == []
    assert proof == again_proof
    shared = sum(len(one.shared) for one in made.tuned)
    written = sum(a.decision == "write" and a.after != a.before for a in made.actions)
    assert proof.changed == written + shared
    assert max(map(len, f"{made.text}{other.text}".splitlines())) <= 120


def test_calls_with_the_selectors_launch_what_they_say(made, tmp_path):
    found = kernels(tmp_path / "unit", made, "".join(examples(made.text)))
    for one in made.tuned:
        bounds = set(found[one.name].values())
        if one.name in UNBOUNDED:
            assert bounds == {None}
        else:
            assert tuned_threads(one), one.name
            assert tuned_threads(one) <= bounds, one.name


def test_two_algorithms_find_their_selectors_in_one_environment(made, tmp_path):
    found = kernels(tmp_path / "unit", made, BOTH)
    assert set(found) == {"reduce", "scan", ""}
    for name in ("reduce", "scan"):
        assert 160 in found[name].values()
    plain = kernels(tmp_path / "plain", made, PLAIN)
    assert set(plain) == {""}
    assert 160 not in plain[""].values()
    assert {256, None} <= set(plain[""].values())


def benchmark_has_variants(action):
    version = action.cccl.removeprefix("v")
    return bool(benchmark(version, action.benchmark.removeprefix("cub.bench.")).parameters)


def test_private_policies_are_refused(made):
    refused = {
        a.benchmark for a in made.emitter.refused if "does not accept a policy selector" in a.reason
    }
    assert refused
    assert all("topk" in name for name in refused)
    others = [a for a in made.emitter.refused if a.benchmark not in refused]
    assert others
    assert all("a header cannot name" in a.reason for a in others if benchmark_has_variants(a))
    assert all("no search space" in a.reason for a in others if not benchmark_has_variants(a))


@pytest.mark.parametrize(("version", "std"), [("3.5.0", 20), ("3.6.0", 17)])
def test_algorithms_of_blackwell_alone_are_tuned_there(version, std):
    wanted = every_result(version, "sm100", lambda name: LOOKAHEAD.search(name) is not None)
    made = make(version, wanted, std, "sm100")
    assert [action.decision for action in made.actions] == ["write"] * len(wanted)
    assert all("lookahead" in one.values["algorithm"] for s in made.selectors for one in s.returns)
    proof, wrong = proved(made)
    assert wrong == []
    assert proof.changed >= len(wanted)
    assert opened(version).version == version
