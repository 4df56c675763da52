"""The GitHub action and the workflows that use it: its steps, as a runner runs them."""

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

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs/examples"
REVIEW, COMMENT = ROOT / "action.yml", ROOT / "actions/comment/action.yml"
REVIEWS, COMMENTS = EXAMPLES / "tuning-review.yml", EXAMPLES / "tuning-review-comment.yml"
CACHES = EXAMPLES / "tuning-cache.yml"
ACTIONS, WORKFLOWS = (REVIEW, COMMENT), (REVIEWS, COMMENTS, CACHES)
HEADER = "tuning_scan.cuh"
# No benchmark gets the entry on another architecture; minima and maxima do on sm100.
CHANGE = ("float,  128, 24, 688, 1140", "float,  128, 20, 688, 1140")
# One workload is enough to see that the step works; the whole benchmark takes many minutes.
ONE = {"benchmarks": "cub.bench.scan.exclusive.sum$", "axes": "T=F32 OffsetT=I32"}
HOSTILE = "x $(touch evil) `touch evil` '\"; touch evil"


def read(path):
    """An action or a workflow; YAML takes the key `on` for true."""
    return yaml.safe_load(path.read_text("utf-8"))


def steps(path):
    return read(path)["runs"]["steps"]


def scripts(path):
    return {step["id"]: step for step in steps(path) if "run" in step}


def job(path):
    (only,) = read(path)["jobs"].values()
    return only


class Runner:
    """As much of GitHub's runner as a composite action needs."""

    def __init__(self, action: Path, folder: Path, known: dict[str, str], **given: str) -> None:
        self.workspace, self.temp = folder / "workspace", folder / "temp"
        self.bin, self.output = folder / "bin", folder / "output"
        for place in (self.workspace, self.temp, self.bin):
            place.mkdir(exist_ok=True)
        self.action = action
        inputs = {name: one.get("default", "") for name, one in read(action)["inputs"].items()}
        assert given.keys() <= inputs.keys()
        self.known = {f"inputs.{name}": value for name, value in (inputs | given).items()}
        self.known |= {"runner.temp": str(self.temp), **known}
        self.summary = folder / "summary.md"
        self.printed: dict[str, str] = {}
        self.environment = {
            **os.environ,
            "PATH": f"{self.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_ACTION_PATH": str(action.parent),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(self.temp),
        }

    @property
    def folder(self) -> Path:
        """Where the pages are."""
        return Path(self.known["steps.prepare.outputs.folder"])

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{text}")
        path.chmod(0o755)

    def run(self, *without: str) -> None:
        """All steps but those; others' actions are passed by."""
        for step in steps(self.action):
            if "run" in step and step["id"] not in without and self.wanted(step):
                self.step(step)

    def wanted(self, step) -> bool:
        """`contains(inputs.checks, 'sass')`, `steps.pull.outputs.number != ''`."""
        asked = step.get("if", "")
        if match := re.fullmatch(r"contains\((\S+), '(\w+)'\)", asked):
            return match[2] in self.value(match[1])
        if match := re.fullmatch(r"(\S+) != '(\w*)'", asked):
            return self.value(match[1]) != match[2]
        assert not asked, asked
        return True

    def value(self, name: str) -> str:
        # What is not there is an empty text to GitHub.
        assert name in self.known or name.startswith("steps.") or "pull_request" in name, name
        return self.known.get(name, "")

    def text(self, text: str) -> str:
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda match: self.value(match[1]), text)

    def step(self, step) -> None:
        output = self.output.with_name(f"output-{step['id']}")
        output.touch()
        script = self.output.with_name("script.sh")
        script.write_text(step["run"])
        told = {name: self.text(value) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.text(step.get("working-directory", str(self.workspace))),
            env={**self.environment, "GITHUB_OUTPUT": str(output), **told},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.printed[step["id"]] = done.stdout + done.stderr
        for row in output.read_text().splitlines():
            name, _, value = row.partition("=")
            self.known[f"steps.{step['id']}.outputs.{name}"] = value
        assert done.returncode == 0, f"{step['id']}: {done.stdout}{done.stderr}"


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(
        ["git", "-C", folder, *author, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def committed(folder: Path, words: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", words)
    return git(folder, "rev-parse", "HEAD")


# A policygen that writes its arguments down, one a row, and ends as it is told.
POLICYGEN = """
printf '%s\\n' "$@" "--" >> "$ASKED"
case "$1 $*" in
  *"-o review.json"*) [ "$REVIEW_IS" = 2 ] || echo '{}' > review.json; exit "$REVIEW_IS" ;;
  *--format?md?-o*) echo "# a review" > review.md; exit "$REVIEW_IS" ;;
  *"--from"*) exit "$REVIEW_IS" ;;
  verify-sass*) echo '{}'; exit "$SASS_IS" ;;
esac
"""


# A pip that writes its arguments down; what asks git is our own.
PYTHON = f"""
[ "$3" != policygen.git ] || exec {sys.executable} "$@"
printf '%s\\n' "$PWD" "$@" > "$ASKED.python"
"""


@pytest.fixture
def runner(tmp_path):
    """Makes a runner that has a checkout with a change, and a policygen that only takes notes."""

    def make(sass=0, review=0, **given):
        made = Runner(REVIEW, tmp_path, {}, **({"tree": "strange"} | given))
        tree = made.workspace / "strange"
        tree.mkdir()
        git(tree, "init", "-q")
        (tree / "a").write_text("old")
        made.base = committed(tree, "as it was")
        (tree / "a").write_text("new")
        committed(tree, "tune")
        made.known["github.event.pull_request.base.sha"] = made.base
        made.program("policygen", POLICYGEN)
        made.program("python", PYTHON)
        made.environment |= {
            "ASKED": str(tmp_path / "asked"), "SASS_IS": str(sass), "REVIEW_IS": str(review)
        }  # fmt: skip
        return made

    return make


def asked(tmp_path):
    """The commands that ran."""
    rows = (tmp_path / "asked").read_text()
    return [one.split("\n") for one in rows.removesuffix("\n--\n").split("\n--\n")]


def test_the_steps_ask_what_the_inputs_say(runner, tmp_path):
    made = runner(format="md,html,json")
    made.run()
    tree = str(made.workspace / "strange")
    there = ["--cub", tree, "--store", "none.db", "--base", made.base]
    coverage = ["audit", "coverage", "--cub", tree, "--compare", made.base, "-o"]
    saved = ["review", "--from", "review.json"]
    assert asked(tmp_path) == [
        ["--version"],
        ["verify-sass", *there, "--arch", "earlier", "--diffs", "sass", "--json"],
        [
            "review",
            *there,
            *["--format", "json", "-o", "review.json", "--force", "--sass", "sass.json"],
        ],
        [*saved, "--format", "md", "-o", "review.md", "--force"],
        [*saved, "--format", "html", "-o", "review.html", "--force"],
        [*saved, "--annotate", "github"],
        [*coverage, "coverage.md", "--force", "--format", "md"],
        [*coverage, "coverage.html", "--force", "--format", "html"],
        [*coverage, "coverage.json", "--force", "--json"],
    ]
    installed = (tmp_path / "asked.python").read_text().splitlines()
    assert installed[0] == str(made.folder)
    assert installed[1:4] == ["-P", "-m", "pip"]
    assert installed[-1] == f"{ROOT}[cuda]"
    assert made.known["steps.judge.outputs.findings"] == "false"
    assert made.summary.read_text() == "# a review\n"
    # Nothing of the change is in the current folder of a command.
    assert not made.folder.is_relative_to(made.workspace)


def test_what_was_measured_elsewhere_is_given_to_the_review(runner, tmp_path):
    made = runner(checks="review", performance="measured/performance.json")
    path = made.workspace / "measured/performance.json"
    path.parent.mkdir()
    path.write_text("{}")
    made.run()
    assert asked(tmp_path)[1][-2:] == ["--performance", str(path)]
    assert "::warning::" not in made.printed["prepare"]


@pytest.mark.parametrize("name", ["none.json", "strange", HOSTILE])
def test_what_could_not_be_measured_is_said_and_the_review_goes_on(runner, tmp_path, name):
    made = runner(checks="review", performance=name)
    made.run()
    warning = "::warning::performance is not a file: the review does not cover it"
    assert warning in made.printed["prepare"]
    assert "--performance" not in asked(tmp_path)[1]
    assert list(tmp_path.rglob("evil*")) == []


def test_what_inputs_hold_is_never_run(runner, tmp_path):
    made = runner(benchmarks=HOSTILE, axes="T=$(touch\tevil) *", shard=HOSTILE, arch=HOSTILE)
    made.run()
    sass = asked(tmp_path)[1]
    assert [sass[sass.index(option) + 1] for option in ("-R", "--shard", "--arch")] == [HOSTILE] * 3
    assert sass[-6:] == ["-a", "T=$(touch", "-a", "evil)", "-a", "*"]
    assert list(tmp_path.rglob("evil*")) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"format": "md,pdf"}, "format is md, html or json"),
        ({"checks": "all"}, "checks are sass, review or coverage"),
        ({"cache": "write"}, "cache is restore, save or none"),
        ({"tree": "absent"}, "absent"),
    ],
)
def test_inputs_that_cannot_be_are_refused_before_anything_is_installed(
    runner, tmp_path, given, message
):
    made = runner(**given)
    with pytest.raises(AssertionError, match=f"prepare: .*{message}"):
        made.run()
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("base", ["--all", "none", "0" * 40, "none...", "HEAD\n::error::x"])
def test_a_base_that_is_not_there_is_one_message(runner, tmp_path, base):
    made = runner(base=base)
    with pytest.raises(AssertionError, match=r"^base: "):
        made.run()
    assert made.printed["base"].startswith(f"policygen: error: {base!r} is neither a folder, ")
    assert len(made.printed["base"].splitlines()) == 1
    assert asked(tmp_path) == [["--version"]]


@pytest.mark.parametrize("base", ["HEAD", "0" * 40])
def test_a_repository_that_the_change_holds_is_not_asked(runner, tmp_path, base):
    """A commit can hold a bare repository as plain files; git would run what that fetches with."""
    made = runner(tree="strange/inner", base=base)
    inner = made.workspace / "strange/inner"
    git(made.workspace, "init", "-q", "--bare", str(inner))
    program = f"touch {tmp_path}/evil; git-upload-pack"
    with (inner / "config").open("a") as file:
        file.write(
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
            f'[remote "origin"]\n\turl = .\n\tpromisor = true\n\tuploadpack = "{program}"\n'
        )
    head = committed(made.workspace / "strange", "hostile")
    if base == "HEAD":
        made.run()
        assert made.known["steps.base.outputs.base"] == head
    else:
        with pytest.raises(AssertionError, match=r"^base: "):
            made.run()
    assert not (tmp_path / "evil").exists()


def test_the_base_of_a_pull_request_is_where_it_left_its_branch(runner):
    made = runner()
    tree = made.workspace / "strange"
    git(tree, "checkout", "-q", "-b", "target", made.base)
    (tree / "b").write_text("later")
    made.known["github.event.pull_request.base.sha"] = committed(tree, "later")
    git(tree, "checkout", "-q", "-")
    made.run()
    assert made.known["steps.base.outputs.base"] == made.base


@pytest.mark.parametrize("which", ["tree", "performance"])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("workspace/strange/a\nfolder=/evil", "has a control character in its name"),
        ("workspace/strange/a\n", "has a control character in its name"),
        ("workspace-of-others", "leads out of the workspace"),
    ],
)
def test_a_link_of_the_change_leads_nowhere(runner, tmp_path, which, target, message):
    made = runner(**{which: "strange/link"})
    place = tmp_path / target
    place.mkdir(parents=True)
    (made.workspace / "strange/link").symlink_to(place)
    with pytest.raises(AssertionError, match=f"prepare: ::error::{which} {message}"):
        made.run()
    assert (tmp_path / "output-prepare").read_text() == ""
    assert not (tmp_path / "asked").exists()


def test_a_tree_may_be_the_workspace_itself(runner):
    made = runner(tree=".")
    shutil.copytree(made.workspace / "strange", made.workspace, dirs_exist_ok=True)
    made.run()
    assert made.known["steps.prepare.outputs.tree"] == str(made.workspace)


def test_without_a_pull_request_a_base_is_named(runner):
    made = runner()
    made.known["github.event.pull_request.base.sha"] = ""
    with pytest.raises(AssertionError, match="this is not a pull request: name a base"):
        made.run()


def test_a_base_that_is_named_counts(runner, tmp_path):
    made = runner(base="HEAD", checks="coverage", format="md")
    made.run()
    head = git(made.workspace / "strange", "rev-parse", "HEAD")
    assert [one[:1] for one in asked(tmp_path)] == [["--version"], ["audit"]]
    assert head in asked(tmp_path)[1]


@pytest.mark.parametrize(
    ("sass", "review", "fail", "findings"),
    [(0, 0, "true", "false"), (1, 0, "false", "true"), (0, 1, "false", "true")],
)
def test_findings_are_told_and_fail_where_they_shall(runner, sass, review, fail, findings):
    made = runner(sass=sass, review=review, fail=fail)
    made.run()
    assert made.known["steps.judge.outputs.findings"] == findings
    made.known["inputs.fail"] = "true"
    if findings == "true":
        with pytest.raises(AssertionError, match="judge: "):
            made.step(scripts(REVIEW)["judge"])


def test_a_review_that_cannot_be_made_says_so_on_its_page(runner):
    made = runner(review=2, fail="false")
    made.run()
    page = (made.folder / "review.md").read_text()
    assert page == "The review could not be made: the log of the run says why.\n"
    assert made.known["steps.judge.outputs.findings"] == "true"


def checkout(folder: Path) -> Path:
    """CUB 3.0.1 as CCCL's repository has it, with one commit."""
    for name, place in (("cub", "cub"), ("thrust", "thrust"), ("cuda", "libcudacxx/include"),
                        ("nv", "libcudacxx/include")):  # fmt: skip
        shutil.copytree(Path(root("3.0.1")) / name, folder / place / name)
    git(folder, "init", "-q")
    committed(folder, "as it was")
    return folder


@slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_its_steps_answer_for_a_change(tmp_path):
    made = Runner(REVIEW, tmp_path, {}, tree="strange", reaches="sm100", **ONE)
    tree = checkout(made.workspace / "strange")
    made.known["github.event.pull_request.base.sha"] = git(tree, "rev-parse", "HEAD")
    path = tree / "cub" / TUNINGS / HEADER
    path.write_bytes(replaced(path.read_bytes(), CHANGE))
    # What it brings along is not believed: bindings that are none would be an error.
    (tree / "policygen.toml").write_text('bindings = "none"\n')
    (tree / "policygen.db").write_text("no store")
    committed(tree, "tune")
    made.run("install")
    assert not any("policygen.toml" in text for text in made.printed.values())
    posted = (made.folder / "review.md").read_text()
    assert posted.startswith("# 1 tuning entry in 1 header")
    assert made.summary.read_text() == posted
    assert "machine code: " in posted
    assert " kernels equal on sm75, sm80, sm86, sm87, sm88, sm89, sm100" in posted
    notice = "".join(made.printed.values()).replace("file=cub/cub/", "file=cub/")
    assert f"::notice file=cub/device/dispatch/tuning/{HEADER},line=" in notice
    assert (made.folder / "coverage.html").read_text().startswith("<!doctype html>")
    assert {path.name for path in made.folder.iterdir()} >= {"review.html", "coverage.md"}
    assert made.known["steps.judge.outputs.findings"] == "false"


def test_the_page_about_it_has_a_workflow_that_measures():
    page = (ROOT / "docs/ci.md").read_text("utf-8").partition("\n## Is it faster?\n")[2]
    jobs = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    measure, review = jobs["measure"], jobs["review"]
    (script,) = [step["run"] for step in measure["steps"] if "run" in step]
    assert "${{" not in script
    assert "--json -o performance.json" in script
    kept, taken = measure["steps"][-1]["with"], review["steps"][1]["with"]
    assert kept["name"] == taken["name"]
    given = review["steps"][-1]["with"]
    assert given["performance"] == f"{taken['path']}/{Path(kept['path']).name}"
    assert given.keys() <= read(REVIEW)["inputs"].keys()
    for one in (measure, review):
        assert one["permissions"] == {"contents": "read"}
        assert one["steps"][0]["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.parent.name)
def test_an_action_is_composite_and_its_scripts_hold_no_expressions(path):
    action = read(path)
    assert action["runs"]["using"] == "composite"
    assert {"name", "description", "inputs"} <= action.keys()
    for step in steps(path):
        assert ("run" in step) != ("uses" in step)
        if "run" in step:
            assert step["shell"] == "bash"
            # Expressions in a script are code; in the environment they are text.
            assert "${{" not in step["run"], step["id"]
        else:
            assert re.fullmatch(r"actions/[\w/-]+@v\d+", step["uses"])
    for name, one in action["inputs"].items():
        assert one["description"], name
        assert one.get("required") or "default" in one, name


def test_every_input_of_an_action_is_used():
    for path in ACTIONS:
        text = path.read_text("utf-8").partition("\nruns:")[2]
        used = set(re.findall(r"\binputs\.(\w+)", text))
        assert used == set(read(path)["inputs"]), path


def test_the_page_about_it_has_every_input():
    page = (ROOT / "docs/ci.md").read_text("utf-8").partition("\n## Inputs\n")[2]
    table = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.M))
    inputs = read(REVIEW)["inputs"]
    assert list(table) == list(inputs)
    for name, one in inputs.items():
        default = one.get("default")
        assert table[name] == ("required" if default is None else f"`{default}`" if default else "")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_uses_the_action_and_gives_it_inputs_that_it_has(path):
    ours = [step for step in job(path)["steps"] if step["uses"].startswith("OWNER/policygen")]
    (step,) = ours
    place = step["uses"].partition("@")[0].removeprefix("OWNER/policygen").strip("/")
    inputs = read(ROOT / place / "action.yml")["inputs"]
    given = step.get("with", {})
    assert given.keys() <= inputs.keys()
    assert {name for name, one in inputs.items() if one.get("required")} <= given.keys()
    assert not any("run" in one for one in job(path)["steps"])


def test_what_compiles_has_no_token_and_what_has_one_compiles_nothing():
    compiles, comments = read(REVIEWS), read(COMMENTS)
    assert compiles[True].keys() == {"pull_request"}
    assert comments[True]["workflow_run"]["workflows"] == [compiles["name"]]
    assert compiles["permissions"] == comments["permissions"] == {}
    assert job(REVIEWS)["permissions"] == job(CACHES)["permissions"] == {"contents": "read"}
    assert job(COMMENTS)["permissions"] == {"actions": "read", "pull-requests": "write"}
    for path in (REVIEWS, CACHES, REVIEW):
        text = re.sub("#.*", "", path.read_text("utf-8"))
        for name in ("secrets.", "github.token", "GH_TOKEN", "pull_request_target"):
            assert name not in text, (path, name)
    for path in (REVIEWS, CACHES):
        (cloned,) = [s for s in job(path)["steps"] if "checkout" in s["uses"]]
        assert cloned["with"]["persist-credentials"] is False
    # Only what runs on the default branch keeps a cache that others read.
    assert "cache" not in job(REVIEWS)["steps"][-1]["with"]
    assert read(REVIEW)["inputs"]["cache"]["default"] == "restore"
    (saves,) = [step for step in steps(REVIEW) if "cache/save" in step.get("uses", "")]
    assert saves["if"] == "inputs.cache == 'save'"
    assert read(CACHES)[True]["push"]["branches"] == ["main"]
    assert not any("uses" in step for step in steps(COMMENT))
    told = "".join(step["run"] for step in steps(COMMENT))
    assert not re.search(r"pip|policygen |checkout|python", told)


GH = """
echo "$@" >> "$ANSWERS/asked"
case "$*" in
  *"/pulls --jq"*) printf '%s\\n' "$FOUND" ;;
  *"/pulls?"*) echo 7 ;;
  *"/artifacts --jq"*) echo "12 $SIZE" ;;
  *"/artifacts/12/zip"*) cat "$ANSWERS/made.zip" ;;
  "pr comment"*) cp page.md "$ANSWERS/posted.md" ;;
  *) exit 1 ;;
esac
"""


def commented(folder: Path, review: str, size: int = 1000, found: str = "7") -> Runner:
    known = {
        "github.repository": "o/r",
        **{f"github.event.workflow_run.{name}": value for name, value in (
            ("id", "1"), ("head_sha", "0" * 40), ("head_branch", "x$(touch evil)"),
            ("head_repository.owner.login", "someone"),
        )},
    }  # fmt: skip
    runner = Runner(COMMENT, folder, known, token="t")
    runner.program("gh", GH)
    with zipfile.ZipFile(folder / "made.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../evil", "x")
        archive.writestr("review.md", review)
        archive.writestr("output", "number=666")
    runner.environment |= {"ANSWERS": str(folder), "SIZE": str(size), "FOUND": found}
    runner.run()
    return runner


@pytest.mark.skipif(shutil.which("unzip") is None, reason="the runner of GitHub has unzip")
@pytest.mark.parametrize("found", ["7", ""])
def test_the_artifact_is_posted_as_text(tmp_path, found):
    commented(tmp_path, "# a review $(touch evil)\n", found=found)
    assert (tmp_path / "posted.md").read_text() == "# a review $(touch evil)\n"
    assert "pr comment 7 --repo o/r" in (tmp_path / "asked").read_text()
    assert [*tmp_path.rglob("evil"), *tmp_path.parent.glob("evil")] == []


@pytest.mark.skipif(shutil.which("unzip") is None, reason="the runner of GitHub has unzip")
def test_a_review_that_is_too_long_is_cut(tmp_path):
    commented(tmp_path, "x" * 10_000_000)
    assert len((tmp_path / "posted.md").read_text()) == 65_000


def test_an_artifact_that_is_too_large_is_not_fetched(tmp_path):
    with pytest.raises(AssertionError):
        commented(tmp_path, "x", size=10**9)
    assert "/zip" not in (tmp_path / "asked").read_text()
    assert not (tmp_path / "posted.md").exists()
