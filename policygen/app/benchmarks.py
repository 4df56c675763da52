"""What benchmarks offer to tune, and how that differs from the bindings."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from policygen.app.emit import takes_selectors
from policygen.app.filters import EVERYTHING, Filter
from policygen.app.own_workloads import with_workload
from policygen.app.session import Note, open_session, unsaid
from policygen.bindings.comparison import check, nearest
from policygen.bindings.load import bindings, bound, own_binding
from policygen.bindings.own_workloads import OwnBinding, beside, taken_header
from policygen.bindings.words import words
from policygen.errors import InputError, Problems, SourceError
from policygen.gpu.benchmark_policy import HubPart, SelectorPart, hub_for
from policygen.gpu.benchmark_writing import NewSource, binding_text, runtime_axes
from policygen.gpu.units import runs_of
from policygen.headers.benchmark_sources import (
    LEVELS,
    SUFFIX,
    around,
    benchmarks_folder,
    checkout,
    find,
    read_benchmarks,
    select,
)
from policygen.headers.preprocessor import read_text
from policygen.headers.search_space import is_meta, read_meta
from policygen.headers.selectors.functions import policy_structs, read_aggregate
from policygen.headers.user.policies import selector_for
from policygen.model.audits import BenchCheck
from policygen.model.benchmarks import Benchmark, BenchmarkList, ParameterRange
from policygen.model.trees import Cub
from policygen.outputs import check_free, write_output
from policygen.proof.probe import workloads
from policygen.trees import tuning_headers
from policygen.trees.layout import read_version, readable_roots
from policygen.trees.manifest import shipped

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


BINDING = ".binding.toml"
"""Behind the name of a benchmark's source."""
# reduce/particles.cu, scan/exclusive/sum.lookahead.cu
_PLACE = re.compile(r"(?:[A-Za-z_][\w-]*/)+[A-Za-z_][\w.-]*\.cu", re.ASCII)


# `policygen bench new`: a benchmark of one's own for a CCCL checkout, and its binding.


def new_benchmark(
    workload: Path,
    source: Path,
    *,
    cub: str | None = None,
    force: bool = False,
    note: Note = unsaid,
) -> BenchmarkList:
    """Writes a benchmark and its binding; what is returned was read back from the source."""
    root = around(source.parent)
    name = _name(source, benchmarks_folder(root))
    binding = binding_of(source)
    session = open_session(cub or str(root), note=note)
    with with_workload(session, workload, EVERYTHING, earlier=True) as (opened, _):
        own = own_binding(opened.cub.bindings)
        assert own is not None
        ranges = _ranges(root, own)
        header = taken_header()
        made = _source(opened.cub, own, ranges, header)
        files = {source: made.text.encode(), binding: binding_text(name, made).encode()}
        if header is not None:
            place = source.parent / header
            given = beside(workload, header).read_bytes()
            if not (place.is_file() and place.read_bytes() == given):
                files[place] = given
    for path in files:
        check_free(path, force=force)
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_output(path, data, force=force)
    document, errors = read_tunables((source,))
    if errors:
        raise Problems(errors)
    return document


def binding_of(source: Path) -> Path:
    """Where the binding of a source stands."""
    return source.with_name(source.name.removesuffix(SUFFIX) + BINDING)


def _name(source: Path, folder: Path) -> str:
    """What CCCL's build calls a source; refused where it would build none."""
    whole = Path(os.path.abspath(source))  # noqa: PTH100  links stay as the user typed them
    top = Path(os.path.abspath(folder))  # noqa: PTH100
    if not whole.is_relative_to(top) or not _PLACE.fullmatch(whole.relative_to(top).as_posix()):
        raise InputError(
            f"{source}: CCCL builds no benchmark there",
            f"It stands in a folder below {folder.as_posix()}, and ends in {SUFFIX}:"
            " cub/benchmarks/bench/reduce/particles.cu",
        )
    name = ".".join(("cub", "bench", *whole.relative_to(top).with_suffix("").parts))
    known = {one.name for binding in bindings() for one in binding.benchmarks if not one.like}
    if name in known:
        raise InputError(f"{source}: {name} is a benchmark of CUB's", "Choose another name.")
    return name


def _ranges(root: Path, own: OwnBinding) -> tuple[ParameterRange, ...]:
    """The parameters of the benchmark that it is like, as the checkout's source has them."""
    like = own.like
    if not like.parameters:
        raise InputError(f"{own.call.algorithm} has nothing to tune: {like.name} has no parameters")
    errors: list[SourceError] = []
    files = [file for file in find(root, errors) if file.name == like.name]
    document, unread = read_benchmarks([file.path for file in files])
    if errors or unread:
        raise Problems([*errors, *unread])
    found = next((one for one in document.benchmarks if one.name == like.name), None)
    if found is None:
        raise InputError(
            f"{root.as_posix()} has no {like.name}, whose parameters a benchmark of"
            f" {own.call.algorithm} has",
            "Name a place in a whole CCCL checkout.",
        )
    labels = {one.label for one in found.parameters}
    if labels != {*like.parameters}:
        raise InputError(
            f"{found.source}: its parameters are {', '.join(sorted(labels)) or 'none'}, and those"
            f" of its binding {', '.join(sorted(like.parameters))}",
            "policygen bench --check tells all that differs.",
        )
    return found.parameters


def _source(
    cub: Cub, own: OwnBinding, ranges: tuple[ParameterRange, ...], header: str | None
) -> NewSource:
    axes = runtime_axes(own)
    (workload,) = workloads(own.benchmark, cub.bindings)
    (run,) = runs_of(cub, workload)
    return NewSource(
        own, replace(run, axes=axes), _policy(cub, own, workload.values), ranges, header, axes
    )


def _policy(cub: Cub, own: OwnBinding, values: Mapping[str, str]) -> SelectorPart | HubPart:
    """What gives a policy to the algorithm: the public API, or an earlier CUB's class."""
    if not takes_selectors(cub):
        return HubPart(hub_for(own.benchmark, values, cub.bindings))
    selector = selector_for(own.benchmark, cub.bindings)
    structs = policy_structs(tuning_headers(cub)[0].parent)
    return SelectorPart(selector, read_aggregate(structs, selector.selector.policy))
