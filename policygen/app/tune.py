"""`policygen tune`: searches, confirms the finalists, and writes a header."""

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
from policygen.app.emit import emit_selectors
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.app.measured_workloads import Effort
from policygen.app.overlay import make_overlay, previous_overlay
from policygen.app.plan import plan_tunings
from policygen.app.search import Observer, SearchMachines, SearchWanted, search_variants
from policygen.app.session import Session, check_serves
from policygen.bindings.own_kernels import FAMILIES, KernelMaker, kernel_of
from policygen.bindings.own_workloads import OwnMaker, header_of, own_binding
from policygen.errors import InputError
from policygen.gpu.pool import Asked
from policygen.gpu.units import WorkloadRun, runs_of
from policygen.headers.user.policies import check_takes_selectors, selector_for, with_arguments
from policygen.model.arch import arch_number, parse_arch
from policygen.model.emitted import Emitted, KernelHeader, TunedProgram, TuneOutcome
from policygen.model.plans import Options
from policygen.model.results import Rules
from policygen.model.searches import Searched
from policygen.model.trees import Cub
from policygen.model.workload import plain
from policygen.planning.saved import served
from policygen.proof.probe import workloads
from policygen.proof.units import axis_declaration, axis_headers
from policygen.rendering import fill
from policygen.results.ranking import rank
from policygen.textdiff import unified
from policygen.trees.layout import tuning_headers
from policygen.trees.lookup import open_tree
from policygen.trees.manifest import shipped

LEAST_SCORE = 1.01
"""What a tuning must gain for your own header: less than for CUB's, which all users get."""
EMITTING = 4.0
"""Seconds of the budget for writing and proving the header, and as many for each workload."""


@dataclass(frozen=True, slots=True)
class TunedHeader:
    """Where to write the header and its namespace, or the folder of an overlay."""

    path: Path
    namespace: str | None = None
    is_overlay: bool = False


def tune_program(
    session: Session,
    where: Filter,
    options: SearchWanted,
    header: TunedHeader,
    database: Path,
    *,
    rules: Rules | None = None,
    effort: Effort | None = None,
    machines: SearchMachines | None = None,
    observer: Observer | None = None,
    stop_requested: Asked = lambda: False,
) -> TunedProgram:
    """Searches like `policygen search`, and writes what the last rung confirms to the header.

    The compiler proves what the header or overlay does. If nothing beats CUB, there is none. The
    header of a custom kernel keeps its values for other GPUs.
    """
    check_serves("tune", session.cub)
    kernel = kernel_of(session.cub)
    if header.is_overlay:
        _check_overlay(session.cub, header.path)
    elif kernel is None:
        check_takes_selectors(session.cub)
    else:
        check_header(kernel, header.path)
    rules = rules or Rules(least_score=LEAST_SCORE)
    searched = search_variants(
        session,
        where,
        replace(options, rules=rules, kept=EMITTING),
        database,
        effort=effort,
        machines=machines,
        observer=observer,
        stop_requested=stop_requested,
    )
    if kernel is not None:
        files = ResultFiles([str(database)])
        kernel_result = kernel_header(session, kernel, files, searched.arch, header.path, rules)
        written = str(header.path) if kernel_result.changed or kernel_result.has_already else None
        return TunedProgram(searched=searched, emitted=None, kernel=kernel_result, header=written)
    outcomes = tuple(_outcomes(searched, database, where, rules))
    results = ResultFiles([str(database)], where=where.compile_time, may_lack=True)
    if not any(outcome.variant for outcome in outcomes):
        return TunedProgram(searched=searched, emitted=None, outcomes=outcomes, header=None)
    if header.is_overlay:
        planned = plan_tunings(session, results, Options(arch=searched.arch, rules=rules))
        made = make_overlay(session, planned, header.path)
        written = str(header.path) if made.overlay else None
        return TunedProgram(
            searched=searched, emitted=None, overlay=made, outcomes=outcomes, header=written
        )
    out = str(header.path)
    emitted = emit_selectors(
        session, results, searched.arch, rules, namespace=header.namespace, out=out
    )
    examples = example_places(session.cub, header.path)
    return TunedProgram(
        searched=searched,
        emitted=emitted,
        outcomes=outcomes,
        header=out,
        example=str(examples[0]) if examples else None,
    )


def _check_overlay(cub: Cub, folder: Path) -> None:
    """Raises an error before a search if no overlay can be written."""
    if cub.own is not None:
        raise InputError(
            "an overlay changes CUB's own tuning headers, and FILE is a workload of your own",
            "Name a benchmark with -R and -a, or write a header: -o FILE.",
        )
    previous_overlay(folder)


def _outcomes(
    searched: Searched, database: Path, where: Filter, rules: Rules
) -> Iterator[TuneOutcome]:
    """Yields what is chosen for each selected workload, and why."""
    part = where.compile_time
    ranking = rank([database], pattern=part.pattern, axes=part.values, rules=rules)
    choices = {
        (ranked.algorithm, frozenset(plain(ranked.workload).items())): ranked.choice
        for ranked in ranking.workloads
    }
    for workload in searched.workloads:
        choice = choices.get((workload.benchmark, frozenset(workload.workload.items())))
        best = max(workload.finalists, key=lambda finalist: finalist.score, default=None)
        refused = {reject.variant: reject.reason for reject in choice.rejected} if choice else {}
        yield TuneOutcome(
            benchmark=workload.benchmark,
            workload=workload.workload,
            variant=choice.variant if choice else None,
            best=best and best.variant,
            score=best and best.score,
            interval=best and best.interval,
            least=min((at.ratio for at in best.runtime), default=None) if best else None,
            least_score=rules.least_score,
            reason=workload.problem or (choice.reason if choice else "nothing was measured"),
            passed_over=refused.get(best.variant) if best else None,
        )


PROGRAM, INPUTS = "own/example.cu.j2", "own/inputs.cuh.j2"
PARTS = ("inputs", "segments", "selections", "sequences", "places", "terms")
"""Files in templates/measure, in the order of their dependencies."""
_DEFINED = re.compile(
    r"^(?:struct|cudaError_t|(?:inline )?(?:long long|double|int|void)) (\w+)", re.MULTILINE
)
_WORD = re.compile(r"\w+")


# A program that uses a header tuned for a custom workload, with and without it.


def example_names(header: Path) -> tuple[Path, Path]:
    """Returns the path of a header's program, and of the file that fills its inputs."""
    return (
        header.with_name(f"{header.stem}_example.cu"),
        header.with_name(f"{header.stem}_inputs.cuh"),
    )


def example_places(cub: Cub, header: Path) -> tuple[Path, ...]:
    """Returns the files that are written beside a header; only custom workloads have any."""
    return example_names(header) if isinstance(cub.own, OwnMaker) else ()


def example_files(cub: Cub, emitted: Emitted, header: Path) -> dict[Path, str]:
    """Returns the program and its inputs as measured; none for CUB's benchmarks."""
    own_workload = own_binding(cub.bindings)
    if own_workload is None:
        return {}
    own_header = header_of(cub.own)
    (workload,) = workloads(own_workload.benchmark, cub.bindings)
    (run,) = runs_of(cub, workload)
    selector = selector_for(own_workload.benchmark, cub.bindings)
    selector = with_arguments(selector, tuning_headers(cub)[0].parent)
    name = selector.selector.name
    (when,) = (written.returns[0].when[0] for written in emitted.selectors if written.name == name)
    # Types are the program's own; values that CUB names in its namespaces are those of the header.
    arguments = (a.text if a.is_type else when[a.parameter] for a in selector.arguments)
    instantiated = f"<{', '.join(arguments)}>" if selector.arguments else ""
    program, inputs = example_names(header)
    call_header = [run.benchmark.call_header] if run.benchmark.call_header else []
    further = {*run.binding.includes, *axis_headers(run.workload, cub.bindings)}
    included = [*call_header, *sorted(further)]
    values = {
        "version": __version__,
        "algorithm": own_workload.call.algorithm,
        "std": emitted.std,
        "file": program.name,
        "header": header.name,
        "inputs": inputs.name,
        "includes": [f"<{name}>" for name in included if name != own_header],
        "own": own_header,
        "axes": [axis_declaration(a, t, cub.bindings) for a, t in workload.values.items()],
        "roles": own_workload.benchmark.roles,
        "constants": own_workload.benchmark.constants,
        "support": run.binding.support.strip(),
        "numbers": dict(zip(run.numbers, max(p.numbers for p in run.points), strict=True)),
        "sizes": run.binding.sizes,
        "buffers": {n: buffer.model_dump() for n, buffer in run.binding.buffers.items()},
        "setup": run.binding.setup.strip(),
        "function": run.binding.function,
        "arguments": run.binding.arguments,
        "environment": run.binding.environment,
        "selector": f"{emitted.namespace}::{name}{instantiated}",
    }
    return {
        program: fill(PROGRAM, values),
        inputs: fill(INPUTS, {"version": __version__, "parts": _parts(run)}),
    }


def _parts(run: WorkloadRun) -> list[str]:
    """Returns the code that makes the inputs, with everything that it needs."""
    folder = rendering.folder("templates") / "measure"
    texts = {name: (folder / f"{name}.cuh").read_text(encoding="utf-8") for name in PARTS}
    words = {w for b in run.binding.buffers.values() for w in _WORD.findall(b.fill or "")}
    defined = {name: {*_DEFINED.findall(text)} for name, text in texts.items()}
    needed = {PARTS[0]}
    while newly_needed := {n for n, definitions in defined.items() if definitions & words} - needed:
        needed |= newly_needed
        words = {word for name in newly_needed for word in _WORD.findall(texts[name])}
    return [texts[name] for name in PARTS if name in needed]


POLICY = "own/kernel_policy.cuh.j2"
VERSION = "cub/version.cuh"
"""The file that makes a folder a tree."""
CHAIN = "cub/own_chain.cuh"
"""The part that is not tuned, which checks the architecture being compiled for."""
_CHAIN = re.compile(r"(?s)^// chain\n(.*?)^// end of chain\n", re.MULTILINE)
_MADE = re.compile(
    r"(?s)^(?:enum strategies|\[\[nodiscard\]\]|struct kernel_values).*?^\};?\n", re.MULTILINE
)


# The policy header of a custom kernel: planned, proved, and written like CUB's headers.


def kernel_header(
    session: Session,
    maker: KernelMaker,
    results: ResultFiles,
    arch: str,
    header: Path,
    rules: Rules | None = None,
) -> KernelHeader:
    """Computes a header with the results of an architecture, new or updated. Writes nothing.

    Treats the header as a tree of one header, so that planning and proving work as for CUB's.
    """
    check_header(maker, header)
    before = header.read_text("utf-8") if header.exists() else new_header(maker, arch)
    chain, tunings = _split_chain(before)
    with TemporaryDirectory(prefix="policygen-") as folder:
        root = Path(folder) / "include"
        tunings_folder = root / shipped().tree.tunings
        tunings_folder.mkdir(parents=True)
        shutil.copyfile(session.root / VERSION, root / VERSION)
        (root / CHAIN).write_text(chain, encoding="utf-8")
        (tunings_folder / maker.header).write_text(tunings, encoding="utf-8")
        cub = open_tree(root)
        folders = (str(root), *session.cub.include_folders)
        cub = cub.model_copy(update={"includes": folders, "dialect": FAMILIES, "own": maker})
        kernel_session = replace(session, cub=cub, named=Path(folder) / "policygen.db")
        planned = plan_tunings(kernel_session, results, Options(arch=arch, rules=rules or Rules()))
        # Later architectures without a policy of their own inherit, as in a new header.
        remarks = served(planned.plan, planned.compiler.sources.headers)
        later = tuple(arch for archs in remarks.values() for arch in archs)
        options = planned.plan.options.model_copy(update={"reaches": later})
        plan = planned.plan.model_copy(update={"options": options})
        applied = apply_plan(kernel_session, replace(planned, plan=plan), write=False)
    written = applied.changed.get(maker.header)
    after = before if written is None else _join_chain(written.decode(), chain)
    return KernelHeader(
        path=str(header),
        arch=arch,
        is_new=not header.exists(),
        actions=applied.plan.actions,
        effect=applied.effect,
        diff=unified(header.name, header.read_bytes() if header.exists() else b"", after.encode()),
        text=after,
    )


def emitted_kernel(
    session: Session,
    results: ResultFiles,
    archs: Sequence[str],
    header: Path | None,
    rules: Rules | None = None,
) -> KernelHeader | None:
    """Implements `policygen emit` for a custom kernel; None if no kernel is loaded."""
    maker = kernel_of(session.cub)
    if maker is None:
        return None
    if header is None or len(archs) != 1:
        raise InputError(
            "a kernel header is written for one architecture at a time",
            "Give both: --arch sm90 -o FILE",
        )
    return kernel_header(session, maker, results, parse_arch(archs[0]), header, rules)


def new_header(maker: KernelMaker, arch: str) -> str:
    """Returns the header of an untuned kernel: its current values on all architectures."""
    parameters = maker.given.every_parameter
    today = maker.spelled(maker.start)
    members = {label: {"type": maker.type_of(label), "value": today[label]} for label in parameters}
    return fill(
        POLICY,
        {
            "file": maker.path.name,
            "name": maker.scope,
            "arch": arch_number(arch),
            "members": members,
            "strategies": [strategy.name for strategy in maker.given.strategy],
            "classes": list(_classes(maker)),
            "includes": maker.given.includes,
        },
    )


def check_header(maker: KernelMaker, header: Path) -> None:
    """Raises an error if a file cannot take results because it is another header or was edited."""
    if not header.exists():
        return
    text = header.read_bytes().decode(errors="replace")
    if _fixed_parts(text) != _fixed_parts(new_header(maker, "sm90")):
        raise InputError(
            f"{header} is not a policy header of {maker.plain} as {maker.path.name} declares it:"
            " its chain, size classes or members differ",
            "Choose another file with -o.",
        )


def _split_chain(text: str) -> tuple[str, str]:
    """Splits off the part that is not tuned; the rest includes it."""
    match = _CHAIN.search(text)
    assert match is not None
    return f"#pragma once\n{match[1]}", _CHAIN.sub(f"#include <{CHAIN}>\n", text)


def _join_chain(tunings: str, chain: str) -> str:
    body = chain.removeprefix("#pragma once\n")
    return tunings.replace(f"#include <{CHAIN}>\n", f"// chain\n{body}// end of chain\n")


def _fixed_parts(text: str) -> list[str]:
    """Returns the parts that must be as generated: chain, size classes, and members."""
    return [match[0] for pattern in (_CHAIN, _MADE) for match in pattern.finditer(text)]


def _classes(maker: KernelMaker) -> list[dict[str, object]]:
    """Returns the size classes with the number of elements up to which each applies.

    The limit is the geometric mean of the class's largest and the next one's smallest size.
    """
    sizes = {
        name: [size.elements for size in maker.given.size if (size.of or "all") == name]
        for name in maker.given.classes
    }
    names = list(sizes)
    return [
        {"name": name, "upto": math.isqrt(max(sizes[name]) * min(sizes[following]))}
        for name, following in pairwise(names)
    ] + [{"name": names[-1], "upto": None}]
