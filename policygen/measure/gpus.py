"""The GPUs of this machine, as the driver's own program lists them."""

import re
from dataclasses import dataclass

from policygen.environment import which
from policygen.errors import InputError, MissingToolError, PolicygenError
from policygen.process import run

PROGRAM = "nvidia-smi"
_QUERY = "--query-gpu=name,uuid,compute_cap,driver_version"
_SECONDS = 20.0
_REMEDY = (
    "A GPU of NVIDIA and its driver are needed; without them --compile-only compiles variants, and"
    " policygen measure --doctor says what is missing."
)
# NVIDIA H200, GPU-0fc714b2-91ef-0806-7d53-e5d74e5359b4, 9.0, 580.159.04
_ROW = re.compile(r"(.+), ((?:GPU|MIG)-[\w-]+), (\d+)\.(\d+), ([\d.]+)")


@dataclass(frozen=True, slots=True)
class ListedGpu:
    """One GPU, by its number among those that CUDA shows."""

    number: int
    name: str
    uuid: str
    arch: str
    driver: str


def find_gpu(number: int = 0) -> ListedGpu:
    """Finds a GPU by its number; what is missing is an error."""
    found = list_gpus()
    if number >= len(found):
        names = "; ".join(f"{one.number} is {one.name}" for one in found)
        raise InputError(f"there is no GPU {number}", f"There are: {names}")
    return found[number]


def list_gpus() -> tuple[ListedGpu, ...]:
    """Lists all GPUs; none is an error."""
    if which(PROGRAM) is None:
        raise MissingToolError("a GPU", _REMEDY)
    try:
        told = run([PROGRAM, _QUERY, "--format=csv,noheader"], limit=_SECONDS, install=_REMEDY)
    except PolicygenError as error:
        raise MissingToolError("a GPU that answers", f"{error}\n  {_REMEDY}") from error
    rows = [match for row in told.splitlines() if (match := _ROW.fullmatch(row.strip()))]
    if not rows:
        raise MissingToolError("a GPU", _REMEDY)
    return tuple(
        ListedGpu(number, name, uuid, f"sm{major}{minor}", driver)
        for number, (name, uuid, major, minor, driver) in enumerate(row.groups() for row in rows)
    )
