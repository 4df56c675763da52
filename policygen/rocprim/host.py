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
from policygen.proof.probe import QueriedTree, Selection, SiteQuery, filled
from policygen.proof.units import Workload, axis_headers
from policygen.rendering import fill
from policygen.steps import Progress, follow
from policygen.trees.manifest import shipped

ROWS = 3000
"""Rows per unit: a question takes 0.1 milliseconds, the headers take a second."""
Spot = tuple[Workload, str]


@dataclass(frozen=True, slots=True)
class HostCompiler:
    """libclang, with the standard library of a g++."""

    version: str
    standard: tuple[str, ...]
    """The include directories of the standard library."""
    identity: str

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures that it compiles for: none, as it only compiles for the host."""
        return ()

    @property
    def replaces_files(self) -> bool:
        """Whether it accepts file overlays: headers include each other by path."""
        return True

    @property
    def name(self) -> str:
        """The name shown in outputs: `libclang 18.1.1`."""
        return f"libclang {self.version}"

    def told(
        self,
        text: str,
        scopes: Sequence[str],
        includes: Sequence[str],
        changed: Mapping[str, bytes],
    ) -> dict[str, Any]:
        """Returns the answers to a unit's questions; `changed` overlays files by path.

        The last scope gets a random name that no header can know.
        """
        listing = Listings().of(includes)
        contents = [part for path, data in sorted(changed.items()) for part in (path, data)]
        key = digest(self.identity, listing, text, *scopes, *contents)
        paths = (*includes, *self.standard)
        remembered_answer = remembered(
            "host", key, paths, lambda: self._made(text, scopes, includes, changed)
        )
        answer: dict[str, Any] = json.loads(remembered_answer)
        return answer

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
            "scopes": [*scopes[:-1], secret],
        }
        command = process.module(WORKER)
        request_text = json.dumps(request)
        answer = json.loads(
            process.run(command, given=request_text, limit=SECONDS, install=again())
        )
        _check_errors(answer["errors"], unit, tuple(includes))
        markers = "".join(f'# 1 "{path}"\n' for path in answer["read"])
        rows = {name: _relative_location(place, includes) for name, place in answer["rows"].items()}
        answer = {"rows": rows, "types": answer["types"], "fields": answer["fields"]}
        return Made(json.dumps(answer).encode(), markers.encode(), Path(unit))


def ask_host(
    tree: QueriedTree,
    questions: Sequence[SiteQuery],
    compiler: HostCompiler,
    *,
    progress: Progress | None = None,
) -> Selection:
    """Asks for all workloads; a batch that is refused is asked again site by site."""
    _check_needs(tree.includes)
    answerable = [question for question in questions if not question.problem]
    rows: dict[Spot, Selected] = {}
    refused = {
        point: question.problem
        for question in questions
        if question.problem
        for point in question.points
    }
    batches = list(
        filled(answerable, lambda question: len(question.points) * len(question.archs), ROWS)
    )
    while batches:
        with threads() as pool:
            futures = {
                pool.submit(attempt, partial(_ask_batch, batch, tree, compiler)): batch[0].site.name
                for batch in batches
            }
            follow(futures, PHASE, progress)
            results = [future.result() for future in futures]
        retries: list[list[SiteQuery]] = []
        for batch, result in zip(batches, results, strict=True):
            if not isinstance(result, PolicygenError):
                rows |= result
            elif len(batch) > 1:
                retries += [[question] for question in batch]
            else:
                refused |= {point: result for question in batch for point in question.points}
        batches = retries
    errors = {str(error): error for error in refused.values() if error}
    return Selection(
        rows, tuple(errors.values()), {point: error for point, error in refused.items() if error}
    )


def _check_needs(includes: Sequence[str]) -> None:
    """Checks that the third-party headers that all of rocPRIM includes are available."""
    needs = shipped().libraries["rocprim"].needs
    if needs and not any(Path(folder, needs).is_file() for folder in includes):
        raise MissingToolError(
            needs,
            "rocPRIM's headers include it. `policygen headers fetch rocprim@5.7.1` fetches a"
            " release with it; else name a ROCm that has it: ROCM_PATH.",
        )


def _ask_batch(
    batch: Sequence[SiteQuery], tree: QueriedTree, compiler: HostCompiler
) -> dict[Spot, Selected]:
    text = host_unit(batch, tree.version)
    answer = compiler.told(text, SCOPES, tree.includes, tree.changed)
    _check_fields(batch, answer["fields"])
    numbers = _numbers(batch, tree, compiler)
    rows: dict[Spot, Selected] = {}
    results_by_key: dict[str, tuple[dict[str, Value], int | None]] = {}
    for at, question, workload, arch in spots_of(batch):
        config, location = answer["types"].get(f"type_{at}"), answer["rows"].get(f"row_{at}")
        if not isinstance(config, list) or (location is None and not question.site.targets):
            raise _missing_answer(workload, arch)
        marked_copy = tree.marked.get(question.site.header)
        # Cache the results: thousands of rows share a few answers.
        key = f"{id(question)} {config} {location} {numbers.get(at)} {question.site.table and arch}"
        if key not in results_by_key:
            fields = (
                _picker_fields(config, question)
                if question.site.targets
                else _values(config, question.aggregates, "")
            )
            values = dict(fields)
            number = numbers.get(at)
            if marked_copy is not None and question.site.table and number is not None:
                number = _of_arch(number, arch, marked_copy)
            elif marked_copy is not None and location is not None:
                number = _entry(question, location, marked_copy)
            results_by_key[key] = values, number
        rows[workload, arch] = _selected(workload, *results_by_key[key], marked_copy)
    return rows


def _missing_answer(workload: Workload, arch: str) -> InputError:
    return InputError(f"libclang tells nothing of {workload.name} on {arch}", "Please report this.")


def _numbers(
    batch: Sequence[SiteQuery], tree: QueriedTree, compiler: HostCompiler
) -> dict[int, int]:
    """Returns the entry number of each picker or table, using marked copies of their headers."""
    copies = {
        _header_path(question, tree): tree.marked[question.site.header].data
        for question in batch
        if _is_numbered(question, tree)
    }
    if not copies:
        return {}
    unit = host_unit(batch, tree.version, numbered=True)
    answer = compiler.told(unit, SCOPES, tree.includes, {**tree.changed, **copies})
    numbers: dict[int, int] = {}
    for number, question, workload, arch in spots_of(batch):
        if _is_numbered(question, tree):
            config = answer["types"].get(f"type_{number}")
            if not isinstance(config, list) or config[0] != (
                PLAIN if question.site.table else NUMBER
            ):
                raise _missing_answer(workload, arch)
            numbers[number] = config[1]
    return numbers


def _is_numbered(question: SiteQuery, tree: QueriedTree) -> bool:
    return (
        bool(question.site.targets) or question.site.table
    ) and question.site.header in tree.marked


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


def _header_path(question: SiteQuery, tree: QueriedTree) -> str:
    """Returns the path of a site's header, which its copy overlays."""
    paths = (Path(folder, name) for folder in tree.includes for name in question.site.includes)
    return str(next(path for path in paths if path.name == question.site.header and path.is_file()))


def _check_fields(batch: Sequence[SiteQuery], fields_by_key: Mapping[str, Sequence[str]]) -> None:
    """Checks that libclang knows the same fields of structs as were parsed."""
    for number, shape in enumerate(shapes_of(batch)):
        fields = tuple(fields_by_key.get(f"fields_{number}", ()))
        if fields != shape.paths:
            raise InputError(
                f"{shape.name} was read as {', '.join(shape.paths)}, and libclang says that it has"
                f" {', '.join(fields)}",
                "Please report this.",
            )


def _picker_fields(config: Sequence[Any], question: SiteQuery) -> Iterator[tuple[str, Value]]:
    """Yields the fields of a picker's result, with their values."""
    return zip(shape_of(question).paths, config[1:], strict=True)


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


def _entry(question: SiteQuery, location: Sequence[Any], marked_copy: Marked) -> int | None:
    """Returns the entry at the location where the compiler found the selected template."""
    file, offset, _ = location
    # Other headers may have the same name.
    if Path(file).name != question.site.header or file not in question.site.includes:
        return None
    spans = enumerate(entry.span for _, entry in marked_copy.entries)
    return next((number for number, span in spans if span.start <= offset < span.end), None)


TEMPLATE = "probe/host.hip.j2"
SCOPES = ("rocprim", "detail", "policygen_asked")
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


# Units that ask libclang what rocPRIM selects: from templates and from pickers.


def spots_of(batch: Sequence[SiteQuery]) -> Iterator[tuple[int, SiteQuery, Workload, str]]:
    """Yields the questions of a unit, each with the number of its answer."""
    all_spots = ((question, *spot) for question in batch for spot in question.spots)
    for number, (question, workload, arch) in enumerate(all_spots):
        yield number, question, workload, arch


def shapes_of(batch: Sequence[SiteQuery]) -> list[Shape]:
    """Returns the structs that the pickers of a unit return, in the order of the questions."""
    return list(dict.fromkeys(shape_of(question) for question in batch if question.site.targets))


def shape_of(question: SiteQuery) -> Shape:
    """Returns the struct that the picker of a site returns."""
    ((name, _),) = _declared(question)
    return Shape(name, tuple(_paths(name, question.aggregates, "")))


def host_unit(batch: Sequence[SiteQuery], version: str, *, numbered: bool = False) -> str:
    """Renders a unit; if `numbered`, pickers and tables give entry numbers."""
    site_headers = (name for question in batch for name in question.site.includes)
    type_headers = {
        name
        for question in batch
        for point in question.points
        for name in axis_headers(point, version)
    }
    numbers_of_targets = _targets(batch)
    shapes = [] if numbered else shapes_of(batch)
    shape_by_question = {
        id(question): shape_of(question) for question in batch if shapes and question.site.targets
    }
    rows, picker_rows = [], []
    for number, question, workload, arch in spots_of(batch):
        arguments = _template_arguments(workload, version)
        if question.site.targets:
            arguments["Target"] = f"target_{numbers_of_targets[question.site.targets, arch]}::type"
            template = (
                NUMBER if numbered else f"shape_{shapes.index(shape_by_question[id(question)])}"
            )
            paths = (
                ("",)
                if numbered
                else (f".{path}" for path in shape_by_question[id(question)].paths)
            )
            values = ", ".join(f"value_{number}::found{path}" for path in paths)
            picker_rows.append(
                (number, _substitute(question.site.hub, arguments), f"{template}<{values}>")
            )
        elif question.site.table or not numbered:
            arguments["Arch"] = _arch_of(question, arch)
            rows.append((number, _substitute(question.site.hub, arguments)))
    context = {
        "headers": dict.fromkeys([*sorted(type_headers), *site_headers]),
        "scopes": SCOPES,
        "configs": dict.fromkeys(_configs(batch, numbered=numbered)),
        "number": NUMBER,
        "targets": [(targets, _device(arch)) for targets, arch in numbers_of_targets],
        "shapes": [(target_shape.name, target_shape.paths) for target_shape in shapes],
        "rows": rows,
        "picked": picker_rows,
    }
    return fill(TEMPLATE, context)


def _arch_of(question: SiteQuery, arch: str) -> str:
    """Returns an architecture as a template of configs takes it."""
    return f"{table_number(arch)}u" if question.site.table else ARCH.format(arch_and_gpu(arch)[0])


def _configs(batch: Sequence[SiteQuery], *, numbered: bool) -> Iterator[tuple[str, Parts]]:
    """Yields the templates that the configs of a unit may be."""
    for question in batch:
        if numbered and question.site.table:
            yield PLAIN, question.aggregates.get(PLAIN, ())
        elif not numbered and not question.site.targets:
            yield from _declared(question)


def _targets(batch: Sequence[SiteQuery]) -> dict[tuple[str, str], int]:
    """Numbers the pairs of a target list and a device in a unit."""
    pairs = (
        (question.site.targets, arch)
        for question in batch
        if question.site.targets
        for arch in question.archs
    )
    return {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}


def _device(arch: str) -> str:
    """Returns the target of a device as rocPRIM spells it, from `gfx942:mi300x`."""
    base_arch, gpu = arch_and_gpu(arch)
    return f"target_arch::{base_arch}, gpu::{gpu}" if gpu else f"target_arch::{base_arch}"


def _paths(name: str, aggregates: Aggregates, prefix: str) -> Iterator[str]:
    """Yields the paths of a struct's values, including nested ones: `kernel_config.block_size`."""
    for field, kind in aggregates.get(name, ()):
        inner = kind.rpartition("::")[2]
        if inner in aggregates:
            yield from _paths(inner, aggregates, f"{prefix}{field}.")
        else:
            yield f"{prefix}{field}"


def _declared(question: SiteQuery) -> tuple[tuple[str, Parts], ...]:
    """Returns the templates that a config may be, with their parameters."""
    declared = {name: question.aggregates.get(name) for name in question.site.configs}
    known_templates = tuple((name, parts) for name, parts in declared.items() if parts)
    if not known_templates:
        raise InputError(
            f"{question.site.header}: nothing declares {' or '.join(question.site.configs)}",
            "Is the tree whole? The bindings name another config than it has.",
        )
    return known_templates


def _template_arguments(workload: Workload, version: str) -> dict[str, str]:
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


WORKER = "policygen.rocprim.host_worker"
CPLUSPLUS = "g++"
_PROBE_SOURCE = b"""#include <algorithm>
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


# libclang as a host compiler: its include directories and its diagnostics.


def _check_errors(errors: Sequence[Sequence[Any]], unit: str, includes: Sequence[str]) -> None:
    """Raises the errors of a unit, if any.

    Errors in HIP's own headers are ignored: these are written for other versions of clang.
    """
    root = includes[0]
    own_errors = [
        error
        for error in errors
        if error[0] is None or error[0] == unit or _is_below(error[0], root)
    ]
    if own_errors:
        listing = "\n".join(
            f"{'question' if file == unit else file}:{line}: error: {message}"
            for file, line, message in own_errors
        )
        raise RefusedError(["libclang"], 1, listing)


def _relative_location(
    place: Sequence[Any] | None, includes: Sequence[str]
) -> Sequence[Any] | None:
    """Makes a location relative to its include directory: trees of equal content share answers."""
    if place is None:
        return None
    path = Path(normpath(place[0]))
    folder = next((include for include in includes if path.is_relative_to(include)), "/")
    return str(path.relative_to(folder)), *place[1:]


def _is_below(file: str, root: str) -> bool:
    return Path(file).is_relative_to(root)


@cache
def find_host_compiler() -> HostCompiler:
    """Finds libclang, which is installed with policygen, and the standard library of g++."""
    if which(CPLUSPLUS) is None:
        raise MissingToolError(CPLUSPLUS, "Install it: rocPRIM's headers include its library.")
    command = [CPLUSPLUS, "-M", "-x", "c++", "-"]
    paths = process.run(command, given=_PROBE_SOURCE.decode(), install="Install g++.").split()
    standard = tuple(
        dict.fromkeys(filter(None, (_folder(paths, name) for name in _PROBED_HEADERS)))
    )
    if not standard:
        raise InputError(f"{CPLUSPLUS} does not tell where its headers are", "Is it whole?")
    version = metadata.version("libclang")
    worker = Path(__file__).with_name("host_worker.py")
    identity = digest(version, *standard, *_ARGUMENTS, worker.read_bytes(), _source_text())
    return HostCompiler(version, standard, identity)


def _source_text() -> bytes:
    return Path(__file__).read_bytes()


def _folder(paths: Sequence[str], name: str) -> str | None:
    match = next((path for path in paths if path.endswith(f"/{name}")), None)
    return None if match is None else str(Path(match.removesuffix(f"/{name}")).resolve())
