"""How this policygen is installed, what it needs, and the commands that add to it."""

import re
import shlex
import sys
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from policygen import rendering
from policygen.paths import nearby
from policygen.process import which

NAME = "policygen"
_PACKAGE = Path(__file__).resolve().parent
# matplotlib>=3.8, nvidia-cuda-nvcc==13.2.*, libclang==18.1.1, pandas-stubs
_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:(>=|==)\s*(\d+(?:\.\d+)*)(\.\*)?)?")
# extra == 'cuda'
_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([\w-]+)['"]""")


class Requirement(NamedTuple):
    """A package that is needed, and the version of it that is here."""

    asked: str
    name: str
    version: str | None
    fits: bool


def clone() -> Path | None:
    """The checkout that policygen runs from; none where it was installed as a package."""
    folder = rendering.folder("schemas").parent
    return None if folder == _PACKAGE else folder


def add(extra: str) -> str:
    """The command that installs an extra: `pip install 'policygen[cuda]'`, or for a clone's."""
    if (folder := clone()) is None:
        return f"{pip()} install {shlex.quote(f'{NAME}[{extra}]')}"
    return f"{pip()} install --editable {shlex.quote(f'{nearby(folder)}[{extra}]')}"


def again() -> str:
    """The command that installs what policygen needs."""
    if (folder := clone()) is None:
        return f"{pip()} install {NAME}"
    return f"{pip()} install --editable {shlex.quote(nearby(folder))}"


def pip() -> str:
    """The pip of this Python: by its name where that is the one on PATH."""
    found = which("pip")
    if found and Path(found).parent == Path(sys.executable).parent:
        return "pip"
    return f"{this_python()} -m pip"


def this_python() -> str:
    """How a shell calls the Python that runs."""
    return shlex.quote(nearby(Path(sys.executable)))


def requirements() -> Mapping[str, tuple[Requirement, ...]]:
    """What each extra asks for; under the empty name, what all commands need."""
    folder = clone()
    if folder is None or not (folder / "pyproject.toml").is_file():
        return {name: _found(texts) for name, texts in _installed().items()}
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    lot = {"": project["dependencies"], **project["optional-dependencies"]}
    return {name: _found(texts) for name, texts in lot.items()}


def _installed() -> Mapping[str, list[str]]:
    lot: defaultdict[str, list[str]] = defaultdict(list)
    try:
        said = metadata.requires(NAME) or ()
    except metadata.PackageNotFoundError:  # a copy of the package alone
        said = ()
    for text in said:
        asked, _, marker = text.partition(";")
        extra = _EXTRA.search(marker)
        lot[extra[1] if extra else ""].append(asked.strip())
    return lot


def _found(texts: list[str]) -> tuple[Requirement, ...]:
    return tuple(map(_here, texts))


def _here(asked: str) -> Requirement:
    match = _REQUIREMENT.fullmatch(asked)
    if match is None:
        raise ValueError(f"{asked!r} is no requirement that can be read")
    name, how, wanted, prefix = match.groups()
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Requirement(asked, name, None, fits=False)
    return Requirement(asked, name, version, fits=_fits(version, how, wanted, prefix))


def _fits(version: str, how: str | None, wanted: str | None, prefix: str | None) -> bool:
    if how is None or wanted is None:
        return True
    have, want = _numbers(version), _numbers(wanted)
    if how == ">=":
        return have >= want
    return have[: len(want)] == want and (bool(prefix) or not any(have[len(want) :]))


def _numbers(version: str) -> tuple[int, ...]:
    """`13.2.51`, and of `2.0rc1` the numbers before the letters."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
