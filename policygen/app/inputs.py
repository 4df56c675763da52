"""Inputs of `policygen db`: databases, NVBench results, and search spaces, detected by content."""

import lzma
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from policygen.app.filters import EVERYTHING, Filter
from policygen.cache import file_sha256
from policygen.errors import InputError, Problems, anchored, listed, no_such_value
from policygen.model.arch import Arch, parse_arch
from policygen.model.benchmarks import ParameterRange
from policygen.model.databases import ComparedSide
from policygen.model.records import Record
from policygen.model.results import DataWarning, DbTop, Rules, ScoredWorkload
from policygen.model.searches import ReplayedSpace, ReportedWorkload
from policygen.model.trees import BoundVersion, Cub
from policygen.model.workload import axis_name, parse_label
from policygen.opening import fault, load_toml, read_named
from policygen.paths import cache_folder, write_atomically
from policygen.planning.measured import related
from policygen.rendering import folder
from policygen.results.cases import split
from policygen.results.choice import IsWritable, held_back
from policygen.results.database import check_not_input, expand, is_database, open_database
from policygen.results.nvbench import RowFiles, guess_label, is_nvbench, read_nvbench, to_database
from policygen.results.ranking import rank
from policygen.results.together import Together, choose_next, choose_together
from policygen.settings import configured
from policygen.steps import Note
from policygen.untrusted import visible

if TYPE_CHECKING:
    from policygen.model.plans import Action

_EXPECTED = (
    "Expected a cccl_meta_bench.db, or what NVBench writes with --jsonbin or --json; a"
    " benchmark's source (.cu) or a search space (.csv) next to it provides the declared values."
)
FromFiles = TypeVar(
    "FromFiles", "Action", ComparedSide, ReplayedSpace, ReportedWorkload, ScoredWorkload
)


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Named result files, and the filter on them."""

    files: Sequence[str]
    """Databases of any CCCL version, NVBench JSON results, or globs or folders of them."""
    benches: Sequence[str] = ()
    """Benchmark sources, a checkout, or a cccl_meta_bench.csv, for declared axes and search spaces.
    """
    base: str | None = None
    """The NVBench result of base, if the files are results of variants."""
    confirm: Sequence[str] = ()
    """Databases of later runs, which confirm or reject the choices."""
    where: Filter = EVERYTHING
    gpus: Mapping[str, str] = field(default_factory=dict)
    """GPU → architecture, if neither databases nor policygen know it."""
    may_lack: bool = False
    """Whether values that `where` names may be absent, because they were selected in a tree."""

    def reported(self, workload: ScoredWorkload) -> ScoredWorkload:
        """Returns a workload with the architecture that the user gave for its GPU."""
        name = workload.gpu.partition("(")[0].strip()
        arch = next(
            (known_arch for gpu, known_arch in self.gpus.items() if gpu in {name, workload.gpu}),
            None,
        )
        return workload.model_copy(update={"arch": arch}) if arch else workload


def parse_gpus(texts: Sequence[str]) -> dict[str, str]:
    """Parses the values of `--gpu-arch`, such as `NAME=sm103`."""
    archs = {}
    for text in texts:
        name, _, arch = text.rpartition("=")
        try:
            archs[name.strip()] = parse_arch(arch)
        except ValueError as error:
            raise InputError(f"--gpu-arch {text!r}: {error}") from error
        if not name.strip():
            raise InputError(
                f"--gpu-arch {text!r} does not name a GPU", "For example: --gpu-arch B400=sm110"
            )
    return archs


@dataclass(frozen=True, slots=True)
class Inputs:
    """Open databases, and what is known about their benchmarks."""

    databases: tuple[Path, ...]
    spaces: Mapping[str, tuple[ParameterRange, ...]]
    declared: Mapping[tuple[str, str, str], tuple[str, ...]]
    made: Mapping[str, RowFiles]
    """Temporary databases, and the files that their rows come from."""
    confirm: tuple[Path, ...] = ()
    """Databases of runs that confirm the choices."""

    def named(self, record: FromFiles) -> FromFiles:
        """Replaces database paths by the files that the user gave."""
        return record.model_copy(update={"databases": self.files_of(record.databases)})

    def files_of(self, databases: Iterable[object]) -> tuple[str, ...]:
        """Returns the files that the user gave, for paths of databases."""
        given = (self.made.get(str(path), {"": str(path)}).values() for path in databases)
        return tuple(dict.fromkeys(name for names in given for name in names))

    def named_warning(self, warning: DataWarning) -> DataWarning:
        """Replaces a temporary database and its row by the files that the user gave."""
        for path, row_files in self.made.items():
            if path in warning.database:
                row = (warning.table, warning.row if warning.count == 1 else None)
                name = row_files.get(row) or listed(row_files.values())
                database = warning.database.replace(path, name)
                warning = warning.model_copy(update={"database": database, "row": None})
        return warning

    def rank(
        self,
        rules: Rules,
        where: Filter = EVERYTHING,
        *,
        top: int,
        alpha: float = 1.0,
        current: str | None = None,
        explain: bool = False,
    ) -> DbTop:
        """Scores the variants of the selected workloads, and chooses among them by the rules."""
        return rank(
            self.databases,
            pattern=where.pattern,
            axes=where.values,
            top=top,
            alpha=alpha,
            rules=rules,
            current=current,
            declared=self.declared,
            confirm_with=self.confirm,
            explain=explain,
        )

    def check_values(self, where: Filter, *others: Path) -> None:
        """Raises an error if `-a` names a value that no database, `others` included, has."""
        chosen = {axis_name(axis): values for axis, values in where.values.items()}
        measured: dict[str, set[str]] = {}
        for path in (*self.databases, *others) if chosen else ():
            with open_database(path) as database:
                for table in database.tables:
                    for axis in table.axes if where.pattern.match(table.algorithm) else ():
                        if (name := axis_name(axis)) in chosen:
                            values = database.axis_values(table, axis)
                            measured.setdefault(name, set()).update(values)
        for name, values in measured.items():
            if unknown := chosen[name] - values:
                raise no_such_value(name, unknown, sorted(values))


class ShippedResults(Record):
    """Results of a campaign that are part of the package."""

    file: str
    sha256: str
    """Digest of the compressed database."""
    cub: str
    arch: Arch
    gpu: str
    ctk: str
    driver: str
    date: str


class Catalogue(Record):
    """`catalogue/manifest.toml`."""

    results: dict[str, ShippedResults]


def catalogue() -> Mapping[str, ShippedResults]:
    """Returns the results of the package by name."""
    return load_toml(folder("catalogue") / "manifest.toml", Catalogue).results


def shipped_results(name: str, cub: Cub | None = None) -> tuple[ShippedResults, Path]:
    """Returns results of the package, and their database; raises for another CUB than theirs."""
    by_name = catalogue()
    if name not in by_name:
        raise InputError(f"policygen has no results {name}", f"It has: {', '.join(by_name)}.")
    shipped = by_name[name]
    if cub and cub.version != shipped.cub:
        raise InputError(
            f"the results {name} are of CUB {shipped.cub}, not of {cub.title}",
            f"Name that CUB: --cub {shipped.cub}",
        )
    database = cache_folder() / "catalogue" / shipped.sha256 / f"{name}.db"
    if not database.is_file():
        packed = folder("catalogue") / shipped.file
        if file_sha256(packed) != shipped.sha256:
            raise InputError(f"{packed} is damaged: its digest differs", "Install policygen again.")
        write_atomically(database, lzma.decompress(packed.read_bytes()))
    return shipped, database


def shipped_name(databases: Sequence[str]) -> str | None:
    """Returns the name of the package's results that databases are, if they are any."""
    ends = [Path(name).parts[-2:] for name in databases]
    names = (n for n, shipped in catalogue().items() if ends == [(shipped.sha256, f"{n}.db")])
    return next(names, None)


def check_other(out: Path, *inputs: ResultFiles) -> None:
    """Raises an error if the output is one of the inputs, even with --force."""
    for results in inputs:
        other_files = (*results.benches, *((results.base,) if results.base else ()))
        check_not_input(out, (*expand(results.files), *map(Path, other_files)))


def ask_why(results: ResultFiles, why: str) -> ResultFiles:
    """Parses a workload typed like `cub.bench.reduce.sum T=I32` into `-R` and `-a`.

    The shell splits it into several words, so words with a `=` that are not files belong to it.
    """
    name, *axes = why.split() or [""]
    stray = [word for word in results.files if "=" in word and not Path(word).exists()]
    if not name or any("=" not in axis for axis in axes):
        raise InputError(
            f"--why {why!r} is not a workload", "For example: cub.bench.reduce.sum T=I32"
        )
    pairs = [axis.partition("=") for axis in (*axes, *stray)]
    axis_filters = [f"{axis if '{' in axis else axis + '{ct}'}={value}" for axis, _, value in pairs]
    where = Filter(regex=f"{re.escape(name)}$", axes=(*results.where.axes, *axis_filters))
    return replace(
        results, files=[file for file in results.files if file not in stray], where=where
    )


def nothing_matches(where: Filter, files: Sequence[str]) -> InputError:
    """Builds the error for a filter that matches nothing that was measured."""
    names: list[str] = []
    for path in filter(is_database, expand(files)):
        with open_database(path) as database:
            names += [table.algorithm for table in database.tables]
    hint = anchored(where.pattern, names) or "List the contents with: policygen db info DB..."
    return InputError("nothing matches", hint)


@contextmanager
def open_inputs(results: ResultFiles) -> Iterator[Inputs]:
    """Sorts files by content. NVBench results are converted to a temporary database."""
    databases: list[Path] = []
    sources: list[Path] = []
    runs: list[Path] = []
    for path in expand(results.files):
        try:
            if is_database(path):
                databases.append(path)
            elif is_nvbench(data := read_named(path)):
                runs.append(path)
            elif data and b"\0" not in data and _may_declare(path, data):
                sources.append(path)
            else:
                raise InputError(
                    f"{path}: neither a tuning database nor an NVBench result", _EXPECTED
                )
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    spaces, declared = benchmarks_of([*sources, *map(Path, results.benches)])
    with TemporaryDirectory(prefix="policygen-") as folder:
        made: dict[str, RowFiles] = {}
        if runs or results.base:
            path = Path(folder) / "nvbench.db"
            made[str(path)] = _nvbench_database(runs, results.base, path)
            databases.append(path)
        if not databases:
            raise InputError("no database given", "Name a cccl_meta_bench.db.")
        inputs = Inputs(tuple(databases), spaces, declared, made, expand(results.confirm))
        if not results.may_lack:
            inputs.check_values(results.where)
        yield inputs


def _may_declare(path: Path, data: bytes) -> bool:
    """Returns whether a text may be a benchmark source or a search space, by its name or content.

    Whoever reads it reports its errors.
    """
    from policygen.headers.search_space import is_meta  # lazy import: rarely needed

    return path.suffix in {".cu", ".cuh", ".csv"} or is_meta(data) or b"%RANGE%" in data


def benchmarks_of(
    paths: Sequence[Path],
) -> tuple[dict[str, tuple[ParameterRange, ...]], dict[tuple[str, str, str], tuple[str, ...]]]:
    """Reads search spaces and declared axes from benchmark sources or a cccl_meta_bench.csv."""
    if not paths:
        return {}, {}
    from policygen.headers.benchmark_sources import read_benchmarks  # lazy import: rarely needed

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


def _nvbench_database(runs: Sequence[Path], base: str | None, out: Path) -> RowFiles:
    """Converts NVBench results of base and variants to a database."""
    results = [(path, read_nvbench(path)) for path in runs]
    if base is not None:
        chosen = read_nvbench(Path(base))
        results = [(p, run) for p, run in results if p.resolve() != chosen.path.resolve()]
    else:
        bases = [run for _, run in results if run.is_base]
        if len(bases) != 1:
            raise InputError(
                f"{len(bases)} of {len(results)} NVBench results are baselines",
                "Name the baseline: --base FILE.json",
            )
        chosen = bases[0]
    variants = [(guess_label(path), run) for path, run in results if run is not chosen]
    if not variants:
        raise InputError("there is a baseline, but no variant to compare with it")
    return to_database(chosen, variants, out)


def tell_warnings(warnings: Sequence[DataWarning], note: Note) -> None:
    """Notes the warnings about unusable data."""
    for warning in warnings:
        note(visible(str(warning)))


@dataclass(frozen=True, slots=True)
class Ranked:
    """Open input files with their ranking."""

    files: Inputs
    top: DbTop
    rules: Rules
    left_out: tuple[ScoredWorkload, ...] = ()
    """Workloads that -R and -a exclude. Their results for a shared entry still count."""

    def workloads(self, version: BoundVersion) -> tuple[ScoredWorkload, ...]:
        """Returns the selected workloads, and those that may share an entry with them."""
        selected = self.top.workloads
        return (*selected, *related(selected, self.left_out, version))

    def choose(self, workloads: Sequence[ScoredWorkload]) -> Together:
        """Chooses one variant for several workloads."""
        files = self.files
        return choose_together(
            files.databases, workloads, self.rules, files.declared, files.confirm
        )

    def next_best(self, workloads: Sequence[ScoredWorkload], can: IsWritable) -> Together:
        """Chooses again among the variants that can be expressed."""
        files, rules = self.files, self.rules
        return choose_next(files.databases, workloads, can, rules, files.declared, files.confirm)


@contextmanager
def ranked(results: ResultFiles, rules: Rules, note: Note) -> Iterator[Ranked]:
    """Ranks the variants of databases and keeps the databases open."""
    if not results.files:
        raise InputError("no database given", "Name one: --db cccl_meta_bench.db")
    with open_inputs(results) as files:
        top = files.rank(rules, top=rules.candidates + 1)
        tell_warnings([files.named_warning(warning) for warning in top.warnings], note)
        workloads = [results.reported(workload) for workload in top.workloads]
        selected, left_out = split(workloads, results.where.pattern, results.where.values)
        if not selected:
            raise nothing_matches(results.where, results.files)
        checked = tuple(held_back(workload, rules) for workload in selected)
        yield Ranked(files, top.model_copy(update={"workloads": checked}), rules, left_out)


__all__ = ["Rules", "choose_rules"]
_RATIOS = {"worst_allowed", "confidence", "least_score"}


# Rules for when a variant is worth writing.


def rule_option(name: str) -> str:
    """Returns the option that sets a rule."""
    return "--worst" if name == "worst_allowed" else f"--{name.replace('_', '-')}"


def choose_rules(current: str | None = None, **overrides: float | bool | None) -> Rules:
    """Returns `[choose]` of `policygen.toml`, with overrides."""
    settings = configured()
    rules = settings.settings.choose if settings else Rules()
    given_overrides = {name: value for name, value in overrides.items() if value is not None}
    try:
        rules = Rules.model_validate({**rules.model_dump(), **given_overrides})
    except ValidationError as error:
        first = error.errors()[0]
        name, value = str(first["loc"][0]), first["input"]
        is_percent = isinstance(value, float) and value >= 10 and name in _RATIOS
        raise InputError(
            f"{rule_option(name)} {value}: {fault(first)}",
            f"It is a ratio, not a percentage: {value / 100:g}." if is_percent else None,
        ) from error
    if rules.prefer_simple and current is None:
        raise InputError("--prefer-simple needs --current", "Give the label of the current values.")
    if current is not None and parse_label(current) is None:
        raise InputError(
            f"--current {current!r} is not a variant label", "For example: ipt_19.tpb_512"
        )
    return rules
