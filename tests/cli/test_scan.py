import json
import shutil

import pytest

from policygen import rendering
from policygen.cli.main import main
from policygen.portable import nearby
from tests.probing import root

MINI = rendering.folder("cub_headers") / "mini"
HEADERS = MINI / "cub/cub/device/dispatch/tuning"


@pytest.fixture(autouse=True)
def width(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))


def run(capsys, *arguments, cub=MINI):
    status = main(["scan", *(["--cub", str(cub)] if cub else []), *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def scan(capsys, *arguments):
    status, out, err = run(capsys, "--json", *arguments)
    assert (status, err) == (0, "")
    return json.loads(out)


def test_without_more_words_it_counts_the_families(capsys):
    status, out, err = run(capsys)
    assert (status, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    where = nearby(MINI / "cub")
    assert lines[0] == f"CUB 3.0.1 (specializations), {where} [--cub]"
    assert "  blur::rows::sm100_tuning              3         1          2          5" in lines
    assert lines[-1].startswith(
        "13 specializations in 7 families of 2 headers; 6 disabled; 2 policy"
    )


@pytest.mark.trees
def test_guarded_returns_are_counted_after_specializations(capsys):
    assert main(["scan", "reduce", "--cub", str(root("3.6.0"))]) == 0
    _, _, entries = capsys.readouterr().out.partition("functions of")[0].rpartition("\n")
    assert entries == "43 guarded returns in 8 "


def test_quiet_prints_the_table_alone(capsys):
    _, out, _ = run(capsys, "-q")
    assert out.startswith("family ")
    assert "specializations in" not in out


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_no_line_is_wider_than_the_terminal(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = run(capsys, "-v")
    # One word that is wider than the terminal is left whole.
    assert [
        x for x in out.splitlines() if len(x) > columns and " " in x.strip(" /:")
    ] == [] or columns == 40
    assert "ipt_9.tpb_320" in out


def test_entries_come_with_values_labels_remarks_and_chains(capsys):
    _, out, _ = run(capsys, "-v", "--arch", "sm100", "-R", "blur")
    assert out.splitlines()[2:] == [
        "tuning_blur.cuh: cub::detail::blur::rows::sm100_tuning<PixelT, Shade, PixelSize>",
        "  69: <PixelT, shade::light, pixel_size::_1>",
        "    items=20  threads=384  reuse=true  load_algorithm=BLOCK_LOAD_WARP_TRANSPOSE",
        "    delay_constructor=exponential_backon_constructor_t<228, 775>",
        "    ipt_20.tpb_384.ns_228.dcid_7.l2w_775.trp_1",
        "      1.125000  0.975000  1.110000  1.250000",
        "    // rows of single bytes",
        "  80: <PixelT, shade::dark, pixel_size::_1>",
        "    items=9  threads=320  reuse=true  load_algorithm=BLOCK_LOAD_DIRECT",
        "    delay_constructor=no_delay_constructor_t<600>",
        "    ipt_9.tpb_320  1.062500  1.000000",
        "    // db 7",
        "    // a blank line after the label, and only two of the four numbers",
        "  94: <float, shade::light, pixel_size::_4>",
        "    : sm80_tuning<float, shade::light, pixel_size::_4>",
        "    ipt_14.tpb_512.ns_408.dcid_7.l2w_960.trp_0",
        "      1.031250  0.812500  1.015625  1.062500  (rejected)",
        "    // todo: slower on large images, keep what sm80 had.",
        "  103: <PixelT, shade::light, pixel_size::_4> DISABLED",
        "    items=17  threads=256  reuse=true  load_algorithm=BLOCK_LOAD_DIRECT",
        "    delay_constructor=exponential_backoff_constructor_t<512, 500>",
        "    ipt_17.tpb_256.ns_512.dcid_2.l2w_500.trp_0",
        "      1.015625  0.750000  1.000000  1.125000",
        "    // todo: slower on large images. Needs another search.",
        "  115: <bool, shade::dark, pixel_size::_1> DISABLED",
        "    items=8",
        "    // Replaced by the entry for single bytes.",
        "  122: <PixelT, shade::dark, pixel_size::_4> DISABLED #if 0",
        "    items=5",
        "  130: <__int128_t, shade::light, pixel_size::_16> DISABLED",
        "      #if _CCCL_HAS_INT128()",
        "    : sm80_tuning<__int128_t, shade::light, pixel_size::_16>",
        "    // TODO: tune for 128 bits.",
        "  132: <__uint128_t, shade::light, pixel_size::_16> DISABLED",
        "      #if _CCCL_HAS_INT128()",
        "",
        "tuning_blur.cuh: cub::detail::blur::rows::policy_hub",
        "  144: Policy500 for sm50 and later, derives from DefaultPolicy<LOAD_LDG>",
        "  160: Policy800 for sm80 and later, else Policy500",
        "    reads sm80_tuning through select_agent_policy: threads items load_algorithm",
        "      reuse delay_constructor; without one of them:",
        "      DefaultPolicy<LOAD_DEFAULT>::BlurPolicyT",
        "  165: Policy1000 for sm100 and later, else Policy800",
        "    reads sm100_tuning through select_agent_policy: threads items",
        "      load_algorithm; without one of them: Policy800::BlurPolicyT",
        "",
        "3 specializations in 1 family of 1 header; 5 disabled; 1 policy chain",
    ]


@pytest.mark.parametrize(
    ("arguments", "families"),
    [
        ([], 7),
        (["blur"], 3),
        (["tuning_sift.cuh"], 4),
        (["tuning_sift", "blur"], 7),
        ([HEADERS / "tuning_sift.cuh"], 4),
        (["-R", "si"], 4),
        (["-R", "ift"], 0),  # CCCL's -R matches from the beginning
        (["-R", ".*rows"], 2),
        (["-R", "cub.bench.sift"], 4),
        (["--arch", "90"], 1),
        (["--arch", "sm_80", "--arch", "10.0"], 4),
        (["-a", "KeySize=[2,4]"], 2),
        (["-a", "Shade=shade::dark"], 1),
        (["-a", "pixel_size=pixel_size::_1"], 1),
        (["-a", "PixelSize=pixel_size::_4", "--arch", "sm100"], 1),
    ],
)
def test_filters_narrow_what_is_shown(capsys, arguments, families):
    if families:
        assert len(scan(capsys, *arguments)["families"]) == families
    else:
        assert run(capsys, *arguments)[0] == 2


def test_a_header_by_itself_can_be_scanned_without_a_tree(capsys, tmp_path):
    lone = shutil.copy(HEADERS / "tuning_sift.cuh", tmp_path / "mine.cuh")
    status, out, err = run(capsys, lone, "--json", cub=None)
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert document["cub"]["found"] == "header"
    assert document["cub"]["version"] == "unknown"
    assert [f["header"] for f in document["families"]] == ["mine.cuh"] * 4


def test_a_header_in_a_tree_is_scanned_as_part_of_it(capsys):
    status, out, _ = run(capsys, HEADERS / "tuning_sift.cuh", "--json", cub=None)
    assert status == 0
    assert json.loads(out)["cub"]["version"] == "3.0.1"


def test_the_cache_can_be_passed_over(capsys, tmp_path):
    scan(capsys, "--no-cache")
    assert not (tmp_path / "cache").exists()
    scan(capsys)
    assert len(list((tmp_path / "cache/scan").iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-R", "nothing", "--arch", "90", "-a", "X=1"],
            "nothing matches -R 'nothing' --arch sm90 -a 'X=1'\n"
            "  Algorithms with tuning families: blur, sift\n"
            "  archs: sm75, sm80, sm90, sm100\n"
            "  template parameters for -a: Items, KeySize, KeyT, PixelSize, PixelT, Shade, Threads,"
            " ValueSize, ValueT, pixel_size",
        ),
        (
            ["-R", "("],
            "-R '(' is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        (["-a", "KeySize"], "-a 'KeySize' is not of the form AXIS=VALUE"),
        (
            ["--arch", "new"],
            "'new' is not a GPU architecture; write sm90, sm_90, 90 or 9.0, or gfx942 for AMD",
        ),
        (["sort"], "no tuning header is named 'sort'\n  Available: blur, sift"),
    ],
)
def test_a_mistyped_filter_is_told(capsys, arguments, message):
    assert run(capsys, *arguments) == (2, "", f"policygen: error: {message}\n")


def test_a_broken_header_is_told_and_the_others_are_shown(capsys, tmp_path):
    copy = shutil.copytree(MINI, tmp_path / "mini")
    broken = copy / "cub/cub/device/dispatch/tuning/tuning_blur.cuh"
    broken.write_bytes(broken.read_bytes()[:2000])
    (broken.parent / "tuning_link.cuh").symlink_to("tuning_link.cuh")
    status, out, err = run(capsys, "--json", cub=copy)
    assert status == 2
    document = json.loads(out)
    assert {f["header"] for f in document["families"]} == {"tuning_sift.cuh"}
    line = document["problems"][0]
    assert (line["line"], line["column"], line["message"]) == (23, 1, "'{' is never closed")
    assert f"{broken}:23:1: '{{' is never closed\n  {{\n  ^\n" in err
    assert document["problems"][1]["path"].endswith("tuning_link.cuh")
    assert document["problems"][1]["message"].startswith("cannot be read: ")
    assert run(capsys, cub=copy)[0] == 2
