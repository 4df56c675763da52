"""Custom workloads: their files, opened for a command, and templates for such files."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from policygen.app.emit import check_takes_selectors
from policygen.app.filters import Filter
from policygen.app.session import Session
from policygen.bindings.load import bindings, bound, own_binding, types, units_of
from policygen.bindings.own_kernels import KernelMaker, activate_kernel
from policygen.bindings.own_workloads import OwnMaker, activate_workload, beside, call_named
from policygen.errors import InputError
from policygen.headers.benchmark_sources import read_kernel
from policygen.model.own_workload import OwnWorkload
from policygen.rendering import fill
from policygen.settings import load_toml

TEMPLATE, KERNEL = "own/workload.toml.j2", "own/kernel.toml.j2"


@contextmanager
def with_workload(
    session: Session, path: Path | None, where: Filter, *, earlier: bool = False
) -> Iterator[tuple[Session, Filter]]:
    """Runs a command with a custom workload, and no other; a path of None changes nothing.

    With `earlier`, a CUB whose public API accepts no policy selectors is allowed.
    """
    if path is None:
        yield session, where
        return
    if where.regex:
        raise InputError(
            "-R chooses among CUB's benchmarks, and a workload of one's own is none of them",
            "Leave it out; -a still chooses among its sizes: -a Elements=1000000",
        )
    if is_kernel(path):
        with taking_kernel(read_kernel(path)) as kernel:
            cub = session.cub
            cub = cub.model_copy(update={"includes": (*cub.include_folders, str(kernel.folder))})
            yield replace(session, cub=cub), replace(where, regex=kernel.pattern)
        return
    if not earlier:
        check_takes_selectors(session.cub)
    with taking(path) as maker:
        cub, header = session.cub, maker.given.header
        own_binding(cub.bindings)
        if header is not None:
            folder = path.resolve().parent
            beside(path, header, "header ")
            cub = cub.model_copy(update={"includes": (*cub.include_folders, str(folder))})
        yield replace(session, cub=cub), replace(where, regex=f"{re.escape(maker.name)}$")


def workload_template(algorithm: str) -> str:
    """Returns a commented template for a workload's file, or for a kernel's.

    Algorithms may be named by their last part.
    """
    if algorithm == "kernel":
        return fill(KERNEL, {})
    calls = [own_call for binding in bindings() for own_call in binding.own]
    plain = algorithm.lower().removeprefix("device").replace("_", "")
    matching = [
        own_call
        for own_call in calls
        if plain in {part.lower() for part in re.findall(r"\w+", own_call.algorithm)}
        or plain == re.split(r"::", own_call.algorithm.lower())[0].removeprefix("device")
    ]
    call = matching[0] if matching else call_named(algorithm, calls)
    return fill(TEMPLATE, {"call": call.model_dump()})


class _OwnFile(BaseModel):
    """Distinguishes a kernel's file from a workload's."""

    model_config = ConfigDict(extra="ignore")

    kernel: object = None


# Loading a custom workload or kernel, which bindings include while it is loaded.


def is_kernel(path: Path) -> bool:
    """Returns whether a file describes a kernel, not a workload of a CUB algorithm."""
    return load_toml(path, _OwnFile).kernel is not None


@contextmanager
def taking(path: Path) -> Iterator[OwnMaker]:
    """Reads a workload's file and adds it to the bindings for a block."""
    maker = OwnMaker(path, load_toml(path, OwnWorkload), types().types, types().spellings)
    with activate_workload(maker):
        _forget()
        try:
            yield maker
        finally:
            _forget()


@contextmanager
def taking_kernel(maker: KernelMaker) -> Iterator[KernelMaker]:
    """Adds a kernel to the bindings for a block."""
    with activate_kernel(maker):
        _forget()
        try:
            yield maker
        finally:
            _forget()


def _forget() -> None:
    """Clears caches that depend on the loaded workload."""
    for cached_function in (bound, own_binding, units_of):
        cached_function.cache_clear()
