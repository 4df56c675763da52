"""A machine that has no CUB: what a search test starts from."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from policygen.trees import archives, fetched, layout, lookup, manifest
from policygen.trees.archives import digest_of, listing, listing_file


@dataclass(frozen=True)
class Places:
    """Where a search looks, all of it below one empty folder."""

    base: Path
    work: Path
    headers: Path
    cache: Path
    site: Path
    toolkit: Path
    rocm: Path


def empty_machine(base: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Points every place of the search to a folder below `base`."""
    names = ("work", "headers", "cache", "site-packages", "toolkit", "rocm")
    work, headers, cache, site, toolkit, rocm = (base / name for name in names)
    for folder in (work, headers, site, toolkit, rocm):
        folder.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(headers))
    monkeypatch.setenv("POLICYGEN_CACHE", str(cache))
    monkeypatch.setenv("PATH", str(base / "bin"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.delenv("ROCM_PATH", raising=False)
    monkeypatch.setattr(lookup, "site_folders", lambda: (site,))
    usual = {"cub": (toolkit,), "rocprim": (rocm,)}
    monkeypatch.setattr(layout, "usual_folders", usual.__getitem__)
    return Places(base, work, headers, cache, site, toolkit, rocm)


def use_manifest(known: manifest.Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that asks the manifest what can be fetched is told this one's."""
    for module in (layout, fetched, archives):
        monkeypatch.setattr(module, "shipped", lambda: known)


def fetched_whole(
    places: Places, versions: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees become those of the wheels of these versions, as if they had been fetched."""
    files = {}
    for version, root in versions.items():
        found = {
            path.relative_to(root).as_posix(): sha256(path.read_bytes()).hexdigest()
            for path in root.rglob("*")
            if path.is_file()
        }
        files[version] = listing(found)
        listing_file(root).write_text(files[version])
    known = manifest.shipped()
    wheels = tuple(
        wheel.model_copy(update={"files": digest_of(files[wheel.cub])})
        if wheel.cub in files
        else wheel
        for wheel in known.wheels
    )
    changed = known.model_copy(update={"wheels": wheels})
    use_manifest(changed, monkeypatch)
