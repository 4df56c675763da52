"""Takes a workload or a kernel of one's own: bindings have it as long as it is taken."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from policygen.bindings.load import bound, own_binding, types, units_of
from policygen.bindings.own import OwnMaker, kept_as_taken
from policygen.bindings.own_kernel import KernelMaker, kept_as_kernel
from policygen.config import load_toml
from policygen.errors import Problems
from policygen.model.own_kernel import KernelParameter, OwnKernel
from policygen.model.own_workload import OwnWorkload
from policygen.source.benchmarks.ranges import read_ranges
from policygen.source.benchmarks.sources import read_text


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
def taking_kernel(path: Path) -> Iterator[KernelMaker]:
    """Reads a kernel's file, and lets bindings have it while the block lasts."""
    maker = KernelMaker(path, with_ranges(load_toml(path, OwnKernel), path.resolve().parent))
    with kept_as_kernel(maker):
        _forget()
        try:
            yield maker
        finally:
            _forget()


def with_ranges(given: OwnKernel, folder: Path) -> OwnKernel:
    """What a file says, and the parameters that `%RANGE%` lines of the kernel's declare."""
    source = folder / given.kernel
    if not source.is_file():
        return given  # which is told with what else is wrong
    ranges, errors = read_ranges(read_text(source, folder))
    if errors:
        raise Problems(list(errors))
    more = {
        one.label: KernelParameter(macro=one.macro, values=f"{one.start}:{one.end}:{one.step}")
        for one in ranges
        if one.label not in given.parameter
    }
    return given.model_copy(update={"parameter": {**given.parameter, **more}})


def _forget() -> None:
    """What was made of other workloads, or of none."""
    for one in (bound, own_binding, units_of):
        one.cache_clear()
