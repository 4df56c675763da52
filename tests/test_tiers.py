"""Which tests run when, and what is told of those that do not."""

import subprocess

import pytest

from tests.left_out import counted, sentences, tier, unwanted
from tests.thirds import CASES, MORE, chosen, for_commit, further, package_of, third_of

NAMES = [
    f"tests/{package}/test_{package}.py::test_it[{number}]"
    for package in ("planning", "proof")
    for number in range(300)
] + ["tests/test_docs.py::test_it"]
TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_some_cases_of_a_test_stay_slow_and_its_further_ones_are_thorough():
    thorough = further(NAMES)
    for package in ("planning", "proof"):
        assert sum(f"/{package}/" in name for name in set(NAMES) - thorough) == CASES
    assert NAMES[-1] not in thorough
    assert further(reversed(NAMES)) == thorough


def test_each_test_is_in_exactly_one_third_and_thirds_are_of_a_size(tmp_path):
    thirds = [chosen(NAMES, str(number), tmp_path) for number in (1, 2, 3)]
    assert sorted(one for third in thirds for one in third) == sorted(NAMES)
    assert all(150 < len(third) < 250 for third in thirds)
    assert chosen(NAMES, "", tmp_path) == set(NAMES)


@pytest.mark.parametrize(
    ("name", "third"),
    [
        ("tests/planning/test_plan.py::test_it", 3),
        ("tests/planning/test_plan.py::test_it[3.6.0]", 3),
        ("tests/test_docs.py::test_it", 1),
    ],
)
def test_the_third_of_a_test_never_changes(name, third):
    assert third_of(name) == third


def test_a_third_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(ValueError, match="THIRD=4: it is 1, 2, 3 or commit"):
        chosen(NAMES, "4", tmp_path)


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("policygen/planning/plan.py", "planning"),
        ("tests/proof/sass/test_build.py::test_it[a/b]", "proof"),
        ("policygen/paths.py", None),
        ("docs/planning/plan.md", None),
    ],
)
def test_a_file_is_of_the_package_whose_folder_it_stands_in(path, package):
    assert package_of(path) == package


def test_a_commit_runs_its_third_and_some_of_what_it_touched():
    third = {one for one in NAMES if third_of(one) == third_of(TREE)}
    assert for_commit(NAMES, TREE, ["README.md"]) == third
    more = for_commit(NAMES, TREE, ["policygen/proof/probe.py"]) - third
    assert len(more) == MORE
    assert {package_of(one) for one in more} == {"proof"}
    assert for_commit(NAMES, TREE, ["tests/proof/test_probe.py"]) - third == more


def test_a_commit_that_touches_everything_runs_no_more():
    third = {one for one in NAMES if third_of(one) == third_of(TREE)}
    paths = ["policygen/proof/probe.py", "policygen/planning/plan.py"]
    assert len(for_commit(NAMES, TREE, paths) - third) == MORE


def test_other_commits_of_a_package_run_other_tests():
    paths = ["policygen/proof/probe.py"]
    assert len({frozenset(for_commit(NAMES, f"{n:040x}", paths)) for n in range(9)}) == 9


def test_what_a_commit_runs_is_read_from_git(tmp_path):
    def git(*words):
        who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
        command = ["git", "-C", tmp_path, *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    file = tmp_path / "policygen/proof/probe.py"
    file.parent.mkdir(parents=True)
    file.touch()
    git("add", ".")
    git("commit", "-q", "-m", "first")
    tree = git("rev-parse", "HEAD^{tree}").strip()
    expected = for_commit(NAMES, tree, ["policygen/proof/probe.py"])
    assert chosen(NAMES, "commit", tmp_path) == expected


def test_what_needs_a_tool_belongs_to_the_tier_of_the_tool():
    assert tier({"trees", "nvcc"}) is None
    assert tier({"trees", "slow"}) == "slow"
    assert tier({"slow", "thorough"}) == "thorough"
    assert tier({"slow", "browser"}) == "browser"
    assert tier({"hipcc", "slow"}) == "hipcc"


def test_what_was_left_out_is_told_with_the_command_that_runs_it():
    left = [{"slow"}] * 1190 + [{"slow", "thorough"}] * 3 + [{"slow", "browser"}] * 2
    left += [{"hipcc"}, {"trees"}]
    assert sentences(counted(left, unwanted("not (slow or thorough or browser or hipcc)"))) == [
        "1,190 slow tests were not run: make test-slow",
        "3 thorough tests were not run: make test-thorough",
        "2 tests that need Chromium were not run: make test-browser",
        "1 test that needs hipcc was not run: make test-hipcc",
    ]
    assert sentences(counted(left, unwanted("slow and not (thorough or browser or hipcc)"))) == [
        "3 thorough tests were not run: make test-thorough",
        "2 tests that need Chromium were not run: make test-browser",
        "1 test that needs hipcc was not run: make test-hipcc",
    ]
    assert sentences(counted(left, unwanted("browser"))) == []
