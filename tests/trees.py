"""The real CUB trees, downloaded once and kept outside of the repository."""

from functools import cache
from pathlib import Path

from policygen.paths import cache_folder
from policygen.tree import fetch


@cache
def tree(version: str) -> Path:
    """The include folder of a version of CUB; a failure raises, it never skips."""
    return Path(fetch(version, cache_folder() / "test-trees", progress=lambda _: None).root)
