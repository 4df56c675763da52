import pytest

from policygen.errors import SourceError
from policygen.headers.scan import read_header
from tests.headers.headers import TAIL, mini


def chain(policies, hub="policy_hub", body=""):
    data = (
        "CUB_NAMESPACE_BEGIN\nnamespace detail { namespace demo {\n"
        f"template <class T> struct {hub} {{\n{body}\n{policies}\n}};\n{TAIL}"
    )
    return read_header("x.cuh", data.encode()).chains


def uses(policy, body=""):
    (found,) = chain(
        f"struct Policy900 : ChainedPolicy<900, Policy900, Policy900> {{ {policy} }};", body=body
    )
    return [(u.family, u.args, u.selection, u.reads, u.fallback) for u in found.policies[0].uses]


SELECT = """
template <class Tuning> static auto choose(int) -> Agent<Tuning::threads, typename Tuning::delay>;
template <class Tuning> static auto choose(long) -> typename DefaultPolicy::type;
"""


def test_the_miniature_chains_are_read_whole():
    found = [
        (c.hub, p.name, p.arch, p.predecessor, p.bases, [(u.family, u.selection) for u in p.uses])
        for header in mini().values()
        for c in header.chains
        for p in c.policies
    ]
    small = "SmallKeyTunedPolicy<sm{}_small_key_tuning<{}sizeof(KeyT), sizeof(ValueT)>>"
    assert found == [
        ("policy_hub", "Policy500", "sm50", None, ("DefaultPolicy<LOAD_LDG>",), []),
        (
            "policy_hub",
            "Policy800",
            "sm80",
            "Policy500",
            (),
            [("sm80_tuning", "select_agent_policy")],
        ),
        (
            "policy_hub",
            "Policy1000",
            "sm100",
            "Policy800",
            (),
            [("sm100_tuning", "select_agent_policy")],
        ),
        ("policy_hub", "Policy500", "sm50", None, (), []),
        ("policy_hub", "Policy750", "sm75", "Policy500", (), [("sm75_tuning", None)]),
        (
            *("policy_hub", "Policy900", "sm90", "Policy750", (small.format(90, ""),)),
            [("sm90_small_key_tuning", "SmallKeyTunedPolicy")],
        ),
        (
            *("policy_hub", "Policy1000", "sm100", "Policy900", (small.format(100, "ValueT, "),)),
            [("sm100_small_key_tuning", "SmallKeyTunedPolicy")],
        ),
    ]


def test_a_policys_own_selection_hides_the_hubs():
    rows = mini()["tuning_blur.cuh"].chains[0]
    reads = {p.name: p.uses[0].reads for p in rows.policies if p.uses}
    assert reads == {
        "Policy800": ("threads", "items", "load_algorithm", "reuse", "delay_constructor"),
        "Policy1000": ("threads", "items", "load_algorithm"),
    }


@pytest.mark.parametrize(
    ("policy", "body", "expected"),
    [
        (
            "using P = decltype(choose<sm90_tuning<T, f<T>()>>(0));",
            SELECT,
            ("sm90_tuning", ("T", "f<T>()"), "choose", ("threads", "delay"), "DefaultPolicy::type"),
        ),
        (
            "using P = decltype(choose<encode::sm90_tuning<T>>(0));",
            SELECT,
            ("sm90_tuning", ("T",), "choose", ("threads", "delay"), "DefaultPolicy::type"),
        ),
        (
            "using tuned = typename ::cub::sm90_tuning<T>; using P = Agent<tuned::threads>;",
            "",
            ("sm90_tuning", ("T",), None, ("threads",), None),
        ),
        (
            "using tuned = sm90_tuning<T>; using P = Agent<tuned::threads, tuned::items>;",
            "",
            ("sm90_tuning", ("T",), None, ("threads", "items"), None),
        ),
        (
            "static constexpr int n = sm90_tuning<T>::threads;",
            "",
            ("sm90_tuning", ("T",), None, ("threads",), None),
        ),
        ("using P = Agent<int, sm90_tuning<T>>;", "", ("sm90_tuning", ("T",), None, (), None)),
        (
            "using P = Wrapped<sm90_tuning<T>>;",
            "template <class Tuning> using Wrapped = Agent<Tuning::items>;",
            ("sm90_tuning", ("T",), "Wrapped", ("items",), None),
        ),
        (
            "using P = unknown<typename sm90_tuning<T>>;",
            "template <int N> struct unknown {}; template <class U> struct other;",
            ("sm90_tuning", ("T",), "unknown", (), None),
        ),
    ],
)
def test_a_use_tells_what_is_read_and_what_is_taken_instead(policy, body, expected):
    assert uses(policy, body) == [expected]


def test_policies_of_any_name_and_order_of_bases_are_found():
    (found,) = chain(
        "struct policy_500_t : detail::chained_policy<500, policy_500_t, policy_500_t> {};\n"
        "struct P2 : Base<1, 2>, ChainedPolicy<\n 860,\n P2,\n policy_500_t> {};\n"
        "using max_policy = P2;",
        hub="policy_hub_t",
    )
    assert [(p.name, p.arch, p.predecessor, p.bases) for p in found.policies] == [
        ("policy_500_t", "sm50", None, ()),
        ("P2", "sm86", "policy_500_t", ("Base<1, 2>",)),
    ]
    assert (found.hub, found.max_policy, found.namespace) == (
        "policy_hub_t",
        "P2",
        "cub::detail::demo",
    )


@pytest.mark.parametrize("link", ["<N, P, P>", "<900, P>", "<900", "<9, P, P>"])
def test_a_link_that_cannot_be_read_is_told(link):
    with pytest.raises(SourceError, match=r"x\.cuh:5:12: P: cannot read its place in the chain"):
        chain(f"struct P : ChainedPolicy{link} {{}};")


def test_a_policy_outside_of_a_hub_and_a_use_without_an_end_are_no_chain():
    data = b"struct P : ChainedPolicy<900, P, P> { int a = sm90_tuning < 3; };"
    assert read_header("x.cuh", data).chains == ()
    assert uses("int a = sm90_tuning < 3;") == []


def test_a_final_policy_with_public_bases_is_read():
    (found,) = chain("struct Policy900 final : public ChainedPolicy<900, Policy900, Policy900> {};")
    assert [p.name for p in found.policies] == ["Policy900"]
