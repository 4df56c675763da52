"""Headers that ask for more than types and architecture: no command says that they are proven."""

import json

import jsonschema
import pytest

from policygen.model.reviews import Review
from tests.cli.tuned import HEADER, run, tuned
from tests.probing import TUNINGS, root
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.usefixtures("workplace")]

ENDS = """
constexpr bool ends_with(const char* text, const char* end) { return text[0] == end[0]; }
constexpr int evasive = ends_with(__BASE_FILE__, "unit.cu") ? 24 : 1;
"""
MYSTERY = "\n#if defined(CUB_MYSTERY)\nconstexpr int evasive = 24;\n#endif\n"
PASTED = """
constexpr auto* evasive = _CCCL_PP_CAT(__BASE_, FILE__);
"""


def asking(tree, text):
    """The header with a question at its end, and the line that it is on."""
    header = tuned(tree)
    data = header.read_text()
    header.write_text(data + text)
    return data.count("\n") + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (ENDS, 2, "depends on the name of the compiled file"),
        (MYSTERY, 1, "tests CUB_MYSTERY, which is not defined by anything the header includes"),
        (PASTED, 1, "the macro _CCCL_PP_CAT pastes tokens, so it may depend on anything"),
    ],
)
def test_lint_and_review_name_the_place(capsys, tree, text, line, message):
    line += asking(tree, text)
    place = f"tree/{TUNINGS}/{HEADER}:{line}"
    status, out, err = run(
        capsys, "audit", "lint", "-q", "--cub", tree, HEADER, "--only", "not-provable"
    )
    assert status == 1, err
    assert out.startswith(f"{place}:")
    assert f"[not-provable] not provable: it {message}\n" in out
    given = ("review", "-q", "--cub", tree, "--base", root("3.0.1"))
    status, out, err = run(capsys, *given)
    assert (status, err) == (1, "")
    assert "**Not to be merged:**" in out
    assert f"not provable: it {message}" in out.replace("\\", "")
    assert "| **Is it proven** | **no**<br>not provable: 1 place in the headers |" in out
    status, out, _ = run(capsys, *given, "--format", "json")
    assert status == 1
    found = json.loads(out)
    jsonschema.validate(found, Review.model_json_schema(mode="serialization"))
    assert [(one["line"], one["message"]) for one in found["unprovable"]] == [
        (line, f"not provable: it {message}")
    ]
    assert (found["compared"], found["effect"]) == (0, None)
    status, out, _ = run(capsys, *given, "--annotate", "github")
    assert status == 1
    assert out.startswith(f"::error file=tree/{TUNINGS}/{HEADER},line={line},title=policygen not-")


def test_a_review_tells_no_lie_of_the_entries(capsys, tree):
    header = tuned(tree)
    data = header.read_text()
    assert "items = 24" not in data
    asking(tree, ENDS)
    header.write_text(header.read_text().replace("items = 12;", "items = evasive;"))
    status, out, _ = run(capsys, "review", "-q", "--cub", tree, "--base", root("3.0.1"))
    assert status == 1
    assert "It changes no workload" not in out
    assert "which workloads change is unknown" in out


def test_what_lies_beside_the_tunings_is_reviewed_though_no_tuning_header_differs(capsys, tree):
    util = tree / "cub" / "util_math.cuh"
    before = util.read_bytes()
    util.unlink()  # it may be one with the file of the real tree
    util.write_bytes(before + b"#ifdef MYSTERY\n#endif\n")
    try:
        status, out, _ = run(capsys, "review", "-q", "--cub", tree, "--base", root("3.0.1"))
    finally:
        util.write_bytes(before)
    assert status == 1
    assert "tests MYSTERY, which is not defined by anything the header includes" in out


@pytest.mark.slow
@pytest.mark.nvcc
def test_nothing_is_applied_with_a_proof(capsys, tree, three):
    line = 1 + asking(tree, MYSTERY)
    before = tuned(tree).read_bytes()
    given = ("apply", "--cub", tree, "--db", three, "--arch", "sm90", "-q")
    status, _, err = run(capsys, *given)
    assert status == 1
    assert err == (
        "policygen: error: the tunings are not provable: they depend on more than types and"
        " architecture\n"
        f"  tree/{TUNINGS}/{HEADER}:{line}: not provable: it tests CUB_MYSTERY, which is not"
        " defined by anything the header includes\n"
    )
    assert tuned(tree).read_bytes() == before
    assert run(capsys, *given, "--no-prove")[0] == 0


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.parametrize("text", sampled([ENDS, PASTED], ENDS))
def test_the_effect_of_what_was_applied_is_not_provable(capsys, tree, three, text):
    given = ("--cub", tree, "--arch", "sm90", "-q")
    assert run(capsys, "apply", *given, "--db", three)[0] == 0
    asking(tree, text)
    status, out, err = run(capsys, "verify-effect", *given)
    assert (status, out) == (1, "")
    assert "the tunings are not provable" in err


@pytest.mark.slow
@pytest.mark.nvcc
def test_what_is_put_together_from_words_shows_in_the_compile(capsys, tree):
    asking(tree, PASTED)
    status, _, err = run(
        capsys, "resolve", "-q", "--cub", tree, "--arch", "sm90", "-R", "cub.bench.partition.three"
    )
    assert status == 1
    assert "it depends on the name of the compiled file" in err
