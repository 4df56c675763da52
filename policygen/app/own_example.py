"""A program beside a header that was tuned for a workload of one's own: with it, and without."""

import re
from collections.abc import Iterator
from pathlib import Path

from policygen import __version__, resources
from policygen.bindings.load import own_binding
from policygen.bindings.own import taken, taken_header
from policygen.dialects.user.public import selector_for
from policygen.errors import InputError
from policygen.measure.runs import WorkloadRun, runs_of
from policygen.model.cub import Cub
from policygen.model.emit import Emitted
from policygen.proof.probe import workloads
from policygen.proof.unit import axis_declaration, axis_headers
from policygen.rendering import fill

PROGRAM, INPUTS = "own/example.cu.j2", "own/inputs.cuh.j2"
PARTS = ("inputs", "segments", "selections", "sequences", "places", "terms")
"""Of templates/measure, in the order in which they may need each other."""
_DEFINED = re.compile(
    r"^(?:struct|cudaError_t|(?:inline )?(?:long long|double|int|void)) (\w+)", re.MULTILINE
)
_WORD = re.compile(r"\w+")


def example_names(header: Path) -> tuple[Path, Path]:
    """Where the program of a header stands, and what fills its inputs."""
    return (
        header.with_name(f"{header.stem}_example.cu"),
        header.with_name(f"{header.stem}_inputs.cuh"),
    )


def example_places(header: Path) -> tuple[Path, ...]:
    """The files that are written beside a header: for a workload of one's own alone."""
    return () if taken() is None else example_names(header)


def example_files(cub: Cub, emitted: Emitted, header: Path) -> dict[Path, str]:
    """The program, and what fills its inputs as they were measured; none for CUB's benchmarks."""
    own = own_binding(cub.bindings)
    if own is None:
        return {}
    own_header = taken_header()
    (workload,) = workloads(own.benchmark, cub.bindings)
    (run,) = runs_of(cub, workload)
    selector = selector_for(own.benchmark, cub.bindings)
    name = next((one.name for one in emitted.selectors if one.name == selector.selector.name), None)
    if name is None:
        raise InputError(f"{header}: it has no selector for {own.benchmark.name}")
    roles = f"<{', '.join(selector.roles)}>" if selector.roles else ""
    program, inputs = example_names(header)
    values = {
        "version": __version__,
        "algorithm": own.call.algorithm,
        "std": emitted.std,
        "file": program.name,
        "header": header.name,
        "inputs": inputs.name,
        "includes": [f"<{name}>" for name in _includes(run) if name != own_header],
        "own": own_header,
        "axes": [axis_declaration(a, t, cub.bindings) for a, t in workload.values.items()],
        "roles": own.benchmark.roles,
        "constants": own.benchmark.constants,
        "support": run.binding.support.strip(),
        "numbers": _largest(run),
        "sizes": run.binding.sizes,
        "buffers": {n: one.model_dump() for n, one in run.binding.buffers.items()},
        "setup": run.binding.setup.strip(),
        "function": run.binding.function,
        "arguments": run.binding.arguments,
        "environment": run.binding.environment,
        "selector": f"{emitted.namespace}::{name}{roles}",
    }
    return {
        program: fill(PROGRAM, values),
        inputs: fill(INPUTS, {"version": __version__, "parts": _parts(run)}),
    }


def _includes(run: WorkloadRun) -> Iterator[str]:
    if run.benchmark.call_header:
        yield run.benchmark.call_header
    yield from sorted({*run.binding.includes, *axis_headers(run.workload, run.cub.bindings)})


def _largest(run: WorkloadRun) -> dict[str, int]:
    """The runtime workload with the most elements, by what units call its axes."""
    point = max(run.points, key=lambda one: one.numbers)
    return dict(zip(run.numbers, point.numbers, strict=True))


def _parts(run: WorkloadRun) -> list[str]:
    """What its inputs are made with, and what that needs."""
    texts = {name: _text(name) for name in PARTS}
    words = {w for b in run.binding.buffers.values() for w in _WORD.findall(b.fill or "")}
    needed = _needed(texts, words)
    return [texts[name] for name in PARTS if name in needed]


def _needed(texts: dict[str, str], words: set[str]) -> set[str]:
    defined = {name: {*_DEFINED.findall(text)} for name, text in texts.items()}
    found, waiting = {PARTS[0]}, words
    while more := {n for n, own in defined.items() if own & waiting} - found:
        found |= more
        waiting = {word for name in more for word in _WORD.findall(texts[name])}
    return found


def _text(name: str) -> str:
    return (resources.folder("templates") / "measure" / f"{name}.cuh").read_text(encoding="utf-8")
