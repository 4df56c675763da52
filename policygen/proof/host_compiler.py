"""libclang as a compiler for the host: where it finds what rocPRIM includes, and what it tells."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from os.path import normpath
from pathlib import Path
from typing import Any

from policygen import process
from policygen.cache import digest
from policygen.environment import which
from policygen.errors import InputError, MissingToolError
from policygen.installation import again
from policygen.proof.compile import SECONDS, RefusedError
from policygen.proof.deps import Listings, Made, remembered

WORKER = "policygen.source.host_worker"
CPLUSPLUS = "g++"
_ASKED = b"""#include <algorithm>
#include <bits/c++config.h>
#include <bits/types.h>
#include <stddef.h>
#include <stdlib.h>
"""
_BELOW = ("algorithm", "bits/c++config.h", "stddef.h", "bits/types.h", "stdlib.h")
"""Where each stands tells an include folder, in their order."""
# What HIP's headers include of clang's own ones, for devices.
_OWN = (
    "__clang_cuda_math_forward_declares.h",
    "__clang_cuda_complex_builtins.h",
    "include/cuda_wrappers/algorithm",
    "include/cuda_wrappers/complex",
    "include/cuda_wrappers/new",
)
_EMPTY = "/policygen/empty"
_ARGUMENTS = (
    *("-x", "hip", "--cuda-host-only", "-nogpulib", "-nogpuinc", "--offload-arch=gfx90a"),
    *("-std=c++17", "-w", "-ferror-limit=0", "-nostdinc++", "-include", "ostream"),
    "-D__HIP_PLATFORM_AMD__=1",
    # A builtin of newer compilers, which only code for a device calls.
    "-D__builtin_amdgcn_wavefrontsize()=64",
    f"-I{_EMPTY}",
)


@dataclass(frozen=True, slots=True)
class HostCompiler:
    """libclang, with the standard library of a g++."""

    version: str
    standard: tuple[str, ...]
    """The include folders of the standard library."""
    identity: str

    @property
    def archs(self) -> tuple[str, ...]:
        """Those that it compiles for: none, as it compiles for the host alone."""
        return ()

    @property
    def replaces_files(self) -> bool:
        """Whether it takes other content for a file: headers include each other by their place."""
        return True

    @property
    def name(self) -> str:
        """Names it as outputs do: `libclang 18.1.1`."""
        return f"libclang {self.version}"

    def told(
        self,
        text: str,
        scopes: Sequence[str],
        includes: Sequence[str],
        changed: Mapping[str, bytes],
    ) -> dict[str, Any]:
        """What is told of a unit's questions; `changed` has other content of files, by path.

        The last of the scopes gets a name that no header can know.
        """
        listed = Listings().of(includes)
        contents = [part for path, data in sorted(changed.items()) for part in (path, data)]
        key = digest(self.identity, listed, text, *scopes, *contents)
        paths = (*includes, *self.standard)
        made = remembered("host", key, paths, lambda: self._made(text, scopes, includes, changed))
        found: dict[str, Any] = json.loads(made)
        return found

    def _made(
        self,
        text: str,
        scopes: Sequence[str],
        includes: Sequence[str],
        changed: Mapping[str, bytes],
    ) -> Made:
        secret = f"policygen_{secrets.token_hex(16)}"
        unit = f"/policygen/{secret}.hip"
        texts = {unit: text.replace(scopes[-1], secret)}
        texts |= {f"{_EMPTY}/{name}": "" for name in _OWN}
        texts |= {path: data.decode("latin-1") for path, data in changed.items()}
        folders = (*(f"-I{one}" for one in includes), *(f"-isystem{one}" for one in self.standard))
        request = {
            "unit": unit,
            "arguments": [*_ARGUMENTS, *folders],
            "files": texts,
            "scopes": [*scopes[:-1], secret],
        }
        command = process.module(WORKER)
        given = json.dumps(request)
        answer = json.loads(process.run(command, given=given, limit=SECONDS, install=again()))
        _check(answer["errors"], unit, tuple(includes))
        markers = "".join(f'# 1 "{path}"\n' for path in answer["read"])
        rows = {name: _within(place, includes) for name, place in answer["rows"].items()}
        answer = {"rows": rows, "types": answer["types"], "fields": answer["fields"]}
        return Made(json.dumps(answer).encode(), markers.encode(), Path(unit))


def _check(errors: Sequence[Sequence[Any]], unit: str, includes: Sequence[str]) -> None:
    """Refuses what does not compile.

    Of HIP's own headers, which are written for other versions of clang, nothing is asked.
    """
    root = includes[0]
    mine = [one for one in errors if one[0] is None or one[0] == unit or _below(one[0], root)]
    if mine:
        told = "\n".join(
            f"{'question' if file == unit else file}:{line}: error: {words}"
            for file, line, words in mine
        )
        raise RefusedError(["libclang"], 1, told)


def _within(place: Sequence[Any] | None, includes: Sequence[str]) -> Sequence[Any] | None:
    """A place by its file as units include it: trees of the same content have the same answers."""
    if place is None:
        return None
    path = Path(normpath(place[0]))
    folder = next((one for one in includes if path.is_relative_to(one)), "/")
    return str(path.relative_to(folder)), *place[1:]


def _below(file: str, root: str) -> bool:
    return Path(file).is_relative_to(root)


@cache
def find_host_compiler() -> HostCompiler:
    """Finds libclang, which comes with policygen, and the standard library of g++."""
    if which(CPLUSPLUS) is None:
        raise MissingToolError(CPLUSPLUS, "Install it: rocPRIM's headers include its library.")
    command = [CPLUSPLUS, "-M", "-x", "c++", "-"]
    listed = process.run(command, given=_ASKED.decode(), install="Install g++.").split()
    standard = tuple(dict.fromkeys(filter(None, (_folder(listed, name) for name in _BELOW))))
    if not standard:
        raise InputError(f"{CPLUSPLUS} does not tell where its headers are", "Is it whole?")
    version = metadata.version("libclang")
    worker = Path(__file__).parents[1] / "source" / "host_worker.py"
    identity = digest(version, *standard, *_ARGUMENTS, worker.read_bytes(), _own_text())
    return HostCompiler(version, standard, identity)


def _own_text() -> bytes:
    return Path(__file__).read_bytes()


def _folder(listed: Sequence[str], name: str) -> str | None:
    found = next((path for path in listed if path.endswith(f"/{name}")), None)
    return None if found is None else str(Path(found.removesuffix(f"/{name}")).resolve())
