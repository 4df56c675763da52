"""Lists what benchmarks offer to tune, and how that differs from the bindings."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from policygen.app.filters import EVERYTHING, Filter
from policygen.app.own_workloads import with_workload
from policygen.app.session import open_session
from policygen.bindings.load import bindings, bound
from policygen.bindings.own_workloads import OwnBinding, header_of, own_binding
from policygen.bindings.source_check import check, nearest
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
from policygen.headers.user.policies import selector_for, takes_selectors
from policygen.model.audits import BenchCheck
from policygen.model.benchmarks import Benchmark, BenchmarkList, ParameterRange
from policygen.model.trees import BoundVersion, Cub
from policygen.opening import beside
from policygen.outputs import check_free, write_output
from policygen.proof.probe import workloads
from policygen.steps import Note, discard_note
from policygen.trees import tuning_headers
from policygen.trees.layout import read_version, readable_roots
from policygen.trees.manifest import shipped

# v3.0.3, 3.1.0-rc2
_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+)(-rc\d+)?")


def benchmarks_around(cub: str | None = None) -> Path:
    """Returns the named checkout, or the one around the current folder."""
    return checkout(Path(cub)) if cub else around(Path.cwd())


def read_tunables(
    paths: Sequence[Path], where: Filter = EVERYTHING
) -> tuple[BenchmarkList, tuple[SourceError, ...]]:
    """Reads the parameters and axes of benchmarks. Also returns the errors of unreadable files."""
    document, errors = read_benchmarks(paths)
    if document.benchmarks or not errors:
        document = select(document, where.pattern, where.values)
    return document, errors


def check_bindings(document: BenchmarkList) -> BenchCheck:
    """Compares benchmarks with the bindings of the nearest version."""
    prefix = words().benchmarks.prefix
    ours = [benchmark for benchmark in document.benchmarks if benchmark.name.startswith(prefix)]
    if not ours:
        raise InputError(
            "none of these benchmarks is one of CUB's", f"Their names begin with {prefix}"
        )
    cub = _one_version(ours)
    version = nearest(cub, (wheel.cub for wheel in shipped().wheels))
    checked = check(bound(BoundVersion(version)), document.benchmarks, cub, version)
    return checked.model_copy(update={"problems": document.problems})


def _one_version(benchmarks: Iterable[Benchmark]) -> str | None:
    """Returns the CUB version of all benchmarks; None if it is unknown."""
    source_by_version: dict[str | None, str] = {}
    for benchmark in benchmarks:
        source_by_version.setdefault(_version(Path(benchmark.source)), benchmark.source)
    if len(source_by_version) > 1:
        rows = "".join(
            f"\n    {version or 'unknown'}: {source_by_version[version]}"
            for version in source_by_version
        )
        raise InputError(
            f"these are benchmarks of several versions of CUB:{rows}", "Check one version at a time"
        )
    return next(iter(source_by_version))


def _version(source: Path) -> str | None:
    """Returns the version of the checkout around a source, or of a search space's record."""
    if source.suffix != SUFFIX and is_meta((text := read_text(source, source.parent)).data):
        match = _RELEASE.fullmatch(read_meta(text).cccl or "")
        return match[1] if match else None
    for folder in source.absolute().parents[:LEVELS]:
        if roots := readable_roots(folder, shipped().layouts.checkout):
            return read_version(roots[0])
    return None


BINDING = ".binding.toml"
"""Suffix of a binding, appended to the name of a benchmark's source."""
# reduce/particles.cu, scan/exclusive/sum.lookahead.cu
_PLACE = re.compile(r"(?:[A-Za-z_][\w-]*/)+[A-Za-z_][\w.-]*\.cu", re.ASCII)


# `policygen bench new`: a custom benchmark for a CCCL checkout, and its binding.


def new_benchmark(
    workload: Path,
    source: Path,
    *,
    cub: str | None = None,
    force: bool = False,
    note: Note = discard_note,
) -> BenchmarkList:
    """Writes a benchmark and its binding, and reads the result back from the source."""
    root = around(source.parent)
    name = _name(source, benchmarks_folder(root))
    binding = binding_of(source)
    session = open_session(cub or str(root), note=note)
    opened, _ = with_workload(session, workload, EVERYTHING, earlier=True)
    own_workload = own_binding(opened.cub.bindings)
    assert own_workload is not None
    ranges = _ranges(root, own_workload)
    header = header_of(opened.cub.own)
    (call,) = workloads(own_workload.benchmark, opened.cub.bindings)
    (run,) = runs_of(opened.cub, call)
    run = replace(run, axes=runtime_axes(own_workload))
    policy = _policy(opened.cub, own_workload, call.values)
    generated = NewSource(own_workload, run, policy, ranges, header)
    files = {source: generated.text.encode(), binding: binding_text(name, generated).encode()}
    if header is not None:
        header_copy = source.parent / header
        header_data = beside(workload, header).read_bytes()
        if not (header_copy.is_file() and header_copy.read_bytes() == header_data):
            files[header_copy] = header_data
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
    """Returns the path of a source's binding."""
    return source.with_name(source.name.removesuffix(SUFFIX) + BINDING)


def _name(source: Path, folder: Path) -> str:
    """Returns the name that CCCL's build gives a source; raises if it would not be built."""
    path = Path(os.path.abspath(source))  # noqa: PTH100  links stay as the user typed them
    root = Path(os.path.abspath(folder))  # noqa: PTH100
    if not path.is_relative_to(root) or not _PLACE.fullmatch(path.relative_to(root).as_posix()):
        raise InputError(
            f"{source}: CCCL does not build benchmarks in this folder",
            f"Put it in a folder below {folder.as_posix()}, with the suffix {SUFFIX}:"
            " cub/benchmarks/bench/reduce/particles.cu",
        )
    name = ".".join(("cub", "bench", *path.relative_to(root).with_suffix("").parts))
    bound_names = {
        benchmark.name
        for binding in bindings()
        for benchmark in binding.benchmarks
        if not benchmark.like
    }
    if name in bound_names:
        raise InputError(f"{source}: {name} is already a benchmark of CUB", "Choose another name.")
    return name


def _ranges(root: Path, own_workload: OwnBinding) -> tuple[ParameterRange, ...]:
    """Returns the parameters of the benchmark that it resembles, from the checkout's source."""
    template = own_workload.like
    if not template.parameters:
        raise InputError(
            f"{own_workload.call.algorithm} has no tuning parameters: {template.name} defines none"
        )
    errors: list[SourceError] = []
    files = [file for file in find(root, errors) if file.name == template.name]
    document, unread = read_benchmarks([file.path for file in files])
    if errors or unread:
        raise Problems([*errors, *unread])
    match = next(
        (candidate for candidate in document.benchmarks if candidate.name == template.name), None
    )
    if match is None:
        raise InputError(
            f"{root.as_posix()} has no {template.name}, which defines the parameters of a"
            f" benchmark of {own_workload.call.algorithm}",
            "Name a path in a complete CCCL checkout.",
        )
    labels = {parameter.label for parameter in match.parameters}
    if labels != {*template.parameters}:
        raise InputError(
            f"{match.source}: its parameters are {', '.join(sorted(labels)) or 'none'}, but those"
            f" of its binding are {', '.join(sorted(template.parameters))}",
            "policygen bench --check lists all differences.",
        )
    return match.parameters


def _policy(
    cub: Cub, own_workload: OwnBinding, values: Mapping[str, str]
) -> SelectorPart | HubPart:
    """Returns what passes a policy to the algorithm: the public API, or an earlier CUB's class."""
    if not takes_selectors(cub.version):
        return hub_for(own_workload.benchmark, values, cub.bindings)
    selector = selector_for(own_workload.benchmark, cub.bindings)
    structs = policy_structs(tuning_headers(cub)[0].parent)
    return SelectorPart(selector, read_aggregate(structs, selector.selector.policy))
