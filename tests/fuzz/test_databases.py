"""A sample of what the fuzzer of databases tries; POLICYGEN_FUZZ=20 makes it 20 times larger."""

import os
import sys

import pytest

from tests.fuzz import databases

COUNT = 40 * int(os.environ.get("POLICYGEN_FUZZ", "1"))


@pytest.mark.slow
def test_no_database_brings_policygen_down_or_writes_to_a_terminal():
    found = databases.run(COUNT, seed=1)
    sys.stdout.write(f"{dict(found)}\n")
    assert found["databases"] == COUNT
    assert {key.partition(": ")[2] for key in found} >= {"exit 0", "exit 2"}
