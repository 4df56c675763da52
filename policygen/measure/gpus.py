"""The GPUs of this machine, as the driver's own program lists them."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.environment import which
from policygen.errors import InputError, MissingToolError, PolicygenError
from policygen.process import run
from policygen.untrusted import visible

PROGRAM = "nvidia-smi"
_QUERY = "--query-gpu=name,uuid,compute_cap,driver_version"
_SECONDS = 20.0
_REMEDY = (
    "A GPU of NVIDIA and its driver are needed; without them --compile-only compiles variants, and"
    " policygen measure --doctor says what is missing."
)
# NVIDIA H200, GPU-0fc714b2-91ef-0806-7d53-e5d74e5359b4, 9.0, 580.159.04
VISIBLE = "CUDA_VISIBLE_DEVICES"
"""Which GPUs are meant for a process, as batch systems tell it: numbers, or the beginnings of
UUIDs."""
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


def find_gpus(numbers: Sequence[int] | None) -> tuple[ListedGpu, ...]:
    """Finds GPUs of one model by their numbers, in their order; all of them where none is given."""
    found = list_gpus()
    chosen = [find_gpu(number) for number in sorted(set(numbers))] if numbers else found
    check_one_model({f"GPU {one.number}": one.name for one in chosen})
    return tuple(chosen)


def check_one_model(models: Mapping[str, str]) -> None:
    """Refuses GPUs of different models, by what each is called and where it is."""
    if len(set(models.values())) > 1:
        told = "; ".join(f"{place} is {visible(model)}" for place, model in models.items())
        raise InputError(
            f"the GPUs are of different models, and their times cannot be compared: {told}",
            "Measure on those of one model, and on the others with another database.",
        )


def device_environment() -> dict[str, str]:
    """What a process that uses a GPU is told, so that it counts GPUs as we do."""
    found = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if (visible := os.environ.get(VISIBLE)) is not None:
        found[VISIBLE] = visible
    return found


def list_gpus() -> tuple[ListedGpu, ...]:
    """Lists the GPUs that are meant for this process; none is an error."""
    if which(PROGRAM) is None:
        raise MissingToolError("a GPU", _REMEDY)
    try:
        told = run([PROGRAM, _QUERY, "--format=csv,noheader"], limit=_SECONDS, install=_REMEDY)
    except PolicygenError as error:
        raise MissingToolError("a GPU that answers", f"{error}\n  {_REMEDY}") from error
    rows = [match for row in told.splitlines() if (match := _ROW.fullmatch(row.strip()))]
    if not rows:
        raise MissingToolError("a GPU", _REMEDY)
    found = [
        ListedGpu(number, name, uuid, f"sm{major}{minor}", driver)
        for number, (name, uuid, major, minor, driver) in enumerate(row.groups() for row in rows)
    ]
    return tuple(_visible(found, os.environ.get(VISIBLE)))


def _visible(gpus: Sequence[ListedGpu], names: str | None) -> list[ListedGpu]:
    """Those that CUDA shows, in its order: what stands behind a name of none is not looked at."""
    if names is None:
        return list(gpus)
    found: list[ListedGpu] = []
    for name in map(str.strip, names.split(",")):
        one = next((gpu for gpu in gpus if _names(name, gpu)), None)
        if one is None:
            break
        found.append(replace(one, number=len(found)))
    if not found:
        raise MissingToolError(
            f"a GPU: {VISIBLE}={visible(names)!r} names none of the {len(gpus)} that the driver"
            " lists",
            f"Unset {VISIBLE}, or correct it.",
        )
    return found


def _names(name: str, gpu: ListedGpu) -> bool:
    return name == str(gpu.number) or (name.startswith("GPU-") and gpu.uuid.startswith(name))
