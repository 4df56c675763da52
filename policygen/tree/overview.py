"""Which trees can be had and which are here, and fetching several of them."""

from collections.abc import Callable, Container, Sequence
from pathlib import Path

from policygen.errors import InputError, PolicygenError, ProcessError, together
from policygen.model.cub import Cub
from policygen.model.headers import Headers, HeadersEntry, State
from policygen.stopping import stopping
from policygen.tree import store
from policygen.tree.layout import open_root
from policygen.tree.manifest import Wheel, shipped
from policygen.tree.names import Name, name_of, parse, sources
from policygen.tree.obtain import fetch
from policygen.tree.packages import Release


def overview(headers_folder: Path, used: Cub | None) -> Headers:
    """All releases of the manifest and all that are unpacked, by library, oldest first."""
    here = store.fetched(headers_folder, None)
    current = {store.current(headers_folder, library) for library in shipped().libraries}
    entries = {
        name_of(one): _known(one, headers_folder, _state(str(name_of(one)), here, current))
        for one in sources()
    }
    others = (name for one in here if (name := parse(one)) and name not in entries)
    entries |= {
        name: _unknown(name, headers_folder, _state(str(name), here, current)) for name in others
    }
    found = tuple(entries[name] for name in sorted(entries, key=lambda name: name.key))
    return Headers(folder=str(headers_folder), trees=found, used=used)


def _known(one: Wheel | Release, folder: Path, state: State) -> HeadersEntry:
    name = name_of(one)
    return HeadersEntry(
        version=str(name),
        library=name.library,
        holds=one.version if isinstance(one, Release) else None,
        wheel=one.requirement,
        dialect=one.dialect,
        specializations=one.specializations if isinstance(one, Wheel) else None,
        state=state,
        changed=_changed(folder, str(name), state),
    )


def _unknown(name: Name, folder: Path, state: State) -> HeadersEntry:
    cub = open_root(name.root(folder), "cub_headers", name.library)
    return HeadersEntry(
        version=str(name),
        library=name.library,
        holds=cub.version if str(name) != name.version else None,
        wheel=None,
        dialect=cub.dialect,
        specializations=None,
        state=state,
    )


def all_versions(headers_folder: Path, chosen: Sequence[str]) -> tuple[str, ...]:
    """Every version of CUB in the manifest; the chosen one, the current or the default is last."""
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


def _state(version: str, here: Sequence[str], current: Container[str | None]) -> State:
    if version in current:
        return "current"
    return "fetched" if version in here else "absent"


def _changed(folder: Path, version: str, state: State) -> tuple[str, ...] | None:
    found = store.differs(folder, version) if state != "absent" else None
    return None if found is None else found.files
