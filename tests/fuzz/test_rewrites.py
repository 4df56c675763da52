"""A header that means the same reads the same, or is refused with a place: nothing is lost."""

import random
import re
import sys
from collections import Counter
from functools import cache
from itertools import cycle, product

import pytest

from policygen import trees
from policygen.errors import SourceError
from policygen.headers.expressions import evaluate
from policygen.headers.scan import read_header
from policygen.opening import FOLDER
from tests.fuzz.rewrites import REWRITES
from tests.real_trees import tree as cub_tree
from tests.tiers import sampled

pytestmark = pytest.mark.trees

VERSIONS = ("3.0.1", "3.2.0", "3.5.0", "3.6.0")
EACH = 2
"""Places for each rewrite and version; `python -m tests.fuzz.test_rewrites N` tries N."""


@cache
def originals(version):
    """The headers that hold entries, and what they share."""
    paths = trees.tuning_headers(trees.open_tree(cub_tree(version)))
    data = {path.name: path.read_bytes() for path in paths}
    common = {f"{FOLDER}/{n}": d for n, d in data.items() if b"struct sm" not in d}
    return {n: d for n, d in data.items() if entries(n, d, common)}, common


def entries(name, data, neighbours):
    """What is read, without places; the spelling of white space does not count."""
    header = read_header(name, data, neighbours)
    return Counter(
        (
            family.name,
            family.arch,
            entry.kind,
            tuple(re.sub(r"\s", "", arg) for arg in entry.args),
            tuple(sorted((key, number(value)) for key, value in entry.values.items())),
            entry.disabled,
        )
        for family in (*header.families, *header.selectors)
        for entry in family.entries
    )


def number(value):
    """`1 << 2` as 4: behind a macro that nobody knows, clang computes nothing."""
    found = evaluate(value, lambda _: None) if isinstance(value, str) else None
    return str(value if found is None else found)


@cache
def known(version, name):
    data, neighbours = originals(version)
    return entries(name, data[name], neighbours)


def attempt(version, rewrite, rng):
    """How one rewrite of one header ends: `same`, `refused` or what is lost; none where it has
    no place.
    """
    data, neighbours = originals(version)
    for name in rng.sample(sorted(data), len(data)):
        made = REWRITES[rewrite](data[name], rng)
        if made is not None:
            break
    else:
        return None
    try:
        found = entries(name, made, neighbours)
    except SourceError as error:
        return "refused" if 1 <= error.line <= made.count(b"\n") + 1 else "refused nowhere"
    lost, new = known(version, name) - found, found - known(version, name)
    return "same" if not lost and not new else f"{name}: lost {list(lost)[:2]}, new {list(new)[:2]}"


# Each on a tree of one of the two dialects, in turns.
SAMPLE = zip(REWRITES, cycle(("3.0.1", "3.6.0")), strict=False)


@pytest.mark.slow
@pytest.mark.parametrize(("rewrite", "version"), sampled(product(REWRITES, VERSIONS), *SAMPLE))
def test_a_rewrite_that_means_the_same_loses_nothing_without_a_word(rewrite, version):
    rng = random.Random(f"{rewrite} {version}")
    ends = [attempt(version, rewrite, rng) for _ in range(EACH)]
    assert set(ends) <= {"same", "refused", None}


def main(each):
    """All rewrites at many places, with counts."""
    total = Counter()
    for rewrite in REWRITES:
        ends = Counter()
        for version in VERSIONS:
            rng = random.Random(f"{rewrite} {version} {each}")
            for _ in range(each):
                end = attempt(version, rewrite, rng)
                ends[end if end in {"same", "refused", None} else "LOST"] += 1
                if end not in {"same", "refused", None}:
                    tell(f"  {rewrite} {version} {end}")
        tell(f"{rewrite:<28} {dict(ends)}")
        total += ends
    tell(dict(total))


def tell(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
