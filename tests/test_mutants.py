"""`make mutants`, on a small package."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.mutants import Copy, draw, main, read_mutants

FILES = {
    "policygen/__init__.py": "",
    "policygen/order.py": "def is_less(first, second):\n    return first < second\n",
    "tests/test_order.py": """\
from policygen.order import is_less


def test_one_is_less_than_two():
    assert is_less(1, 2)
""",
}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    options = ["--cov=policygen", "--cov-branch", "--cov-context=test", "--cov-report="]
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", *options]
    variables = {"COVERAGE_FILE": str(tmp_path / "data"), "PYTHONPATH": str(tmp_path)}
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "store"))
    subprocess.run(command, check=False, cwd=tmp_path, env={**os.environ, **variables})
    return tmp_path


@pytest.mark.slow
def test_a_mutant_that_no_test_notices_survives(repository, capfd):
    assert main(["--data", str(repository / "data"), "--seed", "3"], repository) == 1
    assert (
        capfd.readouterr().out.partition("1. ")[2]
        == """\
policygen/order.py:2 comparison
   - return first < second
   + return first <= second
   survives 1 tests
2. policygen/order.py:2 comparison
   - return first < second
   + return first >= second
   killed by tests/test_order.py::test_one_is_less_than_two
policygen    1 of 2
1 of 2 killed: 50%; the goal is 85%
"""
    )
    assert (repository / "policygen/order.py").read_text() == FILES["policygen/order.py"]


def test_a_test_that_fails_without_the_mutant_kills_nothing(
    repository, monkeypatch, tmp_path_factory
):
    copy = Copy(repository, tmp_path_factory.mktemp("copy"))
    answers = iter(["FAILED a - 1", "FAILED a", "ERROR b[ - c]", ""])
    runs = []
    monkeypatch.setattr(copy, "_run", lambda tests, *_: runs.append(list(tests)) or next(answers))
    (mutant, _) = read_mutants("policygen/order.py", FILES["policygen/order.py"].encode())
    assert copy.find_killer(mutant, ["a", "b[ - c]", "d"]) == "b[ - c]"
    assert runs == [["a", "b[ - c]", "d"], ["a"], ["b[ - c]", "d"], ["b[ - c]"]]


def test_data_of_other_tests_is_refused(repository, monkeypatch, tmp_path_factory):
    copy = Copy(repository, tmp_path_factory.mktemp("copy"))
    monkeypatch.setattr(copy, "_run", lambda *_: "ERROR: not found: a")
    (mutant, _) = read_mutants("policygen/order.py", FILES["policygen/order.py"].encode())
    with pytest.raises(SystemExit, match="The data is of other tests"):
        copy.find_killer(mutant, ["a"])


def test_what_lets_no_test_begin_is_killed(repository, tmp_path_factory):
    (repository / "tests/conftest.py").write_text("import policygen.order\n")
    copy = Copy(repository, tmp_path_factory.mktemp("copy"))
    mutant, _ = read_mutants("policygen/order.py", FILES["policygen/order.py"].encode())
    tests = ["tests/test_order.py::test_one_is_less_than_two"]
    assert copy.find_killer(replace(mutant, text=b"("), tests) == "an error before the first test"


def lines_of(source):
    changed = [
        mutant.apply(source.encode()).decode() for mutant in read_mutants("a.py", source.encode())
    ]
    return [
        new
        for text in changed
        for old, new in zip(source.splitlines(), text.splitlines(), strict=True)
        if new != old
    ]


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a < b", ["a >= b", "a <= b"]),
        ("(a) == (b)", ["(a) != (b)"]),
        ("a <= b not in c", ["a > b not in c", "a < b not in c", "a <= b in c"]),
        ("a is b", ["a is not b"]),
        ("a and b or not c", ["a and b and not c", "a or b or not c", "a and b or c"]),
        ("not (a and b)", ["(a and b)", "not (a or b)"]),
        ("a * b + 1", ["a * b - 1", "a / b + 1", "a // b + 1", "a % b + 1", "a * b + 2"]),
        ("é[-1:2.5]", ["é[-2:2.5]", "é[-1:3.5]"]),
        ("f(a, reverse=True)", ["f(a, reverse=False)"]),
        ("a if b else c", ["a if False else c"]),
        ("[a for a in b if c]", ["[a for a in b if True]"]),
        ("if a:\n    b\nelif c:\n    d", ["if False:", "elif False:"]),
        (
            "def f(a: Literal[1] = 2) -> Literal[1]: ...",
            ["def f(a: Literal[1] = 3) -> Literal[1]: ..."],
        ),
    ],
)
def test_each_thing_that_may_be_wrong_is_a_mutant(source, changed):
    assert lines_of(source) == changed


@pytest.mark.parametrize(
    "source",
    [
        '"""1 < 2."""',
        "__all__ = ['a']",
        "raise ValueError(1 < 2)",
        "assert a < 1",
        "f'{1}'",
        "a | b",
        "a = (\n    b  # in words\n    + c\n)",
        "@dataclass(frozen=True)\nclass A: ...",
        "if TYPE_CHECKING:\n    a = 1",
        "a: Literal[1]",
    ],
)
def test_types_and_messages_are_left_alone(source):
    assert lines_of(source) == []


def numbered(line, count):
    return b"".join(line % number for number in range(count))


def test_packages_and_kinds_get_a_like_share():
    sources = {
        "policygen/app/start.py": numbered(b"a%d = 1\n", 900) + numbered(b"if a%d: b\n", 100),
        "policygen/planning/plan.py": numbered(b"a%d = not b\n", 100),
        "policygen/paths.py": numbered(b"a%d = b < c\n", 100),
    }
    mutants = [mutant for item in sources.items() for mutant in read_mutants(*item)]
    drawn = draw(mutants, sources, 30, 1)
    assert drawn == draw(mutants, sources, 30, 1) != draw(mutants, sources, 30, 2)
    packages = Counter(mutant.package for mutant in drawn)
    assert packages == {"app": 10, "planning": 10, "policygen": 10}
    kinds = Counter(mutant.kind for mutant in drawn if mutant.package == "app")
    assert min(kinds["constant"], kinds["branch"]) >= 3


def test_the_same_seed_draws_the_same_lines_after_a_change_elsewhere():
    def drawn(source):
        mutants = read_mutants("policygen/paths.py", source)
        chosen = draw(mutants, {"policygen/paths.py": source}, 20, 1)
        return {source.splitlines()[mutant.line - 1] for mutant in chosen}

    lines = numbered(b"a%d = b < c\n", 500)
    before = drawn(lines)
    assert len(before) > 10
    after = drawn(b"x = 1\n" + lines + b"y = z < c\n")
    assert len(before & after) >= len(before) - 1
