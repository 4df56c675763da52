"""Reads benchmarks: from sources, folders, checkouts and `cccl_meta_bench.csv`."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from policygen.errors import InputError, SourceError
from policygen.model.base import Problem
from policygen.model.bench import Benchmark, BenchmarkList
from policygen.model.workload import axis_name
from policygen.source.benchmarks.axes import read_registrations
from policygen.source.benchmarks.files import SUFFIX, BenchmarkFile, find
from policygen.source.benchmarks.knowledge import knowledge
from policygen.source.benchmarks.meta import Meta, is_meta, read_meta
from policygen.source.benchmarks.preprocess import Preprocessor
from policygen.source.benchmarks.ranges import read_ranges
from policygen.source.benchmarks.scope import Scope, read_scope
from policygen.source.benchmarks.sources import Sources, read_text
from policygen.source.patience import limited
from policygen.source.text import Text

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
