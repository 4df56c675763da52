"""A machine that has no CUB: what a search test starts from."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from policygen.tree import search


@dataclass(frozen=True)
class Places:
    """Where a search looks, all of it below one empty folder."""

    base: Path
    work: Path
    headers: Path
    cache: Path
    site: Path
    toolkit: Path


def empty_machine(base: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Points every place of the search to a folder below `base`."""
    names = ("work", "headers", "cache", "site-packages", "toolkit")
    work, headers, cache, site, toolkit = (base / name for name in names)
    for folder in (work, headers, site, toolkit):
        folder.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(headers))
    monkeypatch.setenv("POLICYGEN_CACHE", str(cache))
    monkeypatch.setenv("PATH", str(base / "bin"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(search, "site_folders", lambda: (site,))
    monkeypatch.setattr(search, "TOOLKITS", (toolkit,))
    return Places(base, work, headers, cache, site, toolkit)
