"""Commands that do again what was done."""

import shlex
from functools import partial

import pytest

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.app.plan import choosing, command_line, given_of, given_or_told, planning
from policygen.app.session import Session
from policygen.model.plans import Given, Options, Plan
from policygen.model.results import Rules
from policygen.model.trees import Cub

CUB = Cub(root="/a tree", version="3.0.1", dialect="specializations", found="--cub")
EVERY = {
    "arch": "sm90", "reach": "later", "reaches": ("sm103", "sm110"), "collisions": "split",
    "next_best": True, "force": True, "provenance": "full", "legacy": "update",
}  # fmt: skip


def test_every_option_that_changes_a_plan_is_told():
    """A new field of the options, or of what is given, has to be a word of the command."""
    rules = Rules(least_score=1.03, worst_allowed=0.9, confidence=0.9)
    rules = rules.model_copy(update={"without_samples": True, "accept_unconfirmed": True})
    options = Options(**EVERY, rules=rules)
    assert EVERY.keys() | {"rules", "date"} == set(Options.model_fields)
    where = Filter(regex="cub.bench.x$", axes=("T=[I8,I16]",))
    results = ResultFiles(
        ["a.db", "b.db"], ["bench.cu"], "base.json", ["c.db"], where, {"B 4": "sm110"}
    )
    assert planning(given_of(results, "3.2.0"), options) == [
        *("--db", "a.db", "--db", "b.db", "--bench", "bench.cu", "--base", "base.json"),
        *("--confirm", "c.db", "--arch", "sm90", "-R", "cub.bench.x$", "-a", "T=[I8,I16]"),
        *("--gpu-arch", "B 4=sm110", "--any-gpu", "--least-score", "1.03", "--worst", "0.9"),
        *("--confidence", "0.9", "--without-samples", "--accept-unconfirmed"),
        *("--reach", "later", "--collisions", "split", "--provenance", "full"),
        *(
            "--legacy",
            "update",
            "--reaches",
            "sm103,sm110",
            "--next-best",
            "--measured-on",
            "3.2.0",
        ),
    ]


def test_what_is_as_always_is_no_word():
    given = Given(databases=("a.db",))
    assert planning(given, Options(arch="sm90")) == ["--db", "a.db", "--arch", "sm90"]
    assert choosing(given, Options(arch="sm90"), "x$", ["T=I8"])[-4:] == ["-R", "x$", "-a", "T=I8"]


def test_a_rule_that_the_settings_have_otherwise_is_told(tmp_path, monkeypatch):
    settings = tmp_path / "policygen.toml"
    settings.write_text("[choose]\nleast_score = 1.05\n")
    monkeypatch.setenv("POLICYGEN_CONFIG", str(settings))
    found = planning(Given(databases=()), Options(arch="sm90"))
    assert found == ["--arch", "sm90", "--least-score", "1.015"]


def test_a_plan_of_before_names_the_databases_of_its_actions():
    plan = Plan(cub=CUB, toolchain="nvcc", options=Options(arch="sm90"), actions=(), files=())
    assert given_or_told(plan) == Given(databases=())
    given = Given(databases=("a.db",))
    assert given_or_told(plan.model_copy(update={"given": given})) == given


def test_names_with_blanks_can_be_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed = partial(command_line, Session(CUB, tmp_path / "my store"))
    text = typed("review", "--base", "a b", store=True)
    assert shlex.split(text) == [
        *("policygen", "review", "--base", "a b", "--cub", "/a tree"),
        *("--store", str(tmp_path / "my store")),
    ]
    assert typed("emit") == "policygen emit --cub '/a tree'"


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ("cub_headers", "policygen apply --cub 3.0.1"),
        ("wheel", "policygen apply --cub '/a tree'"),
        ("checkout", "policygen apply"),
        ("--cub", "policygen apply --cub '/a tree'"),
    ],
)
def test_what_writes_names_a_tree_that_was_merely_found(found, wanted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed = partial(command_line, Session(CUB.model_copy(update={"found": found})))
    assert typed("apply", writes=True) == wanted
    assert ("--cub" in typed("plan")) == (found == "--cub")
