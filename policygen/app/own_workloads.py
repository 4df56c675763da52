"""Custom workloads: their files, opened for a command, and templates for such files."""

import re
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from policygen.app.filters import Filter
from policygen.app.session import Session
from policygen.bindings.load import bindings, types
from policygen.bindings.own_kernels import KernelMaker
from policygen.bindings.own_workloads import OwnMaker, call_named, header_of, own_binding
from policygen.errors import InputError
from policygen.headers.benchmark_sources import read_kernel
from policygen.headers.user.policies import check_takes_selectors
from policygen.model.own_workload import OwnWorkload
from policygen.model.trees import Cub, OwnFile
from policygen.opening import beside, load_toml
from policygen.rendering import fill

TEMPLATE, KERNEL = "own/workload.toml.j2", "own/kernel.toml.j2"


def with_workload(
    session: Session, path: Path | None, where: Filter, *, earlier: bool = False
) -> tuple[Session, Filter]:
    """Returns what a command with a custom workload works on; a path of None changes nothing.

    With `earlier`, a CUB whose public API accepts no policy selectors is allowed.
    """
    if path is None:
        return session, where
    if where.regex:
        raise InputError(
            "-R chooses among CUB's benchmarks and cannot be combined with your own workload",
            "Omit it; -a chooses among the sizes of a workload: -a Elements=1000000",
        )
    if is_kernel(path):
        kernel = read_kernel(path)
        cub = with_own(session.cub, kernel)
        return replace(session, cub=cub), replace(where, regex=kernel.pattern)
    if not earlier:
        check_takes_selectors(session.cub)
    workload = read_workload(path)
    cub = with_own(session.cub, workload)
    own_binding(cub.bindings)  # raises if CUB has no such benchmark
    if workload.given.header is not None:
        beside(path, workload.given.header, "header ")
    return replace(session, cub=cub), replace(where, regex=f"{re.escape(workload.name)}$")


def with_own(cub: Cub, own: OwnFile) -> Cub:
    """Returns a tree with a custom workload or kernel among its bindings."""
    update: dict[str, object] = {"own": own}
    if isinstance(own, KernelMaker) or header_of(own) is not None:
        update["includes"] = (*cub.include_folders, str(own.folder))
    return cub.model_copy(update=update)


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


def is_kernel(path: Path) -> bool:
    """Returns whether a file describes a kernel, not a workload of a CUB algorithm."""
    return load_toml(path, _OwnFile).kernel is not None


def read_workload(path: Path) -> OwnMaker:
    """Reads a workload's file."""
    return OwnMaker(path, load_toml(path, OwnWorkload), types().types, types().spellings)
