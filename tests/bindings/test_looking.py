"""Bindings are chosen by what a tree's headers hold; the version is the first guess."""

import re

import pytest

from policygen import trees
from policygen.app.session import with_detected_bindings
from policygen.bindings.load import RowOverride, as_read, bound, nearest_first, read, respelled
from policygen.headers.fit import parameters, renamed, structs
from policygen.model.bindings import FamilyBinding, Site
from policygen.model.trees import BoundVersion, numbers
from policygen.proof.ask import _values as values_of
from policygen.proof.sites import remarks
from policygen.proof.units import SiteQuery
from policygen.trees.manifest import shipped
from tests.cli.tuned import run
from tests.probing import changed_tree, header, root
from tests.real_trees import tree as fetched

THREE = "tuning_three_way_partition.cuh"
VERSIONS = [wheel.cub for wheel in shipped().wheels]


@pytest.fixture
def named_otherwise(tmp_path):
    """CUB 3.6.0 with a member as it was called before, and a container less."""
    data = header("3.6.0", THREE).decode()
    data = re.sub(r"\bthreads_per_block\b", "block_threads", data)
    return changed_tree(tmp_path, "3.6.0", {THREE: data.encode()})


def site(version, algorithm, name, dialect="selectors"):
    (found,) = (one for one in bound(version) if one.algorithm == algorithm)
    return found.site(name, dialect)


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.parametrize("version", VERSIONS)
def test_a_release_is_read_as_its_version_says(version):
    cub = with_detected_bindings(trees.open_tree(fetched(version)))
    assert (cub.read_as, cub.bindings) == ("", BoundVersion(version))


@pytest.mark.trees
def test_a_site_whose_policy_a_header_does_not_name_is_not_asked_and_told(tmp_path):
    """Main between 3.1 and 3.2 has a hub of sums, and nothing nondeterministic in it."""
    name = "tuning_reduce.cuh"
    data = header("3.2.0", name).replace(b"ReduceNondeterministicPolicy", b"AnotherPolicy")
    cub = with_detected_bindings(trees.open_tree(changed_tree(tmp_path, "3.2.0", {name: data})))
    assert site(cub.bindings, "reduce", "nondeterministic", "specializations") is None
    assert site(cub.bindings, "reduce", "reduce", "specializations") is not None
    assert remarks(cub)[-1] == (
        "cub.bench.reduce.nondeterministic: the tree lacks what they call; they are skipped"
    )


@pytest.mark.slow
@pytest.mark.trees
def test_a_tree_that_is_called_as_a_later_release_is_read_as_what_it_holds(tmp_path):
    """Main has the version of the next release from the day of the last one on."""
    made = changed_tree(tmp_path, "3.5.0", {})
    file = made / "cub/version.cuh"
    data = file.read_text()
    file.unlink()
    file.write_text(data.replace("CUB_VERSION 300500", "CUB_VERSION 300600"))
    cub = with_detected_bindings(trees.open_tree(made))
    assert cub.version == "3.6.0"
    for algorithm, name in (("topk", "topk"), ("run_length_encode", "encode")):
        assert site(cub.bindings, algorithm, name) == site(BoundVersion("3.5.0"), algorithm, name)
        assert site(cub.bindings, algorithm, name) != site(BoundVersion("3.6.0"), algorithm, name)
    names = {b.name for one in bound(cub.bindings) for b in one.benchmarks}
    assert "cub.bench.reduce.arg_minmax" not in names
    assert "cub.bench.reduce.sum" in names
    (told,) = remarks(cub)
    assert "cub.bench.reduce.arg_minmax" in told
    assert told.endswith(": the tree lacks what they call; they are skipped")
    assert cub.model_dump() == trees.open_tree(made).model_dump()


@pytest.mark.trees
def test_a_site_is_read_with_the_names_of_its_tree(named_otherwise):
    cub = with_detected_bindings(trees.open_tree(named_otherwise))
    renamed_members = "lookback.threads_per_block>lookback.block_threads"
    group = "three_way_partition/site/three_way_partition/selectors"
    assert cub.read_as == f"3.6.0+{group}=0|{renamed_members}"


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_members_with_older_names_are_answered(capsys, named_otherwise):
    given = ("three_way_partition", "--arch", "sm100", "-a", "T=I8", "--json", "-q")
    status, old, err = run(capsys, "resolve", *given, "--cub", root("3.6.0"))
    assert status == 0, err
    status, new, err = run(capsys, "resolve", *given, "--cub", named_otherwise)
    assert status == 0, err
    rows = [re.sub(r'"line": \d+', "", text[text.index('"rows"') :]) for text in (old, new)]
    assert rows[0] == rows[1]


@pytest.mark.slow
@pytest.mark.trees
def test_a_member_of_another_name_is_no_guess(tmp_path):
    data = header("3.6.0", THREE).decode()
    data = re.sub(r"\bthreads_per_block\b", "team_size", data)
    cub = with_detected_bindings(
        trees.open_tree(changed_tree(tmp_path, "3.6.0", {THREE: data.encode()}))
    )
    assert cub.bindings == BoundVersion("3.6.0")  # the compiler tells what is wrong


def test_a_version_carries_the_rows_that_hold_instead():
    others = {
        "scan/site/scan/selectors": RowOverride(1, {"a.b": "c", "d": ""}),
        "x": RowOverride(None),
    }
    told = as_read("3.4.0", others)
    assert told == "3.4.0+scan/site/scan/selectors=1|a.b>c|d>,x=none"
    assert read(told) == others
    assert numbers(told) == (3, 4, 0)
    assert as_read("3.4.0", {}) == "3.4.0"
    assert read("3.4.0") == {}


def test_rows_are_tried_from_the_versions_own_on_to_older_and_newer_ones():
    def row(since, below):
        return FamilyBinding(site="s", name="f", args=(), members={}, since=since, below=below)

    rows = [row(None, "2.8"), row("2.8", "3.0"), row("3.0", "3.4"), row("3.4", None)]
    assert nearest_first(rows, (3, 1, 0)) == [rows[2], rows[1], rows[0], rows[3]]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("template <class A, class B = f<A>(), int C = 4>\nstruct hub {};", [(1, 3)]),
        ("template <class... Ts> struct hub;", [(0, 1000)]),
        ("struct hub {};", [(0, 0)]),
        ("template <class A> struct hub; template <class A> struct hub<A*> {};", [(1, 1)]),
        ("template <class A> using hub = other<A>;", [(1, 1)]),
        ("struct a_hub {};", []),
    ],
)
def test_template_parameters_are_counted(text, counts):
    assert parameters(text, "hub") == counts


POLICIES = """
struct delay { int kind; };
struct lookback_policy
{
  int block_threads = 1;
#if defined(X)
  bool fast = false;
#endif
  delay delay_constructor{};
  constexpr int tile() const { return block_threads; }
  ::cuda::std::array<int, 6> items_per_thread;
};
struct whole { lookback_policy lookback; Kind algorithm; };
using alias = detail::whole;
"""
SITE = Site(
    name="s",
    dialect="selectors",
    header="h",
    namespace="n",
    hub="h",
    policy="lookback",
    delay=("policy.lookback_delay.kind", "policy.lookback_delay.kind", "0"),
    values={
        "threads": "policy.threads_per_block",
        "items": "policy.items_per_thread",
        "unroll": "policy.unroll",
        "algorithm": "selected.algorithm",
    },
)


def test_members_of_structs_are_read():
    found = structs(POLICIES)
    assert dict(found["lookback_policy"]) == {
        "block_threads": "int",
        "fast": "bool",
        "delay_constructor": "delay",
        "items_per_thread": "array",
    }
    assert found["alias"] == found["whole"]


def test_a_site_is_told_in_the_names_of_a_tree():
    told = renamed(SITE, structs(POLICIES), POLICIES)
    assert told == {
        "lookback.lookback_delay": "lookback.delay_constructor",
        "lookback.threads_per_block": "lookback.block_threads",
        "lookback.unroll": "",
    }
    found = respelled(SITE, told)
    assert found.values == {
        "threads": "policy.block_threads",
        "items": "policy.items_per_thread",
        "algorithm": "selected.algorithm",
    }
    assert found.delay is not None
    assert found.delay[0] == "policy.delay_constructor.kind"
    assert found.policy == "lookback"


def test_a_container_that_older_trees_lack_is_left_out():
    text = "struct p { int threads_per_block; int items_per_thread; delay delay_constructor; "
    text += "int unroll; Kind algorithm; };"
    told = renamed(SITE, structs(text), text)
    assert told is not None
    found = respelled(SITE, told)
    assert found.policy == ""
    assert found.values["threads"] == "policy.threads_per_block"
    assert found.delay is not None
    assert found.delay[0] == "policy.delay_constructor.kind"


@pytest.mark.parametrize(
    ("algorithm", "kept"),
    [("lookback", {"threads"}), ("lookahead", {"items"}), ("another", {"threads", "items"})],
)
def test_values_of_an_algorithm_that_is_not_known_are_all_told(algorithm, kept):
    """What is left out is compared with nothing."""
    values = {"algorithm": "selected.algorithm", "threads": "a", "items": "b"}
    used = {"lookback": ("threads",), "lookahead": ("items",)}
    place = SiteQuery(
        SITE.model_copy(update={"values": values, "used_by": used, "delay": None}), ()
    )
    row = (f"value<cub::detail::{algorithm}>", "value<128>", "value<7>")
    found, _ = values_of(place, row)
    assert found.keys() == {"algorithm", *kept}


def test_what_a_site_reads_must_be_there():
    assert renamed(SITE, structs("struct p { int threads_per_block; };"), "") is None
