"""What is given to `policygen db`: databases, NVBench results, search spaces, told by content."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.errors import InputError, Problems
from policygen.model.bench import ParameterRange
from policygen.model.results import ScoredWorkload


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

    def named(self, workload: ScoredWorkload) -> ScoredWorkload:
        """The workload with the files that the user gave."""
        files = [name for path in workload.databases for name in self.made.get(path, (path,))]
        return workload.model_copy(update={"databases": tuple(files)})


def is_results(path: Path) -> bool:
    """Whether a file that only a plan or a store names holds results; else nobody looks into it."""
    from policygen.results.database import is_database
    from policygen.results.nvbench import is_nvbench

    try:
        return path.is_file() and (is_database(path) or is_nvbench(path.read_bytes()))
    except OSError:
        return False


@contextmanager
def open_inputs(
    files: Sequence[str],
    benches: Sequence[str],
    base: str | None = None,
    confirm: Sequence[str] = (),
) -> Iterator[Inputs]:
    """Sorts files by their content; NVBench's results become a database for the time being."""
    from policygen.results.database import is_database
    from policygen.results.files import read_regular
    from policygen.results.load import expand
    from policygen.results.nvbench import is_nvbench

    databases: list[Path] = []
    others: list[Path] = []
    runs: list[Path] = []
    for path in expand(files):
        try:
            if is_database(path):
                databases.append(path)
            elif is_nvbench(data := read_regular(path)):
                runs.append(path)
            elif data and b"\0" not in data:
                others.append(path)
            else:
                raise InputError(
                    f"{path}: not an SQLite database", "Expected a cccl_meta_bench.db."
                )
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    spaces, declared = _benchmarks([*others, *map(Path, benches)])
    with TemporaryDirectory(prefix="policygen-") as folder:
        made: dict[str, tuple[str, ...]] = {}
        if runs or base:
            path, files_of = _nvbench(runs, base, Path(folder))
            databases.append(path)
            made[str(path)] = files_of
        if not databases:
            raise InputError("no database is given", "Name a cccl_meta_bench.db.")
        yield Inputs(tuple(databases), spaces, declared, made, expand(confirm))


def _benchmarks(
    paths: Sequence[Path],
) -> tuple[dict[str, tuple[ParameterRange, ...]], dict[tuple[str, str, str], tuple[str, ...]]]:
    """Search spaces and declared axes, of benchmark sources or a cccl_meta_bench.csv."""
    if not paths:
        return {}, {}
    from policygen.source.benchmarks.read import read_benchmarks

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
    from policygen.results.nvbench import guess_label, read_nvbench, to_database

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
