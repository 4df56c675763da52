"""A sample of what the fuzzer of imports tries; POLICYGEN_FUZZ=20 makes it 20 times larger."""

import os
import sys

from tests.fuzz import imports

COUNT = 60 * int(os.environ.get("POLICYGEN_FUZZ", "1"))


def test_no_file_of_another_tuner_brings_policygen_down():
    found = imports.run(COUNT, seed=1)
    sys.stdout.write(f"{dict(found)}\n")
    assert found["files"] == COUNT
    assert {key.partition(": ")[2] for key in found} >= {"exit 0", "exit 2"}
