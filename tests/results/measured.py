"""Where the measured databases are."""

from pathlib import Path

MEASURED = Path(__file__).parents[2] / "fixtures/measured"
