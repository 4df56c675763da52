"""A sample of what the fuzzer of stores tries; POLICYGEN_FUZZ=20 makes it 20 times larger."""

import os
import sys

import pytest

from tests.fuzz import stores

COUNT = 40 * int(os.environ.get("POLICYGEN_FUZZ", "1"))


@pytest.mark.slow
def test_no_store_brings_undo_down_or_makes_it_write_elsewhere():
    found = stores.run(COUNT, seed=1)
    sys.stdout.write(f"{dict(found)}\n")
    assert found["stores"] == COUNT
    assert found.keys() >= {"exit 0", "exit 2"}
