"""`policygen bench`: what benchmarks offer to tune."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.options import (
    cub_option,
    filter_options,
    output_options,
    parse_axes,
    parse_regex,
)
from policygen.errors import InputError, Problems

if TYPE_CHECKING:
    from policygen.model.bench import Benchmark, BenchmarkList
    from policygen.model.bench_check import BenchCheck

# v3.0.3, 3.1.0-rc2
_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+)(-rc\d+)?")


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--check", "compare", is_flag=True, help="Compare with the bindings; 1 when they differ."
)
@cub_option
@filter_options
@output_options
def bench(
    paths: tuple[Path, ...],
    compare: bool,
    cub: str | None,
    axes: tuple[str, ...],
    regex: str,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """The parameters, variants and workloads of benchmarks.

    PATH is a benchmark's .cu file, a folder of them, a CCCL checkout, or a cccl_meta_bench.csv.
    Without one: the benchmarks of --cub, else of the checkout around the current folder.
    """
    from policygen.source.benchmarks.files import around, checkout
    from policygen.source.benchmarks.read import read_benchmarks
    from policygen.source.benchmarks.select import select

    names, chosen = parse_regex(regex), parse_axes(axes)
    if compare and chosen:
        raise click.UsageError("--check compares whole axes: give no -a with it")
    if not paths:
        paths = (checkout(Path(cub)) if cub else around(Path.cwd()),)
        if not quiet:
            click.echo(f"benchmarks of {paths[0].as_posix()}", err=True)
    document, errors = read_benchmarks(paths)
    if document.benchmarks or not errors:
        document = select(document, names, chosen)
    differs = _show(document, compare=compare, as_json=as_json, verbose=verbose)
    if errors:
        raise Problems(errors)
    return int(differs)


def _show(document: "BenchmarkList", *, compare: bool, as_json: bool, verbose: bool) -> bool:
    """Prints the benchmarks, or how they differ from the bindings, and says whether they do."""
    from policygen.report.console import results
    from policygen.report.views import bench, bench_check

    checked = _check(document) if compare and document.benchmarks else None
    if as_json:
        click.echo((checked or document).to_json())
    elif checked:
        bench_check.show(checked, results())
    elif document.benchmarks:
        bench.show(document, results(), verbose=verbose)
    return checked is not None and checked.differing > 0


def _check(document: "BenchmarkList") -> "BenchCheck":
    from policygen.bindings.check import check, nearest
    from policygen.bindings.load import bound
    from policygen.bindings.words import words
    from policygen.tree.manifest import shipped

    prefix = words().benchmarks.prefix
    ours = [one for one in document.benchmarks if one.name.startswith(prefix)]
    if not ours:
        raise InputError("none of these benchmarks is CUB's", f"their names begin with {prefix}")
    cub = _one_version(ours)
    version = nearest(cub, (wheel.cub for wheel in shipped().wheels))
    checked = check(bound(version), document.benchmarks, cub, version)
    return checked.model_copy(update={"problems": document.problems})


def _one_version(benchmarks: Iterable["Benchmark"]) -> str | None:
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
    from policygen.source.benchmarks.files import SUFFIX
    from policygen.source.benchmarks.meta import is_meta, read_meta
    from policygen.source.benchmarks.read import LEVELS
    from policygen.source.benchmarks.sources import read_text
    from policygen.tree.layout import readable_roots
    from policygen.tree.manifest import shipped
    from policygen.tree.version import read_version

    if source.suffix != SUFFIX and is_meta((text := read_text(source, source.parent)).data):
        match = _RELEASE.fullmatch(read_meta(text).cccl or "")
        return match[1] if match else None
    for folder in source.absolute().parents[:LEVELS]:
        if roots := readable_roots(folder, shipped().layouts.checkout):
            return read_version(roots[0])
    return None
