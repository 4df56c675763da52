"""Damages and forges plans; what is taken gives the edits of its decisions, and nothing else.

    python -m tests.fuzz.plans --count 200 --seed 1

A compiler is pretended: what is tried is what `apply --plan` does before it asks for the proof.
"""

import hashlib
import json
import random
from collections import Counter
from dataclasses import replace

from pydantic import ValidationError

from policygen.errors import PolicygenError
from policygen.headers.spelling import splice
from policygen.model.plans import Plan
from policygen.model.records import Span
from policygen.model.tuning import Edit
from policygen.planning.decide import remembered
from policygen.planning.plan import remake_plan
from policygen.planning.saved import changed_headers, check_decisions, check_same, check_tree
from tests.fuzz import command
from tests.planning.pretend import (
    KEYED,
    KEYED_INT,
    KEYED_LATER,
    SUM_INT,
    SUMS,
    by_key,
    keyed,
    planner,
    summed,
    sums,
    want,
)

EVIL = "evil"
"""Stands in everything that is put into a plan, and in no header."""
TEXTS = [
    "", EVIL, f"{EVIL}\n", f"../{EVIL}.cuh", f"/tmp/{EVIL}", f"\u2028{EVIL}", f"*/ {EVIL} /*",
    f"ipt_19.tpb_384.{EVIL}\n#define private public\n//_1", f"ipt_1.{EVIL}_1", f"{EVIL}\\",
    "sm90", "sm120", "\0", "T", "I8", "add", "keep", "ipt_99999999999999999999.tpb_1",
]  # fmt: skip
VALUES = [None, True, -1, 0, 10**30, 1.5, 1e308, [], {}, [[]], *TEXTS]


def leaves(value, path=()):
    """The path of everything in a document."""
    yield path
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    for key, inner in inside.items() if isinstance(inside, dict) else ():
        yield from leaves(inner, (*path, key))


def at(document, path):
    for key in path:
        document = document[key]
    return document


def value(document, rng, _data):
    """Something else somewhere."""
    *path, last = rng.choice([path for path in leaves(document) if path])
    at(document, path)[last] = rng.choice(VALUES)


def gone(document, rng, _data):
    """Something is missing."""
    *path, last = rng.choice([path for path in leaves(document) if path])
    del at(document, path)[last]


def twice(document, rng, _data):
    """Something appears twice, or in another order."""
    lists = [path for path in leaves(document) if isinstance(at(document, path), list)]
    items = at(document, rng.choice([path for path in lists if at(document, path)]))
    items.append(rng.choice(items))
    rng.shuffle(items)


def exchanged(document, rng, _data):
    """Two things of one kind in each other's place."""
    texts = [p for p in leaves(document) if p and isinstance(at(document, p), str)]
    (*one, first), (*other, second) = rng.sample(texts, 2)
    a, b = at(document, one), at(document, other)
    a[first], b[second] = b[second], a[first]


def forged(document, rng, data):
    """More C++ beside what was decided, with digests and counts as they have to be."""
    place = rng.choice([0, len(data), data.index(b"\n") + 1])
    text = f"inline int {EVIL}() {{ return 1; }}\n"
    path = document["files"][0]["path"]
    more = {"span": [place, place], "old": "", "new": text, "reason": "x", "path": path}
    document["edits"].append(more)
    document["edits"].sort(key=lambda edit: edit["span"])
    edits = [
        Edit(span=Span(*e["span"]), old=e["old"], new=e["new"], reason=e["reason"])
        for e in document["edits"]
    ]
    after = hashlib.sha256(splice(path, data, edits)).hexdigest()
    document["files"][0].update(edits=len(edits), after=after)


def relabelled(document, rng, _data):
    """Another variant, wherever it is named."""
    label = rng.choice([one["variant"] for one in document["actions"] if one["variant"]])
    old, new = (json.dumps(text)[1:-1] for text in (label, rng.choice(TEXTS)))
    document.update(json.loads(json.dumps(document).replace(old, new)))


WAYS = (value, gone, twice, exchanged, forged, relabelled)


def damaged(plan, rng, data):
    """The bytes of a plan that was changed once or more, and how; never what it was."""
    good = json.loads(plan.to_json())
    while True:
        document = json.loads(plan.to_json())
        ways = [rng.choice(WAYS) for _ in range(rng.choice([1, 1, 1, 2, 4]))]
        try:
            for way in ways:
                way(document, rng, data)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError, PolicygenError):
            continue  # what one way left is nothing for the next
        if document != good:
            return json.dumps(document).encode(), ways[0].__name__


def subjects():
    """Plans of several kinds, each with what makes it."""
    first, second = keyed("I32", "I32"), keyed("I32", "F32")
    wide = "ipt_20.tpb_256.ipv_2"
    delays = "ipt_12.tpb_384.trp_0.ld_0.ns_404.dcid_1.l2w_710"
    yield sums(SUMS + SUM_INT), [want(summed("I32"), wide), want(summed("F32"), wide)], {}
    yield sums(), [want(summed("I32"), wide), want(summed("F32"), None)], {}
    yield by_key(), [want(first, delays), want(second, None)], {}
    yield by_key(KEYED + KEYED_INT + KEYED_LATER), [want(first, delays)], {"reach": "later"}


def run(count, seed):
    """So many plans; what became of them."""
    rng = random.Random(seed)
    found = Counter()
    made = []
    for oracle, results, options in subjects():
        maker = planner(oracle, **options)
        plan = maker.plan(results)
        if plan.edits:
            made.append((oracle, maker, plan))
    assert made
    for _ in range(count):
        oracle, maker, plan = rng.choice(made)
        data, way = damaged(plan, rng, oracle.data)
        found["plans"] += 1
        found[f"{way}: {_attempt(oracle, maker, data)}"] += 1
    return found


def _attempt(oracle, maker, data):
    """What becomes of a plan; an exception that is none of ours ends all."""
    headers = {oracle.header: oracle.data}
    try:
        plan = Plan.model_validate_json(data)
    except ValidationError:
        return "no plan"
    try:
        check_decisions(plan)
        check_tree(plan, headers)
        unasked = replace(maker, together=remembered(plan.joint), prove=False, options=plan.options)
        made = remake_plan(unasked, plan, plan.results)
        check_same(plan, made)
    except PolicygenError:
        return "refused"
    after = changed_headers(made, headers)
    assert after.keys() <= headers.keys()
    assert all(EVIL.encode() not in text for text in after.values()), data
    return "taken"


if __name__ == "__main__":
    command.main(run, __doc__, 200)
