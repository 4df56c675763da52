"""`schemas/axes.toml`: the runtime axes of CUB's benchmarks, by version of CCCL."""

import re
from functools import cache

from policygen.config import load_toml
from policygen.model.base import Record
from policygen.resources import folder
from policygen.results.declared import DeclaredAxes

# v3.0.3, v3.6.0.dev-204-g571f2fc3bc
_VERSION = re.compile(r"v?([0-9]{1,4}(?:\.[0-9]{1,4})*)")


class _Axes(Record):
    """Sub-benchmarks with the same axes."""

    benchmarks: tuple[str, ...]
    subbench: str
    values: dict[str, tuple[str, ...]]
    since: str = ""


class _AxesFile(Record):
    axes: tuple[_Axes, ...]


@cache
def axes_of(cccl: str) -> DeclaredAxes:
    """What the benchmarks of a version declare; later rows replace older ones."""
    version = _numbers(cccl)
    found: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for row in sorted(_rows(), key=lambda row: _numbers(row.since)):
        if not row.since or _numbers(row.since) <= version:
            for name in row.benchmarks:
                found[name, row.subbench] = row.values
    return {
        (name, subbench, axis): values
        for (name, subbench), axes in found.items()
        for axis, values in axes.items()
    }


@cache
def _rows() -> tuple[_Axes, ...]:
    return load_toml(folder("schemas") / "axes.toml", _AxesFile).axes


def _numbers(version: str) -> tuple[int, ...]:
    match = _VERSION.match(version)
    return tuple(map(int, match[1].split("."))) if match else ()
