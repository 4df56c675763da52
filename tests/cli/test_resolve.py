import json
import subprocess

import jsonschema
import pytest

from policygen import rendering
from policygen.cli.main import main
from policygen.proof.toolchain import find_toolchain
from tests.cli.tuned import others
from tests.probing import changed_tree, copied_tree, header, replaced, root
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

THREE = "cub.bench.partition.three_way"
OLD_ITEMS = """  static constexpr int items                         = 11;
  static constexpr int threads                       = 512;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT;
"""


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments, cub=None):
    status = main(["resolve", "--cub", str(cub or root("3.0.1")), *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def valid(out, name):
    document = json.loads(out)
    schema = rendering.folder("schemas") / "json" / f"{name}-1.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    return document


@pytest.fixture(scope="session")
def other(tmp_path_factory):
    """The 3.0.1 tree with one value changed: 11 items become 10 for four bytes on sm100."""
    data = replaced(
        header("3.0.1", "tuning_three_way_partition.cuh"),
        (OLD_ITEMS, OLD_ITEMS.replace("= 11;", "= 10;")),
    )
    folder = tmp_path_factory.mktemp("other")
    return changed_tree(folder, "3.0.1", {"tuning_three_way_partition.cuh": data})


@pytest.mark.slow
def test_workloads_with_the_same_values_stand_together(capsys):
    arguments = ("three_way_partition", "--arch", "100", "-a", "T=[I32,F32]")
    status, out, err = run(capsys, *arguments)
    assert status == 0
    head, _, rest = out.partition("\n\n")
    assert " ".join(head.split()).startswith("CUB 3.0.1 (specializations), ")
    assert " ".join(head.split()).endswith(f"; nvcc {find_toolchain().version}")
    assert rest.splitlines() == [
        "cub.bench.partition.three_way on sm100",
        "  T=I32 OffsetT=I32",
        "  T=I32 OffsetT=I64",
        "  T=F32 OffsetT=I32",
        "  T=F32 OffsetT=I64",
        "      tuned, tuning_three_way_partition.cuh:256",
        "      threads=512  items=11  load_algorithm=BLOCK_LOAD_DIRECT",
        "        load_modifier=LOAD_DEFAULT",
        "        delay_constructor=exponential_backon_jitter_constructor_t<72, 840>",
        "",
        "4 workloads on sm100: 4 tuned, 0 inherited, 0 default",
    ]
    assert others(err) == []


@pytest.mark.slow
def test_verbose_gives_each_workload_its_own_lines(capsys):
    _, out, _ = run(capsys, "three_way_partition", "--arch", "100", "-a", "T=[I32,F32]", "-v")
    assert out.count("tuned, tuning_three_way_partition.cuh:") == 4


@pytest.mark.slow
def test_quiet_prints_rows_alone(capsys):
    arguments = ("three_way_partition", "--arch", "sm100", "-a", "T=F32", "-q")
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    assert out.startswith("cub.bench.partition.three_way on sm100\n")
    assert "workloads on" not in out


@pytest.mark.slow
@pytest.mark.parametrize("columns", sampled([80, 160], 80))
def test_no_line_is_wider_than_the_terminal(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for more in ((), ("-v",)):
        _, out, _ = run(capsys, "radix_sort", "--arch", "sm100", *more)
        assert [x for x in out.splitlines() if len(x) > columns] == []
        assert "has this key" in out
        assert "inherited from sm90" in out


@pytest.mark.slow
def test_json_is_one_document_that_the_schema_knows(capsys):
    arguments = ("three_way_partition", "--arch", "sm90", "--arch", "sm100", "-a", "T=I16")
    status, out, err = run(capsys, *arguments, "--json")
    document = valid(out, "resolve")
    assert status == 0
    assert others(err) == []
    assert document["archs"] == ["sm90", "sm100"]
    assert [(r["arch"], r["status"], r["since"]) for r in document["rows"]] == [
        *[("sm90", "tuned", "sm90")] * 2,
        *[("sm100", "inherited", "sm90")] * 2,
    ]
    assert document["rows"][0]["entry"]["args"] == [
        *("Input", "OffsetT", "input_size::_2", "offset_size::_4")
    ]


@pytest.mark.slow
def test_what_a_compiler_decides_is_named(capsys):
    """Before CUDA 13.4 a scan of floats on sm120 does not look ahead, with later ones it does."""
    arguments = ("-R", ".*scan.exclusive.sum$", "-a", "T{ct}=F32", "--arch", "sm120")
    status, out, _ = run(capsys, *arguments, "--json", cub=root("3.6.0"))
    conditions = valid(out, "resolve")["conditions"]
    assert status == 0
    assert "tuning_scan.cuh:1065: _CCCL_CUDACC_BELOW(13, 4)" in conditions
    assert "tuning_scan.cuh:1106: _CCCL_COMPILER(NVHPC)" in conditions
    assert not any("_CCCL_HAS_CONCEPTS" in condition for condition in conditions)
    _, out, _ = run(capsys, *arguments, cub=root("3.6.0"))
    compiler = f"nvcc {find_toolchain().version}"
    assert f"with {compiler}; another compiler can select otherwise: " in " ".join(out.split())


@pytest.mark.slow
def test_without_an_arch_those_that_the_tree_has_tunings_for_are_asked(capsys):
    arguments = ("three_way_partition", "-a", "T=I8", "--json", "-q")
    _, out, _ = run(capsys, *arguments, cub=root("3.6.0"))
    assert json.loads(out)["archs"] == ["sm80", "sm90", "sm100", "sm107"]


@pytest.mark.slow
def test_a_regex_narrows_the_benchmarks(capsys):
    _, out, _ = run(capsys, "-R", THREE, "-a", "T=I8", "--arch", "100", "-q", "--json")
    assert {row["benchmark"] for row in json.loads(out)["rows"]} == {THREE}


COMPARE = ("three_way_partition", "--arch", "sm100", "--compare")


@pytest.mark.slow
def test_a_comparison_shows_what_differs(capsys, other):
    status, out, err = run(capsys, *COMPARE, root("3.0.1"), cub=other)
    assert status == 1
    assert others(err) == []
    _, _, rest = out.partition("\n\n")
    assert rest.splitlines() == [
        "cub.bench.partition.three_way on sm100",
        "  T=I32 OffsetT=I32",
        "      before: items=11  (tuning_three_way_partition.cuh:256)",
        "      after:  items=10  (tuning_three_way_partition.cuh:256)",
        "  T=I32 OffsetT=I64",
        "      before: items=11  (tuning_three_way_partition.cuh:256)",
        "      after:  items=10  (tuning_three_way_partition.cuh:256)",
        "  T=F32 OffsetT=I32",
        "      before: items=11  (tuning_three_way_partition.cuh:256)",
        "      after:  items=10  (tuning_three_way_partition.cuh:256)",
        "  T=F32 OffsetT=I64",
        "      before: items=11  (tuning_three_way_partition.cuh:256)",
        "      after:  items=10  (tuning_three_way_partition.cuh:256)",
        "",
        "4 workloads differ of 14, on sm100",
    ]


def test_a_comparison_with_the_same_tree_is_silent(capsys, other):
    status, out, err = run(capsys, *COMPARE, other, "-q", cub=other)
    assert (status, out, err) == (0, "", "")


@pytest.mark.slow
def test_a_comparison_as_json(capsys, other):
    status, out, _ = run(capsys, *COMPARE, root("3.0.1"), "--json", "-q", cub=other)
    document = valid(out, "resolve-compare")
    assert (status, document["compared"], len(document["different"])) == (1, 14, 4)
    assert {tuple(d["changed"]) for d in document["different"]} == {("items",)}
    assert {(d["before"]["items"], d["after"]["items"]) for d in document["different"]} == {
        (11, 10)
    }


@pytest.mark.slow
@pytest.mark.parametrize("columns", sampled([80, 160], 80))
def test_a_comparison_of_two_dialects_keeps_within_the_terminal(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    arguments = ("-R", "cub.bench.run_length_encode.non", "--arch", "sm100", "-a", "T=[I8,C64]")
    status, out, _ = run(capsys, *arguments, "--compare", root("3.0.1"), cub=root("3.6.0"))
    assert status == 1
    assert "2 workloads only before\n  4 workloads only after\n" in out
    assert [x for x in out.splitlines() if len(x) > columns] == []


def git(folder, *arguments):
    command = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.slow
def test_a_revision_is_compared_with_the_work_tree(capsys, tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    copied_tree(repository, "3.0.1")
    git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "CUB 3.0.1")
    tuning = repository / "cub/device/dispatch/tuning/tuning_three_way_partition.cuh"
    changed = OLD_ITEMS.replace("= 11;", "= 10;")
    tuning.write_bytes(replaced(tuning.read_bytes(), (OLD_ITEMS, changed)))
    arguments = ("three_way_partition", "--arch", "sm100", "-a", "T=F32", "--compare")
    status, out, _ = run(capsys, *arguments, "HEAD", cub=repository)
    assert status == 1
    assert "[revision HEAD]" in " ".join(out.split())
    assert "before: items=11" in out
    status, _, err = run(capsys, *arguments, "nope", "-q", cub=repository)
    assert status == 2
    assert err.startswith(
        "policygen: error: 'nope' is neither a folder, a fetched version of CUB, nor a revision"
        f" of a git repository around {repository}"
    )


def test_a_folder_that_is_no_tree_is_not_taken_for_a_revision(capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    status, out, err = run(capsys, "three_way_partition", "--compare", tmp_path / "empty")
    assert (status, out) == (2, "")
    assert err.startswith("policygen: error: ")
    assert "revision" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--arch", "new"],
            "'new' is not a GPU architecture; write sm90, sm_90, 90 or 9.0, or gfx942 for AMD",
        ),
        (
            ["sort"],
            "no tuning header is named 'sort'\n  Available: ",
        ),
        (
            ["three_way_partition", "-R", THREE, "-a", "U=I8"],
            "no workload matches -R 'cub.bench.partition.three_way' -a 'U=[I8]'"
            " tuning_three_way_partition.cuh; no benchmark has an axis U\n"
            "  Benchmarks: cub.bench.partition.three_way\n"
            "  their axes: OffsetT, T",
        ),
        (["-R", "("], "-R '(' is not a regular expression: "),
        (["-a", "T"], "-a 'T' is not of the form AXIS=VALUE"),
    ],
)
def test_a_mistyped_question_is_told(capsys, arguments, message):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {message}")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.0.1", "3.6.0"])
def test_an_arch_that_nvcc_cannot_compile_for_can_be_asked_for(capsys, version):
    arguments = ("-R", THREE, "-a", "T=I8", "--arch", "sm35", "-q", "--json")
    status, out, _ = run(capsys, *arguments, cub=root(version))
    assert status == 0
    assert {row["arch"] for row in json.loads(out)["rows"]} == {"sm35"}


def test_a_compiler_that_is_missing_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    status, out, err = run(capsys, "three_way_partition", "--arch", "sm100")
    assert (status, out) == (3, "")
    assert err == (
        f"policygen: error: {tmp_path / 'nowhere/bin/nvcc'} (from CUDA_HOME) is missing\n"
        "  Unset CUDA_HOME or correct it.\n"
    )


@pytest.fixture(scope="session")
def broken(tmp_path_factory):
    """A header that reads well and does not compile."""
    data = replaced(
        header("3.0.1", "tuning_three_way_partition.cuh"),
        (OLD_ITEMS, OLD_ITEMS.replace("BlockLoadAlgorithm", "BlockLoadAlgorithmm")),
    )
    folder = tmp_path_factory.mktemp("broken")
    return changed_tree(folder, "3.0.1", {"tuning_three_way_partition.cuh": data})


@pytest.mark.slow
def test_a_header_that_does_not_compile_is_told_with_the_compilers_words(capsys, broken):
    status, out, err = run(capsys, "three_way_partition", "--arch", "sm100", cub=broken)
    assert status == 2
    assert f"{THREE}: it does not compile" in " ".join(out.split())
    assert "policygen: error: command failed with status " in err
    assert 'error: identifier "BlockLoadAlgorithmm" is undefined' in err


@pytest.mark.slow
def test_a_header_that_cannot_be_read_is_a_problem_of_the_document(capsys, tmp_path):
    data = header("3.0.1", "tuning_three_way_partition.cuh")
    data = data[: data.index(b"struct policy_hub")]
    tree = changed_tree(tmp_path, "3.0.1", {"tuning_three_way_partition.cuh": data})
    arguments = ("three_way_partition", "--arch", "sm100", "-a", "T=I8", "--json", "-q")
    status, out, err = run(capsys, *arguments, cub=tree)
    assert status == 2
    assert "is never closed" in err
    assert len(json.loads(out)["problems"]) == 1


@pytest.mark.slow
def test_a_line_shows_on_a_terminal_how_far_it_is_and_goes_away(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    _, _, err = run(capsys, "three_way_partition", "--arch", "100", "-a", "T=[I32,F32]")
    assert "\r\x1b[K·········· 0/2 asking the compiler" in err
    assert err.endswith("\r\x1b[K")
    monkeypatch.setenv("COLUMNS", "30")
    _, _, err = run(capsys, "three_way_partition", "--arch", "90", "-a", "T=[I32,F32]")
    assert {len(line) for line in err.split("\r\x1b[K")} <= {0, 29}


def test_an_algorithm_without_entries_is_asked_where_its_defaults_change(capsys):
    status, out, _ = run(capsys, "merge", "-a", "KeyT=I8", cub=root("3.6.0"))
    assert status == 0
    assert "5 workloads on sm50, sm60, sm80, sm90, sm100" in " ".join(out.split())


@pytest.mark.slow
def test_trees_are_compared_on_the_architectures_of_either(capsys, tmp_path):
    """CUB 3.6.0 has returns for sm107, and 3.5.0 has none."""
    one = ("scan_by_key", "-a", "KeyT=I32", "--json", "-q")
    _, out, _ = run(capsys, *one, "--compare", root("3.5.0"), cub=root("3.6.0"))
    document = valid(out, "resolve-compare")
    assert document["archs"][-1] == "sm107"
    assert {d["arch"] for d in document["different"]} == {"sm107"}
    assert all(d["before"] and d["after"] for d in document["different"])
