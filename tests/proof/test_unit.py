# ruff: noqa: E501  a row of a table is one line
import re
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from policygen.bindings.load import Bound, axis_type
from policygen.bindings.words import ladder
from policygen.errors import InputError
from policygen.headers.scan import read_header
from policygen.model.bindings import (
    BenchmarkBinding,
    Call,
    FamilyBinding,
    MemberRule,
    Opening,
    Site,
    Unit,
)
from policygen.model.trees import BoundVersion
from policygen.proof.answers import key, read_answers, types, value
from policygen.proof.sites import bound_families
from policygen.proof.units import SiteQuery, Workload, context, identity, render, sized_roles
from tests.toolchain import compile_to_ptx
from tests.trees.toys import TUNINGS

SITE = Site(
    name="zoom",
    dialect="specializations",
    header="tuning_zoom.cuh",
    namespace="detail::zoom",
    hub="policy_hub<T>",
    policy="ZoomPolicy",
    values={"threads": "+policy::THREADS", "items": "+policy::ITEMS"},
    types={"delay_constructor": "policy::delay_t"},
)
OPENED = SITE.model_copy(update={"opened": Opening(macro="HAS_ZOOM", header="cub/zoom_config.cuh")})
SELECTOR = SITE.model_copy(
    update={
        "dialect": "selectors",
        "hub": "policy_selector<T>",
        "policy": "",
        "values": {"items": "policy.items"},
        "types": {},
        "delay": ("policy.kind", "policy.delay", "policy.latency"),
    }
)
FAMILY = FamilyBinding(
    site="zoom",
    name="sm90_tuning",
    args=("T", "sizeof(T)", "op::plus"),
    members={"items": MemberRule(parameter="ipt")},
)
CALL = Call(
    site="zoom",
    axes={"T": ("I8", "F16"), "InPlace": "both", "Width": ("-4",)},
    roles={"T": "axis::T", "OffsetT": "offset<int>"},
    constants={"MayAlias": "axis::InPlace"},
)


def point(call: Call = CALL, **values: str) -> Workload:
    return Workload(call, values)


def section(
    *points: Workload, site: Site = SITE, families=(), archs=("sm90",), since=False
) -> SiteQuery:
    return SiteQuery(site, points, archs, families, since=since)


def rendered(*sections: SiteQuery, version: str = "3.0.1", **asks: bool) -> str:
    return render(context(sections, BoundVersion(version), **asks))


def lines(text: str, start: str, stop: str = "};") -> list[str]:
    """What a unit says of one thing, line by line."""
    found = text[text.index(start) :]
    return [line.strip() for line in found[: found.index(f"\n{stop}")].splitlines()]


def test_a_row_declares_axes_roles_and_constants_and_asks_for_the_values() -> None:
    text = rendered(section(point(T="I8", InPlace="true", Width="-4")))
    assert lines(text, "struct workload_0") == [
        "struct workload_0",
        "{",
        "struct axis",
        "{",
        "using T = ::cuda::std::int8_t;",
        "static constexpr auto InPlace = true;",
        "static constexpr auto Width = -4;",
        "};",
        "using T = axis::T;",
        "using OffsetT = offset<int>;",
        "static constexpr auto MayAlias = axis::InPlace;",
        "using newest = typename policy_hub<T>::MaxPolicy;",
        "static_assert(::cuda::std::is_same_v<policies<newest>::on<__CUDA_ARCH__ / 10>, newest::ActivePolicy>,",
        '"policygen walks this chain of policies in another way than CUB");',
        "struct on_90",
        "{",
        "using policy = typename policies<newest>::on<90>::ZoomPolicy;",
        "using answers = row<value<0>, type<policy>, value<+policy::THREADS>, value<+policy::ITEMS>,"
        " type<policy::delay_t>>;",
        "};",
    ]
    assert "__device__ const char* answer_0 = workload_0::on_90::answers::text();" in text
    assert "__device__ policies<workload_0::newest> kept_0;" in text


def asked(text: str) -> list[str]:
    """The rows of a unit, in the order in which it has them."""
    return re.findall(r"using answers = (.*);", text)


def test_a_workload_has_a_row_for_each_architecture() -> None:
    two = section(point(T="I8"), point(T="I16"), archs=("sm90", "sm103"))
    text = rendered(two, version="3.5.0")
    assert re.findall(r"struct (workload_\d|on_\d+)\n", text) == [
        "workload_0", "on_90", "on_103", "workload_2", "on_90", "on_103",
    ]  # fmt: skip
    assert [row[: len("row<value<0>")] for row in asked(text)] == [
        f"row<value<{number}>" for number in range(4)
    ]
    assert re.findall(r"answer_(\d) = (\w+::\w+)::", text) == [
        ("0", "workload_0::on_90"),
        ("1", "workload_0::on_103"),
        ("2", "workload_2::on_90"),
        ("3", "workload_2::on_103"),
    ]
    assert tuple(two.spots) == tuple((p, arch) for p in two.points for arch in two.archs)


def test_a_selector_is_asked_once_for_an_architecture_and_tells_each_policy_once() -> None:
    two = section(point(T="I8"), point(T="I16"), site=SELECTOR, archs=("sm90", "sm103"))
    text = rendered(two, version="3.5.0")
    assert text.count("static constexpr auto all    = policies_on<selector, 90, 103>();") == 2
    assert [row[: len("row<value<0> + Place>")] for row in asked(text)] == [
        "row<value<0 + Place>,",
        "row<value<2 + Place>,",
    ]
    assert re.findall(r"\*(\w+)\[\] = \{(.*)\};", text.replace("* ", "*")) == [
        (
            f"answers_{n}",
            f"told_{n}::shares::text(), told<told_{n}, 0>(), told<told_{n}, 1>()",
        )
        for n in (0, 2)
    ]
    assert "alike = same_values(values, counted.readable);" in text
    # What cannot be taken apart is not compared.
    alone = rendered(two, version="3.5.0", whole=False)
    assert "alike = each_alone<2>();" in alone


KINDS = (
    "family<type<::cuda::std::decay_t<decltype(+policy::THREADS)>>,"
    " type<::cuda::std::decay_t<decltype(+policy::ITEMS)>>>"
)
WHOLE_POLICY = (
    "fields_of<::cuda::std::remove_cv_t<decltype(selected)>, counted.readable, taken_apart>"
)


def test_a_marked_unit_asks_for_the_mark_and_for_the_entry_of_each_family() -> None:
    families = (
        (FAMILY, ("type", "value", "value")),
        (FAMILY.model_copy(update={"name": "sm80_tuning", "args": ()}), ()),
    )
    text = rendered(section(point(T="I8"), families=families), marked=True)
    assert asked(text) == [
        f"row<value<0>, value<+policy::ITEMS>, {KINDS},"
        " family<value<entry_of<sm90_tuning<T, sizeof(T), op::plus>>::id>, type<T>, value<(sizeof(T))>, value<(op::plus)>>,"
        " family<value<entry_of<sm80_tuning<>>::id>>>"
    ]


UNITS = {"ipt": Unit(scaling="mem_bound", of="axis::T"), "tpb": Unit(scaling="mem_bound", of="T")}


@pytest.mark.parametrize(
    ("of", "units", "sized"),
    [
        ("OffsetT", {}, ["OffsetT"]),
        ("OffsetT", UNITS, ["OffsetT", "T", "axis::T"]),
        ("T", UNITS, ["T", "axis::T"]),
        ("AccumT", {}, []),
        ("axis::Width", {}, ["axis::Width"]),
        ("axis::KeyT", {}, []),
    ],
)
def test_a_marked_unit_asks_for_the_sizes_of_roles_that_units_name(
    of: str, units: dict[str, Unit], sized: list[str]
) -> None:
    """Those that the workload has: another call of the site may fill other roles."""
    call = BenchmarkBinding(name="b", parameters={}, units=units, **CALL.model_dump())
    scaled = MemberRule(parameter="ipt", unit=Unit(scaling="mem_bound", of=of))
    family = FAMILY.model_copy(update={"members": {"items": scaled}, "args": ()})
    families = ((family, ()),)
    (row,) = asked(rendered(section(point(call, T="I8"), families=families), marked=True))
    expected = "".join(f", value<sizeof({role})>" for role in sized)
    assert row.partition("::id>>")[2] == f"{expected}>"
    assert sized_roles(call, families) == tuple(sized)
    (row,) = asked(rendered(section(point(call, T="I8"))))
    assert "sizeof" not in row


def test_a_marked_unit_without_families_asks_for_the_mark_alone() -> None:
    text = rendered(section(point(T="I8")), marked=True)
    assert asked(text) == [f"row<value<0>, value<+policy::ITEMS>, {KINDS}>"]


def test_a_marked_unit_shows_the_member_that_the_site_marks() -> None:
    site = SITE.model_copy(update={"marked": "threads"})
    text = rendered(section(point(T="I8"), site=site), marked=True)
    assert f"row<value<0>, value<+policy::THREADS>, {KINDS}>" in text


@pytest.mark.parametrize(
    ("changes", "newest", "policy"),
    [
        ({}, "MaxPolicy", "::ZoomPolicy"),
        ({"policy": ""}, "MaxPolicy", ""),
        ({"max_policy": "max_policy"}, "max_policy", "::ZoomPolicy"),
    ],
)
def test_the_policy_of_a_hub(changes: dict[str, str], newest: str, policy: str) -> None:
    text = rendered(section(point(T="I8"), site=SITE.model_copy(update=changes)))
    assert f"using newest = typename policy_hub<T>::{newest};" in text
    assert f"using policy = typename policies<newest>::on<90>{policy};" in text


@pytest.mark.parametrize(
    ("policy", "selected"), [("", "selected"), ("multi_tile", "selected.multi_tile")]
)
@pytest.mark.parametrize("untuned", [None, "policy_selector<user_type<sizeof(T)>>"])
def test_a_selector_is_asked_for_an_architecture(
    policy: str, selected: str, untuned: str | None
) -> None:
    site = SELECTOR.model_copy(update={"policy": policy, "untuned": untuned})
    asked = section(point(T="I8"), site=site, archs=("sm103",), since=True)
    text = rendered(asked, version="3.5.0")
    row = re.sub(r" +", " ", "\n".join(lines(text, "struct workload_0")))
    assert "using selector = policy_selector<T>;" in row
    assert f"static constexpr auto policy = {selected};" in row
    assert (
        f"row<value<0 + Place>, {WHOLE_POLICY}, value<policy.items>, value<policy.kind>, value<policy.delay>,"
        " value<policy.latency>>;"
    ) in row
    assert "static constexpr auto sinces = sinces_of(all, archs, on_ladder);" in row
    assert f"defaults = defaults_of<{untuned or 'void'}>(all, archs, on_ladder.at[0]);" in row
    assert "using shares = decltype(shared_of<0, alike, sinces, defaults>(places{}));" in text
    assert f"constexpr int ladder[] = {{{', '.join(arch[2:] for arch in ladder())}}};" in text
    less = rendered(replace(asked, since=False), version="3.5.0")
    assert "using shares = decltype(shared_of<0, alike>(places{}));" in less


def test_what_selectors_need_stands_in_their_units_alone() -> None:
    """`::cuda::compute_capability` is younger than the other dialect."""
    assert "compute_capability" not in rendered(section(point(T="I8")))
    both = rendered(section(point(T="I8")), section(point(T="I8"), site=SELECTOR), version="3.5.0")
    assert both.count("constexpr int ladder[]") == 1


def test_a_site_may_declare_more_before_its_values() -> None:
    site = SITE.model_copy(update={"setup": ("using agent = int;", "using more = agent;")})
    found = lines(rendered(section(point(T="I8"), site=site)), "struct workload_0")
    assert found[-4:-2] == ["using agent = int;", "using more = agent;"]


def test_sections_have_namespaces_of_their_own_and_rows_are_numbered_through() -> None:
    other = SITE.model_copy(
        update={"name": "blur", "namespace": "detail", "header": "tuning_blur.cuh"}
    )
    text = rendered(
        section(point(T="I8"), point(T="I16")), section(point(T="I32"), point(T="I64"), site=other)
    )
    assert re.findall(r"namespace (\w+) \{", text) == [
        "detail", "zoom", "policygen_section_0", "detail", "policygen_section_1",
    ]  # fmt: skip
    assert re.findall(r"struct workload_(\d)\n", text) == ["0", "1", "2", "3"]
    assert re.findall(r"row<value<(\d)>", text) == ["0", "1", "2", "3"]
    assert text.count("{") == text.count("}")


def included(text: str) -> list[str]:
    return re.findall(r"#include <(.*)>", text)


def test_headers_are_included_once() -> None:
    site = SITE.model_copy(update={"includes": ("cuda_fp16.h", "cub/agent.cuh")})
    other = SITE.model_copy(update={"header": "tuning_blur.cuh"})
    text = rendered(
        section(point(T="F16"), point(T="BF16"), point(T="I8"), site=site),
        section(point(T="F16"), site=other),
        section(point(T="F16")),
    )
    assert included(text) == [
        "cub/device/dispatch/tuning/tuning_blur.cuh",
        "cub/device/dispatch/tuning/tuning_zoom.cuh",
        "cub/agent.cuh",
        "cuda_bf16.h",
        "cuda_fp16.h",
        "cuda/std/cstdint",
        "cuda/std/functional",
        "cuda/std/type_traits",
        "cuda/std/utility",
    ]


def test_a_type_is_what_the_version_means_by_it() -> None:
    call = Call(site="zoom", axes={"T": ("C64",)})
    for version, cpp in (("3.1.4", "complex<float>"), ("3.2.0", "complex<double>")):
        text = rendered(section(point(call, T="C64")), version=version)
        assert f"using T = ::cuda::std::{cpp};" in text
        assert "cuda/std/complex" in included(text)


def test_what_is_no_axis_of_the_call_is_not_declared() -> None:
    text = rendered(section(point(T="I8", Elements="F16")))
    assert "Elements" not in text
    assert "cuda_fp16.h" not in included(text)


@pytest.mark.parametrize("text", ["I7", "1.5", "", "true1"])
def test_a_value_that_nobody_knows_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match=f"CUB 3.0.1 has no type named '{text}'"):
        rendered(section(point(T=text)))


def test_a_header_that_a_macro_opens_is_read_before_all_others() -> None:
    text = rendered(section(point(T="I8"), site=OPENED))
    unit = rendered(section(point(T="I8")))
    assert text.endswith(unit)
    assert text.removesuffix(unit).splitlines() == [
        "#include <cub/zoom_config.cuh>",
        '#pragma push_macro("HAS_ZOOM")',
        "#undef HAS_ZOOM",
        "#define HAS_ZOOM() 1",
        f"#include <cub/device/dispatch/tuning/{SITE.header}>",
        '#pragma pop_macro("HAS_ZOOM")',
    ]


def test_units_have_one_identity_when_their_text_is_one() -> None:
    def named(*sections: SiteQuery, version: str = "3.0.1", marked: bool = False) -> str:
        return identity(context(sections, BoundVersion(version), marked=marked))

    one = named(section(point(T="I8")))
    assert one == named(section(point(T="I8")), version="3.6.0")
    reordered = CALL.model_copy(update={"roles": dict(reversed(CALL.roles.items()))})
    others = [
        named(section(point(T="I16"))),
        named(section(point(T="I8")), section(point(T="I8"))),
        named(section(point(T="I8")), marked=True),
        named(section(point(T="I8"), site=SELECTOR)),
        named(section(point(T="I8"), site=SELECTOR, archs=("sm75",))),
        named(section(point(reordered, T="I8"))),
        named(section(point(T="I8"), archs=("sm90", "sm100"))),
        named(section(point(T="I8"), site=OPENED)),
    ]
    assert len({one, *others}) == 1 + len(others)


def test_another_template_is_another_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identity({})
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe/unit.cu.j2").write_text("another")
    for name in ("policies", "marks"):
        (tmp_path / f"probe/{name}.cuh.j2").write_text("")
    monkeypatch.setattr("policygen.rendering.folder", lambda name: tmp_path)
    assert identity({}) != before
    assert render({}) == "another"


@pytest.mark.parametrize("parameters", ["class T", "class T, int Size, int Other, int More"])
def test_a_family_with_other_parameters_than_are_bound_is_refused(parameters: str) -> None:
    """A tree that was edited, or a version that is younger than the bindings."""
    data = (
        "namespace cub { namespace detail { namespace zoom {\n"
        f"template <{parameters}> struct sm90_tuning;\n"
        "}}}\n"
    )
    header = read_header("tuning_zoom.cuh", data.encode())
    with pytest.raises(InputError) as raised:
        bound_families(Bound("zoom", (SITE,), (FAMILY,), (), ()), SITE, [header])
    count = parameters.count(",") + 1
    assert str(raised.value) == (
        f"tuning_zoom.cuh: sm90_tuning has {count} template parameters, and 3 are bound\n"
        "  Correct the family's args in schemas/bindings."
    )


HEADER = """#pragma once
#include <cub/util_device.cuh>
CUB_NAMESPACE_BEGIN namespace detail { namespace zoom {
enum class size { _1, other };
template <class T> constexpr size classify() { return sizeof(T) == 1 ? size::_1 : size::other; }
enum Load { LOAD_CA };
template <class T, size S> struct sm90_tuning;
template <> struct sm90_tuning<signed char, size::_1> { static constexpr int policygen_entry = 7, items = 61440; };
template <int Items> struct zoom {
  static constexpr int ITEMS = Items; static constexpr Load LOAD = LOAD_CA; static constexpr bool FAST = false;
  using delay_t = cuda::std::integral_constant<unsigned, 688>;
};
CHAIN
template <class T> struct policy_hub {
  struct Policy600 : chain<600, Policy600, Policy600> { using ZoomPolicy = zoom<6>; };
  struct Policy860 : chain<860, Policy860, Policy600> { using ZoomPolicy = zoom<8>; };
  struct Policy900 : chain<900, Policy900, Policy860> { using ZoomPolicy = zoom<24>; };
  using MaxPolicy = Policy900;
};
}} CUB_NAMESPACE_END
"""
OWN = """template <int Since, class Policy, class Before> struct chain {
  using ActivePolicy = cuda::std::_If<(__CUDA_ARCH__ < Since), typename Before::ActivePolicy, Policy>; };
template <int Since, class Policy> struct chain<Since, Policy, Policy> { using ActivePolicy = Policy; };
"""
WHOLE = point(T="I8", InPlace="false")
CUBS = "template <int S, class P, class B> using chain = ChainedPolicy<S, P, B>;"


def compiled(tmp_path: Path, text: str, chain: str) -> CompletedProcess[str]:
    """A toy header among CUB's own, in a real unit for sm90: `unit.cu`."""
    from tests.probing import root

    folder = tmp_path / TUNINGS
    folder.mkdir(parents=True)
    (folder / "tuning_zoom.cuh").write_text(HEADER.replace("CHAIN", chain))
    source = tmp_path / "unit.cu"
    source.write_text(text.replace("#include <cub/", f"#include <{tmp_path}/cub/"))
    return compile_to_ptx(source, root("3.0.1"))


@pytest.mark.trees
@pytest.mark.nvcc
def test_the_compiler_answers_what_is_asked(tmp_path: Path) -> None:
    """Values, which entry a key takes, and the size of a role."""
    site = SITE.model_copy(
        update={
            "values": {"items": "+policy::ITEMS", "load": "policy::LOAD", "fast": "policy::FAST"}
        }
    )
    rule = MemberRule(parameter="ipt", unit=Unit(scaling="mem_bound", of="T"))
    family = FAMILY.model_copy(update={"args": ("T", "classify<T>()"), "members": {"items": rule}})
    points = point(T="I8", InPlace="false"), point(T="I128", InPlace="true")
    asked = section(*points, site=site, families=((family, ("type", "value")),))

    def told_by(*, marked: bool) -> dict[int, tuple[str, ...]]:
        folder = tmp_path / str(marked)
        done = compiled(folder, rendered(asked, marked=marked), CUBS)
        assert done.returncode == 0, done.stderr
        return read_answers((folder / "unit.ptx").read_text())

    answers = told_by(marked=False)
    told = (24, "LOAD_CA", False, "integral_constant<unsigned int, 688>")
    for row in (0, 1):
        assert tuple(map(value, answers[row][1:])) == told
        assert value(answers[row][0]) == "zoom<24>"
    answers = told_by(marked=True)
    assert types(answers[0][1]) == ("int", "Load", "bool")
    assert [key(answers[row][2]) for row in (0, 1)] == [
        (7, ("signed char", "_1")),
        (-1, ("__int128", "other")),
    ]
    assert [value(answers[row][3]) for row in (0, 1)] == [1, 16]
    assert axis_type("I128", BoundVersion("3.0.1")).cpp == "__int128_t"


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("chain", [CUBS, OWN])
def test_one_compile_answers_for_all_architectures(tmp_path: Path, chain: str) -> None:
    """However a chain is called, and for those that nvcc cannot compile for."""
    site = SITE.model_copy(update={"values": {"items": "+policy::ITEMS"}, "types": {}})
    archs = ("sm35", "sm60", "sm80", "sm86", "sm89", "sm90", "sm103", "sm120")
    done = compiled(tmp_path, rendered(section(WHOLE, site=site, archs=archs)), chain)
    assert done.returncode == 0, done.stderr
    answers = read_answers((tmp_path / "unit.ptx").read_text())
    told = {arch: value(answers[row][1]) for row, arch in enumerate(archs)}
    assert told == {
        "sm35": 6, "sm60": 6, "sm80": 6, "sm86": 8, "sm89": 8, "sm90": 24, "sm103": 24, "sm120": 24,
    }  # fmt: skip


@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (
            OWN.replace("__CUDA_ARCH__ <", "__CUDA_ARCH__ <="),
            "policygen walks this chain of policies in another way than CUB",
        ),
        pytest.param(
            "template <int Since, class Policy, class Before> struct chain"
            " { using ActivePolicy = Before; };",
            "policygen walks this chain of policies in another way than CUB",
            marks=pytest.mark.slow,
        ),
        (
            "template <class Policy> struct linked { using ActivePolicy = Policy; };"
            "template <int, class Policy, class> using chain = linked<Policy>;",
            "policygen does not know this kind of a policy chain",
        ),
    ],
)
def test_a_chain_that_works_in_another_way_is_refused(
    tmp_path: Path, chain: str, message: str
) -> None:
    """The compiler has the last word, for the architecture that it compiles for."""
    text = rendered(section(WHOLE, archs=("sm80", "sm90")))
    done = compiled(tmp_path, text, chain)
    assert done.returncode != 0
    assert f'static assertion failed with "{message}"' in done.stderr
