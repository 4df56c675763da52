"""Packages follow the stages of the work, and imports point one way."""

import ast
from pathlib import Path

import pytest

import policygen

PACKAGE = Path(policygen.__file__).parent
# Each package, and which of ours it may import besides itself; as in the design.
MAY_IMPORT = {
    "model": set(),
    "tree": {"model"},
    "source": {"model", "bindings"},
    "results": {"model"},
    "bindings": {"model"},
    "dialects": {"model", "source", "bindings"},
    "planning": {"model", "source", "dialects", "results", "bindings"},
    "proof": {"model", "bindings", "tree"},
    "report": {"model"},
    "edit": {"model"},
    "demo": set(),
    "cli": {
        "model",
        "tree",
        "source",
        "dialects",
        "results",
        "bindings",
        "planning",
        "proof",
        "report",
        "edit",
        "demo",
    },
}
# What every package may use: errors, places, processes, configuration, text of strangers.
COMMON = {
    "cache",
    "errors",
    "opening",
    "own_stores",
    "paths",
    "process",
    "environment",
    "git",
    "git_objects",
    "resources",
    "config",
    "settings_file",
    "rendering",
    "store_schema",
    "textdiff",
    "untrusted",
    "__version__",
}
# Heavy or peculiar libraries, and the packages that know each; the demo writes what is read.
LIVES_IN = {
    "clang": {"source"},
    "tree_sitter": {"source"},
    "tree_sitter_cpp": {"source"},
    "pandas": {"results"},
    "fpzip": {"results", "demo"},
    "matplotlib": {"report"},
}


def imported(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "policygen":
                yield from (f"policygen.{alias.name}" for alias in node.names)
            else:
                yield node.module


def modules(package):
    return sorted((PACKAGE / package).rglob("*.py"))


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_the_design_allows(package):
    assert modules(package), package
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in modules(package)
        for name in imported(path)
        if name.startswith("policygen.")
        and name.split(".")[1] not in MAY_IMPORT[package] | COMMON | {package}
    ]
    assert wrong == []


def test_every_package_is_in_the_design():
    found = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert found == set(MAY_IMPORT)


@pytest.mark.parametrize(("library", "packages"), LIVES_IN.items())
def test_a_library_lives_where_it_is_known(library, packages):
    users = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        for name in imported(path)
        if name.split(".")[0] == library
    }
    assert users <= packages


def test_common_modules_import_no_package():
    for path in sorted(PACKAGE.glob("*.py")):
        if path.stem in COMMON:
            ours = {n.split(".")[1] for n in imported(path) if n.startswith("policygen.")}
            assert ours <= COMMON | {"model"}, path


def test_no_module_is_longer_than_400_lines():
    lengths = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in PACKAGE.rglob("*.py")}
    assert {str(p): n for p, n in lengths.items() if n > 400} == {}
