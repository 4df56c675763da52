"""How commands that read a tree begin."""

from pathlib import Path

from policygen.app.libraries import Library
from policygen.app.session import Session, open_session
from policygen.cli.progress import compile_progress, warn


def start(
    cub: str | None,
    store: Path | None = None,
    *,
    whole: bool = False,
    quiet: bool = False,
    library: Library | None = None,
) -> Session:
    """Opens a tree; who waits is told how far it is."""
    progress = compile_progress(quiet=quiet)
    return open_session(cub, store, whole=whole, library=library, progress=progress, note=warn)
