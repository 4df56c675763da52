"""`policygen tune`: searches, lets finalists decide, and writes a header: the short way."""

from dataclasses import dataclass
from pathlib import Path

from policygen.app.emit import check_takes_selectors, emit_selectors
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.app.measure import Effort, compile_time_part
from policygen.app.own_example import example_names
from policygen.app.own_kernels import check_header, kernel_header
from policygen.app.search import Observer, SearchWanted, search_variants
from policygen.app.search_places import SearchMachines
from policygen.app.serving import check_serves
from policygen.app.session import Session
from policygen.bindings.own import taken
from policygen.bindings.own_kernel import taken_kernel
from policygen.model.results import Rules
from policygen.model.tune import TunedProgram
from policygen.results.top import rank
from policygen.search.gpu import Asked


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
