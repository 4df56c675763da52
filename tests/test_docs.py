"""Every command that the documentation shows is run, and prints what is shown.

A row `...` stands for any number of rows.
"""

import ast
import re
import shlex
import shutil
from inspect import isfunction, signature
from pathlib import Path

import pytest

import policygen
from policygen.cli.main import main
from policygen.demo.database import demo_database
from policygen.trees import open_tree, tuning_headers
from tests.cli.test_db import nvbench
from tests.own.checkouts import REDUCE, place_in
from tests.probing import changed_tree
from tests.real_trees import tree
from tests.tiers import slow

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Commands that would run these very tests, or that are not ours.
OTHERS = {
    "make test",
    "nvcc $(policygen headers path --flags) -c my_kernel.cu",
    "nvbench-program --jsonbin base/result.json",
}
DEMO = "make demo"
# What compiles most: `make test` leaves it out.
LONG = (
    *("policygen measure ", "policygen emit --db ", "policygen plan", "policygen apply"),
    *("policygen audit reach", "policygen audit coverage", "policygen resolve -q -R"),
    "policygen verify-sass -q --arch sm90",
)
# Their commands are steps, which test_guide.py and test_rocprim_guide.py run one after the other.
GUIDES = sorted((ROOT / "docs").glob("guide*.md"))
ROCPRIM = ROOT / "docs/rocprim.md"
API = ROOT / "docs/api.md"


def blocks():
    for page in PAGES:
        if page in {*GUIDES, ROCPRIM}:
            continue
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
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
def folder(tmp_path, monkeypatch):
    """The repository as a newcomer has it after `policygen headers fetch 3.0.1`."""
    headers = tmp_path / "cub_headers"
    headers.mkdir()
    shutil.copy(ROOT / "cub_headers/manifest.toml", headers)
    for name in ("cub_headers/mini", "fixtures", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    # Its tuning headers are files of its own: some commands write to them.
    own = {path.name: path.read_bytes() for path in tuning_headers(open_tree(tree("3.0.1")))}
    changed_tree(tmp_path / "made", "3.0.1", own).rename(headers / "3.0.1")
    (headers / ".current").write_text("3.0.1\n")
    changed_tree(tmp_path / "newer", "3.6.0", {}).rename(tmp_path / "cccl")
    like = place_in(tmp_path / "cccl", "reduce/sum.cu")
    like.parent.mkdir(parents=True)
    like.write_text(REDUCE)
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


@pytest.mark.trees
@pytest.mark.nvcc
def test_the_library_prints_what_is_shown(folder, capsys):
    """The page is one program: each block of it goes on where the one before ended."""
    page, known = API.read_text("utf-8"), {}
    found = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", page, re.M | re.S)
    assert len(found) == page.count("```python") == 8
    for code, output in found:
        exec(code, known)
        assert capsys.readouterr().out == output


def test_what_the_library_exports_is_on_its_page():
    page = API.read_text("utf-8")
    assert [name for name in policygen.__all__ if f"`{name}" not in page] == []


def test_the_page_of_the_library_has_the_signatures_of_its_functions():
    table = re.findall(r"^\| `(\w+)\((.*?)\)` \| .* \| (.*) \|$", API.read_text("utf-8"), re.M)
    functions = {name for name in policygen.__all__ if isfunction(getattr(policygen, name))}
    assert sorted(name for name, _, _ in table) == sorted(functions)
    for name, arguments, gives in table:
        found = signature(getattr(policygen, name))
        before = [one for one in found.parameters.values() if one.kind is not one.KEYWORD_ONLY]
        named = [one.name for one in found.parameters.values() if one.kind is one.KEYWORD_ONLY]
        positional = [
            f"**{one.name}" if one.kind is one.VAR_KEYWORD else one.name for one in before
        ]
        star = ["*"] if named else []
        assert arguments == ", ".join([*positional, *star, *named]), name
        for kind in re.findall(r"`([A-Z]\w+)`", gives):
            assert re.search(rf"\b{kind}\b", str(found.return_annotation)), f"{name}: {kind}"
        assert ("errors" in gives) == ("Error" in str(found.return_annotation)), name


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


def test_make_has_the_documented_targets():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert {"demo", "test", "check", "bench", "schemas"} <= targets


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
