"""Every command that the documentation shows is run, and prints what is shown.

A row `...` stands for any number of rows.
"""

import ast
import re
import shlex
import shutil
from pathlib import Path

import pytest

import policygen
from policygen.cli.main import main
from policygen.demo.database import demo_database
from policygen.proof.toolchain import find_toolchain
from policygen.trees import open_tree, tuning_headers
from policygen.trees.manifest import shipped
from tests.cli.test_db import nvbench
from tests.own.checkouts import REDUCE, place_in
from tests.probing import changed_tree
from tests.real_trees import tree
from tests.tiers import slow

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Commands that would run these very tests, or that are not ours.
OTHERS = {"make test"}
DEMO = "make demo"
# What compiles most: `make test` leaves it out.
LONG = (
    *("policygen measure ", "policygen emit --db ", "policygen plan", "policygen apply"),
    *("policygen audit reach", "policygen audit coverage", "policygen resolve -q -R"),
    "policygen verify-sass -q --arch sm90",
)
# Their commands are steps, which test_guide.py and test_rocprim_guide.py run one after the other.
GUIDES = [ROOT / f"docs/guide-{name}.md" for name in ("maintainer", "reviewer", "user")]
KERNELS = ROOT / "docs/guide-kernels.md"
ROCPRIM = "\n## rocPRIM\n"
"""Heading of the part of `KERNELS` whose commands are steps."""


def blocks():
    for page in PAGES:
        if page in GUIDES:
            continue
        text = page.read_text("utf-8").partition(ROCPRIM)[0]
        for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
            yield page, block


def examples():
    for page, block in blocks():
        if block.startswith(f"$ {DEMO}\n"):
            continue  # shows commands of its own
        for example in re.split(r"^(?=\$ )", block, flags=re.M):
            command, _, output = example.removeprefix("$ ").partition("\n")
            if command and command not in OTHERS:
                marks = [slow] if command.startswith(LONG) else []
                yield pytest.param(command, output, id=f"{page.name}: {command}"[:80], marks=marks)


@pytest.fixture
def folder(tmp_path, monkeypatch, request):
    """The repository as a newcomer has it after `policygen headers fetch 3.0.1`.

    An example gets CUB 3.6.0 and the checkout of it only if it names them: to make them takes long.
    """
    example = getattr(request.node, "callspec", None)
    shown = [word for word in example.params.values() if isinstance(word, str)] if example else []
    text = " ".join(shown) or "3.6 cccl"  # a whole page may name both
    headers = tmp_path / "cub_headers"
    headers.mkdir()
    shutil.copy(ROOT / "cub_headers/manifest.toml", headers)
    for name in ("cub_headers/mini", "fixtures", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    # Its tuning headers are files of its own: some commands write to them.
    own = {path.name: path.read_bytes() for path in tuning_headers(open_tree(tree("3.0.1")))}
    changed_tree(tmp_path / "made", "3.0.1", own).rename(headers / "3.0.1")
    (headers / ".current").write_text("3.0.1\n")
    if "cccl" in text:
        changed_tree(tmp_path / "newer", "3.6.0", {}).rename(tmp_path / "cccl")
        like = place_in(tmp_path / "cccl", "reduce/sum.cu")
        like.parent.mkdir(parents=True)
        like.write_text(REDUCE)
    if "3.6" in text:
        changed_tree(tmp_path / "newest", "3.6.0", {}).rename(headers / "3.6.0")
    demo_database(tmp_path / "demo.db")
    for name, label in (("base", "base"), ("ipt_19.tpb_512", "variant")):
        nvbench(tmp_path, f"{name}/result.json", 2.0, f"bin/cub.bench.reduce.sum.{label}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    # That of the checkout that policygen runs from.
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(headers))
    return tmp_path


def as_pattern(output):
    """What is shown, by the nvcc that is there."""
    output = re.sub(r"nvcc \d+(?:\.\d+)+", lambda _: find_toolchain().name, output)
    rows = [row.rstrip() for row in output.rstrip().splitlines()]
    parts = [r"(?:.*\n)*" if row == "..." else re.escape(row) + r"\n" for row in rows]
    return re.compile("".join(parts))


def statuses(arguments):
    """A check that finds something says so by its exit status."""
    checks = arguments[0] == "audit" or {"--compare", "--check"} & set(arguments)
    return {0, 1} if checks else {0}


def compare(arguments, output, folder, capsys):
    assert main(arguments) in statuses(arguments)
    printed = "".join(f"{row.rstrip()}\n" for row in capsys.readouterr().out.splitlines())
    printed = printed.rstrip().replace(f"{folder.resolve()}/", "") + "\n"
    if not as_pattern(output).fullmatch(printed):
        pytest.fail(f"shown:\n{output}\nprinted:\n{printed}")


@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize(("command", "output"), list(examples()))
def test_a_documented_command_prints_what_is_shown(command, output, folder, capsys):
    program, *arguments = shlex.split(command)
    assert program == "policygen", f"unknown program in the documentation: {command}"
    compare(arguments, output, folder, capsys)


def test_types_and_names_of_the_library_are_the_same():
    checked = {
        (node.module.removeprefix("policygen."), alias.name)
        for block in ast.parse(Path(policygen.__file__).read_text("utf-8")).body
        if isinstance(block, ast.If)
        for node in block.body
        for alias in node.names
    }
    assert checked == {(module, name) for name, module in policygen._MODULE_BY_NAME.items()}
    assert all(getattr(policygen, name).__name__ == name for name in policygen._MODULE_BY_NAME)
    assert set(policygen._MODULE_BY_NAME) < set(dir(policygen))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        policygen.nothing  # noqa: B018


@slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_the_demo_prints_what_is_shown(folder, capsys):
    (folder / "cub_headers/.current").unlink()
    for version in ("3.0.1", "3.6.0"):
        shutil.rmtree(folder / "cub_headers" / version)
    (block,) = [block for _, block in blocks() if block.startswith(f"$ {DEMO}\n")]
    compare(["demo"], block.partition("\n")[2], folder, capsys)


def test_the_readme_shows_its_commands_in_the_first_screen():
    first = "\n".join(ROOT.joinpath("README.md").read_text("utf-8").splitlines()[:40])
    assert "$ make demo" in first
    assert "$ make test" in first


@pytest.mark.parametrize("page", ["README.md", "docs/guide-user.md"])
def test_who_starts_with_thrust_is_told_what_applies(page):
    text = " ".join((ROOT / page).read_text("utf-8").split())
    toolkits = {
        wheel.version.rpartition(".")[0]: wheel.cub
        for wheel in shipped().wheels
        if wheel.distribution.startswith("nvidia-cuda-cccl") and wheel.version.count(".") == 2
    }
    assert len(toolkits) == 4
    for toolkit, cub in {**toolkits, "13.3": "3.5.0"}.items():
        assert re.search(rf"\b{toolkit}(?: ships| holds?)?(?: CUB)? {cub}\b", text), toolkit
    assert re.search(r"[Rr]esults (?:of|from) an H100 on an H200\?", text)
    for algorithm in ("sort` with a comparator", "unique_by_key", "copy_if", "reduce_by_key"):
        assert algorithm in text


def test_make_has_the_documented_targets():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert {"demo", "test", "check", "bench", "schemas", "docs", "messages", "mutants"} <= targets


def test_links_between_pages_lead_somewhere():
    reference = (ROOT / "docs/reference").glob("*.md")
    for page in [*PAGES, *reference, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
