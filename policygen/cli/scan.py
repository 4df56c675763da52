"""`policygen scan`: every tuning family and entry of a tree."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.options import (
    cub_option,
    filter_options,
    output_options,
    parse_archs,
    parse_axes,
    parse_regex,
)
from policygen.errors import InputError, Problems, SourceError

if TYPE_CHECKING:
    from policygen.model.cub import Cub
    from policygen.model.tuning import Scan, TuningHeader


@click.command()
@click.argument("headers", nargs=-1, metavar="[HEADER]...")
@cub_option
@filter_options
@click.option("--arch", "archs", multiple=True, metavar="ARCH", help="Only this arch. Repeatable.")
@click.option("--no-cache", is_flag=True, help="Read anew what is known from before.")
@output_options
def scan(
    headers: tuple[str, ...],
    cub: str | None,
    regex: str,
    axes: tuple[str, ...],
    archs: tuple[str, ...],
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Shows every tuning family and entry of a tree.

    HEADER is an algorithm (scan), a header's name (tuning_scan.cuh) or a file; with one, or with
    -v, the entries are listed too. -R matches algorithms and qualified family names; -a takes
    template parameters as axes, and what guarded returns ask for: -a 'KeySize=[1,2]',
    -a 'key_size=1'.
    """
    document, errors = read_scan(
        headers,
        cub=cub,
        regex=regex,
        axes=axes,
        archs=archs,
        cached=not no_cache,
        selectors=True,
    )
    if as_json:
        sys.stdout.write(document.to_json() + "\n")
    else:
        from policygen.report.views.scan import print_scan

        print_scan(document, entries=verbose or bool(headers), head=not quiet)
    if errors:
        raise Problems(errors)
    return 0


def read_scan(
    headers: tuple[str, ...],
    *,
    cub: str | None,
    regex: str = "",
    axes: tuple[str, ...] = (),
    archs: tuple[str, ...] = (),
    cached: bool = True,
    selectors: bool = False,
) -> "tuple[Scan, tuple[SourceError, ...]]":
    """The scan of a tree, or of some of its headers, and what could not be read."""
    from policygen.dialects.scan import scan_headers
    from policygen.model.base import Problem
    from policygen.model.tuning import Scan
    from policygen.source.select import matches, select_families

    pattern, args, wanted = parse_regex(regex), parse_axes(axes), parse_archs(archs)
    found, paths = tree_and_headers(headers, cub)
    scanned = scan_headers(paths, cached=cached)
    families = select_families(scanned.headers, pattern, wanted, args, selectors=selectors)
    if not families and not scanned.errors and (regex or axes or archs):
        raise _nothing_left(regex, axes, archs, scanned.headers)
    chains = tuple(c for h in scanned.headers for c in h.chains if matches(pattern, c))
    problems = tuple(Problem.of(error) for error in scanned.errors)
    return Scan(cub=found, families=families, chains=chains, problems=problems), scanned.errors


def tree_and_headers(names: tuple[str, ...], cub: str | None) -> "tuple[Cub, tuple[Path, ...]]":
    """The tree, and the headers that are named, or all of them."""
    from policygen import tree
    from policygen.cli.opening import open_cub

    files = {name: Path(name) for name in names if Path(name).is_file()}
    if cub is None and files and len(files) == len(names):
        return _tree_of(next(iter(files.values()))), tuple(files.values())
    found = open_cub(cub)
    known = tree.tuning_headers(found)
    return found, tuple(files.get(name) or _header(name, known) for name in names) or known


def _tree_of(header: Path) -> "Cub":
    """The tree around a header; a header that lies by itself is its own."""
    from policygen import tree
    from policygen.cli.opening import tell_interrupted
    from policygen.model.cub import Cub

    try:
        found = tree.open_tree(header)
    except InputError:
        folder = str(header.resolve().parent)
        return Cub(root=folder, version="unknown", dialect="specializations", found="header")
    tell_interrupted(found)
    return found


def _header(name: str, known: "tuple[Path, ...]") -> Path:
    from policygen.source.select import algorithm

    for path in known:
        if name in {path.name, path.stem, algorithm(path.name)}:
            return path
    raise InputError(
        f"no tuning header is called {name!r}",
        "Here are: " + ", ".join(algorithm(path.name) for path in known),
    )


def _nothing_left(
    regex: str, axes: tuple[str, ...], archs: tuple[str, ...], headers: "tuple[TuningHeader, ...]"
) -> InputError:
    """A filter that matches nothing is a mistyped one."""
    from policygen.source.select import algorithm

    asked = [f"-R {regex!r}"] if regex else []
    asked += [f"--arch {arch}" for arch in archs] + [f"-a {axis!r}" for axis in axes]
    families = [family for header in headers for family in header.families]
    algorithms = sorted({algorithm(family.header) for family in families})
    known = sorted({family.arch for family in families}, key=lambda arch: int(arch[2:]))
    parameters = sorted({p.label for family in families for p in family.parameters})
    return InputError(
        f"nothing matches {' '.join(asked)}",
        f"Algorithms with tuning families: {', '.join(algorithms) or 'none'}\n"
        f"  archs: {', '.join(known) or 'none'}\n"
        f"  template parameters for -a: {', '.join(parameters) or 'none'}",
    )
