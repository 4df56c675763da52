"""Asks libclang what rocPRIM selects for types on architectures."""

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
from policygen.installation import add
from policygen.model.arch import UNKNOWN, arch_and_gpu
from policygen.model.selection import FamilyKey, Selected
from policygen.model.trees import BoundVersion
from policygen.model.tuning import Marked, Value, leaf_paths
from policygen.process import threads, which
from policygen.proof.ask import Queries
from policygen.proof.compile import (
    PHASE,
    SECONDS,
    Listings,
    Made,
    RefusedError,
    attempt,
    remembered,
)
from policygen.proof.probe import LibraryCompiler, QueriedTree, Selection, filled
from policygen.proof.units import SiteQuery, Workload, axis_headers
from policygen.rendering import fill
from policygen.steps import Progress, follow
from policygen.trees.manifest import shipped

ROWS = 3000
"""Rows per unit: a question takes 0.1 milliseconds, the headers take a second."""
TEMPLATE = "probe/host.hip.j2"
SCOPES = ("rocprim", "detail", "policygen_asked")
"""The namespaces of a unit's questions, from the outermost inwards."""
WORKER = "policygen.rocprim.host_worker"
CPLUSPLUS = "g++"
_PROBE_SOURCE = """#include <algorithm>
#include <bits/c++config.h>
#include <bits/types.h>
#include <stddef.h>
#include <stdlib.h>
"""
_PROBED_HEADERS = ("algorithm", "bits/c++config.h", "stddef.h", "bits/types.h", "stdlib.h")
"""Headers whose locations reveal the include directories, in this order."""
# clang's own device headers that HIP's headers include.
_STUB_HEADERS = (
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
    # A builtin of newer compilers that only device code calls.
    "-D__builtin_amdgcn_wavefrontsize()=64",
    f"-I{_EMPTY}",
)
Spot = tuple[Workload, str]


# libclang as a host compiler: its include directories and its diagnostics.


@dataclass(frozen=True, slots=True)
class HostCompiler(LibraryCompiler):
    """libclang, with the standard library of a g++."""

    version: str
    standard: tuple[str, ...]
    """The include directories of the standard library."""
    identity: str

    @property
    def name(self) -> str:
        """The name shown in outputs: `libclang 18.1.1`."""
        return f"libclang {self.version}"

    def ask(
        self, tree: QueriedTree, queries: Sequence[SiteQuery], progress: Progress | None
    ) -> Selection:
        """Asks for all workloads; a refused batch is repeated site by site."""
        _check_needs(tree.includes)
        rows: dict[Spot, Selected] = {}
        refused = {point: query.problem for query in queries for point in query.points}
        answerable = [query for query in queries if not query.problem]
        batches = list(filled(answerable, lambda query: len(query.points) * len(query.archs), ROWS))
        while batches:
            with threads() as pool:
                futures = {
                    pool.submit(attempt, partial(_ask_batch, batch, tree, self)): batch[0].site.name
                    for batch in batches
                }
                follow(futures, PHASE, progress)
                results = [future.result() for future in futures]
            retries: list[list[SiteQuery]] = []
            for batch, result in zip(batches, results, strict=True):
                if not isinstance(result, PolicygenError):
                    rows |= result
                elif len(batch) > 1:
                    retries += [[query] for query in batch]
                else:
                    refused |= dict.fromkeys(batch[0].points, result)
            batches = retries
        errors = {point: error for point, error in refused.items() if error}
        return Selection(rows, tuple({str(e): e for e in errors.values()}.values()), errors)

    def answer(
        self, text: str, includes: Sequence[str], changed: Mapping[str, bytes]
    ) -> dict[str, Any]:
        """Returns the answers to a unit's questions; `changed` overlays files by path."""
        contents = [part for path, data in sorted(changed.items()) for part in (path, data)]
        key = digest(self.identity, Listings().of(includes), text, *contents)
        paths = (*includes, *self.standard)
        remembered_answer = remembered(
            "host", key, paths, lambda: self._made(text, includes, changed)
        )
        answer: dict[str, Any] = json.loads(remembered_answer)
        return answer

    def _made(self, text: str, includes: Sequence[str], changed: Mapping[str, bytes]) -> Made:
        # The last scope gets a random name that no header can know.
        secret = f"policygen_{secrets.token_hex(16)}"
        unit = f"/policygen/{secret}.hip"
        texts = {unit: text.replace(SCOPES[-1], secret)}
        texts |= {f"{_EMPTY}/{name}": "" for name in _STUB_HEADERS}
        texts |= {path: data.decode("latin-1") for path, data in changed.items()}
        folders = (
            *(f"-I{folder}" for folder in includes),
            *(f"-isystem{folder}" for folder in self.standard),
        )
        request = {
            "unit": unit,
            "arguments": [*_ARGUMENTS, *folders],
            "files": texts,
            "scopes": [*SCOPES[:-1], secret],
        }
        command, given = process.module(WORKER), json.dumps(request)
        answer = json.loads(process.run(command, given=given, limit=SECONDS, install=add("")))
        _check_errors(answer["errors"], unit, includes[0])
        markers = "".join(f'# 1 "{path}"\n' for path in answer["read"])
        rows = {name: _relative_location(place, includes) for name, place in answer["rows"].items()}
        answer = {"rows": rows, "types": answer["types"], "fields": answer["fields"]}
        return Made(json.dumps(answer).encode(), markers.encode(), Path(unit))


@cache
def find_host_compiler() -> HostCompiler:
    """Finds libclang, which is installed with policygen, and the standard library of g++."""
    if which(CPLUSPLUS) is None:
        raise MissingToolError(CPLUSPLUS, "Install it: rocPRIM's headers include its library.")
    command = [CPLUSPLUS, "-M", "-x", "c++", "-"]
    paths = process.run(command, given=_PROBE_SOURCE, install="Install g++.").split()
    ends = [f"/{name}" for name in _PROBED_HEADERS]
    first = [next((path for path in paths if path.endswith(end)), None) for end in ends]
    folders = [
        str(Path(path.removesuffix(end)).resolve())
        for path, end in zip(first, ends, strict=True)
        if path
    ]
    if not folders:
        raise InputError(
            f"{CPLUSPLUS} does not report its include folders", "Check its installation."
        )
    version, standard = metadata.version("libclang"), tuple(dict.fromkeys(folders))
    here = Path(__file__)
    sources = (here.with_name("host_worker.py").read_bytes(), here.read_bytes())
    return HostCompiler(version, standard, digest(version, *standard, *sources))


QUERIES = Queries(find_compiler=find_host_compiler, replaces_files=True)


def _check_needs(includes: Sequence[str]) -> None:
    """Checks that the third-party headers that all of rocPRIM includes are available."""
    needs = shipped().libraries["rocprim"].needs
    if needs and not any(Path(folder, needs).is_file() for folder in includes):
        raise MissingToolError(
            needs,
            "rocPRIM's headers include it. `policygen headers fetch rocprim@5.7.1` fetches a"
            " release with it, or set ROCM_PATH to a ROCm that has it.",
        )


def _check_errors(errors: Sequence[Sequence[Any]], unit: str, root: str) -> None:
    """Raises the errors of a unit, if any.

    Errors in HIP's own headers are ignored: these are written for other versions of clang.
    """
    own_errors = [
        f"{'question' if file == unit else file}:{line}: error: {message}"
        for file, line, message in errors
        if file in {None, unit} or Path(file).is_relative_to(root)
    ]
    if own_errors:
        raise RefusedError(["libclang"], 1, "\n".join(own_errors))


def _relative_location(
    place: Sequence[Any] | None, includes: Sequence[str]
) -> Sequence[Any] | None:
    """Makes a location relative to its include directory: trees of equal content share answers."""
    if place is None:
        return None
    path = Path(normpath(place[0]))
    folder = next((include for include in includes if path.is_relative_to(include)), "/")
    return str(path.relative_to(folder)), *place[1:]


# Answers as selections of workloads.


def _ask_batch(
    batch: Sequence[SiteQuery], tree: QueriedTree, compiler: HostCompiler
) -> dict[Spot, Selected]:
    answer = compiler.answer(host_unit(batch, tree.version), tree.includes, tree.changed)
    _check_fields(batch, answer["fields"])
    numbers = _numbers(batch, tree, compiler)
    rows: dict[Spot, Selected] = {}
    results_by_key: dict[str, tuple[dict[str, Value], int | None]] = {}
    for at, query, workload, arch in spots_of(batch):
        config, location = answer["types"].get(f"type_{at}"), answer["rows"].get(f"row_{at}")
        if not isinstance(config, list) or (location is None and not query.site.targets):
            raise _missing_answer(workload, arch)
        marked_copy, number = tree.marked.get(query.site.header), numbers.get(at)
        # Cache the results: thousands of rows share a few answers.
        key = f"{id(query)} {config} {location} {number} {query.site.table and arch}"
        if key not in results_by_key:
            if query.site.targets:
                values = dict(zip(shape_of(query).paths, config[1:], strict=True))
            else:
                values = dict(_values(config, query.aggregates, ""))
            if marked_copy is not None and query.site.table and number is not None:
                number = _of_arch(number, arch, marked_copy)
            elif marked_copy is not None and location is not None:
                number = _entry(query, location, marked_copy)
            results_by_key[key] = values, number
        rows[workload, arch] = _selected(workload, *results_by_key[key], marked_copy)
    return rows


def _missing_answer(workload: Workload, arch: str) -> InputError:
    return InputError(
        f"libclang reports nothing about {workload.name} on {arch}", "Please report this."
    )


def _numbers(
    batch: Sequence[SiteQuery], tree: QueriedTree, compiler: HostCompiler
) -> dict[int, int]:
    """Returns the entry number of each picker or table, using marked copies of their headers."""
    numbered = {
        id(query): query
        for query in batch
        if (query.site.targets or query.site.table) and query.site.header in tree.marked
    }
    if not numbered:
        return {}
    copies = {_path(q, tree): tree.marked[q.site.header].data for q in numbered.values()}
    unit = host_unit(batch, tree.version, numbered=True)
    answer = compiler.answer(unit, tree.includes, {**tree.changed, **copies})
    numbers: dict[int, int] = {}
    for at, query, workload, arch in spots_of(batch):
        if id(query) in numbered:
            config = answer["types"].get(f"type_{at}")
            expected = PLAIN if query.site.table else NUMBER
            if not isinstance(config, list) or config[0] != expected:
                raise _missing_answer(workload, arch)
            numbers[at] = config[1]
    return numbers


def _of_arch(number: int, arch: str, marked_copy: Marked) -> int | None:
    """Maps an entry to the one of an architecture: in a table several may share a config."""
    if not number < len(marked_copy.entries):
        return None  # no marked entry yields this
    span = marked_copy.entries[number][1].span
    numbers_by_arch = {
        family.arch: position
        for position, (family, entry) in enumerate(marked_copy.entries)
        if entry.span == span
    }
    return numbers_by_arch.get(arch, numbers_by_arch.get(UNKNOWN))


def _path(query: SiteQuery, tree: QueriedTree) -> str:
    """Returns the path of a site's header, which its copy overlays."""
    paths = (Path(folder, name) for folder in tree.includes for name in query.site.includes)
    return str(next(path for path in paths if path.name == query.site.header and path.is_file()))


def _check_fields(batch: Sequence[SiteQuery], fields_by_key: Mapping[str, Sequence[str]]) -> None:
    """Checks that libclang knows the same fields of structs as were parsed."""
    for number, shape in enumerate(shapes_of(batch)):
        fields = tuple(fields_by_key.get(f"fields_{number}", ()))
        if fields != shape.paths:
            raise InputError(
                f"{shape.name} was read as {', '.join(shape.paths)}, but libclang reports"
                f" {', '.join(fields)}",
                "Please report this.",
            )


def _selected(
    workload: Workload, values: Mapping[str, Value], number: int | None, marked_copy: Marked | None
) -> Selected:
    """Returns a workload's selection; its key has its own types, even if others share the entry."""
    if marked_copy is None or number is None:
        return Selected(values)
    entry = marked_copy.entries[number]
    keys = {entry[0].name: FamilyKey(tuple(workload.values.values()), entry, number)}
    return Selected(values, entry, keys, number=number)


Parts = tuple[tuple[str, str], ...]
Aggregates = Mapping[str, Parts]


def _values(config: Any, aggregates: Aggregates, prefix: str) -> Iterator[tuple[str, Value]]:
    """Yields the arguments of a config by parameter name, including nested configs."""
    name, *args = config
    parameters = aggregates.get(name, ())
    for position, arg in enumerate(args):
        parameter_name = parameters[position][0] if position < len(parameters) else str(position)
        if isinstance(arg, list):
            yield from _values(arg, aggregates, f"{prefix}{parameter_name}.")
        else:
            yield f"{prefix}{parameter_name}", arg


def _entry(query: SiteQuery, location: Sequence[Any], marked_copy: Marked) -> int | None:
    """Returns the entry at the location where the compiler found the selected template."""
    file, offset, _ = location
    # Other headers may have the same name.
    if Path(file).name != query.site.header or file not in query.site.includes:
        return None
    spans = enumerate(entry.span for _, entry in marked_copy.entries)
    return next((number for number, span in spans if span.start <= offset < span.end), None)


# Units that ask libclang what rocPRIM selects: from templates and from pickers.

ARCH = "static_cast<unsigned int>(target_arch::{})"
NUMBER = "number"
"""The template whose argument is an entry's number."""
PLAIN = "kernel_config"
"""The config whose first argument is that number, for tables written by hand, which give
configs."""
_WORD = re.compile(r"(?<!::)\b[A-Za-z_]\w*\b")


@dataclass(frozen=True, slots=True)
class Shape:
    """The struct that a picker returns, and the paths of its values."""

    name: str
    paths: tuple[str, ...]


def spots_of(batch: Sequence[SiteQuery]) -> Iterator[tuple[int, SiteQuery, Workload, str]]:
    """Yields the questions of a unit, each with the number of its answer."""
    spots = ((query, *spot) for query in batch for spot in query.spots)
    for number, (query, workload, arch) in enumerate(spots):
        yield number, query, workload, arch


def shapes_of(batch: Sequence[SiteQuery]) -> list[Shape]:
    """Returns the structs that the pickers of a unit return, in the order of the questions."""
    return list(dict.fromkeys(shape_of(query) for query in batch if query.site.targets))


def shape_of(query: SiteQuery) -> Shape:
    """Returns the struct that the picker of a site returns."""
    ((name, _),) = _declared(query)
    return Shape(name, tuple(leaf_paths(query.aggregates, name)))


def host_unit(batch: Sequence[SiteQuery], version: BoundVersion, *, numbered: bool = False) -> str:
    """Renders a unit; if `numbered`, pickers and tables give entry numbers."""
    points = [point for query in batch for point in query.points]
    type_headers = {name for point in points for name in axis_headers(point, version)}
    site_headers = [name for query in batch for name in query.site.includes]
    targets = list(
        dict.fromkeys(
            (query.site.targets, arch)
            for query in batch
            if query.site.targets
            for arch in query.archs
        )
    )
    target_names = {target: f"target_{number}::type" for number, target in enumerate(targets)}
    shapes = [] if numbered else shapes_of(batch)
    picked_by_query: dict[int, tuple[str, list[str]]] = {}
    """The template that has a picker's values as arguments, and the paths of these."""
    for query in batch:
        if query.site.targets and numbered:
            picked_by_query[id(query)] = NUMBER, [""]
        elif query.site.targets:
            shape = shape_of(query)
            paths = [f".{path}" for path in shape.paths]
            picked_by_query[id(query)] = f"shape_{shapes.index(shape)}", paths
    rows, picked = [], []
    for number, query, workload, arch in spots_of(batch):
        arguments = _template_arguments(workload, version)
        if query.site.targets:
            arguments["Target"] = target_names[query.site.targets, arch]
            template, paths = picked_by_query[id(query)]
            values = ", ".join(f"value_{number}::found{path}" for path in paths)
            hub = _substitute(query.site.hub, arguments)
            picked.append((number, hub, f"{template}<{values}>"))
        elif query.site.table or not numbered:
            plain_arch = arch_and_gpu(arch)[0]
            table_arch = f"{table_number(arch)}u" if query.site.table else ARCH.format(plain_arch)
            arguments["Arch"] = table_arch
            rows.append((number, _substitute(query.site.hub, arguments)))
    context = {
        "headers": dict.fromkeys([*sorted(type_headers), *site_headers]),
        "scopes": SCOPES,
        "configs": dict.fromkeys(_configs(batch, numbered=numbered)),
        "number": NUMBER,
        "targets": [(target, _device(arch)) for target, arch in targets],
        "shapes": [(shape.name, shape.paths) for shape in shapes],
        "rows": rows,
        "picked": picked,
    }
    return fill(TEMPLATE, context)


def _configs(batch: Sequence[SiteQuery], *, numbered: bool) -> Iterator[tuple[str, Parts]]:
    """Yields the templates that the configs of a unit may be."""
    for query in batch:
        if numbered and query.site.table:
            yield PLAIN, query.aggregates.get(PLAIN, ())
        elif not numbered and not query.site.targets:
            yield from _declared(query)


def _device(arch: str) -> str:
    """Returns the target of a device as rocPRIM spells it, from `gfx942:mi300x`."""
    base_arch, gpu = arch_and_gpu(arch)
    return f"target_arch::{base_arch}, gpu::{gpu}" if gpu else f"target_arch::{base_arch}"


def _declared(query: SiteQuery) -> tuple[tuple[str, Parts], ...]:
    names = query.site.configs
    declared = tuple((name, parts) for name in names if (parts := query.aggregates.get(name)))
    if not declared:
        raise InputError(
            f"{query.site.header}: {' or '.join(names)} is not declared",
            "The bindings name a config that the tree lacks; check whether the tree is complete.",
        )
    return declared


def _template_arguments(workload: Workload, version: BoundVersion) -> dict[str, str]:
    """Returns a workload's arguments for the parameters of a template, in C++."""
    arguments: dict[str, str] = {}
    for role, text in {**workload.call.roles, **workload.call.constants}.items():
        axis = text.removeprefix("axis::")
        value = workload.values.get(axis, text)
        is_type = axis in workload.values and not is_constant(value)
        arguments[role] = axis_type(value, version).cpp if is_type else value
    return arguments


def _substitute(hub: str, arguments: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: arguments.get(match[0], match[0]), hub)
