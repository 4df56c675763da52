"""What another program is told of the world: a list of names; all others stay here.

Tokens are none of a compiler's business, and a variable can make a program run what it names.
"""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from policygen.errors import InputError

_PLAIN = (
    *("HOME", "USER", "LOGNAME", "TZ"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),  # numpy fails where threads are few
)
_FOLDERS = ("PATH", "LD_LIBRARY_PATH")  # a gcc of a module system finds its libraries by the latter
_COMPILER = "NVCC_CCBIN"
"""The host compiler, which a person may have to choose. `NVCC_PREPEND_FLAGS`,
`NVCC_APPEND_FLAGS`, `CPATH` and their like are not given: they change what is proved, unsaid."""
# HTTPS_PROXY, no_proxy, PIP_INDEX_URL, SSL_CERT_FILE, XDG_CONFIG_HOME
_NETWORK = re.compile(
    r"(?:https?|all|no)_proxy|PIP_\w+|SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE|NETRC"
    r"|XDG_(?:CONFIG|CACHE|DATA)_(?:HOME|DIRS)",
    re.IGNORECASE,
)


def for_child(temporary: Path, *, network: bool = False) -> dict[str, str]:
    """The variables of a program that we start; those about the network only where it needs it."""
    here = os.environ
    told = {name: here[name] for name in _PLAIN if name in here}
    told |= {name: _absolute(here[name]) for name in _FOLDERS if name in here}
    if _is_program(compiler := here.get(_COMPILER, "")):
        told[_COMPILER] = compiler
    if network:
        told |= {name: value for name, value in here.items() if _NETWORK.fullmatch(name)}
    # One language, whatever the user's is: some messages are read.
    return told | {"LC_ALL": "C.UTF-8", "TMPDIR": str(temporary)}


def which(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """A program on PATH; the current folder is no part of it, however PATH is written."""
    path = (os.environ if environment is None else environment).get("PATH", os.defpath)
    return shutil.which(name, path=_absolute(path))


def named_folder(name: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """The folder that a variable names; a relative one would be another one in each folder."""
    value = (os.environ if environment is None else environment).get(name)
    if not value:
        return None
    path = Path(value)
    if not path.is_absolute():
        raise InputError(f"{name}={value!r} is no absolute path", f"Unset {name} or correct it.")
    return path


def _absolute(folders: str) -> str:
    """`/usr/bin:.::bin` → `/usr/bin`; an empty one stands for the current folder."""
    return os.pathsep.join(one for one in folders.split(os.pathsep) if os.path.isabs(one))  # noqa: PTH117  as it is written


def _is_program(name: str) -> bool:
    """A bare name is looked for on PATH, a path must not depend on the folder."""
    return bool(name) and (os.sep not in name or Path(name).is_absolute())
