"""What tuning databases hold, how good the variants are, which ones to take."""

from datetime import UTC, datetime
from pathlib import Path

from policygen.app.filters import parse_regex
from policygen.app.inputs import ResultFiles, nothing_matches, open_inputs
from policygen.errors import InputError
from policygen.model.results import DbCoverage, DbInfo, DbTop, Rules
from policygen.results.coverage import cover
from policygen.results.info import describe, file_sha256
from policygen.results.load import expand
from policygen.results.store import ChosenFrom, ChosenRow, Store
from policygen.results.top import rank

Told = DbTop | DbCoverage | DbInfo
"""What tells of databases, with warnings."""


def rank_variants(
    given: ResultFiles,
    rules: Rules,
    *,
    top: int | None = None,
    alpha: float = 1.0,
    current: str | None = None,
    record: Path | None = None,
    explain: bool = False,
) -> DbTop:
    """Scores the variants of each workload and chooses among them; tells the `top` ones.

    The choices are kept in the store `record`; `explain` adds what they rest on.
    """
    with open_inputs(given) as files:
        document = rank(
            files.databases,
            pattern=given.where.pattern,
            axes=given.where.values,
            top=top or rules.candidates + 1,
            alpha=alpha,
            rules=rules,
            current=current,
            declared=files.declared,
            confirm_with=files.confirm,
            explain=explain,
        )
        named = tuple(files.named(workload) for workload in document.workloads)
    if not named and not document.warnings:
        raise nothing_matches(given.where, given.files)
    document = document.model_copy(update={"workloads": named})
    if record is not None:
        _keep_choices(record, document)
    return document


def _keep_choices(path: Path, document: DbTop) -> None:
    """Keeps what was decided, from which files."""
    now = datetime.now(UTC)
    rows = [
        ChosenRow(
            chosen_at=now,
            sources=tuple(
                ChosenFrom(path=name, sha256=file_sha256(Path(name))) for name in found.databases
            ),
            algorithm=found.algorithm,
            workload=found.workload,
            gpu=found.gpu,
            ctk=found.ctk,
            cccl=found.cccl,
            decision=found.choice.decision,
            variant=found.choice.variant,
            score=found.choice.score,
            reason=found.choice.reason,
        )
        for found in document.workloads
        if found.choice is not None
    ]
    with Store.open(path) as store:
        store.record(rows)


def cover_spaces(given: ResultFiles) -> DbCoverage:
    """Tells how much of the search space was measured."""
    with open_inputs(given) as files:
        document = cover(files.databases, files.spaces, given.where.pattern, given.where.values)
    if not document.workloads and not document.warnings:
        raise nothing_matches(given.where, given.files)
    return document


def describe_databases(given: ResultFiles) -> DbInfo:
    """Tells what databases hold, and what the search took."""
    if given.where.axes:
        raise InputError("db info takes no -a", "It shows all axes with their values.")
    document = describe(expand(given.files), parse_regex(given.where.regex))
    if given.where.regex and not any(database.tables for database in document.databases):
        raise nothing_matches(given.where, given.files)
    return document
