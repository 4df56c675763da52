"""The real trees of CUB and rocPRIM, downloaded once and kept outside of the repository."""

from functools import cache
from pathlib import Path

from policygen.paths import cache_folder
from policygen.trees import fetch


@cache
def tree(version: str) -> Path:
    """The include folder of a fetched release; a failure raises, it never skips."""
    return Path(fetch(version, cache_folder() / "test-trees", progress=lambda _: None).root)


@cache
def rocprim_tree(release: str) -> Path:
    """The include folder of a release of rocPRIM, with HIP's headers: `rocprim_tree("7.2.4")`."""
    return tree(f"rocprim@{release}")
