"""What is given to `policygen db`: databases, NVBench results, search spaces, told by content."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from policygen.app.filters import EVERYTHING, Filter
from policygen.errors import InputError, Problems, anchored
from policygen.model.arch import parse_arch
from policygen.model.benchmarks import ParameterRange
from policygen.model.databases import ComparedSide
from policygen.model.results import Rules, ScoredWorkload
from policygen.model.workload import parse_label
from policygen.opening import read_named
from policygen.results.database import expand, is_database, open_database
from policygen.results.nvbench import guess_label, is_nvbench, read_nvbench, to_database
from policygen.settings import configured

if TYPE_CHECKING:
    from policygen.model.plans import Action

_EXPECTED = (
    "Expected a cccl_meta_bench.db, or what NVBench writes with --jsonbin or --json;"
    " a benchmark's source (.cu) or a search space (.csv) beside one tells what was declared."
)
FromFiles = TypeVar("FromFiles", "Action", ComparedSide, ScoredWorkload)


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """What was measured, as it is named, and what of it is asked for."""

    files: Sequence[str]
    """Databases of any CCCL, NVBench's JSON results, or globs of them."""
    benches: Sequence[str] = ()
    """Benchmark sources, a checkout or a cccl_meta_bench.csv: declared axes and search spaces."""
    base: str | None = None
    """NVBench's result of the base, where the files are those of variants."""
    confirm: Sequence[str] = ()
    """Databases of later runs, which decide."""
    where: Filter = EVERYTHING
    gpus: Mapping[str, str] = field(default_factory=dict)
    """GPU → architecture, where neither databases nor policygen know it."""

    def told(self, one: ScoredWorkload) -> ScoredWorkload:
        """A workload with the architecture that the user says of its GPU."""
        name = one.gpu.partition("(")[0].strip()
        given = next((a for gpu, a in self.gpus.items() if gpu in {name, one.gpu}), None)
        return one.model_copy(update={"arch": given}) if given else one


def parse_gpus(given: Sequence[str]) -> dict[str, str]:
    """`--gpu-arch 'NAME=sm103'`, as often as it is said."""
    found = {}
    for text in given:
        name, _, arch = text.rpartition("=")
        try:
            found[name.strip()] = parse_arch(arch)
        except ValueError as error:
            raise InputError(f"--gpu-arch {text!r}: {error}") from error
        if not name.strip():
            raise InputError(f"--gpu-arch {text!r} names no GPU", "Such as: --gpu-arch B400=sm110")
    return found


@dataclass(frozen=True, slots=True)
class Inputs:
    """The databases, and what is known of the benchmarks in them."""

    databases: tuple[Path, ...]
    spaces: Mapping[str, tuple[ParameterRange, ...]]
    declared: Mapping[tuple[str, str, str], tuple[str, ...]]
    made: Mapping[str, tuple[str, ...]]
    """Databases made for the time being, and the files that they were made of."""
    confirm: tuple[Path, ...] = ()
    """Databases of runs that confirm what is chosen."""

    def named(self, one: FromFiles) -> FromFiles:
        """What was measured, with the files that the user gave."""
        files = [name for path in one.databases for name in self.made.get(path, (path,))]
        return one.model_copy(update={"databases": tuple(files)})


def check_other(out: Path, *given: ResultFiles) -> None:
    """Refuses to write over what is read, whoever forces it."""
    for one in given:
        more = (*one.benches, *((one.base,) if one.base else ()))
        if out.resolve() in {path.resolve() for path in (*expand(one.files), *map(Path, more))}:
            raise InputError(f"{out}: is one of the inputs", "Name another file.")


def ask_why(given: ResultFiles, why: str) -> ResultFiles:
    """One workload, as it is typed: `cub.bench.reduce.sum T=I32` is `-R` and `-a`.

    A shell makes several words of it: what is no file and has a `=` belongs to it, too.
    """
    name, *axes = why.split() or [""]
    stray = [word for word in given.files if "=" in word and not Path(word).exists()]
    if not name or any("=" not in axis for axis in axes):
        raise InputError(f"--why {why!r} is no workload", "Such as: cub.bench.reduce.sum T=I32")
    pairs = [axis.partition("=") for axis in (*axes, *stray)]
    asked = [f"{axis if '{' in axis else axis + '{ct}'}={value}" for axis, _, value in pairs]
    where = Filter(regex=f"{re.escape(name)}$", axes=(*given.where.axes, *asked))
    return replace(given, files=[one for one in given.files if one not in stray], where=where)


def is_results(path: Path) -> bool:
    """Whether a file that only a plan or a store names holds results; else nobody looks into it."""
    try:
        return path.is_file() and (is_database(path) or is_nvbench(read_named(path)))
    except (OSError, InputError):
        return False


def nothing_matches(where: Filter, files: Sequence[str]) -> InputError:
    """A filter that leaves nothing of what was measured."""
    names: list[str] = []
    for path in expand(files):
        if is_database(path):
            with open_database(path) as database:
                names += [table.algorithm for table in database.tables]
    hint = anchored(where.pattern, names)
    return InputError("nothing matches", hint or "See what there is: policygen db info DB...")


@contextmanager
def open_inputs(given: ResultFiles) -> Iterator[Inputs]:
    """Sorts files by their content; NVBench's results become a database for the time being."""
    databases: list[Path] = []
    others: list[Path] = []
    runs: list[Path] = []
    for path in expand(given.files):
        try:
            if is_database(path):
                databases.append(path)
            elif is_nvbench(data := read_named(path)):
                runs.append(path)
            elif data and b"\0" not in data and _declares(path, data):
                others.append(path)
            else:
                raise InputError(
                    f"{path}: neither a tuning database nor a result of NVBench", _EXPECTED
                )
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    spaces, declared = benchmarks_of([*others, *map(Path, given.benches)])
    with TemporaryDirectory(prefix="policygen-") as folder:
        made: dict[str, tuple[str, ...]] = {}
        if runs or given.base:
            path, files_of = _nvbench(runs, given.base, Path(folder))
            databases.append(path)
            made[str(path)] = files_of
        if not databases:
            raise InputError("no database is given", "Name a cccl_meta_bench.db.")
        yield Inputs(tuple(databases), spaces, declared, made, expand(given.confirm))


def _declares(path: Path, data: bytes) -> bool:
    """Whether a text may be a benchmark's source, or a search space; by its name, or its content.

    What is wrong in it is told by who reads it.
    """
    from policygen.headers.search_space import is_meta  # most have nothing to read

    return path.suffix in {".cu", ".cuh", ".csv"} or is_meta(data) or b"%RANGE%" in data


def benchmarks_of(
    paths: Sequence[Path],
) -> tuple[dict[str, tuple[ParameterRange, ...]], dict[tuple[str, str, str], tuple[str, ...]]]:
    """Search spaces and declared axes, of benchmark sources or a cccl_meta_bench.csv."""
    if not paths:
        return {}, {}
    from policygen.headers.benchmark_sources import read_benchmarks  # most have nothing to read

    document, errors = read_benchmarks(paths)
    if errors:
        raise Problems(errors)
    spaces = {b.name: b.parameters for b in document.benchmarks if b.parameters}
    declared = {
        (b.name, sub.name, axis.name): axis.values
        for b in document.benchmarks
        for sub in b.subbenches
        for axis in sub.axes
        if axis.complete
    }
    return spaces, declared


def _nvbench(runs: Sequence[Path], base: str | None, folder: Path) -> tuple[Path, tuple[str, ...]]:
    """A base and its variants, as a database; and the files that they stand in."""
    read = [(path, read_nvbench(path)) for path in runs]
    if base is not None:
        chosen = read_nvbench(Path(base))
        read = [(p, run) for p, run in read if p.resolve() != chosen.path.resolve()]
    else:
        bases = [run for _, run in read if run.is_base]
        if len(bases) != 1:
            raise InputError(
                f"{len(bases)} of {len(read)} NVBench results are those of a base",
                "Say which one is: --base FILE.json",
            )
        chosen = bases[0]
    variants = [(guess_label(path), run) for path, run in read if run is not chosen]
    if not variants:
        raise InputError("there is a base, but no variant to compare with it")
    out = folder / "nvbench.db"
    to_database(chosen, variants, out)
    return out, (str(chosen.path), *(str(run.path) for _, run in variants))


__all__ = ["Rules", "choose_rules"]
_OPTIONS = {"worst_allowed": "worst"}
_RATIOS = {"worst_allowed", "confidence", "least_score"}


# When a variant is worth writing.


def choose_rules(current: str | None = None, **wanted: float | bool | None) -> Rules:
    """`[choose]` of `policygen.toml`, changed by what is wanted."""
    found = configured()
    rules = found.settings.choose if found else Rules()
    given = {name: value for name, value in wanted.items() if value is not None}
    try:
        rules = Rules.model_validate({**rules.model_dump(), **given})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        value = first["input"]
        share = isinstance(value, float) and value >= 10 and name in _RATIOS
        raise InputError(
            f"--{_OPTIONS.get(name, name.replace('_', '-'))} {value}: {first['msg']}",
            f"It is a ratio, not per cent: {value / 100:g}." if share else None,
        ) from error
    if rules.prefer_simple and current is None:
        raise InputError("--prefer-simple needs --current", "Give the label of the present values.")
    if current is not None and parse_label(current) is None:
        raise InputError(f"--current {current!r} is no variant label", "Such as: ipt_19.tpb_512")
    return rules
