"""Damaged plan files: one message, never a traceback, and nothing is written."""

import json
import random
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policygen.cli.main import main
from tests.cli.tuned import HEADER, database, run, tuned, writable_tree
from tests.probing import header
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tree with a plan for it, made once."""
    folder = tmp_path_factory.mktemp("damaged")
    tree = writable_tree(folder)
    db = database(folder / "three.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CUDA_HOME", raising=False)
        patch.chdir(folder)
        arguments = ["--db", str(db), "--arch", "sm90", "-q", "-o", "good.json"]
        assert main(["plan", "--cub", str(tree), *arguments]) == 0
        yield folder


def attempt(place, capsys, data):
    """What `apply --check` says of some bytes: an answer, and not that policygen failed."""
    (place / "plan.json").write_bytes(data)
    tree = place / "tree"
    status, _, err = run(capsys, "apply", "-q", "--check", "--cub", tree, "--plan", "plan.json")
    assert status in {0, 1, 2}, err
    assert "Traceback" not in err
    assert tuned(tree).read_bytes() == header("3.0.1", HEADER)
    assert status != 2 or err.startswith("policygen: error: ")
    return status


def flipped(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def truncated(data, rng):
    return data[: rng.randrange(len(data))]


def other_letter(data, rng):
    """Still JSON, most of the time: one letter or digit is another one."""
    places = [
        at for at, byte in enumerate(data) if chr(byte) in string.ascii_letters + "0123456789"
    ]
    at = rng.choice(places)
    letters = string.digits if chr(data[at]).isdigit() else string.ascii_letters
    return data[:at] + rng.choice(letters).encode() + data[at + 1 :]


def leaves(value, path=()):
    """The path of everything in a document."""
    yield path
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    for key, inner in inside.items() if isinstance(inside, dict) else ():
        yield from leaves(inner, (*path, key))


VALUES = [
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    "",
    "sm90",
    "sm120",
    "../x",
    "\0",
    "T",
    [],
    {},
    [[]],
    "I99",
]


def replaced_value(data, rng):
    document = json.loads(data)
    *path, last = rng.choice([path for path in leaves(document) if path])
    at = document
    for key in path:
        at = at[key]
    if rng.random() < 0.3:
        del at[last]
    else:
        at[last] = rng.choice(VALUES)
    return json.dumps(document).encode()


@pytest.mark.slow
@pytest.mark.parametrize("share", sampled(range(4), 0))
@pytest.mark.parametrize(
    "damage", sampled([flipped, truncated, other_letter, replaced_value], other_letter)
)
def test_a_damaged_plan_is_refused_or_means_what_it_says(place, capsys, damage, share):
    good = (place / "good.json").read_bytes()
    rng = random.Random(f"{damage.__name__} {share}")
    found = {attempt(place, capsys, damage(good, rng)) for _ in range(15)}
    assert 2 in found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@pytest.mark.slow
@pytest.mark.parametrize("share", sampled(range(4), 0))
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(document=JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60))
def test_what_is_no_plan_at_all_is_refused(place, capsys, share, document):
    assert attempt(place, capsys, document) == 2


@pytest.mark.slow
def test_a_plan_that_is_whole_is_taken(place, capsys):
    assert attempt(place, capsys, (place / "good.json").read_bytes()) == 1
