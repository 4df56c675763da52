"""Broken headers: a message with its place, never a traceback, never a hang."""

import os
import random
import signal

import pytest

from policygen import trees
from policygen.errors import InputError, SourceError
from policygen.headers.scan import FOLDER, read_header
from tests.real_trees import tree as cub_tree
from tests.tiers import sampled

pytestmark = pytest.mark.trees
TIMES = int(os.environ.get("POLICYGEN_FUZZ", "1"))

SCRAPS = [
    *(b"{", b"}", b"(", b")", b"[", b"]", b"<", b">", b">>", b"<<", b";", b":", b"::", b",", b"="),
    *(
        b"/*",
        b"*/",
        b"//",
        b'"',
        b"'",
        b"\\\n",
        b"\0",
        b"\xff",
        b"\xc3\xa9",
        b"\r\n",
        b"\n\n",
        b"\t",
    ),
    *(b"#if 0\n", b"\n#else\n", b"\n#endif\n", b"\n#define struct class\n", b"\n#include <x>\n"),
    *(b"template <", b"template <> struct sm90_tuning<int>", b"struct sm80_x", b'R"(', b"1'000"),
    *(b"static constexpr int a = ", b"using a = ", b"operator<", b"ChainedPolicy<", b"PolicyX : "),
    *(b"// ipt_1.tpb_2 1.0 nan", b"// clang-format off\n", b"namespace a {", b"0x", b"'" * 50),
]


def mutate(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        size = min(len(data) - at, int(rng.expovariate(1 / 60)) + 1)
        match rng.randrange(7):
            case 0:
                data = data[:at] + data[at + size :]
            case 1:
                data = data[:at] + data[at : at + size] * 2 + data[at + size :]
            case 2:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case 3:
                data = data[:at] + rng.choice(SCRAPS) + data[at:]
            case 4:
                data = data[:at] + rng.choice(SCRAPS) + data[at + size :]
            case 5:
                to = rng.randrange(len(data) + 1)
                data = data[:to] + data[at : at + size] + data[to:]
            case 6 if rng.random() < 0.2:
                data = data[:at]
    return data


def hang(*_):
    raise AssertionError("reading took more than 20 seconds")


@pytest.fixture
def alarm():
    before = signal.signal(signal.SIGALRM, hang)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def attempt(name, data, neighbours):
    try:
        return read_header(name, data, neighbours)
    except SourceError as error:
        return error


@pytest.mark.parametrize("share", sampled(range(5), 0))
@pytest.mark.parametrize("version", sampled(["2.8.2", "3.2.0", "3.6.0"], "3.2.0"))
def test_mutations_of_real_headers_are_read_or_refused_with_a_place(version, share, alarm):
    rng = random.Random(f"policygen {version} {share}")
    paths = trees.tuning_headers(trees.open_tree(cub_tree(version)))
    originals = [(path.name, path.read_bytes()) for path in paths]
    neighbours = {f"{FOLDER}/{name}": data for name, data in originals}
    # The large headers hold what is worth breaking, but each is read whole, every time.
    originals = [item for item in originals if b"struct sm" in item[1]]
    read = refused = 0
    for _ in range(140 * TIMES):
        name, data = rng.choice(originals)
        broken = mutate(data, rng)
        signal.alarm(20)
        outcome = attempt(name, broken, neighbours)
        if isinstance(outcome, SourceError):
            refused += 1
            assert outcome.path == name
            assert 1 <= outcome.line <= broken.count(b"\n") + 1
            assert outcome.column >= 1
            assert str(outcome).startswith(f"{name}:{outcome.line}:{outcome.column}: ")
        else:
            read += 1
            for family in outcome.families:
                for entry in family.entries:
                    assert entry.span.end <= len(broken)
    assert read > 20 * TIMES
    assert refused > 20 * TIMES


def test_an_endless_list_of_words_does_not_blow_up(alarm):
    signal.alarm(20)
    words = b"A_B " * 20_000
    data = b"template <class T> " + words + b"(struct sm90_tuning;\nstruct sm90_tuning<1> {};"
    with pytest.raises((SourceError, InputError)):
        read_header("x.cuh", data)
    brackets = b"template <> struct sm90_tuning<" + b"<" * 20_000 + b"> {};"
    with pytest.raises((SourceError, InputError)):
        read_header("x.cuh", brackets)
