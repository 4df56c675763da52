"""Takes a workload or a kernel of one's own: bindings have it as long as it is taken."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from policygen.bindings.load import bound, own_binding, types, units_of
from policygen.bindings.own import OwnMaker, kept_as_taken
from policygen.bindings.own_kernel import KernelMaker, kept_as_kernel
from policygen.config import load_toml
from policygen.model.own_workload import OwnWorkload


class _OwnFile(BaseModel):
    """What tells a kernel's file from a workload's."""

    model_config = ConfigDict(extra="ignore")

    kernel: object = None


def is_kernel(path: Path) -> bool:
    """Whether a file describes a kernel, and no workload of an algorithm of CUB's."""
    return load_toml(path, _OwnFile).kernel is not None


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


@contextmanager
def taking_kernel(maker: KernelMaker) -> Iterator[KernelMaker]:
    """Lets bindings have a kernel while the block lasts."""
    with kept_as_kernel(maker):
        _forget()
        try:
            yield maker
        finally:
            _forget()


def _forget() -> None:
    """What was made of other workloads, or of none."""
    for one in (bound, own_binding, units_of):
        one.cache_clear()
