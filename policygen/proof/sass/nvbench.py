"""Finds NVBench's headers, which CCCL's own benchmarks include."""

import re
from importlib import metadata
from pathlib import Path

from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.paths import write_atomically

PACKAGE = "cuda-bench"
HEADER = Path("nvbench") / "nvbench.cuh"
CONFIGURED = Path("nvbench") / "config.cuh"
# #cmakedefine NVBENCH_HAS_CUPTI
_CHOICE = re.compile(r"^#cmakedefine\b.*$", re.M)


def find_nvbench(folder: Path | None, cache: Path) -> tuple[str, ...]:
    """Finds its include folders: of a checkout or an installation, else of the extra."""
    if folder is None:
        return (str(_installed()),)
    for candidate in (folder, folder / "include"):
        if (candidate / HEADER).is_file():
            return (*_configured(candidate, cache), str(candidate))
    raise InputError(
        f"{folder} is no NVBench: it has no {HEADER}",
        "Name a checkout, or what it was installed to.",
    )


def _installed() -> Path:
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    found = [Path(str(file.locate())) for file in files if file.match(f"include/{HEADER}")]
    for header in sorted(found, reverse=True):  # cu13 before cu12
        if header.is_file():
            return header.parent.parent
    raise MissingToolError(
        "NVBench", f"Install it: {add('benchmarks')}; or name its folder: --nvbench DIR."
    )


def _configured(folder: Path, cache: Path) -> tuple[str, ...]:
    """Makes a checkout's configuration where its build did not; it has none of the choices."""
    if (folder / CONFIGURED).is_file():
        return ()
    template = folder / f"{CONFIGURED}.in"
    try:
        text = _CHOICE.sub("", template.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {template}: {error}") from error
    made = cache / "nvbench"
    write_atomically(made / CONFIGURED, text.encode())
    return (str(made),)
