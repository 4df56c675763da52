"""The CUB kernels of programs: compiles sources, opens objects, and reads policies from names."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from policygen.bindings.load import Bound, axis_type, axis_values, types
from policygen.errors import InputError, ProcessError
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding
from policygen.model.machine_code import Kernel
from policygen.model.trees import BoundVersion, version_of
from policygen.opening import read_document
from policygen.process import run
from policygen.proof.compile import folder_of_its_own
from policygen.proof.kernel_build import Tools
from policygen.proof.kernel_code import read_cubin
from policygen.proof.kernel_comparison import lasting, split_name
from policygen.proof.toolchain import to_install

# What is policygen's to choose: the architecture and the output. -c, -gencode=arch=…, -o=FILE
_CHOSEN = re.compile(
    r"-(?:c|dw|dlink|ptx|cubin|fatbin|run|M|MM|MD|MMD|MP|keep|link|lib|E)"
    r"|--(?:compile|device-w|device-link|ptx|cubin|fatbin|run|keep|link|lib|preprocess)"
    r"|-{1,2}(?:arch|gpu-architecture|code|gpu-code|gencode|generate-code|o|output-file)=.*"
)
_CHOSEN_WITH_VALUE = re.compile(
    r"-{1,2}(?:arch|gpu-architecture|code|gpu-code|gencode|generate-code|o|output-file|odir"
    r"|output-directory|keep-dir|MF|MT|MQ)"
)
# Flags that are passed on from a file: they change code, and start or load nothing
_HARMLESS = re.compile(
    r"-[DUI].+|-isystem.+|-include=.+|--?std=.+|-x=cu|-O[0-3]|-[gG]|--?(?:expt-relaxed-constexpr"
    r"|expt-extended-lambda|extended-lambda|use_fast_math|(?:ftz|fmad|prec-div|prec-sqrt|rdc"
    r"|relocatable-device-code|static-global-template-stub|default-stream|maxrregcount)=[\w-]+)"
)
_JOINED = {"-I": "", "-D": "", "-U": "", "-isystem": "=", "-include": "=", "-std": "=", "-x": "="}
"""Flags whose value may be the next word → what joins them."""
_RESPONSE = ("--options-file", "-optf")
_INCLUDE = re.compile(r"-(?:I|isystem=?)(.+)")


@dataclass(frozen=True, slots=True)
class ProgramUnit:
    """A translation unit, the flags that it is compiled with, and the folder of relative paths."""

    source: Path
    flags: tuple[str, ...]
    folder: Path
    left_out: tuple[str, ...] = ()
    """Flags of a file that policygen does not pass on."""

    def with_overlay(self, overlay: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the flags without and with an overlay, which comes first unless they place it."""
        without = tuple(flag for flag in self.flags if not self._includes(flag, overlay))
        if without != self.flags:
            return without, self.flags
        return self.flags, (f"-I{overlay.resolve()}", *self.flags)

    def _includes(self, flag: str, folder: Path) -> bool:
        match = _INCLUDE.fullmatch(flag)
        return match is not None and (self.folder / match[1]).resolve() == folder.resolve()


def units_of(path: Path, flags: Sequence[str]) -> tuple[ProgramUnit, ...]:
    """Returns a source with its flags, or the CUDA units of a compile_commands.json.

    The programs that a file names are not run, and only flags that are known are passed on.
    """
    if not path.is_file():
        raise InputError(f"cannot read {path}: No such file", "Name a source: program.cu")
    if path.suffix != ".json":
        return (ProgramUnit(path.resolve(), tuple(_compiling(flags, None)), Path.cwd()),)
    units = []
    try:
        for row in json.loads(read_document(path)):
            words = row.get("arguments") or shlex.split(row["command"])
            folder = (path.parent / row["directory"]).resolve()
            source = (folder / row["file"]).resolve()
            if source.suffix == ".cu" or ("-x", "cu") in pairwise(words):
                given = [w for w in _compiling(words[1:], folder) if (folder / w) != source]
                taken = tuple(flag for flag in given if _HARMLESS.fullmatch(flag))
                left_out = tuple(f for f in given if f not in taken and Path(f).name != source.name)
                units.append(ProgramUnit(source, taken, folder, left_out))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a database of compile commands: {error}") from error
    if flags or not units:
        problem = "has its own flags" if flags else "names no unit of CUDA"
        raise InputError(f"{path} {problem}", "Name a source: program.cu -- FLAGS")
    return tuple(units)


def arch_of(flags: Iterable[str]) -> str | None:
    """Returns the architecture that flags name, if it is one: -arch=sm_90."""
    numbers = {number for flag in flags for number in re.findall(r"\bsm_(\d+)", flag)}
    return f"sm{numbers.pop()}" if len(numbers) == 1 else None


def _compiling(flags: Iterable[str], folder: Path | None) -> Iterator[str]:
    """Yields flags without those that are policygen's, each as one word.

    With a folder, files with more flags are read.
    """
    words = iter(flags)
    for word in words:
        if _CHOSEN_WITH_VALUE.fullmatch(word):
            next(words, None)
        elif folder and word in _RESPONSE:
            text = read_document(folder / next(words, "")).decode(errors="replace")
            yield from _compiling(shlex.split(text), None)
        elif word in {"-dc", "--device-c"}:
            yield "-rdc=true"
        elif word in _JOINED:
            yield f"{word}{_JOINED[word]}{next(words, '')}"
        elif not _CHOSEN.fullmatch(word):
            yield word


# Compiling and opening.


def compile_unit(
    unit: ProgramUnit,
    flags: Sequence[str],
    arch: str,
    tools: Tools,
    cache: Path,
    *,
    listed: bool = False,
) -> tuple[Kernel, ...]:
    """Returns the kernels of a unit for an architecture; it may have none, and take its time."""
    with folder_of_its_own(cache) as folder:
        output = folder / "unit.cubin"
        command = [tools.nvcc, "-cubin", f"-arch=sm_{arch_number(arch)}", *flags]
        command += ["-o", str(output), str(unit.source)]
        run(command, folder=unit.folder, limit=None, install=tools.install)
        cubin = output.read_bytes() if output.is_file() else b""
    return tools.read(cubin, cache, listed=listed) if b".text." in cubin else ()


# ELF file    1: program.1.sm_90.cubin
_LISTED = re.compile(r"ELF file +\d+: .+\.sm_(\d+)[af]?\.cubin$", re.M)


def open_object(
    path: Path, arch: str | None, cuobjdump: str, cache: Path
) -> tuple[str, dict[str, int | None]]:
    """Reads the kernels of an object or library, with their launch bounds.

    Also returns the architecture that was read: the newest one by default.
    """
    if not path.is_file():
        raise InputError(f"cannot read {path}: No such file")
    listing = ""
    with suppress(ProcessError):  # so it answers where there is none
        listing = run([cuobjdump, "-lelf", str(path.resolve())], install=to_install())
    archs = [f"sm{number}" for number in sorted({int(n) for n in _LISTED.findall(listing)})]
    chosen = arch or (archs[-1] if archs else "GPUs")
    if chosen not in archs:
        has = f"It has some for: {', '.join(archs)}." if archs else "Name a source with its flags."
        raise InputError(f"{path} holds no machine code for {chosen}", has)
    bounds: dict[str, int | None] = {}
    with folder_of_its_own(cache) as folder:
        part = f".sm_{arch_number(chosen)}"
        run([cuobjdump, "-xelf", part, str(path.resolve())], folder=folder, install=to_install())
        for file in sorted(folder.glob(f"*{part}*.cubin")):
            if b".text." in (data := file.read_bytes()):
                kernels = read_cubin(data, file.name).values()
                bounds |= {kernel.name: kernel.max_threads for kernel in kernels}
    return chosen, bounds


# Policies from names.

# cub::_V_300600_SM_900::policygen_add143b5e6c3::, cub::CUB_200802_SM_900::
_RELEASE = re.compile(r"\bcub::(?:_V|CUB)_(\d{6})_\w*?SM_")
_OVERLAY = re.compile(r"\bcub::(?:\w+::)?(policygen_[0-9a-f]{12})::")
# In a lasting name: cub::detail::scan::DeviceScanKernel<, wrapped::cub::DeviceReduceKernel<,
# thrust::cuda_cub::. A program's own namespace `cub` has other functions: at::cuda::cub::impl::k<
_OF_CUB = re.compile(r"^(?:void )?(?:\w+::)*?cub::(?:detail::|\w+Kernel\w*[<(])")
_OF_THRUST = re.compile(r"^(?:void )?(?:\w+::)*?thrust::")
# ::cuda::std::plus<>
_OPERATOR = re.compile(r"::((?:\w+::)+\w+)<>")
# thrust::detail::normal_iterator<thrust::device_ptr<int> >
_WRAPPED = re.compile(r"(?:\w+::)*(?:normal_iterator|device_ptr|pointer)<(.+?)(?:, .*)?>")


@dataclass(frozen=True, slots=True)
class PolicyUse:
    """A policy that a kernel's name holds: a policy hub or selector with the types of a call."""

    algorithm: Bound = field(compare=False)
    namespace: str
    hub: str
    arguments: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The policy as a person reads it."""
        return f"{self.hub}<{', '.join(map(value_type, self.arguments))}>"


def release_of(name: str) -> str | None:
    """Returns the version of CUB in a demangled name: `3.6.0`."""
    match = _RELEASE.search(name)
    return version_of(int(match[1])) if match else None


def overlay_of(name: str) -> str | None:
    """Returns the overlay that a kernel was compiled with."""
    match = _OVERLAY.search(name)
    return match[1] if match else None


def is_of_library(name: str) -> bool:
    """Returns whether CUB or Thrust has a kernel, not the program."""
    return _is_of_cub(name) or _OF_THRUST.match(name) is not None


def hides_release(name: str) -> bool:
    """Returns whether a kernel of CUB names no version, as with `CUB_WRAPPED_NAMESPACE`."""
    return _is_of_cub(name) and release_of(name) is None


def _is_of_cub(name: str) -> bool:
    return _OF_CUB.match(lasting(name)) is not None


def policy_in(name: str, algorithms: Sequence[Bound]) -> PolicyUse | None:
    """Finds the policy in a kernel's demangled name."""
    text = lasting(name)
    for algorithm in algorithms:
        for site in algorithm.sites:
            hub = site.hub.partition("<")[0]
            if (start := text.find(f"{site.scope}::{hub}<")) >= 0:
                arguments = tuple(split_name(text[start:])[1])
                return PolicyUse(algorithm, site.scope, hub, arguments)
    return None


def headers_in(name: str, algorithms: Sequence[Bound]) -> frozenset[str]:
    """Returns the tuning headers of all algorithms that a demangled name mentions."""
    text = lasting(name)
    sites = (site for algorithm in algorithms for site in algorithm.sites)
    return frozenset(site.header for site in sites if f"{site.scope}::" in text)


def value_type(text: str) -> str:
    """Returns `int` for `int const*` and for Thrust's iterators of `int`."""
    stripped = re.sub(r"(?:\s*\bconst|\s*\*)$", "", text.strip())
    if match := _WRAPPED.fullmatch(stripped):
        stripped = match[1].strip()
    return stripped if stripped == text else value_type(stripped)


def benchmark_of(
    use: PolicyUse, version: BoundVersion
) -> tuple[BenchmarkBinding | None, dict[str, str]]:
    """Finds the first benchmark with the types of a policy, and the values of its axes.

    Without such a benchmark, returns one of the same policy without values.
    """
    nearest = None
    for site in use.algorithm.sites:
        if (site.scope, site.hub.partition("<")[0]) != (use.namespace, use.hub):
            continue
        roles = map(value_type, split_name(site.hub)[1])
        actual = dict(zip(roles, map(value_type, use.arguments), strict=False))
        for benchmark in use.algorithm.benchmarks:
            if benchmark.site == site.name:
                if axes := _axes(benchmark, actual, version):
                    return benchmark, axes
                nearest = nearest or benchmark
    return nearest, {}


def _axes(
    benchmark: BenchmarkBinding, actual: Mapping[str, str], version: BoundVersion
) -> dict[str, str] | None:
    """Returns the values of a benchmark's axes for the types of a call; None if they differ."""
    axes: dict[str, str] = {}
    # The type of a sum says the type of its elements only if nothing else does.
    for role, text in sorted(
        benchmark.roles.items(), key=lambda item: item[1].startswith("accumulator<")
    ):
        if role not in actual:
            continue
        if text.startswith("accumulator<") and axes.keys() & re.findall(r"axis::(\w+)", text):
            continue
        if match := re.fullmatch(r"(?:offset<|accumulator<\w+, )?axis::(\w+)>?", text):
            values = axis_values(benchmark, match[1], version)
            names = {_printed(axis_type(value, version).cpp): value for value in values}
            if text.startswith("offset<"):  # CUB makes them unsigned
                names |= {"unsigned int": "I32"}
                names |= dict.fromkeys(("unsigned long", "unsigned long long"), "I64")
            value = names.get(actual[role])
            if value is None or axes.setdefault(match[1], value) != value:
                return None
        elif match := _OPERATOR.fullmatch(text):  # of any type: CUB tunes them alike
            if actual[role].partition("<")[0] != match[1]:
                return None
        elif (
            re.fullmatch(r"[\w:]+", text)
            and text not in benchmark.roles
            and _printed(text) != actual[role].rpartition("::")[2]
        ):
            return None
    return axes


def _printed(cpp: str) -> str:
    """Returns a type as the demangler prints it: `signed char` for `::cuda::std::int8_t`."""
    plain = cpp.rpartition("::")[2] if re.fullmatch(r"[\w:]+", cpp) else cpp.removeprefix("::")
    return types().spellings.get(plain, plain)
