"""Reads benchmarks from sources, folders, checkouts and `cccl_meta_bench.csv`."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from policygen.bindings.own_kernels import KernelMaker
from policygen.errors import InputError, Problems, SourceError, anchored
from policygen.headers.benchmark_axes import Scope, read_registrations, read_scope
from policygen.headers.preprocessor import Preprocessor, Sources, read_text
from policygen.headers.search_space import Meta, is_meta, knowledge, read_meta, read_ranges
from policygen.headers.text import Text, as_problem, limited
from policygen.model.benchmarks import Axis, Benchmark, BenchmarkList
from policygen.model.own_workload import OwnKernel
from policygen.model.workload import axis_name, spelled
from policygen.opening import as_model, beside, load_toml

# #define CUB_VERSION 300200
_VERSION = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+CUB_VERSION[ \t]+(\d{1,9})\b", re.MULTILINE)
LEVELS = 16
"""The number of parent folders to search for a benchmark's checkout."""


def read_benchmarks(paths: Sequence[Path]) -> tuple[BenchmarkList, tuple[SourceError, ...]]:
    """Returns all benchmarks below the paths by name, and the errors of those that failed."""
    reader = _BenchmarkReader()
    for path in paths:
        if not (path.exists() or path.is_symlink()):
            raise InputError(f"{path.as_posix()} does not exist")
        reader.add(path)
    errors = tuple(dict.fromkeys(reader.errors))
    document = BenchmarkList(
        ctk=_single({meta.ctk for meta in reader.metas}),
        cccl=_single({meta.cccl for meta in reader.metas}),
        benchmarks=tuple(benchmark for _, benchmark in sorted(reader.benchmarks.items())),
        problems=tuple(map(as_problem, errors)),
    )
    return document, errors


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """A source and the name of its benchmark."""

    path: Path
    name: str
    root: Path
    """The folder that contains the source and everything it includes."""


def narrowing(files: Sequence[BenchmarkFile]) -> dict[str, frozenset[str]]:
    """Returns, by benchmark, the axes that `TUNE_<axis>` narrows to one type, as CCCL's build can.

    A source that cannot be read is not narrowed: all of it is compiled.
    """
    plain_reader, narrowed_by_benchmark = _BenchmarkReader(), {}
    for file in files:
        try:
            benchmark = plain_reader.read(file)
            axes = [axis_name(name) for name in benchmark.ct_axes] if benchmark else []
            macros = {axis: f"TUNE_{axis}" for axis in axes}
            narrowed = _BenchmarkReader(macros.values()).read(file)
        except SourceError:
            continue
        ct_axes = narrowed.ct_axes.items() if narrowed else ()
        narrowed_axes = {axis_name(name): values for name, values in ct_axes}
        narrowed_by_benchmark[file.name] = frozenset(
            axis for axis, macro in macros.items() if narrowed_axes.get(axis) == (macro,)
        )
    return narrowed_by_benchmark


def _single(values: set[str | None]) -> str | None:
    return values.pop() if len(values) == 1 else None


class _BenchmarkReader:
    """Shares files, and a checkout's helper header, between benchmarks."""

    def __init__(self, defined: Iterable[str] = ()) -> None:
        facts = knowledge()
        macros = {**facts.build.defined, **dict.fromkeys(defined, 1)}
        build = facts.build.model_copy(update={"defined": macros})
        self.facts = facts.model_copy(update={"build": build})
        self.sources = Sources()
        self.benchmarks: dict[tuple[str, str], Benchmark] = {}
        self.metas: list[Meta] = []
        self.errors: list[SourceError] = []
        self._helper = cache(self._find_helper)

    def add(self, path: Path) -> None:
        """Reads a path that the user named."""
        if path.is_file() and path.suffix != SUFFIX and self._add_meta(path):
            return
        for file in find(path, self.errors):
            try:
                benchmark = self.read(file)
            except SourceError as error:
                self.errors.append(error)
                continue
            if benchmark is not None:
                self.benchmarks[benchmark.name, benchmark.source] = benchmark

    def _add_meta(self, path: Path) -> bool:
        """Adds the file if it is a search space; an unreadable file counts as handled, too."""
        try:
            text = read_text(path, path.parent)
            if not is_meta(text.data):
                if b"%RANGE%" in text.data or b"NVBENCH_BENCH" in text.data:
                    return False
                raise InputError(
                    f"{path.as_posix()} is neither a benchmark source nor a search space",
                    "A search space starts with a line such as: ctk_version,13.0.88",
                )
            with limited(path.as_posix()):
                meta = read_meta(text)
        except SourceError as error:
            self.errors.append(error)
            return True
        self.metas.append(meta)
        self.errors += meta.errors
        self.benchmarks.update({(own.name, own.source): own for own in meta.benchmarks})
        return True

    def read(self, file: BenchmarkFile) -> Benchmark | None:
        """Reads a benchmark; returns None and records errors if its search space is invalid."""
        with limited(file.path.as_posix()):
            text = self.sources.read(file.path, file.root)
            parameters, errors = read_ranges(text)
            preprocessor = Preprocessor(self.sources, self.facts, file.root)
            preprocessor.add(file.path)
            scope = read_scope(preprocessor, self._helper(file.path.parent))
            subbenches = read_registrations(scope)
        self.errors += errors
        if errors:
            return None
        return Benchmark(
            name=file.name, source=text.path, parameters=parameters, subbenches=subbenches
        )

    def _find_helper(self, folder: Path) -> Scope:
        """Returns the predefined lists of the surrounding checkout, or the built-in ones."""
        absolute = folder.absolute()
        files = self.facts.files
        version: int | None = None
        for ancestor in (absolute, *absolute.parents)[:LEVELS]:
            for candidate in files.helpers:
                if (ancestor / candidate).is_file():
                    preprocessor = Preprocessor(self.sources, self.facts, ancestor)
                    preprocessor.add(ancestor / candidate)
                    return read_scope(preprocessor)
            if version is None and (ancestor / files.version).is_file():
                match = _VERSION.search(self.sources.read(ancestor / files.version, ancestor).data)
                version = int(match.group(1)) if match else None
        source = self.facts.helper(version).source
        preprocessor = Preprocessor(self.sources, self.facts, Path())
        preprocessor.take(Text("benchmarks.toml", source.encode()), Path())
        return read_scope(preprocessor)


SUFFIX = ".cu"
BENCH = "bench"


# Discovery and naming of benchmark sources


def around(folder: Path) -> Path:
    """Finds the checkout around a folder: the nearest ancestor with benchmarks."""
    if checkout_root := _checkout_above(folder):
        return checkout_root
    raise InputError(
        f"no benchmarks found: no folder above {folder.absolute().as_posix()} has {_folders()}",
        "Name a .cu file, a folder of benchmarks, a CCCL checkout or a cccl_meta_bench.csv",
    )


def top(folder: Path) -> Path:
    """Finds the checkout around a folder, or returns the folder itself if there is none."""
    return _checkout_above(folder) or folder


def _checkout_above(folder: Path) -> Path | None:
    path = Path(os.path.abspath(folder))  # noqa: PTH100  links stay as the user typed them
    return next(filter(_benchmark_folders, (path, *path.parents)), None)


def _benchmark_folders(path: Path) -> list[Path]:
    return [folder for name in knowledge().files.folders if (folder := path / name).is_dir()]


def checkout(path: Path) -> Path:
    """Validates the checkout that `--cub` names."""
    if not _benchmark_folders(path):
        raise InputError(
            f"{path.as_posix()} has no {_folders()}",
            "Toolkits, wheels and fetched versions have no benchmarks: name a CCCL checkout",
        )
    return path


def benchmarks_folder(path: Path) -> Path:
    """Returns a checkout's benchmark folder, or the path itself if it is not a checkout."""
    return next(iter(_benchmark_folders(path)), path)


def helper_folders(path: Path) -> list[Path]:
    """Returns the folders of a checkout that hold shared helper headers."""
    candidates = (path / helper for helper in knowledge().files.helpers)
    return [helper.parent for helper in candidates if helper.is_file()]


def _folders() -> str:
    return " or ".join(knowledge().files.folders)


def find(path: Path, errors: list[SourceError]) -> list[BenchmarkFile]:
    """Returns the sources of a file or folder by name; appends errors to `errors`."""
    if not path.is_dir():
        return [BenchmarkFile(path, _name(path, None), top(path.parent))]
    root, checkout_root = benchmarks_folder(path), top(path)
    files = _walk(root, frozenset(), errors)
    benchmark_files = [BenchmarkFile(file, _name(file, root), checkout_root) for file in files]
    if not benchmark_files and not errors:
        raise InputError(
            f"{path.as_posix()} has no benchmark sources", f"Their names end in {SUFFIX}"
        )
    return sorted(benchmark_files, key=lambda file: (file.name, file.path.as_posix()))


def _walk(folder: Path, ancestors: frozenset[Path], errors: list[SourceError]) -> Iterator[Path]:
    """Yields every .cu file below a folder; reports symlink loops instead of following them."""
    try:
        real = folder.resolve()
        if real in ancestors:
            errors.append(SourceError(folder.as_posix(), 1, 1, "link to its own parent folder"))
            return
        entries = sorted(folder.iterdir())
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "links in a circle"
        errors.append(SourceError(folder.as_posix(), 1, 1, f"cannot be read: {reason}"))
        return
    for entry in entries:
        if entry.is_dir():
            yield from _walk(entry, ancestors | {real}, errors)
        elif entry.suffix == SUFFIX:
            yield entry
        elif entry.is_symlink() and not entry.exists():
            errors.append(SourceError(entry.as_posix(), 1, 1, "broken link"))


def _name(path: Path, root: Path | None) -> str:
    """Builds `cub.bench.` plus the path below the `bench` folder, without the last extension."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100  links stay as the user typed them
    parts = absolute.with_suffix("").parts if absolute.suffix else absolute.parts
    library = "cub"
    if BENCH in parts[:-1]:
        bench_index = len(parts) - 2 - parts[:-1][::-1].index(BENCH)
        if parts[max(0, bench_index - 2) : bench_index] == ("thrust", "benchmarks"):
            library = "thrust"
        relative = parts[bench_index + 1 :]
    elif root is None:
        relative = parts[-1:]
    else:
        root_depth = len(Path(os.path.abspath(root)).parts)  # noqa: PTH100
        relative = parts[root_depth:]
    return ".".join((library, BENCH, *relative))


Chosen = Mapping[str, frozenset[str]]
"""Axis → the values to keep."""


# `-R` and `-a` on a list of benchmarks, with CCCL's meaning


def select(document: BenchmarkList, names: re.Pattern[str], axes: Chosen) -> BenchmarkList:
    """Selects benchmarks whose name starts with a match, and restricts their axis values."""
    selected = [benchmark for benchmark in document.benchmarks if names.match(benchmark.name)]
    if document.benchmarks and not selected:
        raise InputError(
            f"-R {names.pattern!r} does not match the start of any benchmark's name",
            anchored(names, (benchmark.name for benchmark in document.benchmarks))
            or f"one of {len(document.benchmarks)} is {document.benchmarks[0].name}",
        )
    subbenches = (sub for benchmark in selected for sub in benchmark.subbenches)
    axes = spelled(axes, {axis.name for sub in subbenches for axis in sub.axes})
    _check(selected, axes)
    restricted = tuple(_restrict(benchmark, axes) for benchmark in selected)
    return document.model_copy(update={"benchmarks": restricted})


def _check(benchmarks: list[Benchmark], axes: Chosen) -> None:
    """Raises an error for an axis or value that no benchmark has: it is a typo."""
    values_by_axis: dict[str, dict[str, None]] = {}
    for benchmark in benchmarks:
        for sub in benchmark.subbenches:
            for axis in sub.axes:
                values_by_axis.setdefault(axis.name, {}).update(dict.fromkeys(axis.values))
    for name, values in axes.items():
        if name not in values_by_axis:
            raise InputError(
                f"-a {name}: none of these benchmarks has this axis",
                f"They have: {', '.join(sorted(values_by_axis)) or 'none'}",
            )
        if not values & values_by_axis[name].keys():
            raise InputError(
                f"-a {name}: no benchmark has the value {', '.join(sorted(values))}",
                f"They have: {', '.join(values_by_axis[name]) or 'none'}",
            )


def _restrict(benchmark: Benchmark, axes: Chosen) -> Benchmark:
    def restricted(axis: Axis) -> Axis:
        values = tuple(value for value in axis.values if value in axes.get(axis.name, axis.values))
        return axis.model_copy(update={"values": values})

    subbenches = [
        sub.model_copy(update={"axes": tuple(map(restricted, sub.axes))})
        for sub in benchmark.subbenches
    ]
    return benchmark.model_copy(update={"subbenches": tuple(subbenches)})


# User kernels: a TOML table, and `%RANGE%` lines in the kernel's source


def read_kernel(path: Path) -> KernelMaker:
    """Reads the table; macros declared in the kernel's source add parameters."""
    table, folder = load_toml(path, OwnKernel), path.resolve().parent
    beside(path, table.kernel)
    ranges, errors = read_ranges(read_text(folder / table.kernel, folder))
    if errors:
        raise Problems(list(errors))
    from_table = {
        name: parameter.model_dump(exclude_unset=True)
        for name, parameter in table.parameter.items()
    }
    parameters = dict(from_table)
    for own in ranges:
        declared = {"macro": own.macro, "values": f"{own.start}:{own.end}:{own.step}"}
        parameters[own.label] = {**declared, **from_table.get(own.label, {})}
    merged = {**table.model_dump(by_alias=True), "parameter": parameters}
    return KernelMaker(path, as_model(path, OwnKernel, merged))
