"""How this policygen is installed, its requirements, and the commands that install more."""

import re
import shlex
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from policygen import rendering
from policygen.portable import nearby
from policygen.process import which

NAME = "policygen"
_PACKAGE = Path(__file__).resolve().parent
# pyarrow>=15, nvidia-cuda-nvcc>=13.2,<13.6, libclang==18.1.1, pandas-stubs
_REQUIREMENT = re.compile(r"([\w.-]+)\s*((?:(?:>=|==|<)\s*\d+(?:\.\d+)*(?:\.\*)?,?\s*)*)")
_BOUND = re.compile(r"(>=|==|<)\s*([\d.]*\d)(\.\*)?")
# extra == 'cuda'
_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([\w-]+)['"]""")


class Requirement(NamedTuple):
    """A required package and the installed version."""

    asked: str
    name: str
    version: str | None
    fits: bool


def clone() -> Path | None:
    """Returns the checkout that policygen runs from; `None` if it was installed as a package."""
    folder = rendering.folder("schemas").parent
    return None if folder == _PACKAGE else folder


def add(extra: str) -> str:
    """Returns the command that installs an extra, such as `pip install 'policygen[cuda]'`.

    An empty name stands for what all commands require.
    """
    folder = clone()
    options, name = ("", NAME) if folder is None else (" --editable", nearby(folder))
    requirement = f"{name}[{extra}]" if extra else name
    return f"{pip()} install{options} {shlex.quote(requirement)}"


def of_release(names: Iterable[str], release: str) -> str:
    """Returns the command that installs packages of one release: `13.5`."""
    return f"{pip()} install {' '.join(shlex.quote(f'{name}=={release}.*') for name in names)}"


def pip() -> str:
    """Returns the command for this Python's pip: `pip` if that is the one on PATH."""
    path = which("pip")
    if path and Path(path).parent == Path(sys.executable).parent:
        return "pip"
    return f"{this_python()} -m pip"


def this_python() -> str:
    """Returns the shell command for the running Python."""
    return shlex.quote(nearby(Path(sys.executable)))


def requirements() -> Mapping[str, tuple[Requirement, ...]]:
    """Returns the requirements of each extra, and of all commands under the empty name."""
    folder = clone()
    if folder is None or not (folder / "pyproject.toml").is_file():
        texts_by_extra = _installed()
    else:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        texts_by_extra = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: tuple(map(_parse, texts)) for extra, texts in texts_by_extra.items()}


def _installed() -> Mapping[str, list[str]]:
    texts_by_extra: defaultdict[str, list[str]] = defaultdict(list)
    try:
        declared = metadata.requires(NAME) or ()
    except metadata.PackageNotFoundError:  # not installed, only copied
        declared = ()
    for text in declared:
        requirement, _, marker = text.partition(";")
        extra = _EXTRA.search(marker)
        texts_by_extra[extra[1] if extra else ""].append(requirement.strip())
    return texts_by_extra


def _parse(text: str) -> Requirement:
    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a readable requirement")
    name, bounds = match.groups()
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Requirement(text, name, None, fits=False)
    return Requirement(
        text, name, version, fits=all(_fits(version, *bound) for bound in _BOUND.findall(bounds))
    )


def _fits(version: str, comparison: str, required: str, prefix: str) -> bool:
    installed, given = _numbers(version), _numbers(required)
    if comparison != "==":
        return installed >= given if comparison == ">=" else installed < given
    return installed[: len(given)] == given and (bool(prefix) or not any(installed[len(given) :]))


def _numbers(version: str) -> tuple[int, ...]:
    """Parses `13.2.51`; of `2.0rc1`, only the numbers before the letters."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()
