"""`policygen bench new`: a benchmark of one's own for a CCCL checkout, and its binding."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from policygen.app.benchmark_binding import binding_text
from policygen.app.benchmark_policy import HubPart, SelectorPart
from policygen.app.benchmark_source import NewSource, runtime_axes
from policygen.app.benchmarks import read_tunables
from policygen.app.emit import takes_selectors
from policygen.app.filters import EVERYTHING
from policygen.app.notes import Note, unsaid
from policygen.app.own_workloads import with_workload
from policygen.app.session import open_session
from policygen.bindings.load import bindings, own_binding
from policygen.bindings.own import OwnBinding, beside, taken_header
from policygen.dialects.selectors.aggregates import policy_structs, read_aggregate
from policygen.dialects.user.hubs import hub_for
from policygen.dialects.user.public import selector_for
from policygen.errors import InputError, Problems, SourceError
from policygen.measure.runs import runs_of
from policygen.model.bench import BenchmarkList, ParameterRange
from policygen.model.cub import Cub
from policygen.outputs import check_free, write_output
from policygen.proof.probe import workloads
from policygen.source.benchmarks.files import SUFFIX, around, benchmarks_folder, find
from policygen.source.benchmarks.read import read_benchmarks
from policygen.tree import tuning_headers

BINDING = ".binding.toml"
"""Behind the name of a benchmark's source."""
# reduce/particles.cu, scan/exclusive/sum.lookahead.cu
_PLACE = re.compile(r"(?:[A-Za-z_][\w-]*/)+[A-Za-z_][\w.-]*\.cu", re.ASCII)


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
