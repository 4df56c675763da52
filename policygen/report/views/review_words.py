"""What a review counts, where it looked, and what was measured, in words."""

from collections.abc import Iterator

from policygen.model.cub import CALLED
from policygen.model.review import Evidence, Review

EACH = "(workloads times architectures)"
"""What is counted."""
COUNTED = (
    "this page asks about all that the changed headers decide, and the proof about what the plan"
    " wrote."
)


def counted(document: Review, listed: int) -> Iterator[str]:
    """Tell how many were asked about: the same number as in a proof of the same headers."""
    changed = listed if document.changed is None else document.changed
    yield f"{document.compared - changed:,} of {document.compared:,} as before {EACH}"
    if between := changed - listed:
        yield f"{between:,} more change on what may come between known architectures"


def unfound(document: Review) -> str:
    """Say that nothing measured what was written, and where was looked for it."""
    if not document.databases:
        return "no database is at hand (--db names one)"
    return f"no row of {', '.join(document.databases)} has these values"


def versions(one: Evidence) -> str:
    """Tell what it was measured with."""
    return measured_with(one.ctk, one.cccl)


def measured_with(ctk: str, release: str) -> str:
    """Name what was measured with: `CUDA 13.1, CCCL 3.2.0`; of others `rocPRIM 4.2.0`."""
    called = {str(name): text for name, text in CALLED.items()}
    library, _, version = release.rpartition("@")
    named = f"{called.get(library, library)} {version}" if library else f"CCCL {release}"
    return f"CUDA {ctk}, {named}" if ctk or not library else named
