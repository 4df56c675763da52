"""Where the measured databases are; a clone elsewhere has none."""

from pathlib import Path

import pytest

REAL = Path(__file__).parents[3] / "shared/data/h200"
needs_real = pytest.mark.skipif(not REAL.exists(), reason="the measured databases are not here")
