"""A kernel of one's own as its files have it: a table, and `%RANGE%` lines beside the kernel."""

from pathlib import Path

from policygen.bindings.own import beside
from policygen.bindings.own_kernel import KernelMaker
from policygen.config import as_model, load_toml
from policygen.errors import Problems
from policygen.model.own_kernel import OwnKernel
from policygen.source.benchmarks.ranges import read_ranges
from policygen.source.benchmarks.sources import read_text


def read_kernel(path: Path) -> KernelMaker:
    """What the table says; a macro that the kernel's file declares is a parameter besides."""
    given, folder = load_toml(path, OwnKernel), path.resolve().parent
    beside(path, given.kernel)
    ranges, errors = read_ranges(read_text(folder / given.kernel, folder))
    if errors:
        raise Problems(list(errors))
    said = {name: one.model_dump(exclude_unset=True) for name, one in given.parameter.items()}
    declared = {
        one.label: {"macro": one.macro, "values": f"{one.start}:{one.end}:{one.step}"}
        for one in ranges
    }
    every = {
        name: {**declared.get(name, {}), **said.get(name, {})} for name in {**said, **declared}
    }
    whole = {**given.model_dump(by_alias=True), "parameter": every}
    return KernelMaker(path, as_model(path, OwnKernel, whole))
