"""How much of the code a newcomer has to read: a table of figures that may only fall.

`python -m benchmarks.house` prints it and exits 1 where a figure is above what it was; `make check`
runs it. After a figure has fallen, write the new one into `MOST`.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "policygen"
ENTRY = "policygen.cli.apply"
RIDDLES = frozenset({"one", "found", "told", "asked", "said", "known", "left", "wanted"})
"""Names that do not say what a thing is."""
# docs/style.md has an example of each, and what to write instead.
PUZZLES = re.compile(
    r"\btold\b(?! apart)|\btells? nothing\b|\bdo(?:es)? not tell\b"
    r"|\b(?:is|are|was|were) (?:not )?(?:asked|said)\b|\bof which (?!CUB)"
    r"|(?<!~)\b(?:[Nn]o|[Ss]ome)body\b|\bone's own\b|\bwhose (?:it|that|they) (?:is|are)\b"
    r"|(?<![Tt]here )\b(?:is|are) no (?!more\b|longer\b)[a-z]|\bSuch as[ :]"
    r"|, and not (?:an?|the|of|for|to|in|on|with|by|from|as)\b|\b[Nn]one where (?!=)"
    r"|\bgoes? on there\b|\bstands? there\b|\bis there twice\b|\bwithout an end\b|\bbeside base\b"
)
"""Phrases of sentences that one reads twice."""
# The figure now, which may not rise, and the goal.
MOST: Mapping[str, tuple[int, int]] = {
    "lines": (81_769, 55_000),
    "modules": (280, 300),
    "modules that policygen.cli.apply reaches": (141, 150),
    "longest import chain": (16, 16),
    "modules with one importer, in the same package": (13, 30),
    "names that say nothing": (248, 800),
    "puzzling phrases in code": (0, 0),
    "puzzling phrases in pages": (0, 0),
    "module names that exist three times": (0, 0),
    "modules of app/": (30, 35),
}


def measure(package: Path = PACKAGE) -> dict[str, int]:
    """The figures of a package, in the order of the table."""
    paths = {_name(path, package.parent): path for path in sorted(package.rglob("*.py"))}
    sources = {name: path.read_text("utf-8") for name, path in paths.items()}
    graph = {name: _imports(source, paths) for name, source in sources.items()}
    stems = Counter(path.stem for path in paths.values() if path.stem != "__init__")
    return {
        "lines": sum(len(source.splitlines()) for source in sources.values()),
        "modules": len(paths),
        f"modules that {ENTRY} reaches": len(_reached(graph, ENTRY)),
        "longest import chain": _longest_chain(graph),
        "modules with one importer, in the same package": len(_single_importers(graph)),
        "names that say nothing": sum(map(_riddles, sources.values())),
        "puzzling phrases in code": _puzzles(sources.values()),
        "puzzling phrases in pages": _puzzles(_pages()),
        "module names that exist three times": sum(count >= 3 for count in stems.values()),
        "modules of app/": sum(path.parent.name == "app" for path in paths.values()),
    }


def _pages() -> list[str]:
    """The pages, and the templates that a user reads."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    paths += [*sorted((ROOT / "templates/own").glob("*.toml.j2")), ROOT / "action.yml"]
    return [path.read_text("utf-8") for path in paths if path.name != "style.md"]


def phrases(text: str) -> list[str]:
    """The puzzling phrases of a text, also those that a line or two strings divide."""
    joined = re.sub(r"""["']\s*\n\s*[rf]*["']""", "", text)
    joined = re.sub(r"\n\s*(?:# )?", " ", joined)
    return [match.group() for match in PUZZLES.finditer(joined)]


def _puzzles(texts: Iterable[str]) -> int:
    return sum(len(phrases(text)) for text in texts)


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(source: str, paths: Mapping[str, Path]) -> set[str]:
    """The package's own modules that a module imports, wherever the import stands.

    The package itself counts as none: it names the whole API, and loads what of it is used.
    """
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= {name if name in paths else node.module for name in names}
    return {name for name in imported & paths.keys() if "." in name}


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def _longest_chain(graph: Mapping[str, set[str]]) -> int:

    @cache
    def length(module: str) -> int:
        return 1 + max((length(below) for below in graph[module]), default=0)

    return max(map(length, graph))


def _single_importers(graph: Mapping[str, set[str]]) -> list[str]:
    importers: dict[str, set[str]] = defaultdict(set)
    for module, below in graph.items():
        for name in below:
            importers[name].add(module)
    return [
        name
        for name, users in importers.items()
        if {user.rpartition(".")[0] for user in users} == {name.rpartition(".")[0]}
        and len(users) == 1
    ]


def _riddles(source: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(token.type == tokenize.NAME and token.string in RIDDLES for token in tokens)


def main() -> int:
    """Prints the table."""
    figures = measure()
    width = max(map(len, figures))
    print(f"{'':{width}} {'now':>7} {'most':>7} {'goal':>7}")
    for name, value in figures.items():
        most, goal = MOST[name]
        mark = "  has risen" if value > most else ""
        print(f"{name:{width}} {value:7,} {most:7,} {goal:7,}{mark}")
    return int(any(value > MOST[name][0] for name, value in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
