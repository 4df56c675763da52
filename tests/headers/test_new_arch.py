"""A family, its policies and their place in the chain, on the real trees and by the compiler."""

import difflib
import re
from dataclasses import replace
from functools import cache

import pytest

from policygen.errors import InputError
from policygen.headers.scan import read_header, scan_headers
from policygen.headers.specializations.new_arch import new_arch
from policygen.headers.spelling import edit_at, splice
from policygen.model.records import Span
from policygen.proof.oracle import marked_copies
from policygen.proof.sites import places
from policygen.proof.toolchain import find_toolchain
from policygen.proof.values import resolve
from tests.headers.headers import HEAD, MINI, TAIL, mini
from tests.probing import TUNINGS, changed_tree, read, root
from tests.tiers import sampled, without

SFINAE = [
    "histogram",
    "reduce",
    "reduce_by_key",
    "rle::encode",
    "rle::non_trivial_runs",
    "scan",
    "scan_by_key",
    "select",
    "three_way_partition",
    "unique_by_key",
]
FAMILIES = {version: [*SFINAE, "radix"] for version in ("2.8.2", "3.0.1", "3.1.4")}
FAMILIES["3.2.0"] = [*SFINAE, "radix", "rfa"]
ALL = [(version, name) for version, names in FAMILIES.items() for name in names]
SAMPLE = [one for one in ALL if one[0] == "3.0.1"]
everywhere = pytest.mark.parametrize(("version", "name"), sampled(ALL, *SAMPLE))


@cache
def headers(version):
    """Each tuning header of a tree, as read and as bytes, by the namespaces of its families."""
    scanned = scan_headers(sorted((root(version) / TUNINGS).glob("*.cuh")))
    return {
        family.namespace.removeprefix("cub::detail::"): (header, data)
        for header in scanned.headers
        for data in [(root(version) / TUNINGS / header.name).read_bytes()]
        for family in header.families
    }


def given(version, name, arch, keep=None):
    header, data = headers(version)[name]
    return header, data, new_arch(header, data, f"cub::detail::{name}", arch, keep)


def applied(header, data, new, entries=""):
    at = Span(new.at, new.at)
    added = edit_at(data, at, new.declaration + entries, "a family")
    return splice(header.name, data, [*new.links, added])


def reread(header, data):
    return read_header(header.name, data)


def chain_of(header, name):
    namespace = f"cub::detail::{name}"
    return next(c for c in header.chains if c.namespace == namespace and any_use(c))


def any_use(chain):
    return any(policy.uses for policy in chain.policies)


def family_of(header, name, family):
    namespace = f"cub::detail::{name}"
    return next(f for f in header.families if (f.namespace, f.name) == (namespace, family))


def order(chain):
    """The names of a chain's policies as they follow each other, from `MaxPolicy` down."""
    by_name = {policy.name: policy for policy in chain.policies}
    names, name = [], chain.max_policy
    while name:
        names.append(name)
        name = by_name[name].predecessor
    return names


def policy_of(chain, name):
    return next(policy for policy in chain.policies if policy.name == name)


def text_of(data, policy):
    return data[policy.span.start : policy.span.end].decode()


def body_of(data, policy):
    """The lines between the braces, and the words without their layout."""
    text = text_of(data, policy)
    return [" ".join(line.split()) for line in text[text.index("{") + 1 : -2].strip().splitlines()]


@pytest.mark.trees
@everywhere
def test_a_new_architecture_is_read_back_with_its_place_in_the_chain(version, name):
    header, data, new = given(version, name, "sm120", "sm121")
    after = applied(header, data, new)
    read_back = reread(header, after)
    before, chain = chain_of(header, name), chain_of(read_back, name)
    assert new.policies == ("Policy1200", "Policy1210")
    assert chain.max_policy == "Policy1210"
    assert order(chain) == ["Policy1210", "Policy1200", *order(before)]
    newest = max((f for f in header.families if f == new.like), key=lambda f: f.name)
    assert new.name == newest.name.replace(newest.arch, "sm120")
    family = family_of(read_back, name, new.name)
    assert [p.spelling for p in family.parameters] == [p.spelling for p in new.like.parameters]
    assert [entry.kind for entry in family.entries] == ["primary"]
    old = policy_of(before, before.max_policy)
    assert [u.family for u in old.uses] == [new.like.name]
    (use,) = policy_of(chain, "Policy1200").uses
    assert (use.family, use.args, use.reads) == (new.name, old.uses[0].args, old.uses[0].reads)
    unchanged = [p.model_dump(exclude={"span", "line", "uses"}) for p in before.policies]
    kept = [p.model_dump(exclude={"span", "line", "uses"}) for p in chain.policies]
    assert [p for p in kept if p["name"] not in new.policies] == unchanged


@pytest.mark.trees
@everywhere
def test_only_the_newest_policy_is_named_otherwise(version, name):
    header, data, new = given(version, name, "sm120")
    after = applied(header, data, new)
    lines = (data.decode().splitlines(), after.decode().splitlines())
    changes = list(difflib.unified_diff(*lines, n=0, lineterm=""))
    removed = [line[1:].strip() for line in changes[2:] if line.startswith("-")]
    old = chain_of(header, name).max_policy
    assert removed == [f"using MaxPolicy = {old};"]
    assert new.policies == ("Policy1200",)
    added = set(after.splitlines()) - set(data.splitlines())
    # One line of the histogram is longer in CUB, too: there is no other place to break it.
    assert max(map(len, added)) <= max(120, *map(len, data.splitlines()))


@pytest.mark.trees
@pytest.mark.parametrize(
    ("version", "name"),
    sampled(
        [one for one in ALL if one[1] != "radix"], *(one for one in SAMPLE if one[1] != "radix")
    ),
)
def test_what_the_new_family_lacks_comes_from_the_policy_before(version, name):
    header, data, new = given(version, name, "sm120", "sm121")
    after = applied(header, data, new)
    chain = chain_of(reread(header, after), name)
    previous = chain_of(header, name).max_policy
    (use,) = policy_of(chain, "Policy1200").uses
    assert use.fallback.startswith(f"{previous}::")
    assert family_of(reread(header, after), name, new.name).entries[0].body_span is None
    # Its own comments speak of the policy that it falls back to.
    said = " ".join(re.findall(r"//.*", text_of(after, policy_of(chain, "Policy1200"))))
    assert not {f"Policy{n}" for n in re.findall(r"Policy(\d+)", said)} - {previous}
    # The one behind it has no selection, and the same types.
    kept = body_of(after, policy_of(chain, "Policy1210"))
    member = use.fallback.rpartition("::")[2]
    assert any(
        re.fullmatch(rf"using {member} += typename {previous}::{member};", row) for row in kept
    )
    assert all(f"{previous}::" in row for row in kept if row and not row.endswith("="))


@pytest.mark.trees
@pytest.mark.parametrize("version", FAMILIES)
def test_a_family_that_inherits_its_defaults_inherits_from_the_one_before(version):
    header, data, new = given(version, "radix", "sm120", "sm121")
    after = applied(header, data, new)
    (primary,) = family_of(reread(header, after), "radix", "sm120_small_key_tuning").entries
    assert primary.inherits == "sm100_small_key_tuning<ValueT, KeySize, ValueSize, OffsetSize>"
    assert new.declaration.startswith("\n\n// sm120 default\ntemplate <typename ValueT,")
    chain = chain_of(reread(header, after), "radix")
    kept, old = policy_of(chain, "Policy1210"), policy_of(chain, "Policy1000")
    assert kept.bases == old.bases
    if kept.bases:
        assert body_of(after, kept) == []
        assert [use.family for use in kept.uses] == ["sm100_small_key_tuning"]
    else:  # 2.8.2 has no base for the two
        assert "static constexpr bool ONESWEEP = Policy1000::ONESWEEP;" in body_of(after, kept)
        assert not any("PRIMARY_RADIX_BITS" in row for row in body_of(after, kept))


@pytest.mark.trees
@pytest.mark.parametrize("version", FAMILIES)
@pytest.mark.parametrize("name", ["radix", "scan"])
def test_a_second_new_architecture_keeps_what_the_first_one_left(version, name):
    header, data, new = given(version, name, "sm103", "sm107")
    after = applied(header, data, new)
    once = reread(header, after)
    second = new_arch(once, after, f"cub::detail::{name}", "sm120", None)
    chain = chain_of(reread(header, applied(once, after, second)), name)
    assert order(chain)[:4] == ["Policy1200", "Policy1070", "Policy1030", "Policy1000"]
    if name == "radix":
        # Without an entry sm120 has what it had before sm103 was there.
        assert second.like.name == "sm100_small_key_tuning"
    else:
        assert second.like.name == "sm103_tuning"
        assert policy_of(chain, "Policy1200").uses[0].fallback == "Policy1070::ScanPolicyT"


@pytest.mark.trees
@everywhere
@pytest.mark.parametrize(("arch", "keep"), [("sm120", "sm121"), ("sm95", "sm97")])
def test_line_endings_stay(version, name, arch, keep):
    if name == "reduce" and arch == "sm95":
        return  # nothing there before sm100
    header, data, new = given(version, name, arch, keep)
    windows = data.replace(b"\n", b"\r\n")
    there = reread(header, windows)
    other = new_arch(there, windows, f"cub::detail::{name}", arch, keep)
    expected = applied(header, data, new).replace(b"\n", b"\r\n")
    assert applied(there, windows, other) == expected


@pytest.mark.trees
@pytest.mark.parametrize("version", sampled(FAMILIES, "3.0.1"))
@pytest.mark.parametrize("name", [n for n in SFINAE if n not in {"histogram", "reduce"}])
@pytest.mark.parametrize(("arch", "before"), [("sm89", "Policy860"), ("sm95", "Policy900")])
def test_between_two_policies_it_falls_back_to_the_older(version, name, arch, before):
    """The selection of the hub falls back to its defaults, whatever the policy before has."""
    header, data, new = given(version, name, arch)
    chain = chain_of(reread(header, applied(header, data, new)), name)
    (added,) = new.policies
    (use,) = policy_of(chain, added).uses
    old = next(u for p in chain.policies for u in p.uses if u.family == new.like.name)
    assert use.selection == f"{old.selection}{arch[2:]}"
    assert (use.args, use.reads) == (old.args, old.reads)
    assert use.fallback.split("::")[0] == before
    assert chain.max_policy == chain_of(header, name).max_policy
    following = {"sm89": "Policy900", "sm95": "Policy1000"}[arch]
    assert order(chain)[order(chain).index(following) :][:3] == [following, added, before]


@pytest.mark.trees
def test_the_link_behind_an_older_policy_repeats_its_bases():
    header, data, new = given("3.0.1", "scan", "sm87", "sm89")
    after = applied(header, data, new)
    chain = chain_of(reread(header, after), "scan")
    assert order(chain)[1:5] == ["Policy900", "Policy890", "Policy870", "Policy860"]
    assert policy_of(chain, "Policy890").bases == ("DefaultPolicy",)
    assert "\n  // SM89 and later keep what they had before Policy870\n" in after.decode()


@pytest.mark.trees
@pytest.mark.parametrize("keep", ["sm90", "sm95"])
def test_no_link_is_added_behind_a_policy_that_comes_first(keep):
    _, _, new = given("3.0.1", "scan", "sm89", keep)
    assert new.policies == ("Policy890",)


@pytest.mark.trees
def test_columns_follow_a_longer_name():
    """`select_agent_policy95<sm95_tuning<` is two characters longer than that of sm90."""
    header, data, new = given("3.0.1", "select", "sm95")
    after = applied(header, data, new).decode()
    text = after[after.index("struct Policy950") : after.index("struct Policy1000")]
    rows = text[text.index("sm95_tuning<") :].splitlines()
    column = text[: text.index("sm95_tuning<")].rsplit("\n", 1)[1]
    aligned = len(column) + len("sm95_tuning<")
    assert [len(row) - len(row.lstrip()) for row in rows[1:6]] == [aligned] * 5


@pytest.mark.trees
def test_a_constant_that_fills_a_line_is_broken_behind_its_assignment():
    header, data, new = given("3.2.0", "histogram", "sm120", "sm121")
    after = applied(header, data, new)
    kept = policy_of(chain_of(reread(header, after), "histogram"), "Policy1210")
    name = "pdl_trigger_next_launch_in_init_kernel_max_bin_count"
    assert body_of(after, kept)[:2] == [
        f"static constexpr int {name} =",
        f"Policy1000::{name};",
    ]


@pytest.mark.trees
def test_an_architecture_named_above_a_policy_is_the_new_one():
    header, data, new = given("3.2.0", "rfa", "sm120")
    after = applied(header, data, new).decode()
    assert "\n\n  /// SM120\n  struct Policy1200 :" in after
    header, data, new = given("3.0.1", "histogram", "sm95")
    assert "\n\n  // SM95\n  struct Policy950 :" in applied(header, data, new).decode()


@pytest.mark.trees
@everywhere
def test_the_declaration_stands_behind_all_that_its_family_says(version, name):
    header, data, new = given(version, name, "sm120")
    assert all(entry.span.end <= new.at for entry in new.like.entries)
    assert not any(edit.span.start <= new.at <= edit.span.end for edit in new.links)
    assert not any(off.start < new.at < off.end for off in header.format_off)
    above = data[: new.at].decode().splitlines()[-1]
    assert re.fullmatch(r"\S.*|\};", above)
    assert data[new.at :].startswith(b"\n\n")
    guards = re.findall(rb"(?m)^#\s*(if|endif)", data[: new.at])
    assert guards.count(b"if") == guards.count(b"endif")


def test_the_miniature_families_are_followed():
    header, data = mini()["tuning_blur.cuh"], (MINI / "tuning_blur.cuh").read_bytes()
    new = new_arch(header, data, "cub::detail::blur::rows", "sm120", "sm121")
    assert data[: new.at].endswith(b"pixel_size::_16>;\n#endif")
    header, data = mini()["tuning_sift.cuh"], (MINI / "tuning_sift.cuh").read_bytes()
    new = new_arch(header, data, "cub::detail::sift", "sm95", None)
    assert data[: new.at].endswith(b"// clang-format on")
    assert new.declaration == (
        "\n\ntemplate <size_t KeySize, size_t ValueSize>\n"
        "struct sm95_small_key_tuning : sm90_small_key_tuning<KeySize, ValueSize>\n{};"
    )


SELECT = """
  template <class Tuning> static auto choose(int) -> Agent<Tuning::threads>;
  template <class Tuning> static auto choose(long) -> typename Policy500::type;
"""
OLDEST = "struct Policy500 : ChainedPolicy<500, Policy500, Policy500> {};"
NEWER = f"""struct Policy900 : ChainedPolicy<900, Policy900, Policy500> {{{SELECT}
  using type = decltype(choose<sm90_tuning<T, 4>>(0));
}};"""
ENTRY = "template <class T> struct sm90_tuning<T, 1> { static constexpr int threads = 1; };"
TOP = "using MaxPolicy = Policy900;"


def small(*lines, entry=ENTRY, head=HEAD):
    body = "\n".join(lines)
    hub = f"template <class T> struct policy_hub {{\n{body}\n}};" if body else ""
    return f"{head}{entry}\n{hub}\n{TAIL}".encode()


def added_to(data, arch="sm100", keep=None):
    header = read_header("tuning_demo.cuh", data, {})
    return header, new_arch(header, data, "cub::detail::demo", arch, keep)


def test_a_header_on_few_lines_is_understood():
    data = small(OLDEST, NEWER, TOP)
    header, new = added_to(data, keep="sm103")
    after = read_header("tuning_demo.cuh", applied(header, data, new))
    assert order(after.chains[0]) == ["Policy1030", "Policy1000", "Policy900", "Policy500"]
    assert new.declaration == "\n\ntemplate <class T, int Size> struct sm100_tuning;"


def test_an_architecture_before_all_families_is_made_after_the_newest_and_falls_back_to_its_own():
    data = small(OLDEST, NEWER, TOP)
    header, new = added_to(data, "sm80", "sm86")
    assert (new.name, new.like.name, new.policies) == (
        "sm80_tuning",
        "sm90_tuning",
        ("Policy800", "Policy860"),
    )
    chain = reread(header, applied(header, data, new)).chains[0]
    assert order(chain) == ["Policy900", "Policy860", "Policy800", "Policy500"]
    uses = {p.name: [(u.family, u.fallback) for u in p.uses] for p in chain.policies if p.uses}
    assert uses == {
        "Policy800": [("sm80_tuning", "Policy500::type")],
        "Policy900": [("sm90_tuning", "Policy500::type")],
    }


def test_a_chain_of_one_policy_gets_a_second_one():
    alone = NEWER.replace("Policy500>", "Policy900>")
    _, new = added_to(small(alone, TOP))
    assert "struct Policy1000 : ChainedPolicy<1000, Policy1000, Policy900>" in new.links[0].new
    assert "choose(long) -> typename Policy900::type" in new.links[0].new


def test_remarks_behind_a_family_stay_with_it_but_for_those_of_others():
    entries = [
        ENTRY,
        "",
        "// others were slower",
        "",
        "// clang-format off",
        "",
        "// clang-format on",
    ]
    data = small("", OLDEST, NEWER, TOP, entry="\n".join(entries))
    _, new = added_to(data)
    assert data[: new.at].endswith(b"// others were slower")


def test_the_selection_of_another_policy_is_not_taken_for_the_hubs():
    hubs = SELECT.replace("Agent", "HubAgent").replace("Policy500", "DefaultPolicy")
    older = NEWER.replace("90", "80")
    newer = NEWER.replace(SELECT, "").replace("Policy500", "Policy800")
    declared = HEAD + "template <class T, int Size> struct sm80_tuning;\n"
    _, new = added_to(small(OLDEST, hubs, older, newer, TOP, head=declared))
    assert "HubAgent<Tuning::threads>" in new.links[0].new
    assert "choose100(long) -> typename Policy900::type" in new.links[0].new
    assert "decltype(choose100<sm100_tuning<T, 4>>(0))" in new.links[0].new


DEFINED = HEAD.replace("sm90_tuning;", "sm90_tuning { static constexpr int threads = sizeof(T); };")
DIRECT = """struct Policy900 : ChainedPolicy<900, Policy900, Policy500> {
  using type = Agent<sm90_tuning<T, 4>::threads>;
};"""


@pytest.mark.parametrize(
    ("data", "arch", "keep", "message"),
    [
        (
            small(OLDEST, NEWER, TOP),
            "sm103",
            "sm103",
            "sm103 is not later than sm103\n  Name a later architecture to keep.",
        ),
        (
            small(OLDEST, NEWER, TOP),
            "sm90",
            None,
            "tuning_demo.cuh: cub::detail::demo has sm90_tuning already\n"
            "  Add the entries to that family.",
        ),
        (
            small(OLDEST, NEWER, TOP),
            "sm50",
            None,
            "tuning_demo.cuh:6: Policy500 already exists; it reads no family of tunings\n"
            "  Make it select from an sm50_… by hand; policygen can then write its entries.",
        ),
        (
            small(OLDEST, NEWER.replace("900", "1000"), TOP),
            "sm100",
            None,
            "tuning_demo.cuh:7: Policy1000 already exists; it reads sm90_tuning\n"
            "  Make it select from an sm100_… by hand; policygen can then write its entries.",
        ),
        (
            small(OLDEST, NEWER, TOP),
            "sm37",
            None,
            "tuning_demo.cuh: cub::detail::demo has no family for an architecture before sm37\n"
            "  The first policy of policy_hub that reads one is Policy900.",
        ),
        (
            small(),
            "sm100",
            None,
            "tuning_demo.cuh: no chain of policies reads a family of cub::detail::demo\n"
            "  A new architecture needs a chain to link into.",
        ),
        (
            small(OLDEST, TOP.replace("900", "500")),
            "sm100",
            None,
            "tuning_demo.cuh: no chain of policies reads a family of cub::detail::demo\n"
            "  A new architecture needs a chain to link into.",
        ),
        (
            small(OLDEST, NEWER),
            "sm100",
            None,
            "tuning_demo.cuh: policy_hub of cub::detail::demo has no MaxPolicy\n"
            "  Expected: using MaxPolicy = Policy900;",
        ),
        (
            small(OLDEST, DIRECT, TOP),
            "sm100",
            None,
            "tuning_demo.cuh:7: cannot determine what Policy900 selects without an entry in"
            " sm90_tuning\n"
            "  Expected: a pair of overloads; the second names an earlier policy.",
        ),
        (
            small(OLDEST, DIRECT, TOP, entry="", head=DEFINED),
            "sm100",
            None,
            "tuning_demo.cuh: cub::detail::demo::sm90_tuning computes its values and has no"
            " entries\n  A new architecture needs an existing entry as its model.",
        ),
        (
            small(OLDEST, DIRECT, TOP, head=DEFINED.replace("int Size", "int")),
            "sm100",
            None,
            "tuning_demo.cuh:3: a parameter of sm90_tuning has no name\n"
            "  sm100_tuning cannot pass it on; give it a name.",
        ),
        (
            small(
                OLDEST,
                NEWER.replace("};", "  using other = decltype(choose<sm80_tuning<T, 4>>(0));\n};"),
                TOP,
                head=HEAD + "template <class T, int Size> struct sm80_tuning;\n",
            ),
            "sm100",
            None,
            "tuning_demo.cuh:8: Policy900 reads sm90_tuning and sm80_tuning\n"
            "  policygen supports only policies that read one family; write this one by hand.",
        ),
        (
            small(
                OLDEST,
                SELECT.replace("(int)", "(int, int)"),
                NEWER.replace(SELECT, ""),
                TOP,
            ),
            "sm100",
            None,
            "tuning_demo.cuh:11: cannot find choose, which Policy900 uses to select\n"
            "  Expected: overloads choose(int) and choose(long)",
        ),
    ],
)
def test_what_cannot_be_linked_is_named(data, arch, keep, message):
    with pytest.raises(InputError) as caught:
        added_to(data, arch, keep)
    assert str(caught.value) == message


@pytest.mark.trees
def test_a_family_that_computes_its_values_gets_no_sibling():
    with pytest.raises(InputError, match="topk::sm90_tuning computes its values and has no ent"):
        given("3.2.0", "topk", "sm120")


# The families of sm80 and sm90 are the first of these: nothing is there before sm89.
WITHOUT_OLDER = {"histogram", "radix", "reduce"}
SAMPLES = 16
"""Workloads of a benchmark that are asked about: enough to find an entry, and to miss it."""


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("version", "arch", "keep", "others"),
    without(
        [
            *((version, "sm120", "sm121", ("sm90", "sm100", "sm121")) for version in FAMILIES),
            ("3.0.1", "sm103", "sm110", ("sm100", "sm110", "sm120")),
            ("3.2.0", "sm89", None, ("sm80", "sm86", "sm90")),
        ],
        ("3.1.4", "sm120", "sm121", ("sm90", "sm100", "sm121")),
        ("3.2.0", "sm120", "sm121", ("sm90", "sm100", "sm121")),
    ),
)
def test_an_entry_is_selected_there_and_nowhere_else(version, arch, keep, others, tmp_path):
    before = answers(root(version), (*others, arch), marked=True)
    changed, keys = {}, {}
    for name in FAMILIES[version]:
        if arch == "sm89" and name in WITHOUT_OLDER:
            continue
        header, data = headers(version)[name]
        data = changed.get(header.name, data)
        header = reread(header, data)
        new = new_arch(header, data, f"cub::detail::{name}", arch, keep)
        entry = next(e for e in (entry_of(row, new.like) for row in before.values()) if e)
        changed[header.name] = applied(header, data, new, f"\n\n{doubled(data, new, entry)}")
        keys[name] = (new.like, entry)
    after = answers(changed_tree(tmp_path, version, changed), (*others, arch), marked=False)
    assert before.keys() == after.keys()
    moved = {at for at, row in before.items() if row.values != after[at].values}
    assert {on for *_, on in moved} == {arch}
    for name, (like, entry) in keys.items():
        there = {
            (benchmark, workload, arch)
            for (benchmark, workload, _), row in before.items()
            if entry_of(row, like) == entry
        }
        assert there, name
        assert there <= moved, name
    assert len(moved) < len(before) // (2 * len(others))


def answers(path, archs, *, marked):
    """What some workloads of every benchmark with entries select, by workload and architecture."""
    tree = read(path)
    asked = [
        replace(place, points=place.points[:: 1 + len(place.points) // SAMPLES])
        for place in places(tree.cub, tree.headers, re.compile(""), {})
        if place.families
    ]
    found, errors = resolve(
        tree.cub,
        asked,
        marked_copies(tree, "specializations") if marked else {},
        archs,
        find_toolchain(),
    )
    assert (errors, found.unresolved) == ((), ())
    return {(row.benchmark, frozenset(row.workload.items()), row.arch): row for row in found.rows}


def entry_of(row, family):
    """The entry of a family that a row shows on the family's own architecture, with items."""
    place = row.entry
    if place is None or (place.namespace, place.family) != (family.namespace, family.name):
        return None
    entry = next(e for e in family.specializations if e.args == place.args)
    return entry if row.arch == family.arch and items_of(entry) else None


def items_of(entry):
    names = {"items", "nominal_4b_items"}
    return next((m for m in entry.members if m.name in names and type(m.value) is int), None)


def doubled(data, new, entry):
    """The text of an entry for the new family, with twice the items."""
    member = items_of(entry)
    start, end = entry.span
    at, stop = member.value_span
    text = data[start:at] + str(2 * member.value).encode() + data[stop:end]
    return text.decode().replace(new.like.name, new.name, 1)
