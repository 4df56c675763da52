"""Reads benchmarks: from sources, folders, checkouts and `cccl_meta_bench.csv`."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen.bindings.own_kernels import KernelMaker
from policygen.bindings.own_workloads import beside
from policygen.errors import InputError, Problems, SourceError, anchored
from policygen.headers.benchmark_axes import Scope, read_registrations, read_scope
from policygen.headers.preprocessor import Preprocessor, Sources, read_text
from policygen.headers.search_space import Meta, is_meta, knowledge, read_meta, read_ranges
from policygen.headers.text import Text, limited
from policygen.model.benchmarks import Axis, Benchmark, BenchmarkList, SubBenchmark
from policygen.model.own_workload import OwnKernel
from policygen.model.records import Problem
from policygen.model.workload import axis_name, spelled
from policygen.settings import as_model, load_toml

# #define CUB_VERSION 300200
_VERSION = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+CUB_VERSION[ \t]+(\d{1,9})\b", re.MULTILINE)
LEVELS = 16
"""How far above a benchmark its checkout is looked for."""


def read_benchmarks(paths: Sequence[Path]) -> tuple[BenchmarkList, tuple[SourceError, ...]]:
    """All benchmarks below the paths by name, and what could not be read."""
    reader = _BenchmarkReader()
    for path in paths:
        if not (path.exists() or path.is_symlink()):
            raise InputError(f"{path.as_posix()} does not exist")
        reader.add(path)
    errors = tuple(dict.fromkeys(reader.errors))
    return (
        BenchmarkList(
            ctk=_only({meta.ctk for meta in reader.metas}),
            cccl=_only({meta.cccl for meta in reader.metas}),
            benchmarks=tuple(sorted(reader.found.values(), key=lambda one: (one.name, one.source))),
            problems=tuple(Problem.of(e) for e in errors),
        ),
        errors,
    )


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """A source and the name of its benchmark."""

    path: Path
    name: str
    root: Path
    """The folder that it and all that it includes lie in."""


def narrowing(files: Sequence[BenchmarkFile]) -> dict[str, frozenset[str]]:
    """For each benchmark the axes of which `TUNE_<axis>` leaves one type, as CCCL's build can.

    A source that cannot be read is narrowed by nothing: it is compiled whole.
    """
    plain, found = _BenchmarkReader(), {}
    for file in files:
        try:
            whole = plain.read(file)
            axes = [axis_name(name) for name in whole.ct_axes] if whole else []
            macros = {axis: f"TUNE_{axis}" for axis in axes}
            one = _BenchmarkReader(macros.values()).read(file)
        except SourceError:
            continue
        left = {axis_name(name): values for name, values in one.ct_axes.items()} if one else {}
        found[file.name] = frozenset(a for a, m in macros.items() if left.get(a) == (m,))
    return found


def _only(values: set[str | None]) -> str | None:
    return values.pop() if len(values) == 1 else None


class _BenchmarkReader:
    """Shares files, and the helper header of a checkout, between benchmarks."""

    def __init__(self, defined: Iterable[str] = ()) -> None:
        facts = knowledge()
        macros = {**facts.build.defined, **dict.fromkeys(defined, 1)}
        self.facts = facts.model_copy(
            update={"build": facts.build.model_copy(update={"defined": macros})}
        )
        self.sources = Sources()
        self.found: dict[tuple[str, str], Benchmark] = {}
        self.metas: list[Meta] = []
        self.errors: list[SourceError] = []
        self._helpers: dict[Path, Scope] = {}

    def add(self, path: Path) -> None:
        """Reads one of the paths that the user named."""
        if path.is_file() and path.suffix != SUFFIX and self._add_meta(path):
            return
        for file in find(path, self.errors):
            try:
                one = self.read(file)
            except SourceError as error:
                self.errors.append(error)
                continue
            if one is not None:
                self.found[one.name, one.source] = one

    def _add_meta(self, path: Path) -> bool:
        """Takes the file if it is a search space; an unreadable one is a problem either way."""
        try:
            text = read_text(path, path.parent)
            if not is_meta(text.data):
                if b"%RANGE%" in text.data or b"NVBENCH_BENCH" in text.data:
                    return False
                raise InputError(
                    f"{path.as_posix()} is neither a benchmark source nor a search space",
                    "a search space starts with a line such as: ctk_version,13.0.88",
                )
            with limited(path.as_posix()):
                meta = read_meta(text)
        except SourceError as error:
            self.errors.append(error)
            return True
        self.metas.append(meta)
        self.errors += meta.errors
        self.found.update({(one.name, one.source): one for one in meta.benchmarks})
        return True

    def read(self, file: BenchmarkFile) -> Benchmark | None:
        """One benchmark; None when its search space is wrong, which is noted."""
        with limited(file.path.as_posix()):
            return self._read(file)

    def _read(self, file: BenchmarkFile) -> Benchmark | None:
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

    def _helper(self, folder: Path) -> Scope:
        """The predefined lists: of the checkout around a folder, else of our own table."""
        if folder not in self._helpers:
            self._helpers[folder] = self._find_helper(folder)
        return self._helpers[folder]

    def _find_helper(self, folder: Path) -> Scope:
        whole = folder.absolute()
        files = self.facts.files
        version: int | None = None
        for above in (whole, *whole.parents)[:LEVELS]:
            for candidate in files.helpers:
                if (above / candidate).is_file():
                    return self._own_helper(above / candidate, above)
            if version is None and (above / files.version).is_file():
                match = _VERSION.search(self.sources.read(above / files.version, above).data)
                version = int(match.group(1)) if match else None
        source = self.facts.helper(version).source
        preprocessor = Preprocessor(self.sources, self.facts, Path())
        preprocessor.take(Text("benchmarks.toml", source.encode()), Path())
        return read_scope(preprocessor)

    def _own_helper(self, path: Path, root: Path) -> Scope:
        preprocessor = Preprocessor(self.sources, self.facts, root)
        preprocessor.add(path)
        return read_scope(preprocessor)


SUFFIX = ".cu"
BENCH = "bench"


# Finds benchmark sources and gives them CCCL's names.


def around(folder: Path) -> Path:
    """The checkout that a folder is in: the nearest one above that has benchmarks."""
    if found := _above(folder):
        return found
    raise InputError(
        f"no benchmarks here: no folder above {folder.absolute().as_posix()} has {_folders()}",
        "name a .cu file, a folder of benchmarks, a CCCL checkout or a cccl_meta_bench.csv",
    )


def top(folder: Path) -> Path:
    """The checkout that a folder is in; a folder of one's own is all there is."""
    return _above(folder) or folder


def _above(folder: Path) -> Path | None:
    start = Path(os.path.abspath(folder))  # noqa: PTH100  links stay as the user typed them
    folders = knowledge().files.folders
    candidates = (start, *start.parents)
    return next((c for c in candidates if any((c / known).is_dir() for known in folders)), None)


def checkout(path: Path) -> Path:
    """The checkout that `--cub` names."""
    if not any((path / known).is_dir() for known in knowledge().files.folders):
        raise InputError(
            f"{path.as_posix()} has no {_folders()}",
            "toolkits, wheels and fetched versions have no benchmarks: name a CCCL checkout",
        )
    return path


def benchmarks_folder(path: Path) -> Path:
    """Where a checkout keeps its benchmarks; a folder of another kind is taken for one itself."""
    known = (path / folder for folder in knowledge().files.folders)
    return next((folder for folder in known if folder.is_dir()), path)


def helper_folders(path: Path) -> list[Path]:
    """The folders of a checkout that hold what several benchmarks include."""
    found = (path / helper for helper in knowledge().files.helpers)
    return [helper.parent for helper in found if helper.is_file()]


def _folders() -> str:
    return " or ".join(knowledge().files.folders)


def find(path: Path, errors: list[SourceError]) -> list[BenchmarkFile]:
    """The sources of a file or folder by name; what is wrong goes to `errors`."""
    if not path.is_dir():
        return [BenchmarkFile(path, _name(path, None), top(path.parent))]
    root, above = benchmarks_folder(path), top(path)
    files = _walk(root, frozenset(), errors)
    found = [BenchmarkFile(file, _name(file, root), above) for file in files]
    if not found and not errors:
        raise InputError(
            f"{path.as_posix()} has no benchmark sources", f"their names end in {SUFFIX}"
        )
    return sorted(found, key=lambda file: (file.name, file.path.as_posix()))


def _walk(folder: Path, above: frozenset[Path], errors: list[SourceError]) -> Iterator[Path]:
    """Every .cu below a folder; a link that leads back up is reported, not followed."""
    try:
        real = folder.resolve()
        if real in above:
            errors.append(SourceError(folder.as_posix(), 1, 1, "link to a folder that it is in"))
            return
        entries = sorted(folder.iterdir())
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "links in a circle"
        errors.append(SourceError(folder.as_posix(), 1, 1, f"cannot be read: {reason}"))
        return
    for entry in entries:
        if entry.is_dir():
            yield from _walk(entry, above | {real}, errors)
        elif entry.suffix == SUFFIX:
            yield entry
        elif entry.is_symlink() and not entry.exists():
            errors.append(SourceError(entry.as_posix(), 1, 1, "link that leads nowhere"))


def _name(path: Path, root: Path | None) -> str:
    """`cub.bench.` and the path below the folder `bench`, without the last extension."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100  links stay as the user typed them
    parts = whole.with_suffix("").parts if whole.suffix else whole.parts
    library = "cub"
    if BENCH in parts[:-1]:
        at = len(parts) - 2 - parts[:-1][::-1].index(BENCH)
        if parts[max(0, at - 2) : at] == ("thrust", "benchmarks"):
            library = "thrust"
        below = parts[at + 1 :]
    elif root is None:
        below = parts[-1:]
    else:
        top = len(Path(os.path.abspath(root)).parts)  # noqa: PTH100
        below = parts[top:]
    return ".".join((library, BENCH, *below))


Chosen = Mapping[str, frozenset[str]]
"""The values that stay, by axis."""


# `-R` and `-a` on a list of benchmarks, with CCCL's meaning.


def select(document: BenchmarkList, names: re.Pattern[str], axes: Chosen) -> BenchmarkList:
    """The benchmarks whose name begins so, with the axis values that were asked for."""
    kept = [one for one in document.benchmarks if names.match(one.name)]
    if document.benchmarks and not kept:
        raise InputError(
            f"-R {names.pattern!r} matches the beginning of no benchmark's name",
            anchored(names, (one.name for one in document.benchmarks))
            or f"one of {len(document.benchmarks)} is {document.benchmarks[0].name}",
        )
    known = {axis.name for one in kept for sub in one.subbenches for axis in sub.axes}
    axes = spelled(axes, known)
    _check(kept, axes)
    return document.model_copy(update={"benchmarks": tuple(_restrict(one, axes) for one in kept)})


def _check(benchmarks: list[Benchmark], axes: Chosen) -> None:
    """An axis or value that none of them has is a mistyped one."""
    known: dict[str, dict[str, None]] = {}
    for one in benchmarks:
        for sub in one.subbenches:
            for axis in sub.axes:
                known.setdefault(axis.name, {}).update(dict.fromkeys(axis.values))
    for name, values in axes.items():
        if name not in known:
            raise InputError(
                f"-a {name}: none of these benchmarks has such an axis",
                f"they have: {', '.join(sorted(known)) or 'none'}",
            )
        if not values & known[name].keys():
            raise InputError(
                f"-a {name}: no benchmark has the value {', '.join(sorted(values))}",
                f"they have: {', '.join(known[name]) or 'none'}",
            )


def _restrict(one: Benchmark, axes: Chosen) -> Benchmark:
    return one.model_copy(update={"subbenches": tuple(_filter(s, axes) for s in one.subbenches)})


def _filter(sub: SubBenchmark, axes: Chosen) -> SubBenchmark:
    return sub.model_copy(
        update={"axes": tuple(_cut(axis, axes.get(axis.name)) for axis in sub.axes)}
    )


def _cut(axis: Axis, values: frozenset[str] | None) -> Axis:
    if values is None:
        return axis
    return axis.model_copy(update={"values": tuple(v for v in axis.values if v in values)})


# A kernel of one's own as its files have it: a table, and `%RANGE%` lines beside the kernel.


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
