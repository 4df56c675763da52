"""The store that counts: one that is named, or that this user made in the current folder."""

from pathlib import Path

from policygen.errors import InputError
from policygen.own_stores import is_own

STORE = "policygen.db"


def own_store(named: str | Path | None = None) -> Path:
    """The store; the usual one is refused where it could be a stranger's."""
    store = Path(STORE if named is None else named)
    if named is None and store.exists() and not is_own(store):
        raise InputError(
            f"{store.resolve()} is not known to be your store; it could be a stranger's",
            f"Where it is yours, name it: --store {store}",
        )
    return store


def heard_store(named: Path | None) -> Path | None:
    """The same to look into, where there is one; a stranger's is left alone."""
    store = named or Path(STORE)
    return store if store.is_file() and (named or is_own(store)) else None


def store_option_of(store: Path | None) -> str:
    """How a command names the store: not at all where it is the usual one."""
    return "" if store is None or str(store) == STORE else f" --store {store}"
