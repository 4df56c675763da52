"""Which workloads `-R`, `-a` and headers leave."""

import re

import pytest

from policygen.app.filters import parse_axes
from policygen.bindings.load import bound
from policygen.errors import InputError
from policygen.model.trees import BoundVersion, Cub
from policygen.proof.sites import ignored_axes, marked_members, places, remarks


def cub(version="3.0.1", dialect="specializations"):
    return Cub(root="/cub", version=version, dialect=dialect, found="--cub")


def ask(regex="", *axes, version="3.0.1", dialect="specializations", headers=()):
    found = places(
        cub(version, dialect), (), re.compile(regex), parse_axes(axes), frozenset(headers)
    )
    return [
        (p.call.name.removeprefix("cub.bench."), dict(p.values)) for x in found for p in x.points
    ]


def test_without_a_filter_every_bound_benchmark_is_asked():
    names = {name for name, _ in ask()}
    assert {"histogram.even", "radix_sort.keys", "scan.exclusive.sum", "select.if"} <= names


@pytest.mark.parametrize(
    ("regex", "axes", "count"),
    [
        ("cub.bench.scan.exclusive.sum", [], 16),
        (r".*\.sum$", ["T=I8", "OffsetT=I32"], 3),
        ("cub.bench.radix_sort", ["OffsetT{ct}=I32"], 27),
        ("cub.bench.radix_sort.keys", ["T{ct}=[I8, F32]"], 4),
        ("cub.bench.select.if", ["InPlace=true"], 7),
        ("cub.bench.select.if", ["MayAlias=true"], 7),
        ("cub.bench.select.if", ["MayAlias{ct}=true", "T=I8"], 1),
        ("", ["KeyT=I8", "ValueT=I8", "OffsetT=I32"], 6),
    ],
)
def test_filters_have_the_meaning_that_they_have_in_cccl(regex, axes, count):
    assert len(ask(regex, *axes)) == count


def test_with_a_pattern_an_axis_that_a_benchmark_lacks_is_ignored_and_noted():
    regex, axes = r".*(select.if|radix_sort.pairs)$", ("T=I32", "KeyT=I8", "ValueT=I8")
    assert [(name, point.get("T") or point["KeyT"]) for name, point in ask(regex, *axes)] == [
        *[("radix_sort.pairs", "I8")] * 2,
        *[("select.if", "I32")] * 2,
    ]
    version = cub().bindings
    notes = ignored_axes(version, re.compile(regex), parse_axes(axes))
    assert notes == [
        "-a T=… is ignored for cub.bench.radix_sort.pairs, which have no such axis",
        "-a KeyT=… is ignored for cub.bench.select.if, which have no such axis",
        "-a ValueT=… is ignored for cub.bench.select.if, which have no such axis",
    ]
    assert ignored_axes(version, re.compile(""), parse_axes(axes)) == []
    with pytest.raises(InputError, match="no benchmark has an axis Foo"):
        ask(regex, "Foo=1")


def test_an_older_name_of_an_axis_finds_the_same_workloads():
    assert ask("cub.bench.select", "MayAlias=false") == ask("cub.bench.select", "InPlace=false")


def test_headers_narrow_the_sites():
    assert {name for name, _ in ask(headers=["tuning_three_way_partition.cuh"])} == {
        "partition.three_way"
    }


def test_a_version_has_its_own_dialect_where_it_has_one():
    old = places(cub(), (), re.compile("cub.bench.reduce.sum"), {})
    new = places(cub("3.6.0", "selectors"), (), re.compile("cub.bench.reduce.sum"), {})
    assert [place.site.dialect for place in old] == ["specializations"]
    assert [place.site.dialect for place in new] == ["selectors"]
    assert new[0].families == ()


def test_an_algorithm_that_is_not_of_the_trees_dialect_is_asked_in_the_other():
    (place,) = places(cub("3.0.1", "selectors"), (), re.compile("cub.bench.reduce.sum"), {})
    assert place.site.dialect == "specializations"


@pytest.mark.parametrize(
    ("regex", "axes", "headers", "message"),
    [
        (
            "cub.bench.scan.exclusive.sum",
            ["U=I8"],
            [],
            "no workload matches -R 'cub.bench.scan.exclusive.sum' -a 'U=[I8]';"
            " no benchmark has an axis U\n"
            "  Benchmarks: cub.bench.scan.exclusive.sum\n"
            "  their axes: OffsetT, T",
        ),
        (
            "cub.bench.scan.exclusive",
            ["T{ct}=[I9]", "KeyT=I8"],
            ["tuning_scan.cuh"],
            "no workload matches -R 'cub.bench.scan.exclusive' -a 'T{ct}=[I9]'"
            " -a 'KeyT=[I8]' tuning_scan.cuh\n"
            "  Benchmarks: cub.bench.scan.exclusive.sum, cub.bench.scan.exclusive.custom,"
            " cub.bench.scan.exclusive.by_key\n"
            "  their axes: KeyT, OffsetT, T, ValueT\n"
            "  T is one of C64, F32, F64, I128, I16, I32, I64, I8\n"
            "  KeyT is one of C64, F32, F64, I128, I16, I32, I64, I8",
        ),
    ],
)
def test_a_filter_that_leaves_nothing_is_told_whole(regex, axes, headers, message):
    with pytest.raises(InputError) as caught:
        ask(regex, *axes, headers=headers)
    assert str(caught.value) == message


def test_a_regex_that_matches_no_benchmark_is_told_what_it_may_mean():
    with pytest.raises(InputError) as caught:
        ask("bench.scan", "Nope=1")
    assert str(caught.value) == (
        "no workload matches -R 'bench.scan' -a 'Nope=[1]'\n"
        "  -R matches from the start of a name: -R '.*bench.scan' matches"
        " cub.bench.scan.exclusive.sum, cub.bench.scan.exclusive.custom,"
        " cub.bench.scan.exclusive.by_key"
    )
    with pytest.raises(InputError) as caught:
        ask("nothing")
    first, second = str(caught.value).splitlines()
    assert first == "no workload matches -R 'nothing'"
    assert second.startswith("  Benchmarks: cub.bench.adjacent_difference.subtract_left, ")
    assert second.count(",") == 11
    assert second.endswith(" more")


def test_a_version_that_the_bindings_were_not_tried_with_is_remarked():
    assert remarks(cub("3.0.1")) == ()
    for version in ("2.7.0", "3.7.0", "3.9.0", "3.20.0"):
        assert remarks(cub(version)) == (
            f"CUB {version} is not one of the versions that the bindings were compiled with (2.8,"
            " 3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6); the nearest version's are used",
        )
    assert ask("cub.bench.reduce.max", "T=I8", version="2.7.0")


def test_the_member_that_carries_a_mark_is_known_for_each_family():
    members = marked_members(bound(BoundVersion("3.0.1")), "specializations")
    assert members["cub::detail::select", "sm100_tuning"] == "nominal_4b_items"
    assert members["cub::detail::radix", "sm90_small_key_tuning"] == "items"
    assert marked_members(bound(BoundVersion("3.0.1")), "selectors") == {}
