"""The GitHub workflows of the documentation: their steps, as a runner runs them, on a change."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.probing import TUNINGS, replaced, root
from tests.tiers import slow

EXAMPLES = Path(__file__).parent.parent / "docs/examples"
REVIEW, COMMENT = EXAMPLES / "tuning-review.yml", EXAMPLES / "tuning-review-comment.yml"
HEADER = "tuning_scan.cuh"
# An entry of sm90 that no other architecture gets.
CHANGE = ("float,  128, 24, 688, 1140", "float,  128, 20, 688, 1140")
# One workload is enough to see that the step works; the whole benchmark takes many minutes.
ONE = " -R 'cub.bench.scan.exclusive.sum$' -a T=F32 -a OffsetT=I32"


def workflow(path):
    """A workflow; YAML takes the key `on` for true."""
    return yaml.safe_load(path.read_text("utf-8"))


def job(path):
    (only,) = workflow(path)["jobs"].values()
    return only


def steps(path=REVIEW):
    return job(path)["steps"]


class Runner:
    """As much of GitHub's runner as the workflows need."""

    def __init__(self, folder: Path, work: Path, path: Path = REVIEW, **known: str) -> None:
        self.folder, self.output = folder, work / "output"
        self.job = job(path)
        self.known = {"github.workspace": str(folder), **known}
        self.outcome: dict[str, str] = {}
        self.printed: dict[str, str] = {}
        self.output.touch()
        programs = work / "bin"
        programs.mkdir(exist_ok=True)
        found = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": found, "GITHUB_OUTPUT": str(self.output)}
        self.environment |= self.filled(self.job.get("env", {}))

    def value(self, expression: str) -> str:
        if match := re.fullmatch(r"steps\.(\w+)\.outputs\.(\w+)", expression):
            return dict(row.split("=", 1) for row in self.output.read_text().splitlines())[match[2]]
        return self.known[expression]

    def filled(self, values):
        return {name: self.text(value) for name, value in values.items()}

    def text(self, text: str) -> str:
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda match: self.value(match[1]), text)

    def run(self, step) -> None:
        name = step.get("id") or step.get("name") or step["run"]
        usual = self.job.get("defaults", {}).get("run", {}).get("working-directory", ".")
        done = subprocess.run(
            ["bash", "-e", "-c", self.text(step["run"])],
            cwd=self.folder / step.get("working-directory", usual),
            env={**self.environment, **self.filled(step.get("env", {}))},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.outcome[name] = "failure" if done.returncode else "success"
        self.printed[name] = done.stdout + done.stderr
        assert done.returncode == 0 or step.get("continue-on-error"), done.stderr


def checkout(folder: Path) -> Path:
    """CUB 3.0.1 as CCCL's repository has it, with one commit on a branch `main` of its origin."""
    for name, place in (("cub", "cub"), ("thrust", "thrust"), ("cuda", "libcudacxx/include"),
                        ("nv", "libcudacxx/include")):  # fmt: skip
        shutil.copytree(Path(root("3.0.1")) / name, folder / place / name)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "as it was")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    return folder


def git(folder: Path, *words: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", folder, *author, *words], check=True)


@slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_its_steps_answer_for_a_change(tmp_path):
    work = tmp_path / "workspace"
    tree = checkout(work / "strange")
    base = subprocess.run(
        ["git", "-C", tree, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    path = tree / "cub" / TUNINGS / HEADER
    path.write_bytes(replaced(path.read_bytes(), CHANGE))
    # What it brings along is not believed: bindings that are none would be an error.
    (tree / "policygen.toml").write_text('bindings = "none"\n')
    (tree / "policygen.db").write_text("no store")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "tune")
    runner = Runner(work, tmp_path, **{"github.event.pull_request.base.sha": base})
    found = [step for step in steps() if "run" in step and "if" not in step]
    (made, install, *asked) = found
    assert install["run"] == 'pip install "policygen[cuda]"'
    for step in (made, *asked):
        if step.get("id") == "sass":
            assert " --arch earlier " in step["run"]
            step["run"] = step["run"].replace(" --arch earlier", f" --arch earlier{ONE}")
        runner.run(step)
    assert set(runner.outcome.values()) == {"success"}, runner.printed
    assert not any("policygen.toml" in text for text in runner.printed.values())
    posted = (work / "work/review.md").read_text()
    assert posted.startswith("# 1 tuning entry in 1 header")
    assert "machine code: " in posted
    assert " kernels equal on sm75, sm80, sm86, sm87, sm88, sm89, sm100" in posted
    assert f"::notice file=cub/device/dispatch/tuning/{HEADER},line=" in "".join(
        runner.printed.values()
    ).replace("file=cub/cub/", "file=cub/")
    uploaded = next(s["with"]["path"] for s in steps() if "upload" in s.get("uses", ""))
    for name in uploaded.split():
        assert (work / name).exists(), name
    assert (work / "work/coverage.html").read_text().startswith("<!doctype html>")


def test_it_fails_on_findings():
    (last,) = [step for step in steps() if "if" in step]
    named = set(re.findall(r"steps\.(\w+)\.outcome == 'failure'", last["if"]))
    assert named == {step["id"] for step in steps() if step.get("continue-on-error")}
    assert last["run"] == "exit 1"


def test_what_compiles_has_no_token_and_what_has_one_compiles_nothing():
    compiles, comments = workflow(REVIEW), workflow(COMMENT)
    assert compiles[True].keys() == {"pull_request"}
    assert comments[True]["workflow_run"]["workflows"] == [compiles["name"]]
    assert compiles["permissions"] == comments["permissions"] == {}
    assert job(REVIEW)["permissions"] == {"contents": "read"}
    assert job(COMMENT)["permissions"] == {"actions": "read", "pull-requests": "write"}
    for name in ("secrets.", "github.token", "GH_TOKEN", "pull_request_target", "actions/cache@"):
        assert name not in re.sub("#.*", "", REVIEW.read_text("utf-8")), name
    (cloned,) = [s for s in steps() if "checkout" in s.get("uses", "")]
    assert cloned["with"]["persist-credentials"] is False
    assert cloned["with"]["path"] != job(REVIEW)["defaults"]["run"]["working-directory"]
    assert not any("uses" in step for step in steps(COMMENT))
    assert not re.search(
        r"pip|policygen |checkout|python", "".join(s["run"] for s in steps(COMMENT))
    )
    # Expressions in a script are code; in the environment they are text.
    assert not any("${{" in step["run"] for step in steps(COMMENT))


GH = """#!/bin/sh
echo "$@" >> "$ANSWERS/asked"
case "$*" in
  *"/pulls --jq"*) printf '%s\\n' "$FOUND" ;;
  *"/pulls?"*) echo 7 ;;
  *"/artifacts --jq"*) echo "12 $SIZE" ;;
  *"/artifacts/12/zip"*) cat "$ANSWERS/made.zip" ;;
  "pr comment"*) cp review.md "$ANSWERS/posted.md" ;;
  *) exit 1 ;;
esac
"""


def commented(folder: Path, review: str, size: int = 1000, found: str = "7") -> Runner:
    known = {
        "github.token": "t", "github.repository": "o/r",
        **{f"github.event.workflow_run.{name}": value for name, value in (
            ("id", "1"), ("head_sha", "0" * 40), ("head_branch", "x$(touch evil)"),
            ("head_repository.owner.login", "someone"),
        )},
    }  # fmt: skip
    runner = Runner(folder, folder, COMMENT, **known)
    (folder / "bin/gh").write_text(GH)
    (folder / "bin/gh").chmod(0o755)
    with zipfile.ZipFile(folder / "made.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../evil", "x")
        archive.writestr("review.md", review)
        archive.writestr("output", "number=666")
    runner.environment |= {"ANSWERS": str(folder), "SIZE": str(size), "FOUND": found}
    for step in steps(COMMENT):
        if "outputs.number" not in step.get("if", "") or runner.value("steps.pull.outputs.number"):
            runner.run(step)
    return runner


@pytest.mark.skipif(shutil.which("unzip") is None, reason="the runner of GitHub has unzip")
@pytest.mark.parametrize("found", ["7", ""])
def test_the_artifact_is_posted_as_text(tmp_path, found):
    commented(tmp_path, "# a review $(touch evil)\n", found=found)
    assert (tmp_path / "posted.md").read_text() == "# a review $(touch evil)\n"
    assert "pr comment 7 --repo o/r" in (tmp_path / "asked").read_text()
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path.parent / "evil").exists()


@pytest.mark.skipif(shutil.which("unzip") is None, reason="the runner of GitHub has unzip")
def test_a_review_that_is_too_long_is_cut(tmp_path):
    commented(tmp_path, "x" * 10_000_000)
    assert len((tmp_path / "posted.md").read_text()) == 65_000


def test_an_artifact_that_is_too_large_is_not_fetched(tmp_path):
    with pytest.raises(AssertionError):
        commented(tmp_path, "x", size=10**9)
    assert "/zip" not in (tmp_path / "asked").read_text()
    assert not (tmp_path / "posted.md").exists()
