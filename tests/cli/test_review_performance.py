"""`policygen review --performance`: which files are taken, and what becomes of them."""

import json
import os

import jsonschema
import pytest

from policygen.model.reviews import Review
from tests.cli.tuned import run
from tests.report.performances import faster, performance, same, slower, workload
from tests.report.test_review_page import differing, entry, review


@pytest.fixture
def saved(tmp_path):
    """A review that was saved, so that no compiler is asked again."""
    path = tmp_path / "review.json"
    one = entry(reached=(differing(name="I32"), differing(name="I8")), evidence=())
    path.write_text(review(one, base="HEAD").to_json())
    return path


@pytest.fixture
def measured(tmp_path):
    """Writes a document; `changed` are texts that stand in the place of others."""

    def write(*changed, given=None):
        path = tmp_path / "performance.json"
        text = (given or performance()).to_json()
        for old, new in changed:
            assert old in text
            text = text.replace(old, new, 1)
        path.write_text(text)
        return path

    return write


def test_it_is_part_of_the_page_of_the_document_and_of_the_exit_status(capsys, saved, measured):
    given = ("review", "-q", "--from", saved, "--performance", measured())
    status, out, err = run(capsys, *given)
    assert (status, err) == (1, "")
    assert "\n### Is it faster?\n" in out
    status, out, _ = run(capsys, *given, "--json")
    assert status == 1
    jsonschema.validate(json.loads(out), Review.model_json_schema(mode="serialization"))
    assert json.loads(out)["performance"]["workloads"][1]["verdict"] == "slower"
    assert "<svg " in run(capsys, *given, "--format", "html")[1]
    assert "::error " in run(capsys, *given, "--annotate", "github")[1]
    fine = measured(given=performance(workload("I32", 1.1, "faster"), same("I8")))
    assert run(capsys, "review", "-q", "--from", saved, "--performance", fine)[0] == 0


def test_a_review_with_it_is_written_again(capsys, saved, measured, tmp_path):
    whole = tmp_path / "whole.json"
    given = ("review", "-q", "--from", saved, "--performance", measured(), "--json", "-o", whole)
    assert run(capsys, *given)[0] == 1
    assert "### Is it faster?" in run(capsys, "review", "-q", "--from", whole)[1]


def number(old, new):
    return (f'"ratio": {old}', f'"ratio": {new}')


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            ("verify-performance/1", "verify-sass/1"),
            "is not a policygen/verify-performance/1: format",
        ),
        (number("1.2", "NaN"), "workloads[0].runtime[0].ratio: it should be a finite number"),
        (number("1.084", "1e999"), "workloads[0].ratio: it should be a finite number"),
        (number("1.084", "-Infinity"), "workloads[0].ratio: it should be"),
        (number("1.084", "-1"), "workloads[0].ratio: it should be greater than or equal to 0"),
        (number("1.084", "null"), "workloads[0]: it is faster, but has no ratio"),
        (
            ('"least": 1.05', '"least": null'),
            "claimed, least, holds must be given together: least is missing",
        ),
        (('"verdict": "same-code"', '"verdict": "faster"'), "it is faster, but has no ratio"),
        (
            ('"quantiles": [\n', '"quantiles": [ 1.0,\n'),
            "quantiles differ from those of the document",
        ),
        (('"before"', '"script": "x",\n "before"'), "script: it is an unknown key"),
        (('"arch": "sm90"', '"arch": "<b>"'), "arch: '<b>' is not a GPU architecture"),
    ],
)
def test_what_is_no_such_document_is_refused(capsys, saved, measured, changed, told):
    given = ("review", "-q", "--from", saved, "--performance", measured(changed))
    status, out, err = run(capsys, *given)
    assert (status, out) == (2, "")
    assert told in err.replace("\n  ", " ")
    assert "Save it again with this policygen." in err


def test_another_version_of_cub_and_another_header_are_refused(capsys, saved, measured):
    path = measured(('"version": "3.0.1"', '"version": "3.6.0"'))
    status, out, err = run(capsys, "review", "-q", "--from", saved, "--performance", path)
    assert (status, out) == (2, "")
    assert "a different tree than the CUB 3.0.1 under review: CUB 3.6.0" in err.replace("\n  ", " ")
    path = measured(('"after": "CUB 3.0.1"', '"after": "with my_tunings.cuh"'))
    status, out, err = run(capsys, "review", "-q", "--from", saved, "--performance", path)
    assert (status, out) == (2, "")
    assert "under review: with my_tunings.cuh" in err.replace("\n  ", " ")
    # Which tree it was is not known where results were compared.
    path = measured(given=performance(faster(), slower(), cub=None))
    out = run(capsys, "review", "-q", "--from", saved, "--performance", path)[1]
    assert "The measured tree is unknown." in out


def test_another_tree_of_the_same_version_is_refused(capsys, saved, measured):
    asked = "whether verify-performance describes this tree is unknown"
    path = measured(('"content": ""', '"content": "a1"'))
    given = ("review", "-q", "--from", saved, "--performance", path)
    assert asked in run(capsys, *given)[1]
    saved.write_text(saved.read_text().replace('"content": ""', '"content": "b2"', 1))
    status, out, err = run(capsys, *given)
    assert (status, out) == (2, "")
    told = "a different tree than the CUB 3.0.1 under review: another CUB 3.0.1"
    assert told in err.replace("\n  ", " ")
    saved.write_text(saved.read_text().replace('"content": "b2"', '"content": "a1"', 1))
    assert asked not in run(capsys, *given)[1]


def test_a_file_that_is_too_large_is_not_read(capsys, saved, measured):
    path = measured()
    os.truncate(path, 40 << 30)
    status, _, err = run(capsys, "review", "-q", "--from", saved, "--performance", path)
    assert status == 2
    assert "performance.json: 42,949,672,960 bytes: larger than the limit of 32 MiB" in err


def test_a_file_that_is_not_there_is_told(capsys, saved):
    status, _, err = run(capsys, "review", "-q", "--from", saved, "--performance", "none.json")
    assert status == 2
    assert "cannot read none.json" in err
