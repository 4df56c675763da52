"""Finds the project's data folders: beside the package in a checkout, inside it in a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str, package: Path = _PACKAGE) -> Path:
    """`templates`, `schemas` or `cub_headers`, wherever this installation has it."""
    for candidate in (package / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"policygen's own folder {name!r} is missing from {package}")
