"""Which workloads have other machine code after a change, and which have the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from policygen.app.base import Base
from policygen.app.change import read_before
from policygen.app.comparing import Chosen, Compiles, choose_compiles, narrowed
from policygen.app.filters import Filter
from policygen.app.kernel_tools import nvcc_maker
from policygen.app.reading import read_tree
from policygen.app.resolve import ask_values
from policygen.app.session import Session
from policygen.model.resolve import EntryPlace
from policygen.model.workload import Point, in_words, point_of
from policygen.paths import cache_folder
from policygen.proof.review import touched
from policygen.proof.sass.calls import DeviceCall
from policygen.proof.sass.compiler import KernelCompiler, workers
from policygen.proof.sass.sides import compile_sides
from policygen.proof.toolchain import Toolchain
from policygen.proof.unit import Workload
from policygen.report.console import plural

MANY = 40
"""Workloads, above which it is said how to choose among them: each takes seconds of a core."""


@dataclass(frozen=True, slots=True)
class ChangedCode:
    """What a change does to the machine code of workloads, on one architecture."""

    different: Mapping[Point, tuple[Workload, Workload]]
    """By workload: before and after."""
    same: tuple[Point, ...]
    refused: Mapping[Point, str]
    """Those that do not compile on a side, or that one side alone has."""
    remarks: tuple[str, ...]
    entries: Mapping[Point, EntryPlace | None] | None = None
    """What decides them after the change; none where it is not known."""
    said: Mapping[EntryPlace, float] = field(default_factory=dict)
    """The scores that comments of entries say which are new, or say something else."""


def find_changed_code(
    session: Session,
    base: Base,
    where: Filter,
    arch: str,
    toolchain: Toolchain,
    *,
    everything: bool = False,
    jobs: int | None = None,
) -> ChangedCode:
    """Compiles what a change can touch, before and after it; `everything`: all of its headers."""
    whole = Filter((), "", where.axes, ())
    chosen = Chosen(whole.pattern, whole.values, everything=False)
    maker = nvcc_maker(toolchain)
    compiles = choose_compiles(session.cub, base, chosen, (arch,), maker)
    if not everything:
        compiles = narrowed(compiles, session.progress)
    spots = [spot for spot in compiles.spots if where.pattern.match(spot[0][0])]
    if len(spots) > MANY:
        lot = plural(len(spots), "workload is", "workloads are")
        session.note(f"{lot} compiled before and after: -R and -a choose among them")
    with workers(jobs) as executor:
        folder: Path = cache_folder()
        compiler = KernelCompiler(maker.tools, folder, executor, session.progress)
        sides = compile_sides(compiles.before, compiles.after, spots, compiler)
    different, same, refused = {}, [], {}
    for spot in spots:
        point = spot[0]
        if why := sides.refusal(spot):
            refused[point] = why.in_line
        elif sides.same_code(spot):
            same.append(point)
        elif both := _both(compiles, point):
            different[point] = both
        else:
            refused[point] = f"one side alone has {in_words(point[0], dict(point[1]))}"
    code = ChangedCode(different, tuple(same), refused, compiles.remarks)
    if not different or not compiles.headers:
        return code  # other files may decide anything
    names = sorted(compiles.headers)
    after = read_tree(session.cub, names)
    told, errors = ask_values(after, Filter(archs=(arch,)), progress=session.progress)
    if errors or told.unresolved:
        return code
    rows = {point_of(row.benchmark, row.workload): row.entry for row in told.rows}
    changed = touched(read_before(base, names).headers, after.headers)
    said = {one.place: one.after.scores[0] for one in changed if one.after and one.after.scores}
    return replace(code, entries=rows, said=said)


def _both(compiles: Compiles, point: Point) -> tuple[Workload, Workload] | None:
    sides = compiles.before.get(point), compiles.after.get(point)
    calls = [one for one in sides if isinstance(one, DeviceCall)]
    return (calls[0].workload, calls[1].workload) if len(calls) == 2 else None
