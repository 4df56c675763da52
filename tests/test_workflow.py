"""The GitHub workflow of the documentation: its steps, as a runner runs them, on a change."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.probing import TUNINGS, replaced, root

WORKFLOW = Path(__file__).parent.parent / "docs/examples/tuning-review.yml"
HEADER = "tuning_scan.cuh"
# An entry of sm90 that no other architecture gets.
CHANGE = ("float,  128, 24, 688, 1140", "float,  128, 20, 688, 1140")
# One workload is enough to see that the step works; the whole benchmark takes many minutes.
ONE = " -R 'cub.bench.scan.exclusive.sum$' -a T=F32 -a OffsetT=I32"


def steps():
    (job,) = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"].values()
    return job["steps"]


class Runner:
    """As much of GitHub's runner as the workflow needs."""

    def __init__(self, folder: Path, work: Path) -> None:
        self.folder, self.output = folder, work / "output"
        self.outcome: dict[str, str] = {}
        self.printed: dict[str, str] = {}
        programs = work / "bin"
        programs.mkdir()
        (programs / "gh").write_text('#!/bin/sh\ncp review.md posted.md\necho "$@"\n')
        (programs / "gh").chmod(0o755)
        path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "GITHUB_OUTPUT": str(self.output)}

    def value(self, expression: str) -> str:
        if expression.startswith("steps.base.outputs."):
            given = dict(row.split("=", 1) for row in self.output.read_text().splitlines())
            return given[expression.rpartition(".")[2]]
        return {"github.base_ref": "main", "github.event.pull_request.number": "7"}[expression]

    def run(self, step) -> None:
        name = step.get("id") or step.get("name")
        script = re.sub(r"\$\{\{ (\S+) \}\}", lambda match: self.value(match[1]), step["run"])
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
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


@pytest.mark.trees
@pytest.mark.nvcc
def test_its_steps_answer_for_a_change(tmp_path):
    tree = checkout(tmp_path / "repository")
    path = tree / "cub" / TUNINGS / HEADER
    path.write_bytes(replaced(path.read_bytes(), CHANGE))
    git(tree, "commit", "-qam", "tune")
    runner = Runner(tree, tmp_path)
    found = [step for step in steps() if "run" in step and "if" not in step]
    (install, *asked) = found
    assert install["run"] == 'pip install "policygen[cuda]"'
    for step in asked:
        if step.get("id") == "sass":
            assert " --arch earlier " in step["run"]
            step["run"] = step["run"].replace(" --arch earlier", f" --arch earlier{ONE}")
        runner.run(step)
    assert set(runner.outcome.values()) == {"success"}, runner.printed
    assert runner.printed["Comment"].startswith("pr comment 7 ")
    posted = (tree / "posted.md").read_text()
    assert posted.startswith("# 1 tuning entry in 1 header")
    assert "machine code: " in posted
    assert " kernels equal on sm75, sm80, sm86, sm87, sm88, sm89, sm100" in posted
    assert f"::notice file=cub/cub/device/dispatch/tuning/{HEADER},line=" in "".join(
        runner.printed.values()
    )
    uploaded = next(s["with"]["path"] for s in steps() if "upload" in s.get("uses", ""))
    for name in uploaded.split():
        assert (tree / name).exists(), name
    assert (tree / "coverage.html").read_text().startswith("<!doctype html>")


def test_it_fails_on_findings():
    (last,) = [step for step in steps() if "if" in step]
    named = set(re.findall(r"steps\.(\w+)\.outcome == 'failure'", last["if"]))
    assert named == {step["id"] for step in steps() if step.get("continue-on-error")}
    assert last["run"] == "exit 1"
