"""Where the fixtures are, and how a test makes a source of its own."""

from pathlib import Path

from policygen.headers.benchmark_sources import read_benchmarks
from policygen.model.benchmarks import Axis, Benchmark, BenchmarkList

FIXTURES = Path(__file__).parents[3] / "fixtures" / "bench"
CHECKOUT = FIXTURES / "checkout"


def write(folder: Path, text: str | bytes, name: str = "bench/one.cu") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder: Path, text: str | bytes) -> Benchmark:
    document, errors = read_benchmarks([write(folder, text)])
    assert errors == ()
    return document.benchmarks[0]


def read_axes(folder: Path, text: str) -> tuple[Axis, ...]:
    return read(folder, text).subbenches[0].axes


def failures(path: Path) -> list[str]:
    document, errors = read_benchmarks([path])
    assert len(document.problems) == len(errors)
    return [str(error).replace(f"{path.parent.as_posix()}/", "") for error in errors]


def checkout() -> BenchmarkList:
    document, errors = read_benchmarks([CHECKOUT])
    assert errors == ()
    return document
