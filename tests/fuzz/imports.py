"""Damaged and hostile files of other tuners: a database or a message, and nothing half-written.

`python -m tests.fuzz.imports --count N --seed S` prints what came of them.
"""

import io
import json
import random
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.cli.main import main
from tests.fuzz import command, databases
from tests.fuzz.databases import TEXTS
from tests.results import primbench_files, rocprim_files
from tests.results.tuner_files import BASE, document, t4_document, text_of

SECONDS = 60.0
"""Of the processor, for one command."""
FORMS = ("cache", "cache", "t4", "rocprim", "rocprim", "rocprim cache", "rocprim primbench")
VALUES = [
    None, True, 0, -1, 1 << 31, 1 << 63, 10**400, 1e308, -0.0, float("nan"), float("inf"), "", [],
    {}, [[[]]], {"a": {"a": {}}}, "InvalidConfig", [0], [float("nan")], "\ud800", *TEXTS,
]  # fmt: skip


def places(found, path=()):
    """All members of a document, by where they stand."""
    items = found.items() if isinstance(found, dict) else enumerate(found)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def rewritten(made, rng):
    """Members that no tuner writes, or that are missing, or have another name."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        if not (paths := list(places(made))):  # nothing remains
            return
        path = rng.choice(paths)
        inner = made
        for step in path[:-1]:
            inner = inner[step]
        kind = rng.random()
        if kind < 0.2:
            del inner[path[-1]]
        elif kind < 0.35 and isinstance(inner, dict):
            inner[rng.choice(TEXTS)] = inner.pop(path[-1])
        else:
            inner[path[-1]] = rng.choice(VALUES)


def renamed(made, rng):
    """Names of benchmarks of which some letters are others, or more."""
    for one in rng.sample(made["benchmarks"], rng.choice((1, 1, 5))):
        name = one["name"]
        at = rng.randrange(len(name))
        more = rng.choice(("{", "}", ":", ",", '"', "<", "", "\\", "0" * 99, "{" * 999, *TEXTS))
        one["name"] = name[:at] + more + name[at + rng.choice((0, 1, 9)) :]


def original(form, rng):
    """A file as a tuner writes it."""
    if form == "cache":
        return document(count=rng.choice((0, 5)))
    if form == "t4":
        return t4_document()
    if form == "rocprim cache":
        return rocprim_files.cache(space={"block_size_x": [64, 256], "tile": [1, 2]})
    space = {"block_size_x": [64, 256], "tile": [1, 2], "m": ["a", "b"]}
    if form == "rocprim primbench":
        return primbench_files.results(
            types=primbench_files.KEYS[: rng.choice((1, 2))],
            space=space,
            batches=rng.random() < 0.5,
            noise=rng.choice((0.002, 0.1)),
        )
    chosen = dict.fromkeys(rng.sample(list(rocprim_files.ALGORITHMS), 2), space)
    made = rocprim_files.benchmarks(
        chosen, repetitions=rng.choice((1, 5)), spelling=rng.choice(("json", "txt"))
    )
    if rng.random() < 0.4:
        renamed(made, rng)
    return made


def written(rng):
    """A file, and what was done to it."""
    form = rng.choice(FORMS)
    made = original(form, rng)
    change = rng.choice(("rewritten", "rewritten", "flipped", "cut", "doubled", "nested"))
    if change == "rewritten":
        rewritten(made, rng)
    whole = form.endswith("cache") and isinstance(made.get("cache"), dict) and rng.random() < 0.7
    text = text_of(made, closed=rng.random() < 0.6) if whole else json.dumps(made)
    if change == "doubled":
        at = text.index('"', rng.randrange(len(text) // 2))
        text = text[:at] + text[at : text.index(",", at) + 1] + text[at:]
    elif change == "nested":
        at = rng.choice(("1000000", "256", '"time"', '"key_type"'))
        text = text.replace(at, rng.choice(("[", '{"a":', "[[],")) * rng.choice((60, 99, 10**5)), 1)
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if change == "flipped":
        for _ in range(rng.choice((1, 3, 30))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif change == "cut":
        del data[rng.randrange(len(data)) :]
    return f"{form} {change}", bytes(data)


def attempt(*arguments):
    """The exit status of a command, and what it printed."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        status = main(["db", *map(str, arguments)])
    return status, output.getvalue()


def run(count, seed):
    """Tries so many files; what is wrong raises."""
    rng = random.Random(seed)
    found = Counter()
    with TemporaryDirectory() as folder:
        for number in range(count):
            path, out = Path(folder) / f"{number}.json", Path(folder) / f"{number}.db"
            change, data = written(rng)
            path.write_bytes(data)
            own = not change.startswith("rocprim")
            said = ("--name", "k") if rng.random() < (0.8 if own else 0.05) else ()
            more = ("--size", "9", "--gpu", "H200", "--base", BASE)
            began = time.process_time()
            status, text = attempt("import", path, "-o", out, *said, *more)
            told = f"file {number} of seed {seed}, {change}: {text}"
            assert status in {0, 2}, told
            assert out.exists() == (status == 0), told
            assert len(text.splitlines()) < 100, told
            if status == 0:
                verb = rng.choice((("info",), ("top",), ("choose",), ("report", "--json")))
                done, shown = attempt(*verb, out)
                assert done == 0, f"{told}\n{shown}"
                databases.rewritten(out, rng)
                done, more_shown = attempt(*verb, out)
                assert done in {0, 1, 2}, f"{told}\n{more_shown}"
                text += shown + more_shown
            assert "Traceback" not in text, told
            assert not {*text} & {"\x1b", "\x07", "\u202e", "\0"}, told
            assert time.process_time() - began < SECONDS, told
            assert path.read_bytes() == data, told
            assert {one.suffix for one in Path(folder).iterdir()} <= {".json", ".db"}, told
            found[f"{change}: exit {status}"] += 1
            found["files"] += 1
            for one in Path(folder).iterdir():
                one.unlink()
    return found


if __name__ == "__main__":
    command.main(run, __doc__, 500)
