"""The benchmarks of a CCCL checkout, with what a variant of one is to CCCL's build."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from policygen.bindings.load import axis_type, is_constant
from policygen.errors import InputError, Problems, SourceError
from policygen.model.bench import Benchmark
from policygen.model.cub import Cub
from policygen.model.labels import BASE, parse_label, shortened
from policygen.model.workload import axis_name, in_words
from policygen.proof.sass.benchmarks import BASE_MACROS, benchmark_text, type_of
from policygen.results.declared import DeclaredAxes
from policygen.source.benchmarks.files import benchmarks_folder, checkout, find
from policygen.source.benchmarks.knowledge import knowledge
from policygen.source.benchmarks.read import narrowing, read_benchmarks
from policygen.tree.given import open_tree


@dataclass(frozen=True, slots=True)
class CheckoutBenchmark:
    """A benchmark's source, and what of it can be narrowed."""

    benchmark: Benchmark
    source: Path
    """Below the folder of the benchmarks."""
    narrowed: frozenset[str]
    """The axes that a macro leaves one type of."""

    @property
    def declared(self) -> DeclaredAxes:
        """All values of its axes."""
        return {
            (self.benchmark.name, sub.name, axis.name): axis.values
            for sub in self.benchmark.subbenches
            for axis in sub.axes
        }

    def macros(self, label: str) -> dict[str, str]:
        """What the build defines for a variant; refused where a parameter is lacking, or more."""
        if label == BASE:
            return BASE_MACROS
        values = parse_label(label)
        if values is None:
            raise InputError(f"{shortened(label)} is no variant label", "Such as: ipt_19.tpb_512")
        known = [one.label for one in self.benchmark.parameters]
        if set(values) != set(known):
            raise InputError(
                f"{label} is no variant of {self.benchmark.name}, whose parameters are"
                f" {', '.join(known) or 'none'}",
                f"{self.benchmark.source} has them in its %RANGE% lines.",
            )
        return {one.macro: str(values[one.label]) for one in self.benchmark.parameters}

    def workload(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """A value for each axis of compile time, as the source names the axes."""
        axes = self.benchmark.ct_axes
        given = {axis_name(axis): value for axis, value in chosen.items()}
        if unknown := sorted(given.keys() - {axis_name(axis) for axis in axes}):
            raise InputError(
                f"{self.benchmark.name} has no axis {unknown[0]}",
                f"It has: {', '.join(map(axis_name, axes)) or 'none'}",
            )
        found = {axis: given.get(axis_name(axis), values[0]) for axis, values in axes.items()}
        for axis, values in axes.items():
            if axis_name(axis) not in given and len(values) > 1:
                raise InputError(
                    f"{in_words(self.benchmark.name, chosen)} is no workload: it has no value of"
                    f" {axis_name(axis)}",
                    f"It is one of: {', '.join(values)}",
                )
            if found[axis] not in values:
                raise InputError(
                    f"{self.benchmark.name}: {axis_name(axis)} has no value {found[axis]}",
                    f"It has: {', '.join(values)}",
                )
        return found

    def text(self, label: str, workload: Mapping[str, str], version: str) -> str:
        """Writes the unit of a variant for a workload, narrowed as far as it goes."""
        types: dict[str, str] = {}
        headers: list[str] = []
        for axis, value in workload.items():
            name = axis_name(axis)
            if name in self.narrowed and len(self.benchmark.ct_axes[axis]) > 1:
                types[name] = type_of(value, version)
                if not is_constant(value) and (header := axis_type(value, version).header):
                    headers.append(header)
        return benchmark_text(self.source, self.macros(label), types, headers)


@dataclass(frozen=True, slots=True)
class BenchmarkCheckout:
    """A CCCL checkout whose benchmarks can be built."""

    cub: Cub
    folder: Path
    """Of the benchmarks."""
    helper: Path
    """`nvbench_helper.cu`, which is linked with each of them."""
    benchmarks: Mapping[str, CheckoutBenchmark]

    @property
    def includes(self) -> tuple[str, ...]:
        """The folders in which its sources look for headers."""
        return (*self.cub.include_folders, str(self.folder), str(self.helper.parent))


def open_checkout(path: Path, pattern: re.Pattern[str]) -> BenchmarkCheckout:
    """Reads the benchmarks of a checkout whose names begin so."""
    root = checkout(path)
    errors: list[SourceError] = []
    found = [file for file in find(root, errors) if pattern.match(file.name)]
    if not found and not errors:
        raise InputError(
            f"-R {pattern.pattern!r} matches the beginning of no benchmark's name in"
            f" {root.as_posix()}"
        )
    document, unread = read_benchmarks([file.path for file in found])
    if errors or unread:
        raise Problems([*errors, *unread])
    by_name = {one.name: one for one in document.benchmarks}
    macros, folder = narrowing(found), benchmarks_folder(root)
    benchmarks = {
        file.name: CheckoutBenchmark(
            by_name[file.name], file.path.relative_to(folder), macros.get(file.name, frozenset())
        )
        for file in found
    }
    return BenchmarkCheckout(open_tree(root), folder, _helper(root), benchmarks)


def _helper(root: Path) -> Path:
    places = [(root / one).with_suffix(".cu") for one in knowledge().files.helpers]
    for place in places:
        if place.is_file():
            return place
    raise InputError(
        f"{root.as_posix()} has no {places[0].name}",
        "Its benchmarks are linked with it: is this a whole CCCL checkout?",
    )
