"""Tools that lie, and caches that somebody wrote to: none of it makes two kernels equal.

What real tools made of real units is recorded once; then it is given to the comparison damaged, as
a seeded choice has it. `POLICYGEN_FUZZ` multiplies the number of cases.
"""

import os
import random
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from policygen.errors import PolicygenError
from policygen.process import run
from policygen.proof import compile as compiling
from policygen.proof import kernel_build as module
from policygen.proof.kernel_build import Job, Tools, UnitHeaders
from policygen.proof.toolchain import find_toolchain
from tests.proof.sass.dumps import FOLDER, build, disassemble
from tests.proof.sass.test_build import preprocess
from tests.tiers import sampled

pytestmark = pytest.mark.nvcc

ROUNDS = int(os.environ.get("POLICYGEN_FUZZ", "1"))
SEED = 17
SHARES = pytest.mark.parametrize("share", sampled(range(4), 0))
KERNELS = (FOLDER / "kernels.cu").read_text()
MARK = re.compile(rb"policygen_unit_[0-9a-f]{32}")
PROGRAMS = {"nvcc -E": "-E", "nvcc -cubin": "-cubin", "cuobjdump": "-res-usage"}


class Recorded:
    """Real tools, asked once; each question of the same kind gets the same answer, but its mark."""

    def __init__(self):
        self.answers = {}
        self.damage = None

    def __call__(self, command, **options):
        kind = next(kind for kind, option in PROGRAMS.items() if option in command)
        made = Path(command[command.index("-o") + 1]) if kind.startswith("nvcc") else None
        source = Path(command[-1]).read_bytes()
        asked = [word for word in command[1:-1] if made is None or word.startswith("-I")]
        key = (kind, *asked, MARK.sub(b"", source))
        if key not in self.answers:
            text = run(command, **options)
            self.answers[key] = text.encode() if made is None else made.read_bytes()
        data = self.answers[key]
        mark = MARK.findall(source)
        if mark and not self.is_stale(kind):
            data = MARK.sub(mark[-1], data)
        if self.damage and self.damage[0] == kind and self.damage[1]:
            data = self.damage[1](data)
        if made is None:
            return "" if data is None else data.decode(errors="replace")
        made.unlink(missing_ok=True)
        if data is not None:
            made.write_bytes(data)
        return ""

    def is_stale(self, kind):
        return self.damage == (kind, None)


@pytest.fixture(scope="module")
def tools():
    return Tools.of(find_toolchain())


@pytest.fixture
def recorded(monkeypatch):
    found = Recorded()
    for one in (module, compiling):
        monkeypatch.setattr(one, "run", found)
    return found


def nothing(_):
    return b""


def no_file(_):
    return None


def cut(rng):
    share = rng.random()
    return lambda data: data[: int(len(data) * share)]


def without_lines(rng):
    """Some lines are lost: of the end, of the middle, one or many."""
    share, width = rng.random(), rng.choice((1, 1, 2, 7, 100))

    def damaged(data):
        lines = data.split(b"\n")
        start = int(share * len(lines))
        return b"\n".join(lines[:start] + lines[start + width :])

    return damaged


def other_bytes(rng):
    """Some bytes are others."""
    places = [(rng.random(), rng.randrange(1, 256)) for _ in range(rng.choice((1, 2, 16)))]

    def damaged(data):
        made = bytearray(data)
        for share, flip in places:
            made[int(share * len(made))] ^= flip
        return bytes(made)

    return damaged


def twice(data):
    return data + data


def of_another(recorded, kind):
    """What the tool said of another unit."""
    others = [data for key, data in recorded.answers.items() if key[0] == kind]
    return lambda data: next((other for other in others if other != data), b"")


def told(capsys, what, counts):
    with capsys.disabled():
        sys.stdout.write(f"\n{what}: {counts.total()} cases, {dict(sorted(counts.items()))}\n")


def included(folder, text):
    folder.mkdir(parents=True)
    (folder / "some.cuh").write_text(text)
    return UnitHeaders("#include <some.cuh>\n", (str(folder),), "sm90")


@SHARES
def test_two_sources_are_never_one(tools, recorded, tmp_path, capsys, share):
    rng, counts = random.Random(f"{SEED} {share}"), Counter()
    raw = 'const char* raw = R"(\n# 1 "%d"\n)";\n'
    pairs = [
        ("int used = 1;\n", "int used = 2;\n"),
        (raw % 1, raw % 2),
        ("#define Sum Min\n", "#define Sum Max\n"),
    ]
    sides = [
        tuple(
            included(tmp_path / f"{i}{side}", text) for side, text in zip("ab", pair, strict=True)
        )
        for i, pair in enumerate(pairs)
    ]
    names = [[preprocess(h, tools, tmp_path / "true") for h in pair] for pair in sides]
    assert len({name for pair in names for name in pair}) == 2 * len(pairs)
    kinds = {
        "nothing": lambda: nothing,
        "no file": lambda: no_file,
        "stale": lambda: None,
        "cut": lambda: cut(rng),
        "twice": lambda: twice,
        "another's": lambda: of_another(recorded, "nvcc -E"),
    }
    for case in range(50 * ROUNDS):
        name = rng.choice(sorted(kinds))
        pair, expected = rng.choice(list(zip(sides, names, strict=True)))
        recorded.damage = "nvcc -E", kinds[name]()
        cache = tmp_path / f"cache{case}"
        found = [preprocess(headers, tools, cache) for headers in pair]
        refused = [isinstance(one, PolicygenError) for one in found]
        assert all(refused) or found == expected, (case, name, found)
        counts[f"{name}: {'refused' if all(refused) else 'as it was'}"] += 1
    told(capsys, "preprocessor", counts)
    assert not [
        kind for kind in counts if kind.endswith("as it was") and not kind.startswith("cut")
    ]


def job(text=KERNELS):
    return Job(text, UnitHeaders("", (), "sm90"), "content")


@SHARES
@pytest.mark.parametrize("make", sampled([build, disassemble], build))
def test_kernels_are_what_was_compiled_or_none(tools, recorded, tmp_path, capsys, make, share):
    rng, counts = random.Random(f"{SEED} {share}"), Counter()
    jobs = [job(), job(KERNELS.replace("128", "96"))]
    assert jobs[0].text != jobs[1].text
    expected = [make(one, tools, tmp_path / "true") for one in jobs]
    assert not any(isinstance(one, PolicygenError) for one in expected)
    assert expected[0] != expected[1]
    kinds = {
        "nothing": lambda _: nothing,
        "no file": lambda _: no_file,
        "stale": lambda _: None,
        "cut": lambda _: cut(rng),
        "lines lost": lambda _: without_lines(rng),
        "another's": lambda program: of_another(recorded, program),
    }
    for case in range(75 * ROUNDS):
        program = rng.choice(("nvcc -cubin", "cuobjdump"))
        name = rng.choice(sorted(kinds))
        index = rng.randrange(2)
        recorded.damage = program, kinds[name](program)
        if name == "stale" and program == "cuobjdump":
            continue
        found = make(jobs[index], tools, tmp_path / f"cache{case}")
        refused = isinstance(found, PolicygenError)
        assert refused or found == expected[index], (case, program, name)
        counts[f"{program} {name}: {'refused' if refused else 'as it was'}"] += 1
    told(capsys, make.__name__, counts)
    assert sum(count for kind, count in counts.items() if kind.endswith("refused")) > 25 * ROUNDS


@pytest.mark.slow
@SHARES
def test_what_somebody_wrote_to_the_cache_is_made_anew(tools, recorded, tmp_path, capsys, share):
    rng, counts = random.Random(f"{SEED} {share}"), Counter()
    cache = tmp_path / "cache"
    headers = included(tmp_path / "tree", "int used = 1;\n")
    other = included(tmp_path / "other", "int used = 2;\n")
    questions = [
        lambda: preprocess(headers, tools, cache),
        lambda: preprocess(other, tools, cache),
        lambda: build(job(), tools, cache),
        lambda: disassemble(job(), tools, cache),
        lambda: build(replace(job(), text=KERNELS.replace("128", "96")), tools, cache),
    ]
    expected = [question() for question in questions]
    assert not any(isinstance(one, PolicygenError) for one in expected)
    files = sorted(path for path in cache.rglob("*") if path.is_file())
    whole = {path: path.read_bytes() for path in files}
    assert len(files) > 6
    for case in range(37 * ROUNDS):
        for path in rng.sample(files, rng.randint(1, 4)):
            kind = rng.choice(("cut", "bytes", "empty", "another's"))
            data = {
                "cut": cut(rng),
                "bytes": other_bytes(rng),
                "empty": nothing,
                "another's": lambda _: whole[rng.choice(files)],
            }[kind](whole[path])
            path.write_bytes(data)
            counts[kind] += 1
        assert [question() for question in questions] == expected, case
        for path, data in whole.items():
            path.write_bytes(data)
    told(capsys, "cache", counts)
