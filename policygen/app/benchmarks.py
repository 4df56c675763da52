"""What benchmarks offer to tune, and how that differs from the bindings."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from policygen.app.filters import EVERYTHING, Filter
from policygen.bindings.check import check, nearest
from policygen.bindings.load import bound
from policygen.bindings.words import words
from policygen.errors import InputError, SourceError
from policygen.model.bench import Benchmark, BenchmarkList
from policygen.model.bench_check import BenchCheck
from policygen.source.benchmarks.files import SUFFIX, around, checkout
from policygen.source.benchmarks.meta import is_meta, read_meta
from policygen.source.benchmarks.read import LEVELS, read_benchmarks
from policygen.source.benchmarks.select import select
from policygen.source.benchmarks.sources import read_text
from policygen.tree.layout import readable_roots
from policygen.tree.manifest import shipped
from policygen.tree.version import read_version

# v3.0.3, 3.1.0-rc2
_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+)(-rc\d+)?")


def benchmarks_around(cub: str | None = None) -> Path:
    """The checkout that is named, or that the current folder is in."""
    return checkout(Path(cub)) if cub else around(Path.cwd())


def read_tunables(
    paths: Sequence[Path], asked: Filter = EVERYTHING
) -> tuple[BenchmarkList, tuple[SourceError, ...]]:
    """Reads the parameters and axes of benchmarks; tells what could not be read, too."""
    document, errors = read_benchmarks(paths)
    if document.benchmarks or not errors:
        document = select(document, asked.pattern, asked.values)
    return document, errors


def check_bindings(document: BenchmarkList) -> BenchCheck:
    """Compares benchmarks with the bindings of the nearest version."""
    prefix = words().benchmarks.prefix
    ours = [one for one in document.benchmarks if one.name.startswith(prefix)]
    if not ours:
        raise InputError("none of these benchmarks is CUB's", f"their names begin with {prefix}")
    cub = _one_version(ours)
    version = nearest(cub, (wheel.cub for wheel in shipped().wheels))
    checked = check(bound(version), document.benchmarks, cub, version)
    return checked.model_copy(update={"problems": document.problems})


def _one_version(benchmarks: Iterable[Benchmark]) -> str | None:
    """The version of CUB that all of them are of; none where nothing tells it."""
    found: dict[str | None, str] = {}
    for one in benchmarks:
        found.setdefault(_version(Path(one.source)), one.source)
    if len(found) > 1:
        rows = "".join(f"\n    {version or 'not told'}: {found[version]}" for version in found)
        raise InputError(
            f"these are benchmarks of several versions of CUB:{rows}", "check one at a time"
        )
    return next(iter(found))


def _version(source: Path) -> str | None:
    """That of the checkout around a source; of a search space, the one that it records."""
    if source.suffix != SUFFIX and is_meta((text := read_text(source, source.parent)).data):
        match = _RELEASE.fullmatch(read_meta(text).cccl or "")
        return match[1] if match else None
    for folder in source.absolute().parents[:LEVELS]:
        if roots := readable_roots(folder, shipped().layouts.checkout):
            return read_version(roots[0])
    return None
