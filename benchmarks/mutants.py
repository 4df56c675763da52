"""`make mutants`: whether the first tier of tests notices small faults.

Draws faults (mutants) evenly from the packages, and runs in a copy of the repository the tests that
cover the lines of each. Status 1: the tests killed fewer than 85 % of them.
"""

import argparse
import ast
import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, cycle, islice, pairwise, zip_longest
from pathlib import Path

from policygen.paths import cache_folder

ROOT = Path(__file__).parent.parent
GOAL = 85
LIMIT = 300
"""Seconds for each mutant."""
DOWNLOADED = ("packages", "revisions", "test-trees", "wheels")
"""What a run with a mutant finds in its store: code without the mutant computed the rest."""
NOT_COPIED = shutil.ignore_patterns(".venv", "__pycache__", ".coverage*", ".*_cache")
NOT_CHANGED = ("annotation", "returns", "decorator_list")
PAIRS = (
    ("<", ">="), ("<=", ">"), ("<", "<="), (">", ">="), ("==", "!="), ("in", "not in"),
    ("is", "is not"), ("and", "or"), ("+", "-"), ("*", "/"), ("*", "//"), ("*", "%"),
)  # fmt: skip
CHANGES = (*PAIRS, *(pair[::-1] for pair in PAIRS))
# a not in b; a  # a comment, behind which nothing is changed
OPERATOR = re.compile(rb"not in|is not|\w+|[^\w\s()]+")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: bytes of a module, and what stands there instead."""

    path: str
    kind: str
    start: int
    end: int
    text: bytes
    line: int
    lines: range
    """The lines that a test runs; empty if the code runs when the module is imported."""
    names: frozenset[str]
    """What is set at import, or a cached function: tests of lines that name it count, too."""

    @property
    def package(self) -> str:
        """`planning` for policygen/planning/plan.py, and `policygen` for policygen/paths.py."""
        return self.path.split("/")[min(1, self.path.count("/") - 1)]

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text + source[self.end :]


def read_mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """Finds all mutants of a module."""
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for node, lines, names in _walk(ast.parse(source), range(0), frozenset()):
        for kind, text, places in _faults(node):
            start, end = (starts[line - 1] + column for line, column in places)
            texts = [text]
            if kind in {"comparison", "operator"}:
                operator = OPERATOR.search(source, start, end)
                assert operator
                start, end = operator.span()
                texts = [new for old, new in CHANGES if old == operator[0].decode()]
            line = bisect(starts, start)
            for new in texts:
                yield Mutant(path, kind, start, end, new.encode(), line, lines, names)


Site = tuple[ast.AST, range, frozenset[str]]
Span = tuple[tuple[int, int], tuple[int, int]]


def _walk(node: ast.AST, lines: range, names: frozenset[str]) -> Iterator[Site]:
    """Finds what tests can notice, with its lines and names: no types, no messages."""
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.If(test=ast.Name("TYPE_CHECKING")):
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            cached = re.search("cache|once", " ".join(map(ast.unparse, node.decorator_list)))
            names = frozenset({node.name} if cached else ())
            lines = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
        case ast.stmt() if lines:
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
            names = frozenset({name})
    yield node, lines, names
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in NOT_CHANGED:
                yield from _walk(child, lines, names)


def _faults(node: ast.AST) -> Iterator[tuple[str, str, Span]]:
    """Finds what may be wrong in a node, and where; for an operator, between which places."""
    kind, operands = "operator", list[ast.expr]()
    match node:
        case ast.Compare(first, _, values):
            kind, operands = "comparison", [first, *values]
        case ast.BoolOp(_, values):
            operands = values
        case ast.BinOp(first, _, second):
            operands = [first, second]
        case ast.UnaryOp(ast.Not()):
            line, column = _span(node)[0]
            yield "not", "", ((line, column), (line, column + len("not ")))
        case ast.Constant(bool() | int() | float() as value):
            changed = not value if isinstance(value, bool) else value + 1
            yield "constant", str(changed), _span(node)
        case ast.If(test) | ast.IfExp(test):
            yield "branch", "False", _span(test)
        case ast.comprehension(ifs=[condition]):
            yield "branch", "True", _span(condition)
    for first, second in pairwise(operands):
        yield kind, "", (_span(first)[1], _span(second)[0])


def _span(node: ast.expr) -> Span:
    end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return (node.lineno, node.col_offset), end


def draw(
    mutants: Iterable[Mutant], sources: Mapping[str, bytes], count: int, seed: int
) -> list[Mutant]:
    """Returns at most so many, evenly from the packages, and in each evenly from the kinds.

    A mutant's place in the order depends on its own line alone: with the same seed most mutants are
    the same after a change elsewhere, so that the shares of two versions can be compared.
    """
    lines = {path: source.splitlines() for path, source in sources.items()}

    def key(*words: object) -> bytes:
        return hashlib.sha256(repr((seed, *words)).encode()).digest()

    def key_of(mutant: Mutant) -> bytes:
        line = lines[mutant.path][mutant.line - 1].strip()
        return key(mutant.path, mutant.kind, line, mutant.text)

    packages = defaultdict[str, dict[str, list[Mutant]]](lambda: defaultdict(list))
    for mutant in mutants:
        packages[mutant.package][mutant.kind].append(mutant)
    waiting = {}
    for package, kinds in packages.items():
        by_kind = [
            sorted(kinds[kind], key=key_of) for kind in sorted(kinds, key=partial(key, package))
        ]
        turns = chain.from_iterable(zip_longest(*by_kind))
        waiting[package] = filter(None, turns)
    names = cycle(sorted(waiting, key=key))
    drawn = filter(None, (next(waiting[name], None) for name in islice(names, count)))
    return sorted(drawn, key=lambda mutant: (mutant.path, mutant.start, mutant.text))


class Contexts:
    """Which tests run which lines, by the data of `--cov-context=test`."""

    def __init__(self, data: Path, sources: Mapping[str, bytes]) -> None:
        self.rows = sqlite3.connect(data).execute
        self.sources = sources
        joined = "arc JOIN context ON context.id = context_id GROUP BY context"
        rows = self.rows(f"SELECT context, COUNT(DISTINCT file_id) FROM {joined}")
        self.modules = {context.rpartition("|")[0]: count for context, count in rows}

    def tests(self, mutant: Mutant) -> list[str]:
        """Returns the tests that run a mutant's lines, first those that run the fewest modules.

        What a fixture runs counts for all tests of the file, after those that run it themselves.
        """
        contexts = self._contexts(mutant.path, mutant.lines)
        for path, source in self.sources.items() if mutant.names else ():
            words = [set(re.findall(r"\w+", line)) for line in source.decode().splitlines()]
            lines = {number for number, line in enumerate(words, 1) if line & mutant.names}
            contexts |= self._contexts(path, lines & _in_functions(source))
        if not contexts and not mutant.lines:
            contexts = self._contexts(mutant.path, _in_functions(self.sources[mutant.path]))
        direct = {context.rpartition("|")[0] for context in contexts} - {""}
        files = {context.partition("::")[0] for context in contexts if context.endswith("|setup")}
        beside = {test for test in self.modules if test.partition("::")[0] in files}
        every = direct | beside
        return sorted(every, key=lambda test: (test not in direct, self.modules[test], test))

    def _contexts(self, path: str, lines: Collection[int]) -> set[str]:
        joined = "arc JOIN file ON file.id = file_id JOIN context ON context.id = context_id"
        query = f"SELECT DISTINCT tono, context FROM {joined} WHERE path LIKE ?"
        rows = self.rows(query, (f"%/{path}",)) if lines else ()
        return {context for line, context in rows if line in lines}


def _in_functions(source: bytes) -> set[int]:
    sites = _walk(ast.parse(source), range(0), frozenset())
    return {line for _, lines, _ in sites for line in lines}


class Copy:
    """A copy of the repository in which tests run, each time with an empty store."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.runs = 0
        self.passes: dict[str, bool] = {}
        shutil.copytree(root, folder / "copy", symlinks=True, ignore=NOT_COPIED)
        (folder / "copy/.venv").symlink_to(root / ".venv")
        for name in DOWNLOADED:
            if (downloaded := cache_folder() / "tests" / name).is_dir():
                shutil.copytree(downloaded, folder / "store/tests" / name)

    def find_killer(self, mutant: Mutant, tests: Sequence[str]) -> str | None:
        """Returns the first test that fails with a mutant and passes without it."""
        source = (self.root / mutant.path).read_bytes()
        while output := self._run(tests, mutant.path, mutant.apply(source)):
            failed = re.findall(r"^(?:FAILED|ERROR) (.*)$", output, re.MULTILINE)
            first = " - ".join([*failed, ""])
            killer = next((test for test in tests if first.startswith(f"{test} - ")), None)
            if killer is None and self._run([*tests, "--collect-only"], mutant.path, source):
                sys.exit("The data is of other tests.")
            if killer is None:
                return "an error before the first test"
            if killer not in self.passes:
                self.passes[killer] = not self._run([killer], mutant.path, source)
            if self.passes[killer]:
                return killer
            tests = [test for test in tests if test != killer]
        return None

    def _run(self, tests: Sequence[str], path: str, source: bytes) -> str:
        """Returns what pytest prints if a test fails, and nothing if none does in time."""
        copy, store, arguments = (self.folder / name for name in ("copy", "store", "tests"))
        if not tests:
            return ""
        self.runs += 1
        (copy / path).write_bytes(source)
        os.utime(copy / path, (self.runs, self.runs))  # else bytecode of the same size is taken
        for place in store.glob("tests/*/"):
            if place.name not in DOWNLOADED:
                shutil.rmtree(place)
        arguments.write_text("\n".join(tests), "utf-8")
        variables = {**os.environ, "PYTHONPATH": str(copy), "POLICYGEN_CACHE": str(store)}
        command = ["timeout", "--signal=KILL", str(LIMIT), sys.executable, "-m", "pytest"]
        command += ["-xqrfE", "-pno:cacheprovider", f"--timeout={LIMIT // 3}", f"@{arguments}"]
        variables["COLUMNS"] = "1000"
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=copy, env=variables
        )
        shutil.copy2(self.root / path, copy / path)
        # An error of a conftest.py is told on the other stream.
        return done.stdout or done.stderr if 0 < done.returncode < 5 else ""


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Prints each mutant and what killed it, and the share of each package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="of --cov-context=test")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    paths = sorted(root.glob("policygen/**/*.py"))
    sources = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    contexts, killed = Contexts(options.data, sources), Counter[str]()
    mutants = (mutant for item in sources.items() for mutant in read_mutants(*item))
    drawn = draw(mutants, sources, options.count, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(root, Path(folder))
        for number, mutant in enumerate(drawn, 1):
            source, tests = sources[mutant.path], contexts.tests(mutant)
            killer = copy.find_killer(mutant, tests)
            killed[mutant.package] += killer is not None
            print(f"{number}. {mutant.path}:{mutant.line} {mutant.kind}")
            for sign, text in ("-", source), ("+", mutant.apply(source)):
                print(f"   {sign} {text.splitlines()[mutant.line - 1].strip().decode()}")
            verdict = f"killed by {killer}" if killer else f"survives {len(tests)} tests"
            print(f"   {verdict}", flush=True)
    for package, count in sorted(Counter(mutant.package for mutant in drawn).items()):
        print(f"{package:10} {killed[package]:3} of {count}")
    share = 100 * killed.total() / len(drawn)
    print(f"{killed.total()} of {len(drawn)} killed: {share:.0f}%; the goal is {GOAL}%")
    return int(share < GOAL)


if __name__ == "__main__":
    sys.exit(main())
