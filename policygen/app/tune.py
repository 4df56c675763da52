"""`policygen tune`: searches, lets finalists decide, and writes a header: the short way."""

import math
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen import __version__, rendering
from policygen.app.apply import apply_plan
from policygen.app.emit import check_takes_selectors, emit_selectors
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.app.measure import Effort, compile_time_part
from policygen.app.plan import plan_tunings
from policygen.app.search import Observer, SearchWanted, search_variants
from policygen.app.search_places import SearchMachines
from policygen.app.session import Session, check_serves
from policygen.bindings.load import own_binding
from policygen.bindings.own_kernels import FAMILIES, KernelMaker, taken_kernel
from policygen.bindings.own_workloads import taken, taken_header
from policygen.errors import InputError
from policygen.gpu.rungs import Asked
from policygen.gpu.units import WorkloadRun, runs_of
from policygen.headers.user.policies import selector_for
from policygen.model.arch import arch_number, parse_arch
from policygen.model.emitted import Emitted, KernelHeader, TunedProgram
from policygen.model.plans import Options
from policygen.model.results import Rules
from policygen.model.trees import Cub
from policygen.proof.probe import workloads
from policygen.proof.units import axis_declaration, axis_headers
from policygen.rendering import fill
from policygen.results.ranking import rank
from policygen.textdiff import unified
from policygen.trees.lookup import open_tree
from policygen.trees.manifest import shipped


@dataclass(frozen=True, slots=True)
class TunedHeader:
    """Where the header goes, and what it is called."""

    path: Path
    namespace: str | None = None


def tune_program(
    session: Session,
    where: Filter,
    wanted: SearchWanted,
    header: TunedHeader,
    database: Path,
    *,
    rules: Rules | None = None,
    effort: Effort | None = None,
    machines: SearchMachines | None = None,
    observer: Observer | None = None,
    asked: Asked = lambda: False,
) -> TunedProgram:
    """Searches as `policygen search` does; what its last rung confirms goes into the header.

    The compiler shows that the header does what it says. Where nothing is better than what CUB
    selects there is no header. That of a kernel of one's own keeps what other GPUs have in it.
    """
    check_serves("tune", session.cub)
    kernel = taken_kernel()
    if kernel is None:
        check_takes_selectors(session.cub)
    else:
        check_header(kernel, header.path)
    rules = rules or Rules()
    searched = search_variants(
        session,
        where,
        wanted,
        database,
        effort=effort,
        machines=machines,
        observer=observer,
        asked=asked,
    )
    if kernel is not None:
        made = kernel_header(
            session, kernel, ResultFiles([str(database)]), searched.arch, header.path, rules
        )
        written = str(header.path) if made.changed or made.has_already else None
        return TunedProgram(searched=searched, emitted=None, kernel=made, header=written)
    emitted = None
    if _wins(database, where, rules):
        emitted = emit_selectors(
            session,
            ResultFiles([str(database)], where=compile_time_part(where)),
            searched.arch,
            rules,
            namespace=header.namespace,
            out=str(header.path),
        )
    if emitted is None:
        return TunedProgram(searched=searched, emitted=None, header=None)
    example = None if taken() is None else str(example_names(header.path)[0])
    return TunedProgram(
        searched=searched, emitted=emitted, header=str(header.path), example=example
    )


def _wins(database: Path, where: Filter, rules: Rules) -> bool:
    """Whether something is chosen of what was asked for."""
    part = compile_time_part(where)
    found = rank([database], pattern=part.pattern, axes=part.values, rules=rules)
    return any(one.choice and one.choice.variant for one in found.workloads)


PROGRAM, INPUTS = "own/example.cu.j2", "own/inputs.cuh.j2"
PARTS = ("inputs", "segments", "selections", "sequences", "places", "terms")
"""Of templates/measure, in the order in which they may need each other."""
_DEFINED = re.compile(
    r"^(?:struct|cudaError_t|(?:inline )?(?:long long|double|int|void)) (\w+)", re.MULTILINE
)
_WORD = re.compile(r"\w+")


# A program beside a header that was tuned for a workload of one's own: with it, and without.


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
    return (rendering.folder("templates") / "measure" / f"{name}.cuh").read_text(encoding="utf-8")


POLICY = "own/kernel_policy.cuh.j2"
VERSION = "cub/version.cuh"
"""What makes a folder a tree."""
CHAIN = "cub/own_chain.cuh"
"""What is no tuning, and asks which architecture is compiled for."""
_CHAIN = re.compile(r"(?s)^// chain\n(.*?)^// end of chain\n", re.MULTILINE)
_MADE = re.compile(
    r"(?s)^(?:enum strategies|\[\[nodiscard\]\]|struct kernel_values).*?^\};?\n", re.MULTILINE
)


# The policy header of a kernel of one's own: planned, proven and written as CUB's headers are.


def kernel_header(
    session: Session,
    maker: KernelMaker,
    results: ResultFiles,
    arch: str,
    header: Path,
    rules: Rules | None = None,
) -> KernelHeader:
    """What results of an architecture make of a header, or of one that is made; it writes nothing.

    It is a tree of one header for that: what plans and proves changes of CUB's does it here.
    """
    before = _before(maker, header, arch)
    chain, tunings = _divided(before)
    with TemporaryDirectory(prefix="policygen-") as folder:
        root = Path(folder) / "include"
        place = root / shipped().tree.tunings
        place.mkdir(parents=True)
        shutil.copyfile(session.root / VERSION, root / VERSION)
        (root / CHAIN).write_text(chain, encoding="utf-8")
        (place / maker.header).write_text(tunings, encoding="utf-8")
        cub = open_tree(root)
        folders = (str(root), *session.cub.include_folders)
        cub = cub.model_copy(update={"includes": folders, "dialect": FAMILIES})
        inside = replace(session, cub=cub, named=Path(folder) / "policygen.db")
        planned = plan_tunings(inside, results, Options(arch=arch, rules=rules or Rules()))
        made = apply_plan(inside, planned, write=False)
    written = made.changed.get(maker.header)
    after = before if written is None else _whole(written.decode(), chain)
    return KernelHeader(
        path=str(header),
        arch=arch,
        is_new=not header.exists(),
        actions=made.plan.actions,
        effect=made.effect,
        diff=unified(header.name, _old(header), after.encode()),
        text=after,
    )


def emitted_kernel(
    session: Session,
    results: ResultFiles,
    archs: Sequence[str],
    header: Path | None,
    rules: Rules | None = None,
) -> KernelHeader | None:
    """`policygen emit` for a kernel of one's own; nothing where none is taken."""
    maker = taken_kernel()
    if maker is None:
        return None
    if header is None or len(archs) != 1:
        raise InputError(
            "a kernel's header is made for one architecture, and gets those of others in turn",
            "Name both: --arch sm90 -o FILE",
        )
    return kernel_header(session, maker, results, parse_arch(archs[0]), header, rules)


def new_header(maker: KernelMaker, arch: str) -> str:
    """The header of a kernel of which nothing was tuned: what it has today, everywhere."""
    every = maker.given.every_parameter
    today = maker.spelled(maker.start)
    members = {label: {"type": maker.type_of(label), "value": today[label]} for label in every}
    return fill(
        POLICY,
        {
            "file": maker.path.name,
            "name": maker.scope,
            "arch": arch_number(arch),
            "members": members,
            "strategies": [one.name for one in maker.given.strategy],
            "classes": list(_classes(maker)),
            "includes": maker.given.includes,
        },
    )


def _before(maker: KernelMaker, header: Path, arch: str) -> str:
    if not header.exists():
        return new_header(maker, arch)
    check_header(maker, header)
    return header.read_text(encoding="utf-8")


def check_header(maker: KernelMaker, header: Path) -> None:
    """Refuses a file in which no results can be written: it is of something else, or edited."""
    if not header.exists():
        return
    text = header.read_bytes().decode(errors="replace")
    if _no_tuning(text) != _no_tuning(new_header(maker, "sm90")):
        raise InputError(
            f"{header} is no policy header of {maker.plain} as {maker.path.name} has it: its chain,"
            " its classes of sizes or its members are other ones",
            "Name another file with -o.",
        )


def _divided(text: str) -> tuple[str, str]:
    """What is no tuning, and the rest, which includes it."""
    match = _CHAIN.search(text)
    assert match is not None
    return f"#pragma once\n{match[1]}", _CHAIN.sub(f"#include <{CHAIN}>\n", text)


def _whole(tunings: str, chain: str) -> str:
    body = chain.removeprefix("#pragma once\n")
    return tunings.replace(f"#include <{CHAIN}>\n", f"// chain\n{body}// end of chain\n")


def _no_tuning(text: str) -> list[str]:
    """What is no tuning, and has to be as it was made: the chain, classes of sizes, members."""
    return [one[0] for pattern in (_CHAIN, _MADE) for one in pattern.finditer(text)]


def _old(header: Path) -> bytes:
    return header.read_bytes() if header.exists() else b""


def _classes(maker: KernelMaker) -> list[dict[str, object]]:
    """Each class, and the number of elements up to which it is: the middle to the next one."""
    sizes = {
        name: [one.elements for one in maker.given.size if (one.of or "all") == name]
        for name in maker.given.classes
    }
    names = list(sizes)
    return [
        {"name": name, "upto": math.isqrt(max(sizes[name]) * min(sizes[following]))}
        for name, following in pairwise(names)
    ] + [{"name": names[-1], "upto": None}]
