"""What a policy shows for an entry, and which entry gives a policy what it has."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygen.bindings.load import bound
from policygen.bindings.variants import (
    expected_values,
    kept_members,
    member_values,
    threads_that_fit,
    value_name,
)
from policygen.errors import InputError
from policygen.model.trees import BoundVersion
from tests.tiers import slow

VERSIONS = ("3.0.1", "3.2.0", "3.6.0")
FAMILIES = [
    pytest.param(
        *(version, algorithm, family, site),
        id=f"{version} {site.namespace} {family.name}",
        marks=() if version == "3.0.1" else slow,
    )
    for version in VERSIONS
    for algorithm in bound(BoundVersion(version))
    for family in algorithm.families
    if (site := algorithm.site(family.site, "specializations")) is not None
]


WRITTEN = [
    one
    for one in FAMILIES
    if any(b.site == one.values[2].site and b.writable for b in one.values[1].benchmarks)
]
"""A policy that takes the values of another benchmark's has a family, and nothing is written."""


def roles(family):
    return {rule.unit.of for rule in family.members.values() if rule.unit}


def labels(family):
    for rule in family.members.values():
        yield from rule.delay or ((rule.parameter,) if rule.parameter else ())


@pytest.mark.parametrize(
    ("version", "algorithm", "family", "site"),
    [
        one if number % 4 == 0 else pytest.param(*one.values, id=one.id, marks=slow)
        for number, one in enumerate(WRITTEN)
    ],
)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_entry_that_keeps_values_gives_them_again(version, algorithm, family, site, data):
    """For each benchmark whose variants are written in the family, and any sizes."""
    benchmarks = [b for b in algorithm.benchmarks if b.site == family.site and b.writable]
    benchmark = data.draw(st.sampled_from(benchmarks))
    variant = {}
    for name, space in benchmark.parameters.items():
        start, end, step = (int(part) for part in space.split(":"))
        variant[name] = data.draw(st.sampled_from(range(start, end + 1, step)))
    size = st.sampled_from((1, 2, 4, 8, 16))
    units = roles(family) | {unit.of for unit in benchmark.units.values()}
    sizes = {role: data.draw(size) for role in sorted(units)}
    if not set(labels(family)) <= variant.keys():
        return
    try:
        members = member_values(family, benchmark, variant, sizes)
    except InputError:
        return  # the header's unit has no count for it
    shown = expected_values(site, family, members, sizes)
    kept = kept_members(site, family, shown, sizes)
    assert kept is not None
    assert list(kept) == list(family.members)
    assert expected_values(site, family, kept, sizes) == shown
    for name, rule in family.members.items():
        if rule.unit is None:
            assert kept[name] == members[name]


@pytest.mark.parametrize(("version", "algorithm", "family", "site"), FAMILIES)
def test_every_member_shows_in_the_policy(version, algorithm, family, site):
    """One that does not could change unseen, and nothing would tell whether it is as written."""
    assert all(value_name(site, name, rule) for name, rule in family.members.items())


def one(name, namespace="detail::reduce"):
    return next(
        (p.values[3], p.values[2])
        for p in FAMILIES
        if (p.values[0], p.values[2].name, p.values[3].namespace) == ("3.0.1", name, namespace)
    )


def test_threads_that_would_not_fit_into_shared_memory_are_fewer():
    site, family = one("sm100_tuning")
    members = {"items": "24", "threads": "1024", "items_per_vec_load": "2"}
    found = expected_values(site, family, members, {"AccumT": 16})
    assert found == {"items": 6, "threads": threads_that_fit(1024, 6, 16), "items_per_vec_load": 2}
    assert found["threads"] == 512


def test_truth_values_and_names_are_what_they_are():
    site, family = one("sm100_tuning", "detail::histogram")
    members = {"rle_compress": "true", "work_stealing": "false", "mem_preference": "SMEM"}
    assert expected_values(site, family, members, {}) == {
        "rle_compress": True,
        "work_stealing": False,
        "mem_preference": "SMEM",
    }
    members["mem_preference"] = "::cub::BlockHistogramMemoryPreference::SMEM"
    assert expected_values(site, family, members, {})["mem_preference"] == "SMEM"
    shown = dict.fromkeys(site.values, 1) | {"rle_compress": True, "work_stealing": False}
    kept = kept_members(site, family, shown, {})
    assert (kept["rle_compress"], kept["work_stealing"], kept["items"]) == ("true", "false", "1")


def test_a_count_in_a_unit_shows_as_items():
    site, family = one("sm100_tuning", "detail::select")
    found = expected_values(site, family, {"nominal_4b_items": "20"}, {"InputT": 8})
    assert found == {"items": 10}


@pytest.mark.parametrize("gone", ["threads", "items"])
def test_a_value_that_is_not_shown_cannot_be_kept(gone):
    site, family = one("sm100_tuning")
    shown = {"items": 6, "threads": 256, "items_per_vec_load": 2}
    del shown[gone]
    assert kept_members(site, family, shown, {"AccumT": 4}) is None


def test_a_member_that_the_policy_does_not_have_has_no_name_there():
    site, family = one("sm100_tuning")
    rule = family.members["items_per_vec_load"]
    assert value_name(site, "else", rule) is None
    other = family.model_copy(update={"members": {**family.members, "else": rule}})
    assert expected_values(site, other, {"else": "4"}, {}) == {}


def test_items_that_the_unit_cannot_express_are_an_error():
    site, family = one("sm100_tuning", "detail::select")
    shown = dict.fromkeys(site.values, 7) | {"delay_constructor": "no_delay_constructor_t<1>"}
    with pytest.raises(InputError) as caught:
        kept_members(site, family, shown | {"items": 0}, {"InputT": 4})
    assert str(caught.value) == (
        "no count of nominal items gives 0 items of 4 bytes\n"
        "  The header cannot express this variant."
    )
