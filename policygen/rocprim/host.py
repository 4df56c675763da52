"""Asks what rocPRIM selects for types on architectures, of libclang."""

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from os.path import normpath
from pathlib import Path
from typing import Any

from policygen import process
from policygen.bindings.load import axis_type, is_constant
from policygen.bindings.words import table_number
from policygen.cache import digest
from policygen.errors import InputError, MissingToolError, PolicygenError
from policygen.installation import again
from policygen.model.arch import UNKNOWN, arch_and_gpu
from policygen.model.edits import Marked
from policygen.model.selection import FamilyKey, Selected
from policygen.model.tuning import Value
from policygen.process import threads, which
from policygen.proof.compile import (
    PHASE,
    SECONDS,
    Listings,
    Made,
    RefusedError,
    attempt,
    remembered,
)
from policygen.proof.probe import Asked, AskedTree, Selection, filled
from policygen.proof.units import Workload, axis_headers
from policygen.rendering import fill
from policygen.steps import Progress, follow
from policygen.trees.manifest import shipped

ROWS = 3000
"""In one unit: a question takes a tenth of a millisecond, the headers a second."""
Spot = tuple[Workload, str]


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


def ask_host(
    tree: AskedTree,
    asked: Sequence[Asked],
    compiler: HostCompiler,
    *,
    progress: Progress | None = None,
) -> Selection:
    """Asks for all workloads; what is refused together is asked again site by site."""
    _check_needs(tree.includes)
    known = [one for one in asked if not one.problem]
    rows: dict[Spot, Selected] = {}
    refused = {point: one.problem for one in asked if one.problem for point in one.points}
    lots = list(filled(known, lambda one: len(one.points) * len(one.archs), ROWS))
    while lots:
        with threads() as pool:
            futures = {
                pool.submit(attempt, partial(_told, lot, tree, compiler)): lot[0].site.name
                for lot in lots
            }
            follow(futures, PHASE, progress)
            results = [future.result() for future in futures]
        again: list[list[Asked]] = []
        for lot, result in zip(lots, results, strict=True):
            if not isinstance(result, PolicygenError):
                rows |= result
            elif len(lot) > 1:
                again += [[one] for one in lot]
            else:
                refused |= {point: result for one in lot for point in one.points}
        lots = again
    errors = {str(error): error for error in refused.values() if error}
    return Selection(rows, tuple(errors.values()), {p: e for p, e in refused.items() if e})


def _check_needs(includes: Sequence[str]) -> None:
    """Refuses to compile without the headers of others that all of rocPRIM's include."""
    needs = shipped().libraries["rocprim"].needs
    if needs and not any(Path(folder, needs).is_file() for folder in includes):
        raise MissingToolError(
            needs,
            "rocPRIM's headers include it. `policygen headers fetch rocprim@5.7.1` fetches a"
            " release with it; else name a ROCm that has it: ROCM_PATH.",
        )


def _told(lot: Sequence[Asked], tree: AskedTree, compiler: HostCompiler) -> dict[Spot, Selected]:
    text = host_unit(lot, tree.version)
    answer = compiler.told(text, SCOPES, tree.includes, tree.changed)
    _check_fields(lot, answer["fields"])
    numbers = _numbers(lot, tree, compiler)
    rows: dict[Spot, Selected] = {}
    same: dict[str, tuple[dict[str, Value], int | None]] = {}
    for at, one, workload, arch in spots_of(lot):
        config, place = answer["types"].get(f"type_{at}"), answer["rows"].get(f"row_{at}")
        if not isinstance(config, list) or (place is None and not one.site.targets):
            raise _silent(workload, arch)
        copy = tree.marked.get(one.site.header)
        # Thousands of rows say the same few things.
        key = f"{id(one)} {config} {place} {numbers.get(at)} {one.site.table and arch}"
        if key not in same:
            told = _picked(config, one) if one.site.targets else _values(config, one.aggregates, "")
            values = dict(told)
            number = numbers.get(at)
            if copy is not None and one.site.table and number is not None:
                number = _of_arch(number, arch, copy)
            elif copy is not None and place is not None:
                number = _entry(one, place, copy)
            same[key] = values, number
        rows[workload, arch] = _selected(workload, *same[key], copy)
    return rows


def _silent(workload: Workload, arch: str) -> InputError:
    return InputError(f"libclang tells nothing of {workload.name} on {arch}", "Please report this.")


def _numbers(lot: Sequence[Asked], tree: AskedTree, compiler: HostCompiler) -> dict[int, int]:
    """Which entry each picker or table takes: copies of their headers give its number."""
    copies = {
        _path(one, tree): tree.marked[one.site.header].data
        for one in lot
        if _is_numbered(one, tree)
    }
    if not copies:
        return {}
    unit = host_unit(lot, tree.version, numbered=True)
    answer = compiler.told(unit, SCOPES, tree.includes, {**tree.changed, **copies})
    numbers: dict[int, int] = {}
    for at, one, workload, arch in spots_of(lot):
        if _is_numbered(one, tree):
            told = answer["types"].get(f"type_{at}")
            if not isinstance(told, list) or told[0] != (PLAIN if one.site.table else NUMBER):
                raise _silent(workload, arch)
            numbers[at] = told[1]
    return numbers


def _is_numbered(one: Asked, tree: AskedTree) -> bool:
    return (bool(one.site.targets) or one.site.table) and one.site.header in tree.marked


def _of_arch(number: int, arch: str, copy: Marked) -> int | None:
    """An entry as that of an architecture: in a table several can have the same config."""
    if not number < len(copy.entries):
        return None  # what no copy of an entry gives
    span = copy.entries[number][1].span
    alike = {f.arch: n for n, (f, entry) in enumerate(copy.entries) if entry.span == span}
    return alike.get(arch, alike.get(UNKNOWN))


def _path(one: Asked, tree: AskedTree) -> str:
    """Where the header of a site is: its copy takes the place of it."""
    paths = (Path(folder, name) for folder in tree.includes for name in one.site.includes)
    return str(next(p for p in paths if p.name == one.site.header and p.is_file()))


def _check_fields(lot: Sequence[Asked], told: Mapping[str, Sequence[str]]) -> None:
    """Refuses structs of which libclang knows other fields than were read: none is left out."""
    for number, shape in enumerate(shapes_of(lot)):
        fields = tuple(told.get(f"fields_{number}", ()))
        if fields != shape.paths:
            raise InputError(
                f"{shape.name} was read as {', '.join(shape.paths)}, and libclang says that it has"
                f" {', '.join(fields)}",
                "Please report this.",
            )


def _picked(config: Sequence[Any], one: Asked) -> Iterator[tuple[str, Value]]:
    """The fields of what a picker returns, with their values."""
    return zip(shape_of(one).paths, config[1:], strict=True)


def _selected(
    workload: Workload, values: Mapping[str, Value], number: int | None, copy: Marked | None
) -> Selected:
    """What a workload gets; the types that it asks for are its own, also where others get it."""
    if copy is None or number is None:
        return Selected(values)
    found = copy.entries[number]
    keys = {found[0].name: FamilyKey(tuple(workload.values.values()), found, number)}
    return Selected(values, found, keys, number=number)


Parts = tuple[tuple[str, str], ...]
Aggregates = Mapping[str, Parts]


def _values(config: Any, aggregates: Aggregates, within: str) -> Iterator[tuple[str, Value]]:
    """The arguments of a config by the names of its parameters, those of configs in it, too."""
    name, *args = config
    known = aggregates.get(name, ())
    for position, arg in enumerate(args):
        called = known[position][0] if position < len(known) else str(position)
        if isinstance(arg, list):
            yield from _values(arg, aggregates, f"{within}{called}.")
        else:
            yield f"{within}{called}", arg


def _entry(one: Asked, place: Sequence[Any], copy: Marked) -> int | None:
    """Which entry stands where the compiler found the template that it takes."""
    file, offset, _ = place
    # Other headers may be called the same.
    if Path(file).name != one.site.header or file not in one.site.includes:
        return None
    spans = enumerate(entry.span for _, entry in copy.entries)
    return next((n for n, span in spans if span.start <= offset < span.end), None)


TEMPLATE = "probe/host.hip.j2"
SCOPES = ("rocprim", "detail", "policygen_asked")
ARCH = "static_cast<unsigned int>(target_arch::{})"
NUMBER = "number"
"""The template whose argument is the number of an entry."""
PLAIN = "kernel_config"
"""The config whose first argument is that, where a table by hand gives configs."""
_WORD = re.compile(r"(?<!::)\b[A-Za-z_]\w*\b")


@dataclass(frozen=True, slots=True)
class Shape:
    """The struct that a picker returns, and the paths of its values."""

    name: str
    paths: tuple[str, ...]


# Writes the units that ask libclang what rocPRIM selects: of templates, and of pickers.


def spots_of(lot: Sequence[Asked]) -> Iterator[tuple[int, Asked, Workload, str]]:
    """What a unit asks, with the number of its answer."""
    every = ((one, *spot) for one in lot for spot in one.spots)
    for number, (one, workload, arch) in enumerate(every):
        yield number, one, workload, arch


def shapes_of(lot: Sequence[Asked]) -> list[Shape]:
    """The structs that the pickers of a unit return, in the order of its questions of them."""
    return list(dict.fromkeys(shape_of(one) for one in lot if one.site.targets))


def shape_of(one: Asked) -> Shape:
    """What the picker of a site returns."""
    ((name, _),) = _declared(one)
    return Shape(name, tuple(_paths(name, one.aggregates, "")))


def host_unit(lot: Sequence[Asked], version: str, *, numbered: bool = False) -> str:
    """A unit; where they are `numbered`, what pickers and tables give is the number of an entry."""
    included = (name for one in lot for name in one.site.includes)
    typed = {name for one in lot for point in one.points for name in axis_headers(point, version)}
    places = _targets(lot)
    shapes = [] if numbered else shapes_of(lot)
    shape = {id(one): shape_of(one) for one in lot if shapes and one.site.targets}
    rows, picked = [], []
    for number, one, workload, arch in spots_of(lot):
        given = _given(workload, version)
        if one.site.targets:
            given["Target"] = f"target_{places[one.site.targets, arch]}::type"
            told = NUMBER if numbered else f"shape_{shapes.index(shape[id(one)])}"
            paths = ("",) if numbered else (f".{path}" for path in shape[id(one)].paths)
            values = ", ".join(f"value_{number}::found{path}" for path in paths)
            picked.append((number, _filled(one.site.hub, given), f"{told}<{values}>"))
        elif one.site.table or not numbered:
            given["Arch"] = _arch_of(one, arch)
            rows.append((number, _filled(one.site.hub, given)))
    context = {
        "headers": dict.fromkeys([*sorted(typed), *included]),
        "scopes": SCOPES,
        "configs": dict.fromkeys(_configs(lot, numbered=numbered)),
        "number": NUMBER,
        "targets": [(targets, _device(arch)) for targets, arch in places],
        "shapes": [(each.name, each.paths) for each in shapes],
        "rows": rows,
        "picked": picked,
    }
    return fill(TEMPLATE, context)


def _arch_of(one: Asked, arch: str) -> str:
    """An architecture as a template of configs is asked for it."""
    return f"{table_number(arch)}u" if one.site.table else ARCH.format(arch_and_gpu(arch)[0])


def _configs(lot: Sequence[Asked], *, numbered: bool) -> Iterator[tuple[str, Parts]]:
    """The templates that the configs of a unit may be."""
    for one in lot:
        if numbered and one.site.table:
            yield PLAIN, one.aggregates.get(PLAIN, ())
        elif not numbered and not one.site.targets:
            yield from _declared(one)


def _targets(lot: Sequence[Asked]) -> dict[tuple[str, str], int]:
    """Which target of a list each device gets, by their numbers in a unit."""
    pairs = ((one.site.targets, arch) for one in lot if one.site.targets for arch in one.archs)
    return {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}


def _device(arch: str) -> str:
    """`gfx942:mi300x` as rocPRIM makes a target of a device."""
    plain, gpu = arch_and_gpu(arch)
    return f"target_arch::{plain}, gpu::{gpu}" if gpu else f"target_arch::{plain}"


def _paths(name: str, aggregates: Aggregates, within: str) -> Iterator[str]:
    """The values of a struct, those of structs in it, too: `kernel_config.block_size`."""
    for field, kind in aggregates.get(name, ()):
        inner = kind.rpartition("::")[2]
        if inner in aggregates:
            yield from _paths(inner, aggregates, f"{within}{field}.")
        else:
            yield f"{within}{field}"


def _declared(one: Asked) -> tuple[tuple[str, Parts], ...]:
    """The templates that a config may be, with what their parameters are, and are called."""
    declared = {name: one.aggregates.get(name) for name in one.site.configs}
    found = tuple((name, parts) for name, parts in declared.items() if parts)
    if not found:
        raise InputError(
            f"{one.site.header}: nothing declares {' or '.join(one.site.configs)}",
            "Is the tree whole? The bindings name another config than it has.",
        )
    return found


def _given(workload: Workload, version: str) -> dict[str, str]:
    """What a workload has for the parameters of a template, in C++."""
    given: dict[str, str] = {}
    for role, text in {**workload.call.roles, **workload.call.constants}.items():
        axis = text.removeprefix("axis::")
        value = workload.values.get(axis, text)
        typed = axis in workload.values and not is_constant(value)
        given[role] = axis_type(value, version).cpp if typed else value
    return given


def _filled(hub: str, given: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: given.get(match[0], match[0]), hub)


WORKER = "policygen.rocprim.host_worker"
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


# libclang as a compiler for the host: where it finds what rocPRIM includes, and what it tells.


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
    worker = Path(__file__).with_name("host_worker.py")
    identity = digest(version, *standard, *_ARGUMENTS, worker.read_bytes(), _own_text())
    return HostCompiler(version, standard, identity)


def _own_text() -> bytes:
    return Path(__file__).read_bytes()


def _folder(listed: Sequence[str], name: str) -> str | None:
    found = next((path for path in listed if path.endswith(f"/{name}")), None)
    return None if found is None else str(Path(found.removesuffix(f"/{name}")).resolve())
