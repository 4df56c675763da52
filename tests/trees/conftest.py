from pathlib import Path

import pytest

from policygen.trees import fetched, manifest
from tests.trees.places import Places, empty_machine, use_manifest
from tests.trees.toys import GOOD, FakePip, toy_wheel


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return empty_machine(tmp_path, monkeypatch)


@pytest.fixture
def pip(places: Places, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    """A pip that brings a toy wheel, which the manifest knows as CUB 9.8.7."""
    toy = toy_wheel()
    fake = FakePip({toy.file: GOOD})
    monkeypatch.setattr(fetched.process, "run", fake)
    known = manifest.shipped()
    changed = known.model_copy(update={"wheels": (*known.wheels, toy)})
    use_manifest(changed, monkeypatch)
    return fake
