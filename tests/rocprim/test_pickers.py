"""Pickers: which target a device gets, and what it has there, computed by libclang."""

import json

import pytest

from policygen import Filter, scan_tunings
from policygen.cli.main import main
from policygen.rocprim.host import HostCompiler
from tests.rocprim.places import resolved
from tests.rocprim.toy_pickers import (
    CONFIGS,
    HEAD,
    KNOWN,
    PICKERS,
    REAL,
    WORDS,
    branch,
    header,
    make_toy,
    picker,
)
from tests.tiers import sampled

SIZES = ("kernel_config.block_size", "kernel_config.items_per_thread")


pytestmark = pytest.mark.usefixtures("wide")


@pytest.fixture
def toy(tmp_path):
    return make_toy(tmp_path / "toy")


def found(capsys, root, *options, status=0):
    """Sizes, status, where it is from and its line by architecture and type."""
    document, err = resolved(capsys, root, "-R", "rocprim.device_reduce", *options, status=status)
    rows = {
        (row["arch"], row["workload"]["key_type"]): (
            tuple(row["values"][name] for name in SIZES),
            row["status"],
            row["since"],
            row["entry"] and row["entry"]["line"],
        )
        for row in document["rows"]
    }
    return rows, err


def line_of(text, part, after="", back=0):
    return text[: text.index(part, text.index(after))].count("\n") + 1 + back


@pytest.mark.slow
def test_each_target_has_what_its_picker_returns(capsys, toy):
    rows, err = found(capsys, toy, "-a", "key_type=[int,short,double]")
    text = header()
    assert err == ""
    assert {arch for arch, _ in rows} == {
        "unknown",
        "gfx908:mi100",
        "gfx942:mi300x",
        "gfx1100:rx7900",
    }
    mine = rows["gfx942:mi300x", "int"]
    assert mine == ((128, 4), "tuned", "gfx942:mi300x", line_of(text, f"if constexpr({WORDS}"))
    assert rows["gfx942:mi300x", "double"][:2] == ((256, 8), "tuned")
    assert rows["gfx942:mi300x", "short"] == (
        (256, 4),
        "default",
        None,
        line_of(text, "return reduce_config_params_base"),
    )
    assert rows["unknown", "int"][:3] == ((256, 16), "inherited", "gfx908:mi100")
    assert rows["unknown", "double"][:3] == ((256, 4), "default", None)


def test_an_architecture_stands_for_all_its_gpus(toy):
    def archs(*chosen):
        scan, _ = scan_tunings(str(toy), Filter(archs=chosen), selectors=True, library="rocprim")
        return {family.arch for family in scan.families}

    assert {"gfx942:mi300x", "gfx1100:rx7900"} < archs()
    assert archs("gfx942") == archs("gfx942:mi300x") == {"gfx942:mi300x"}


NEAREST = [
    ("gfx942", "gfx942:mi300x"),
    ("gfx942:mi308x", "gfx942:mi300x"),
    ("gfx1101", "gfx1100:rx7900"),
    ("gfx906", "gfx908:mi100"),
    ("gfx906:mi50", "gfx908:mi100"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("device", "target"), sampled(NEAREST, NEAREST[1], NEAREST[3]))
def test_a_device_without_a_target_has_what_the_nearest_one_has(capsys, toy, device, target):
    rows, _ = found(capsys, toy, "--arch", f"{device},{target}")
    types = {name for _, name in rows}
    for name in types:
        values, status, since, line = rows[target, name]
        expected = ("inherited", target) if status == "tuned" else ("default", None)
        assert rows[device, name] == (values, *expected, line)
        assert since in {target, None}


@pytest.mark.slow
def test_all_fields_are_values_also_those_that_a_return_leaves_out(capsys, toy):
    document, _ = resolved(
        capsys, toy, "--arch", "gfx1100:rx7900,gfx908:mi100", "-a", "key_type=short"
    )
    values = {row["arch"]: row["values"] for row in document["rows"]}
    limits = {arch: one["kernel_config.size_limit"] for arch, one in values.items()}
    assert limits == {"gfx1100:rx7900": 1024, "gfx908:mi100": 4096}
    assert {one["block_reduce_method"] for one in values.values()} == {"using_warp_reduce"}


FORGED = [
    "namespace rocprim { namespace detail { namespace policygen_asked {\n"
    "template<int> struct number {}; using type_0 = number<7>; using fields_0 = half; } } }\n",
    "namespace rocprim { namespace detail { struct value_0 { static constexpr auto found = 7; };\n"
    "struct target_0 { using type = void; }; template<int N> struct shape_0 {}; } }\n",
    "#define reduce_config_picker_ other\n",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", sampled(FORGED, FORGED[0]))
def test_what_looks_like_an_answer_is_none(capsys, tmp_path, toy, text):
    other = make_toy(tmp_path / "other", header() + text)
    assert found(capsys, other) == found(capsys, toy)


@pytest.mark.slow
def test_text_that_looks_like_a_picker_decides_nothing(capsys, tmp_path, toy):
    """In comments, strings, and where a condition is switched off."""
    extra = PICKERS[0].replace("{256, 8}", "{32, 1}").replace("{128, 4}", "{32, 1}")
    text = header()
    text = text.replace(
        HEAD, f'{HEAD}/*\n{extra}*/\nconstexpr auto told = R"({extra})";\n#if 0\n{extra}#endif\n'
    )
    other, _ = found(capsys, make_toy(tmp_path / "other", text), "-a", "key_type=int")
    mine, _ = found(capsys, toy, "-a", "key_type=int")
    assert {key: row[:3] for key, row in other.items()} == {k: row[:3] for k, row in mine.items()}


def test_fields_that_were_not_read_are_refused(capsys, tmp_path):
    """No value is left out, however it is declared."""
    root = make_toy(tmp_path / "toy")
    path = root / "rocprim/device/detail/device_config_helper.hpp"
    last = "= block_reduce_algorithm::using_warp_reduce;\n};"
    more = last.replace("}", "    unsigned int (hidden) = 7;\n}")
    path.write_text(path.read_text().replace(last, more))
    rows, err = found(capsys, root, status=2)
    assert rows == {}
    told = " ".join(err.split())
    assert "reduce_config_params was read as kernel_config.block_size" in told
    assert "libclang reports" in told


@pytest.mark.slow
def test_a_picker_that_says_otherwise_what_it_returns_has_no_entries(capsys, tmp_path):
    chosen = (
        "template<bool, class T> struct chosen {};\n"
        "template<class T> struct chosen<true, T> { using type = T; };\n"
    )
    text = header().replace(HEAD, HEAD + chosen).replace("std::enable_if_t<", "typename chosen<")
    text = text.replace("        reduce_config_params>\n", "        reduce_config_params>::type\n")
    root = make_toy(tmp_path / "toy", text)
    assert main(["resolve", "--cub", str(root), "-q"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "reduce_config_picker: cannot determine what it returns" in told
    assert "std::enable_if_t<std::is_same_v<Target, …>, TYPE>" in told


@pytest.mark.slow
def test_a_picker_that_does_not_compile_is_told(capsys, tmp_path):
    text = header().replace("{256, 8}", "{256, unheard_of}")
    root = make_toy(tmp_path / "toy", text)
    rows, err = found(capsys, root, status=2)
    assert rows == {}
    assert "use of undeclared identifier 'unheard_of'" in err


@pytest.mark.slow
def test_a_scan_names_targets_and_takes_those_of_an_architecture(capsys, toy):
    assert main(["scan", "--cub", str(toy), "device_reduce", "--arch", "gfx942", "--json"]) == 0
    (family,) = json.loads(capsys.readouterr().out)["families"]
    assert (family["name"], family["arch"]) == ("reduce_config_picker", "gfx942:mi300x")
    assert [one["values"][SIZES[1]] for one in family["entries"] if one["values"]] == [8, 4]


@pytest.mark.slow
def test_coverage_reach_and_lint_know_pickers(capsys, tmp_path):
    dead = branch(WORDS, "{100, 3}")
    text = header(
        picker("gfx942", "mi300x", branch(REAL, "{256, 8}"), branch(WORDS, "{128, 4}"), dead),
        *PICKERS[1:],
    )
    root = make_toy(tmp_path / "toy", text)
    assert main(["audit", "reach", "--cub", str(root), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    (one,) = told["unreachable"]
    assert one["line"] == line_of(text, "{100, 3}", back=-3)
    assert main(["audit", "lint", "--cub", str(root), "--json"]) == 1
    rules = {one["rule"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert "threads-not-warp-multiple" in rules
    assert main(["audit", "coverage", "--cub", str(root), "--arch", "gfx908:mi100", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["format"].startswith("policygen/audit-coverage/")


@pytest.mark.slow
def test_a_target_that_the_list_lacks_is_reached_by_no_device(capsys, tmp_path):
    root = make_toy(tmp_path / "toy", header(known=KNOWN[1:]))
    rows, _ = found(capsys, root, "--arch", "gfx942:mi300x", "-a", "key_type=int")
    assert rows["gfx942:mi300x", "int"][:3] == ((256, 16), "inherited", "gfx908:mi100")


@pytest.mark.parametrize("numbered", sampled([False, True], False))
def test_an_answer_that_lacks_a_question_is_no_answer(capsys, toy, monkeypatch, numbered):
    real = HostCompiler.answer

    def told(self, text, *rest):
        answer = real(self, text, *rest)
        if ("using type_0 = number<" in text) == numbered:
            answer["types"].pop("type_0")
        return answer

    monkeypatch.setattr(HostCompiler, "answer", told)
    rows, err = found(capsys, toy, "--arch", "gfx942", "-a", "key_type=int", status=2)
    assert rows == {}
    assert "libclang reports nothing about rocprim.device_reduce key_type=int on gfx942" in err


@pytest.mark.slow
def test_headers_of_both_forms_are_asked_together(capsys, tmp_path):
    """A target is a GPU of an architecture, which alone counts where configs are templates."""
    root = make_toy(tmp_path / "toy")
    (root / CONFIGS / "device_segmented_reduce.hpp").write_text(SEGMENTED)
    helper = root / "rocprim/device/detail/device_config_helper.hpp"
    helper.write_text(helper.read_text() + TEMPLATE)
    asked = ("-R", "rocprim.device_(segmented_)?reduce$", "--arch", "gfx942:mi300x")
    document, err = resolved(capsys, root, *asked)
    mine = (row for row in document["rows"] if "int" in row["workload"].values())
    rows = {row["benchmark"].removeprefix("rocprim.device_"): row for row in mine}
    assert err == ""
    assert rows["segmented_reduce"]["values"] == {"BlockSize": 96, "ItemsPerThread": 3}
    assert rows["segmented_reduce"]["since"] == "gfx942"
    assert rows["reduce"]["since"] == "gfx942:mi300x"


TEMPLATE = """
namespace rocprim
{
template<unsigned int BlockSize, unsigned int ItemsPerThread>
struct reduce_config
{};
} // namespace rocprim
"""
SEGMENTED = """\
#pragma once
#include "../device_config_helper.hpp"
namespace rocprim
{
namespace detail
{
template<unsigned int arch, class key_type, class enable = void>
struct default_segmented_reduce_config : reduce_config<256, 4>
{};
template<class key_type>
struct default_segmented_reduce_config<static_cast<unsigned int>(target_arch::gfx942),
                                       key_type,
                                       std::enable_if_t<(sizeof(key_type) <= 4)>>
    : reduce_config<96, 3>
{};
} // namespace detail
} // namespace rocprim
"""
