"""Which trees can be had and which are here, and fetching several of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from policygen.errors import InputError, PolicygenError, ProcessError, together
from policygen.model.cub import Cub
from policygen.model.headers import Headers, HeadersEntry, State
from policygen.stopping import stopping
from policygen.tree import store
from policygen.tree.layout import open_root
from policygen.tree.manifest import shipped
from policygen.tree.obtain import fetch
from policygen.tree.version import version_key


def overview(headers_folder: Path, used: Cub | None) -> Headers:
    """All versions of the manifest and all that are unpacked, oldest first."""
    here, current = store.fetched(headers_folder), store.current(headers_folder)
    entries = [
        HeadersEntry(
            version=wheel.cub,
            wheel=wheel.requirement,
            dialect=wheel.dialect,
            specializations=wheel.specializations,
            state=_state(wheel.cub, here, current),
            changed=_changed(headers_folder, wheel.cub, here),
        )
        for wheel in shipped().wheels
    ]
    known = {entry.version for entry in entries}
    entries += [
        HeadersEntry(
            version=version,
            wheel=None,
            dialect=open_root(headers_folder / version, "cub_headers").dialect,
            specializations=None,
            state=_state(version, here, current),
        )
        for version in here
        if version not in known
    ]
    entries.sort(key=lambda entry: version_key(entry.version))
    return Headers(folder=str(headers_folder), trees=tuple(entries), used=used)


def all_versions(headers_folder: Path, chosen: Sequence[str]) -> tuple[str, ...]:
    """Every version of the manifest; the chosen one, the current or the default comes last."""
    last = chosen[-1] if chosen else store.current(headers_folder) or shipped().default
    others = (wheel.cub for wheel in shipped().wheels)
    return (*(version for version in (*others, *chosen) if version != last), last)


def fetch_all(
    versions: Sequence[str],
    headers_folder: Path,
    progress: Callable[[str], None],
    *,
    again: bool = False,
) -> tuple[Cub, ...]:
    """Fetches one after the other; what failed is reported when all have been tried."""
    trees: list[Cub] = []
    errors: list[PolicygenError] = []
    wanted = tuple(dict.fromkeys(versions))
    for version in wanted:
        try:
            with stopping(lambda: _kept(len(trees), len(wanted))):
                trees.append(fetch(version, headers_folder, progress, again=again))
        except (InputError, ProcessError) as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return tuple(trees)


def _kept(count: int, wanted: int) -> str:
    if not count:
        return "Nothing was fetched yet: the same command begins again."
    return (
        f"{count} of {wanted} trees were fetched and are kept: the same command fetches the rest."
    )


def _state(version: str, here: Sequence[str], current: str | None) -> State:
    if version == current:
        return "current"
    return "fetched" if version in here else "absent"


def _changed(folder: Path, version: str, here: Sequence[str]) -> tuple[str, ...] | None:
    found = store.differs(folder, version) if version in here else None
    return None if found is None else found.files
