import json
import shutil

import jsonschema
import pytest

from policygen import rendering
from policygen.cli.main import main
from policygen.model.audits import LintReport
from policygen.proof.lint_rules import RULES

MINI = rendering.folder("cub_headers") / "mini"
TUNING = "cub/cub/device/dispatch/tuning"
# A header that CUB 3.0.1 has too, so that its bindings hold for it.
REDUCE = """CUB_NAMESPACE_BEGIN
namespace detail
{
namespace reduce
{
template <class AccumT, class OffsetT, int Op, int OffsetSize, int AccumSize>
struct sm100_tuning;

template <class AccumT, class OffsetT>
struct sm100_tuning<AccumT, OffsetT, 0, 4, 4>
{
  // ipt_17.tpb_512.ipv_1 1.019887  1.000000  1.017636  1.058036
  static constexpr int items              = 17;
  static constexpr int threads            = 500;
  static constexpr int items_per_vec_load = 2;
};

template <class AccumT, class OffsetT>
struct sm80_tuning;

template <class OffsetT>
struct sm80_tuning<float, OffsetT>
{
  static constexpr int threads = 7;
};
} // namespace reduce
} // namespace detail
CUB_NAMESPACE_END
"""


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def toy(tmp_path):
    """A tree with one header that has faults, beside those that have none."""
    copy = shutil.copytree(MINI, tmp_path / "toy")
    (copy / TUNING / "tuning_reduce.cuh").write_text(REDUCE)
    return copy


def run(capsys, *arguments, cub=None):
    status = main(["audit", "lint", *(["--cub", str(cub)] if cub else []), *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def rules_found(capsys, *arguments, cub):
    status, out, err = run(capsys, "--json", *arguments, cub=cub)
    found = [finding["rule"] for finding in json.loads(out)["findings"]]
    assert (status, err) == (1 if found else 0, "")
    return found


ALL = [
    "items-not-divisible-by-vector",
    "label-contradicts-values",
    "threads-not-warp-multiple",
    "threads-not-warp-multiple",
    "threads-over-limit",
]


def test_nothing_is_found_where_nothing_is_wrong(capsys):
    status, out, err = run(capsys, "-q", cub=MINI)
    assert (status, out, err) == (0, "", "")
    _, out, _ = run(capsys, cub=MINI)
    assert " ".join(out.split()) == (
        "0 findings in 20 entries of 7 families; 5 families without a binding"
    )


def test_each_finding_has_its_place_its_line_and_a_caret(capsys, toy):
    status, out, err = run(capsys, cub=toy)
    assert (status, err) == (1, "")
    where = f"toy/{TUNING}/tuning_reduce.cuh"
    assert out.splitlines()[:12] == [
        f"{where}:13:45: [items-not-divisible-by-vector] 17 items cannot be loaded as vectors of"
        " 2: vectorization is off",
        "    static constexpr int items              = 17;",
        "                                              ^^",
        f"{where}:14:45: [label-contradicts-values] the label says tpb_512, the entry has 500",
        "    static constexpr int threads            = 500;",
        "                                              ^^^",
        f"{where}:14:45: [threads-not-warp-multiple] 500 threads are not a multiple of the warp"
        " size 32",
        "    static constexpr int threads            = 500;",
        "                                              ^^^",
        f"{where}:24:34: [threads-not-warp-multiple] 7 threads are not a multiple of the warp size"
        " 32",
        "    static constexpr int threads = 7;",
        "                                   ^",
    ]
    assert " ".join(out.split()).endswith(
        "5 findings in 24 entries of 9 families; items-not-divisible-by-vector 1;"
        " threads-not-warp-multiple 2; threads-over-limit 1; label-contradicts-values 1;"
        " 6 families without a binding"
    )


def test_verbose_names_families_without_a_binding(capsys, toy):
    _, out, _ = run(capsys, "-v", "reduce", cub=toy)
    assert "without a binding: cub::detail::reduce::sm80_tuning" in " ".join(out.split())


def test_the_summary_says_how_many_rules_are_off(capsys, toy):
    _, out, _ = run(capsys, "-R", "reduce", "--arch", "100", "--only", "duplicate-key", cub=toy)
    assert out == "0 findings in 2 entries of 1 family; 9 rules off\n"


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], ALL),
        (["reduce"], ALL),
        (["--off", "threads-not-warp-multiple", "--off", "threads-over-limit"], ALL[:2]),
        (["--only", "threads-over-limit"], ALL[4:]),
        (["--only", "duplicate-key"], []),
        (["--arch", "80"], ALL[3:]),
        (["-R", "reduce", "--arch", "sm100"], ALL[:3]),
        (["blur"], []),
    ],
)
def test_rules_and_filters_narrow_what_is_found(capsys, toy, arguments, found):
    assert rules_found(capsys, *arguments, cub=toy) == found


def test_the_document_is_as_its_schema_says(capsys, toy):
    _, text, _ = run(capsys, "--json", "--off", "duplicate-key", cub=toy)
    name = "audit-lint-1.schema.json"
    schema = (rendering.folder("schemas") / "json" / name).read_text("utf-8")
    document = json.loads(text)
    jsonschema.validate(document, json.loads(schema))
    assert LintReport.model_validate_json(text).to_json() + "\n" == text
    assert document["off"] == ["duplicate-key"]
    assert document["counts"]["threads-not-warp-multiple"] == 2
    assert "cub::detail::reduce::sm80_tuning" in document["unbound"]
    assert document["findings"][0] == {
        "rule": "items-not-divisible-by-vector",
        "severity": "warning",
        "header": "tuning_reduce.cuh",
        "family": "sm100_tuning",
        "args": ["AccumT", "OffsetT", "0", "4", "4"],
        "line": 13,
        "column": 45,
        "message": "17 items cannot be loaded as vectors of 2: vectorization is off",
        "path": f"toy/{TUNING}/tuning_reduce.cuh",
        "text": "  static constexpr int items              = 17;",
        "width": 2,
    }


def test_the_rules_are_listed_without_a_tree(capsys):
    status, out, err = run(capsys, "--rules")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == [rule.name for rule in RULES]
    assert max(map(len, out.splitlines())) < 120


def test_a_header_by_itself_is_checked_without_bindings(capsys, tmp_path):
    (tmp_path / "mine.cuh").write_text(REDUCE)
    assert rules_found(capsys, "mine.cuh", cub=None) == ALL[2:]


def test_a_header_that_is_named_goes_before_the_one_of_the_tree(capsys, toy, tmp_path):
    (tmp_path / "tuning_reduce.cuh").write_text("\n\n" + REDUCE)
    _, out, _ = run(capsys, "tuning_reduce.cuh", "--json", cub=toy)
    first = json.loads(out)["findings"][0]
    assert (first["path"], first["line"]) == ("tuning_reduce.cuh", 15)


def test_two_headers_of_one_name_are_refused(capsys, toy, tmp_path):
    (tmp_path / "tuning_reduce.cuh").write_text(REDUCE)
    other = toy / TUNING / "tuning_reduce.cuh"
    assert run(capsys, "tuning_reduce.cuh", other, cub=toy) == (
        2,
        "",
        "policygen: error: two headers are named tuning_reduce.cuh\n  Give their paths one at a"
        " time.\n",
    )


def test_a_broken_header_is_told_after_what_is_found_in_others(capsys, toy):
    broken = toy / TUNING / "tuning_blur.cuh"
    broken.write_bytes(broken.read_bytes()[:2000])
    status, out, err = run(capsys, "--json", cub=toy)
    assert status == 2
    document = json.loads(out)
    assert len(document["findings"]) == len(ALL)
    assert document["problems"][0]["message"] == "'{' is never closed"
    assert "'{' is never closed" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--off", "warp"], "unknown rule 'warp'"),
        (["--only", "duplicate-key", "--off", "duplicate-key"], "all rules are disabled"),
        (["-R", "nothing"], "nothing matches -R 'nothing'"),
        (["sort"], "no tuning header is named 'sort'"),
    ],
)
def test_bad_input_is_told(capsys, arguments, message):
    status, out, err = run(capsys, *arguments, cub=MINI)
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {message}")
