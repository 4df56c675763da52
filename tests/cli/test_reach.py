import json

import jsonschema
import pytest

from policygen import rendering
from policygen.cli.main import main
from policygen.proof.toolchain import find_toolchain
from policygen.proof.unreachable import OF_NO_INPUT, ONLY_INPUTS
from tests.cli.tuned import others
from tests.probing import changed_tree, header, replaced, root
from tests.tiers import sampled, slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments, cub=None):
    status = main(["audit", "reach", "--cub", str(cub or root("3.0.1")), *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


THREE = "tuning_three_way_partition.cuh"


@pytest.mark.slow
def test_entries_with_the_same_reason_stand_together(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    status, out, err = run(capsys, "three_way_partition")
    assert status == 1
    head, _, rest = out.partition("\n\n")
    assert head.startswith("CUB 3.0.1 (specializations), ")
    assert rest.splitlines() == [
        f"{THREE}: sm90_tuning",
        "  argument: OffsetSize is never _8; it is _4",
        *(
            f"  {THREE}:{line}: <Input, OffsetT, input_size::_{size}, offset_size::_8>"
            for line, size in ((183, 1), (192, 2), (201, 4), (210, 8), (219, 16))
        ),
        "",
        f"{THREE}: sm100_tuning",
        "  argument: OffsetSize is never _8; it is _4",
        *(
            f"  {THREE}:{line}: <Input, OffsetT, input_size::_{size}, offset_size::_8>"
            for line, size in ((296, 2), (306, 4), (316, 8))
        ),
        "",
        "19 entries, 8 never selected; 0 by no benchmark",
        "32 workloads tried on sm80, sm90, sm100",
    ]
    assert others(err) == []


@pytest.mark.slow
def test_entries_are_chosen_as_for_scan(capsys):
    status, out, _ = run(
        capsys, "-R", "three_way", "--arch", "sm100", "-a", "InputSize=input_size::_2"
    )
    assert status == 1
    assert f"{THREE}:296: " in out
    assert f"{THREE}:306: " not in out
    assert f"{THREE}:192: " not in out
    assert "1 entry, 1 never selected; 0 by no benchmark" in out
    status, _, err = run(capsys, "-R", "three_way", "--arch", "sm61")
    assert status == 2
    assert "sm61" in err


@pytest.mark.slow
def test_quiet_prints_findings_alone(capsys):
    status, out, err = run(capsys, "three_way_partition", "-q")
    assert (status, err) == (1, "")
    assert out.startswith(f"{THREE}: sm90_tuning\n")
    assert "workloads tried" not in out


@pytest.mark.slow
@pytest.mark.parametrize("columns", sampled([80, 160], 80))
def test_no_line_is_wider_than_the_terminal(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = run(capsys, "run_length_encode", "-v")
    assert [x for x in out.splitlines() if len(x) > columns] == []
    assert "inherits without: inherits from sm90_tuning<LengthT, double," in " ".join(out.split())
    assert "for example cub.bench.run_length_encode.non_trivial_runs T=F64" in out
    assert "Selected by some calls, but by no benchmark:" in out
    assert "by T=U128 LengthT=I32 on sm80" in out


def test_json_is_one_document_that_the_schema_knows(capsys):
    status, out, err = run(capsys, "three_way_partition", "--json")
    document = json.loads(out)
    schema = rendering.folder("schemas") / "json/audit-reach-1.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    assert status == 1
    assert others(err) == []
    assert (document["entries"], document["reached"]) == (19, 11)
    assert {found["cause"] for found in document["unreachable"]} == {"argument"}
    assert document["unasked"] == []


@pytest.mark.slow
def test_a_header_of_which_every_entry_is_selected_is_fine(capsys):
    status, out, _ = run(capsys, "histogram")
    assert status == 0
    assert "entries, 0 never selected" in out


@pytest.mark.slow
def test_in_the_selector_dialect_the_entries_of_the_old_dispatchers_are_tried(capsys):
    status, out, _ = run(capsys, "three_way_partition", "-q", cub=root("3.6.0"))
    assert status == 1
    assert "argument: OffsetSize is never _8; it is _4" in out


@slow
def test_guarded_returns_that_no_policy_shows_are_named(capsys):
    """NVIDIA/cccl#11083 as selectors have it, and partitions with 64-bit offsets."""
    status, out, err = run(
        capsys, "three_way_partition", "radix_sort", "--json", "-q", cub=root("3.6.0")
    )
    assert status == 1, err
    document = json.loads(out)
    found = [one for one in document["unreachable"] if one["cause"] == "condition"]
    assert {(one["header"], one["family"]) for one in found} == {
        ("tuning_radix_sort.cuh", "get_sm100_tuning"),
        (THREE, "policy_selector::get_lookback_policy"),
    }
    sizes = {fact for one in found for fact in one["args"] if fact.startswith("key_size ")}
    assert sizes == {"key_size == 4", "key_size == 8"}
    assert all("offset_size == 8" in one["args"] for one in found if one["header"] == THREE)
    assert (len(found), len([one for one in found if one["header"] == THREE])) == (30, 8)
    # No input of radix sort's selector gets its returns; partitions with such offsets would get
    # theirs, but no call has them.
    reasons = {
        (row["header"], row["reason"], (row["example"] or "").startswith("inputs where arch is "))
        for row in found
    }
    assert reasons == {
        ("tuning_radix_sort.cuh", OF_NO_INPUT, False),
        (THREE, ONLY_INPUTS, True),
    }
    of_half = next(row for row in found if row["header"] == THREE and row["line"] == 627)
    assert of_half["example"].endswith("and input_size is 2 and offset_size is 8")
    assert {"sm107", "sm110"} < set(document["archs"])
    assert document["unasked"] == []


@slow
def test_returns_that_benchmarks_do_not_have_are_told_with_a_call(capsys):
    status, out, err = run(capsys, "reduce_by_key", "--json", "-q", cub=root("3.5.0"))
    document = json.loads(out)
    assert status == int(bool(document["unreachable"])), err
    returns = [one for one in document["call_only"] if "accum_size == 1" in one["args"]]
    assert len(returns) == 14
    assert all("Op=minimum" in one["example"] for one in returns)


@pytest.mark.slow
def test_keys_that_an_iterator_makes_up_are_tried(capsys, tmp_path):
    """Where all architectures look ahead, the returns of the lookback policy are theirs alone."""
    data = replaced(
        header("3.6.0", "tuning_rle_encode.cuh"),
        ("{10, 0} || cc >= ::cuda::compute_capability{11, 0})", "{10, 0})"),
    )
    tree = changed_tree(tmp_path, "3.6.0", {"tuning_rle_encode.cuh": data})
    status, out, _ = run(capsys, "rle_encode", "--json", "-q", cub=tree)
    document = json.loads(out)
    assert (status, document["unreachable"]) == (0, [])
    given = {one["example"] for one in document["call_only"]}
    assert len(given) >= 4


FANCY = """
    if (cc >= ::cuda::compute_capability{10, 0} && !input_contiguous && accum_size == 4)
    {
      return make_mem_scaled_lookback_scan_policy(
        256, 15, accum_size, BLOCK_LOAD_DIRECT, LOAD_DEFAULT, BLOCK_STORE_DIRECT, BLOCK_SCAN_RAKING,
        default_delay);
    }
"""


@pytest.mark.slow
def test_what_only_calls_in_place_select_is_a_call_of_no_benchmark(capsys, tmp_path):
    name = "tuning_adjacent_difference.cuh"
    start = "-> AdjacentDifferencePolicy\n  {\n"
    entry = (
        "    if (cc >= ::cuda::compute_capability{9, 0} && may_alias && value_type_size == 4)\n"
        "    {\n      return AdjacentDifferencePolicy{64, 9, BLOCK_LOAD_WARP_TRANSPOSE, LOAD_CA,"
        " BLOCK_STORE_WARP_TRANSPOSE};\n    }\n"
    )
    data = header("3.6.0", name)
    at = data.index(start.encode()) + len(start)
    tree = changed_tree(tmp_path, "3.6.0", {name: data[:at] + entry.encode() + data[at:]})
    status, out, err = run(capsys, "adjacent_difference", "--json", "-q", cub=tree)
    document = json.loads(out)
    assert (status, document["unreachable"]) == (0, []), err
    (entry,) = [one for one in document["call_only"] if "may_alias" in one["args"]]
    assert entry["example"] == "T=I32 OffsetT=I32 MayAlias=!(false) on sm90"


@slow
def test_what_only_a_fancy_iterator_selects_is_a_call_of_no_benchmark(capsys, tmp_path):
    """Benchmarks read through pointers alone; a scan over a transform_iterator selects it."""
    name = "tuning_scan.cuh"
    data = header("3.6.0", name)
    at = data.index(b"\n", data.index(b"const auto default_delay ="))
    tree = changed_tree(tmp_path, "3.6.0", {name: data[:at] + FANCY.encode() + data[at:]})
    _, out, err = run(capsys, "scan", "--json", "-q", cub=tree)
    document = json.loads(out)
    assert all(one["cause"] != "condition" for one in document["unreachable"]), err
    (entry,) = [one for one in document["call_only"] if "!input_contiguous" in one["args"]]
    assert "InputIteratorT=THRUST_NS_QUALIFIER::constant_iterator<" in entry["example"]


@slow
def test_functions_that_no_call_comes_to_are_not_judged(capsys, tmp_path):
    minmax = "operation_t == op_kind_t::argminmax"
    data = replaced(header("3.6.0", "tuning_reduce.cuh"), (minmax, f"{minmax} && accum_size == 0"))
    tree = changed_tree(tmp_path, "3.6.0", {"tuning_reduce.cuh": data})
    status, out, _ = run(capsys, "reduce", "-q", cub=tree)
    assert status == 0
    assert "sm107" not in out
    status, out, _ = run(capsys, "reduce", cub=tree)
    told = " ".join(out.split())
    assert "not checked: cub::detail::reduce::get_sm107_argminmax_tuning" in told
    assert "get_argextremum_sm107_tuning" not in told


def test_a_header_without_families_has_nothing_to_be_tried(capsys):
    status, out, err = run(capsys, "merge_sort")
    assert (status, err) == (0, "")
    assert "0 entries, 0 never selected; 0 by no benchmark" in out


@pytest.mark.slow
def test_a_family_that_no_binding_knows_is_named(capsys, tmp_path):
    text = header("3.0.1", THREE).decode()
    at = text.rindex("template", 0, text.index("struct policy_hub"))
    extra = "template <class T> struct sm95_tuning;\ntemplate <> struct sm95_tuning<int> {};\n\n"
    tree = changed_tree(tmp_path, "3.0.1", {THREE: (text[:at] + extra + text[at:]).encode()})
    status, out, _ = run(capsys, "three_way_partition", cub=tree)
    assert status == 1
    assert "not checked: cub::detail::three_way_partition::sm95_tuning" in " ".join(out.split())


@pytest.mark.slow
def test_a_header_that_does_not_compile_says_nothing_of_entries(capsys, tmp_path):
    wrong = ("struct policy_hub\n{", "struct policy_hub\n{\n  using wrong = not_declared;")
    data = replaced(header("3.0.1", THREE), wrong)
    tree = changed_tree(tmp_path, "3.0.1", {THREE: data})
    status, out, err = run(capsys, "three_way_partition", cub=tree)
    assert status == 2
    assert "argument" not in out
    assert "policygen: error: command failed with status " in err
    assert 'error: identifier "not_declared" is undefined' in err
    status, out, _ = run(capsys, "three_way_partition", "--json", "-q", cub=tree)
    assert status == 2
    assert json.loads(out)["unreachable"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sort"], "no tuning header is named 'sort'\n  Available: "),
        (["tuning_scan.cu"], "no tuning header is named 'tuning_scan.cu'\n  Available: "),
    ],
)
def test_a_header_that_is_not_there_is_told(capsys, arguments, message):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {message}")


def test_a_compiler_that_is_missing_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    status, out, err = run(capsys, "three_way_partition")
    assert (status, out) == (3, "")
    assert err == (
        f"policygen: error: {tmp_path / 'bin/nvcc'} (from CUDA_HOME) is missing\n"
        "  Unset CUDA_HOME or correct it.\n"
    )


def test_a_version_that_the_bindings_were_not_tried_with_is_remarked(capsys, tmp_path):
    tree = changed_tree(tmp_path, "3.0.1", {})
    version = tree / "cub/version.cuh"
    text = version.read_text()
    version.unlink()
    version.write_text(replaced(text.encode(), ("define CUB_VERSION 300001", VERSION)).decode())
    status, out, _ = run(capsys, "merge_sort", cub=tree)
    assert status == 0
    assert "note: CUB 3.9.0 is not one of the versions" in " ".join(out.split())
    assert find_toolchain().version in " ".join(out.split())


VERSION = "define CUB_VERSION 300900"
