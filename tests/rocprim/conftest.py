"""What tests of configs have in common."""

import pytest


@pytest.fixture
def wide(tmp_path, monkeypatch):
    """A folder of its own, and outputs whose lines do not break."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
