"""What views of imports have in common: counts, what numbers stand for, what is not listed."""

from collections.abc import Iterator

from policygen.model.db_import import DbImport, ImportedParameter
from policygen.report.blocks import Block, Note, Words
from policygen.report.console import plural

SHOWN = 8
"""Reasons and numbered values as many as are listed without -v."""


def counts(document: DbImport) -> list[str]:
    """Count what is in the database, and what was joined or is a copy."""
    found = [
        plural(document.rows, "row"),
        plural(document.variants, "variant"),
        plural(len(document.sizes), "size"),
    ]
    if document.joined:
        found.append(f"{plural(document.joined, 'measurement')} joined to earlier ones")
    if document.copies:
        found.append(f"{plural(document.copies, 'copy', 'copies')} of measurements left out")
    return found


def without_samples(document: DbImport) -> str:
    """Say what rows without samples are worth."""
    return (
        f"{plural(document.without_samples, 'row')} without samples: how sure their scores are is"
        " not known, and `db choose` takes them with --without-samples alone"
    )


def numbered(parameter: ImportedParameter, indent: str, *, verbose: bool) -> Block:
    """Say what numbers in labels stand for."""
    values = list(parameter.values.items())
    shown = [f"{number} is {text}" for number, text in (values if verbose else values[:SHOWN])]
    if hidden := len(values) - len(shown):
        shown.append(f"… {hidden:,} more, see them with -v")
    return Words(shown, "", f"{indent}{parameter.name}: ", f"{indent}  ", ", ", even=True)


def hidden_reasons(document: DbImport, shown: int) -> Iterator[Block]:
    """Count reasons that are not listed."""
    if hidden := len(document.failures) - shown + document.other_failures:
        yield Note(f"  and {plural(hidden, 'more reason')}")
