"""The tables `[[hub]]`: what stands in them is there in every version that they hold for."""

import re

import pytest

from policygen.bindings.load import bound
from policygen.model.trees import BoundVersion

VERSIONS = ("2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.3.4", "3.4.2", "3.5.0", "3.6.0")
DISPATCHES = [
    pytest.param(algorithm, hub, dispatch, id=f"{version} {name} {number}")
    for version in VERSIONS
    for algorithm in bound(BoundVersion(version))
    for hub in algorithm.hubs
    for number, dispatch in enumerate(hub.dispatches)
    for name in dispatch.benchmarks[:1]
]
LABEL = re.compile(r"\{(\w+)\}")


@pytest.mark.parametrize(("algorithm", "hub", "dispatch"), DISPATCHES)
def test_a_hub_has_every_parameter_of_its_benchmarks(algorithm, hub, dispatch):
    known = {one.name: one for one in algorithm.benchmarks}
    texts = " ".join([*hub.constants.values(), *hub.policies.values()])
    named = {*LABEL.findall(texts), *(label for one in hub.delays.values() for label in one)}
    for name in dispatch.benchmarks:
        assert known[name].site == hub.site
        assert named == {*known[name].parameters}


@pytest.mark.parametrize(("algorithm", "hub", "dispatch"), DISPATCHES)
def test_calls_name_buffers_and_sizes_of_the_run(algorithm, hub, dispatch):
    runs = [one for one in algorithm.runs if {*dispatch.benchmarks} <= {*one.benchmarks}]
    words = {*re.findall(r"\w+", dispatch.call + " ".join(dispatch.setup))}
    assert any({*one.buffers} <= words | {"values_in", "values_out"} for one in runs)
    assert {"storage", "bytes", "stream"} <= words


def test_what_the_public_api_takes_a_policy_for_needs_no_hub():
    assert not [one for one in DISPATCHES if one.id.startswith(("3.5", "3.6"))]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_workload_that_can_be_named_is_like_a_benchmark_of_its_version(version):
    for algorithm in bound(BoundVersion(version)):
        for call in algorithm.own:
            assert call.like in {one.name for one in algorithm.benchmarks}
