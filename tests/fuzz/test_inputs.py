"""A sample of what the fuzzer of inputs tries; POLICYGEN_FUZZ=20 makes it 20 times larger."""

import os
import sys

from tests.fuzz import inputs

COUNT = 40 * int(os.environ.get("POLICYGEN_FUZZ", "1"))


def test_no_hostile_input_brings_policygen_down():
    found = inputs.run(COUNT, seed=1)
    sys.stdout.write(f"{dict(found)}\n")
    assert found["inputs"] == COUNT
    assert {key.partition(" ")[0] for key in found} >= {
        *("document", "settings", "samples", "repository"),
        *("kernel", "archive:", "pull"),
    }
