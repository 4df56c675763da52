"""Packages follow the stages of the work, and imports point one way."""

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import policygen
from policygen.headers.protocol import Notation
from policygen.libraries import PLUGINS, part_of, parts
from policygen.proof.ask import Queries
from policygen.proof.kernel_build import LibraryKernels
from policygen.results.tuners.formats import TunerFormat

# `make check` runs them all, in every change.
pytestmark = pytest.mark.slow

PACKAGE = Path(policygen.__file__).parent
# Each package, and which of ours it may import besides itself; as in the design.
MAY_IMPORT = {
    "model": set(),
    "trees": {"model"},
    "bindings": {"model"},
    "headers": {"model", "bindings"},
    "results": {"model"},
    "proof": {"model", "trees", "headers", "bindings"},
    "planning": {"model", "headers", "results", "bindings", "proof"},
    "gpu": {"model", "trees", "headers", "results", "bindings", "planning", "proof"},
    "report": {"model"},
    "store": {"model"},
    "demo": {"results"},
    # AMD's: `libraries` alone names it, and loads its parts by name.
    "rocprim": {"model", "trees", "headers", "bindings", "results", "proof"},
    "app": {
        "model",
        "trees",
        "headers",
        "results",
        "bindings",
        "planning",
        "proof",
        "gpu",
        "store",
        "demo",
    },
    "cli": {"app", "plots", "report"},
}
# What every package may use: errors, places, processes, configuration, text of strangers.
COMMON = {
    "cache",
    "errors",
    "git",
    "installation",
    "libraries",
    "opening",
    "outputs",
    "paths",
    "portable",
    "process",
    "rendering",
    "settings",
    "steps",
    "store_schema",
    "textdiff",
    "untrusted",
}
# Heavy or peculiar libraries, and the packages that know each.
LIVES_IN = {
    "click": {"cli"},
    "clang": {"rocprim"},
    "tree_sitter": {"headers"},
    "tree_sitter_cpp": {"headers"},
    "pandas": {"results"},
    "fpzip": {"results"},
    "distributed": {"gpu"},
}


# Helpers of the command line; the other modules of `cli` are commands.
HELPERS = {
    "completing",
    "groups",
    "main",
    "options",
    "output",
    "plan_options",
    "progress",
    "search_options",
}
INSIDE = 40
"""How many imports may stand in functions: of libraries that take long to load, or may lack."""


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def is_typing(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def walk(node, *, typing, functions):
    """A syntax tree with or without what stands for type checkers, and in functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if is_typing(child) and not typing:
            continue
        if isinstance(child, ast.FunctionDef) and not functions:
            continue
        yield from walk(child, typing=typing, functions=functions)


@cache
def imported(path, *, typing=True, functions=True):
    """The modules that a module imports."""
    return frozenset(_imported(path, typing=typing, functions=functions))


def _imported(path, *, typing, functions):
    for node in walk(parsed(path), typing=typing, functions=functions):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            parts = {name for name in names if is_module(name)}
            yield from parts
            if node.module != "policygen" and parts != names:
                yield node.module


@cache
def is_module(name):
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.joinpath("__init__.py").exists()


def name_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def cycles(graph):
    """The sets of nodes that reach each other."""
    reached = {node: reach(graph, node) for node in graph}
    found = (
        frozenset(other for other in there if node in reached[other])
        for node, there in reached.items()
    )
    return sorted({tuple(sorted(one)) for one in found if one})


def reach(graph, start):
    """All nodes that edges lead to; the node itself only by a way back."""
    found, rest = set(), [start]
    while rest:
        new = graph[rest.pop()] - found
        found |= new
        rest += new
    return found


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


@pytest.mark.parametrize("library", PLUGINS)
@pytest.mark.parametrize("kind", [Notation, Queries, LibraryKernels, TunerFormat])
def test_another_library_has_parts_for_each_stage(library, kind):
    assert {type(part) for part in parts(kind, library)} == {kind}
    assert part_of("cub", kind) is None


LOADED = """
import sys
import policygen.cli.main
from policygen.headers.scan import read_header
from policygen.model.trees import Cub
from policygen.proof.ask import replaces_files
read_header("tuning_scan.cuh", b"namespace cub {}")
replaces_files(Cub(root=".", version="3.2.0", dialect="selectors", found="--cub"))
print(*(name for name in sys.modules if name.startswith("policygen.rocprim")))
"""


def test_for_cub_no_other_library_is_loaded():
    command = [sys.executable, "-c", LOADED]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert loaded.split() == []


def test_a_name_is_one_class():
    classes = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in classes.items() if count > 1] == []


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


@pytest.mark.parametrize("anywhere", [False, True], ids=["at the top", "anywhere"])
def test_no_modules_import_each_other(anywhere):
    """A package's own `__init__`, which Python runs before its modules, is no import of theirs.

    What the library offers is loaded when somebody asks; for type checkers alone it names all.
    """
    paths = {name_of(path): path for path in PACKAGE.rglob("*.py")}
    graph = {
        name: paths.keys()
        & set(imported(path, typing=anywhere and name != "policygen", functions=anywhere))
        for name, path in paths.items()
    }
    assert sum(map(len, graph.values())) > 1000
    assert cycles(graph) == []


def test_a_cycle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"e"}}
    assert cycles(graph) == [("b", "c"), ("e",)]


def test_a_command_imports_no_other_command():
    commands = {name_of(path) for path in modules("cli") if path.stem not in HELPERS}
    commands.remove("policygen.cli")
    assert len(commands) > 10
    wrong = {
        path.stem: sorted(commands & set(imported(path)) - {name_of(path)})
        for path in modules("cli")
    }
    assert {name: names for name, names in wrong.items() if names} == {}


def test_imports_stand_at_the_top():
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for function in ast.walk(parsed(path))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert len(set(found)) <= INSIDE, found
    assert [one for one in found if one.startswith("cli/")] == []


def test_common_modules_import_no_package():
    for path in sorted(PACKAGE.glob("*.py")):
        if path.stem in COMMON:
            ours = {n.split(".")[1] for n in imported(path) if n.startswith("policygen.")}
            assert ours <= COMMON | {"model"}, path


def test_no_module_is_longer_than_600_lines():
    lengths = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in PACKAGE.rglob("*.py")}
    assert {str(p): n for p, n in lengths.items() if n > 600} == {}
