"""A sample of what the fuzzers of plans and kills try; POLICYGEN_FUZZ=20 makes it 20 times larger.

`python -m tests.fuzz.plans --count N` and `python -m tests.fuzz.kills --count N` print counts.
"""

import os
import sys

import pytest

from tests.fuzz import kills, plans

TIMES = int(os.environ.get("POLICYGEN_FUZZ", "1"))


def test_no_damaged_or_forged_plan_brings_anything_into_a_header():
    found = plans.run(200 * TIMES, seed=1)
    sys.stdout.write(f"{dict(found)}\n")
    assert found["plans"] == 200 * TIMES
    assert found["forged: taken"] == 0
    assert found["forged: refused"] > 0
    assert sum(n for name, n in found.items() if name.endswith("refused")) > 20


@pytest.mark.slow
def test_no_kill_loses_anything():
    found = kills.run(40 * TIMES, seed=1)
    sys.stdout.write(f"{dict(found)}\n")
    assert found["kills"] >= 40 * TIMES
    assert {"apply finished", "apply put back"} <= found.keys()
