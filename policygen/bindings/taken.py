"""Takes a workload of one's own: bindings have it as long as it is taken."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from policygen.bindings.load import bound, own_binding, types, units_of
from policygen.bindings.own import OwnMaker, kept_as_taken
from policygen.config import load_toml
from policygen.model.own_workload import OwnWorkload


@contextmanager
def taking(path: Path) -> Iterator[OwnMaker]:
    """Reads a workload's file, and lets bindings have it while the block lasts."""
    maker = OwnMaker(path, load_toml(path, OwnWorkload), types().types, types().spellings)
    with kept_as_taken(maker):
        _forget()
        try:
            yield maker
        finally:
            _forget()


def _forget() -> None:
    """What was made of other workloads, or of none."""
    for one in (bound, own_binding, units_of):
        one.cache_clear()
