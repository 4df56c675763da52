"""Finds hipcc, compiles kernels with the clang that it starts, and reads their assembly.

hipcc is a script that puts some of its arguments into a shell command. It only compiles a file of
policygen's; for all other files its clang is started directly, so no path of a tree reaches a
shell.
"""

import hashlib
import os
import re
import shlex
import sys
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from policygen import rendering
from policygen.bindings.words import table_number
from policygen.cache import digest, keep, kept
from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.model.arch import UNKNOWN, arch_number
from policygen.model.machine_code import Kernel
from policygen.portable import nearby
from policygen.process import named_folder, run, threads, which
from policygen.proof.compile import compile_file, file_digest, unit_file
from policygen.proof.kernel_build import Job, KernelTools, LibraryKernels, UnitHeaders
from policygen.proof.toolchain import program
from policygen.proof.units import made_of, marked, new_mark

PROGRAM = "hipcc"
VARIABLE = "ROCM_PATH"
INSTALLED = Path("/opt/rocm/bin/hipcc")
"""Where AMD's own installers put it."""
DEVICE = "--cuda-device-only"
OFFLOAD = "--offload-arch="
ASKED = "gfx90a"
"""An architecture that all releases of hipcc know."""
SECONDS = 120.0
# If there is an nvcc, hipcc would start that.
_PLATFORM = {"HIP_PLATFORM": "amd"}
_VERBOSE = {"HIPCC_VERBOSE": "1"}
_LOG = "options"
_TO_ASSEMBLY = ("-S", "-o", "unit.s", "-x", "hip", "unit.hip")
# HIP version: 5.2.21153-0
_RELEASE = re.compile(r"^HIP version: ([\d.]+)", re.M)
# Debian clang version 15.0.6; AMD clang version 17.0.0 (https://github.com/…)
_CLANG = re.compile(r"\bclang version ([\d.]+)")
# hipcc-cmd: /usr/bin/clang++-15  --rocm-path=/usr -O3 -E -o "unit.ii" -x hip unit.hip
_COMMAND = re.compile(r"^hipcc-cmd: (.+)$", re.M)
# "-mlink-builtin-bitcode" "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode/ocml.bc"
_BITCODE = re.compile(r'"-mlink-builtin-bitcode" "((?:[^"\\]|\\.)*)"')
_NO_BITCODE = "it does not report the code that it links"


@dataclass(frozen=True, slots=True)
class Hipcc:
    """A hipcc, and the clang that it starts."""

    path: Path
    version: str
    """The version of HIP."""
    clang_version: str
    clang: str
    options: tuple[str, ...]
    """The options that hipcc passes to clang."""

    @property
    def name(self) -> str:
        """The name shown in outputs: `hipcc 5.2.21153 (clang 15.0.6)`."""
        return f"hipcc {self.version} (clang {self.clang_version})"


@dataclass(frozen=True, slots=True)
class CompileTarget:
    """An architecture, and whether clang compiles for it."""

    arch: str
    identity: str = ""
    """Identifies what clang links into all code for it; empty if it does not compile."""
    refusal: str = ""
    """Why it does not compile."""


def to_install() -> str:
    """Explains how to install hipcc."""
    return (
        "Install it: apt-get install hipcc, or AMD's ROCm. It is searched for at --hipcc, in"
        f" {VARIABLE}, on PATH and in {INSTALLED.parent}."
    )


def find_hipcc(named: Path | None = None, environment: Mapping[str, str] | None = None) -> Hipcc:
    """Finds hipcc: the given one, that of `ROCM_PATH`, on PATH, or in `/opt/rocm`."""
    if named is not None:
        if not named.is_file():
            raise MissingToolError(f"{named} (from --hipcc)", "Name the file: --hipcc /…/bin/hipcc")
        return _describe(named.absolute())
    for candidate in _candidates(os.environ if environment is None else environment):
        if candidate.is_file():
            return _describe(candidate)
    raise MissingToolError(PROGRAM, to_install())


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    # The variable may point to headers alone.
    if root := named_folder(VARIABLE, environment):
        yield root / "bin" / PROGRAM
    if path := which(PROGRAM, environment):
        yield Path(path)
    yield INSTALLED


@cache
def _describe(path: Path) -> Hipcc:
    output = run([str(path), "--version"], limit=SECONDS, install=to_install(), more=_PLATFORM)
    release, clang = _RELEASE.search(output), _CLANG.search(output)
    if release is None or clang is None:
        raise _broken(path, "does not report its release")
    command = _command(path)
    return Hipcc(path, release[1], clang[1], command[0], tuple(command[1:]))


def _command(path: Path) -> list[str]:
    """Returns the command that hipcc starts, without the arguments passed to it."""
    arguments = ["-E", DEVICE, f"{OFFLOAD}{ASKED}"]
    files = ["-o", "unit.ii", "unit.hip"]
    with _trial() as folder:
        output = run(
            [str(path), *arguments, *files],
            folder=Path(folder),
            limit=SECONDS,
            install=to_install(),
            more={**_PLATFORM, **_VERBOSE},
        )
    match = _COMMAND.search(output)
    try:
        words = shlex.split(match[1]) if match else []
    except ValueError:
        words = []
    command = [word for word in words if word not in {*arguments, *files, "-x", "hip"}]
    if (
        not command
        or not command[0].startswith("/")
        or len(words) - len(command) < len(arguments) + len(files)
    ):
        raise _broken(path, "does not report what it runs")
    return command


def _trial() -> "TemporaryDirectory[str]":
    folder = TemporaryDirectory(prefix="policygen-")
    source = rendering.folder("templates") / "probe" / "trial.hip"
    (Path(folder.name) / "unit.hip").write_bytes(source.read_bytes())
    return folder


def _broken(path: Path, why: str) -> MissingToolError:
    return MissingToolError(f"a working hipcc ({path} {why})", to_install())


@cache
def find_target(hipcc: Hipcc, arch: str) -> CompileTarget:
    """Finds out whether clang compiles for an architecture, and what it links."""
    try:
        return CompileTarget(arch, identity=compile_trial(hipcc, arch))
    except PolicygenError as error:
        message = error.stderr if isinstance(error, ProcessError) else str(error)
        rows = [row.strip() for row in message.splitlines() if row.strip()]
        first = rows[0] if rows else "it prints nothing"
        line = next((row for row in rows if "error" in row), first)
        # cannot find ROCm device library for gfx1102; provide its path via …
        refusal = (line.partition("error: ")[2] or line).partition("; ")[0]
        return CompileTarget(arch, refusal=refusal)


def compile_trial(hipcc: Hipcc, arch: str = ASKED) -> str:
    """Compiles a kernel; returns the identity of all code that is linked into it."""
    with _trial() as folder:
        log = Path(folder) / _LOG
        run(
            [hipcc.clang, *hipcc.options, DEVICE, f"{OFFLOAD}{arch}", *_TO_ASSEMBLY],
            folder=Path(folder),
            limit=SECONDS,
            install=to_install(),
            more={"CC_PRINT_OPTIONS": "1", "CC_PRINT_OPTIONS_FILE": str(log)},
        )
        log_text = log.read_text(errors="replace") if log.is_file() else ""
    contents = [file_digest(path) for path in _BITCODE.findall(log_text)]
    if not contents or None in contents:
        raise InputError(f"{hipcc.name}: {_NO_BITCODE}")
    parts = [content for content in contents if content is not None]
    clang = program(Path(hipcc.clang).resolve())
    return digest(hipcc.version, hipcc.clang_version, clang, *hipcc.options, *parts)


# Compiling kernels for AMD GPUs: clang's assembly for one target.

# As in a release build: without asserts, which contain line numbers.
FLAGS = ("-x", "hip", "-std=c++17", "-O3", "-w", "-DNDEBUG", DEVICE)
NO_CODE = "it represents architectures without configs of their own"


@dataclass(frozen=True, slots=True, kw_only=True)
class HipTools(KernelTools):
    """The clang that a hipcc starts, and its targets; no header is the compiler's own."""

    hipcc: Hipcc
    targets: Mapping[str, str]
    """The architectures that it compiles for, each with the identity of its target."""

    def __str__(self) -> str:
        return self.hipcc.name

    @property
    def readers(self) -> tuple[ModuleType, ...]:
        """The module that finds the compiler and parses its output."""
        return (sys.modules[__name__],)

    def identity(self, arch: str) -> str:
        """Returns the identity of what is linked into all code for the architecture."""
        return self.targets[arch]

    def flags(self, headers: UnitHeaders) -> list[str]:
        """Returns the options that contain no path."""
        return [*FLAGS, *headers.language, f"{OFFLOAD}{headers.arch}"]

    def preprocessing(self, headers: UnitHeaders) -> list[str]:
        """Returns the preprocessor command; it keeps macros that code below headers may use."""
        return [*self._command(headers), "-E", "-dD"]

    def kernels(self, job: Job, key: str, cache: Path, *, listed: bool) -> tuple[Kernel, ...]:
        """Compiles a unit and reads its assembly."""
        kernels = read_assembly(self._assembly(job, key, cache).decode(), "clang's assembly")
        return kernels if listed else tuple(map(sealed, kernels))

    def _assembly(self, job: Job, key: str, cache: Path) -> bytes:
        with suppress(zlib.error):
            if (cached := kept("isa", key, cache)) is not None:
                return zlib.decompress(cached)
        mark = new_mark()
        with unit_file(marked(job.text, mark), cache) as source:
            output = source.with_suffix(".s")
            command = [*self._command(job.headers), "-S"]
            compile_file(command, source, output, cache, key, install=self.install)
            assembly = made_of(output, mark, self.compiler)
        keep("isa", key, zlib.compress(assembly), cache)
        return assembly

    def _command(self, headers: UnitHeaders) -> list[str]:
        # `__FILE__` must not depend on the location of a tree.
        unplaced = [f"-fmacro-prefix-map={folder}/=" for folder in headers.includes]
        folders = [f"-I{folder}" for folder in headers.includes]
        return [self.hipcc.clang, *self.hipcc.options, *self.flags(headers), *unplaced, *folders]


def find_kernel_tools(archs: Collection[str], path: Path | None = None) -> HipTools:
    """Finds hipcc, at a path if given, and which of the architectures its clang compiles for."""
    hipcc = find_hipcc(path)
    with threads() as pool:
        known = sorted({*archs} - {UNKNOWN}, key=arch_number)
        targets = list(pool.map(partial(find_target, hipcc), known))
    refusals = {
        target.arch: f"{hipcc.name} does not compile for it: {target.refusal}"
        for target in targets
        if not target.identity
    }
    if UNKNOWN in archs:
        refusals[UNKNOWN] = NO_CODE
    compiled = {target.arch: target.identity for target in targets if target.identity}
    return HipTools(
        compiler=PROGRAM,
        install=to_install(),
        archs=tuple(compiled),
        seconds=2.0,
        refusals=refusals,
        hipcc=hipcc,
        targets=compiled,
    )


def try_out() -> str:
    """Compiles a kernel with the hipcc that is found, and describes it."""
    hipcc = find_hipcc()
    compile_trial(hipcc)
    version = f"{hipcc.version} (clang {hipcc.clang_version})"
    return f"{version}, compiles a kernel for {ASKED}, {nearby(hipcc.path)}"


KERNELS = LibraryKernels(
    library="rocprim",
    find_tools=find_kernel_tools,
    compiler=PROGRAM,
    install="apt-get install hipcc",
    try_out=try_out,
    call_template="sass/call.hip.j2",
    # Otherwise a handwritten table gives every architecture the config of unknown ones.
    call_options=lambda site, arch: (
        (f"-DROCPRIM_TARGET_ARCH={table_number(arch)}",) if site.table else ()
    ),
)

NOTHING = "It is not used for comparisons."
# \ts_load_dword s0, s[4:5], 0x4 ; comment; .ascii "a;b"
_LINE = re.compile(r'((?:[^";]|"(?:[^"\\]|\\.)*")*)(?:;.*)?')
# \t.type _ZN7rocprim…,@function
_TYPE = re.compile(r"\t\.type\t(\S+),@(function|object)")
# .LBB0_12:, .Lpost_getpc3:
_LABEL = re.compile(r"(\.L\w+):")
_LABELS = re.compile(r"\.L[\w.$]+")
# rocprim_table.3@rel32@lo+4
_NAMES = re.compile(r"[A-Za-z_.$][\w.$]*")
# \t.amdhsa_kernel _ZN7rocprim…
# \t.size\t_ZN7rocprim…, .Lfunc_end0-_ZN7rocprim…
_SIZE = re.compile(r"\t\.size\t(\S+), ")
_DESCRIPTOR = "\t.amdhsa_kernel "
_DESCRIBED = "\t.end_amdhsa_kernel"
_BEGIN, _END = "\t.amdgpu_metadata", "\t.end_amdgpu_metadata"
_KERNELS = "amdhsa.kernels:"
_ENTRY = "  - "
# .vgpr_count:     14
_COUNT = re.compile(r"\.(\w+): +(\d+)")
_NAMED = re.compile(r"\.(name|symbol): +(\S+)")
# Debug information; no code depends on it.
_DEBUG = re.compile(r"\s*\.(?:loc|file|cfi_\w+)\b")
# Directives that clang never writes, and that change the meaning of other lines: from inline
# assembly.
_FOREIGN = re.compile(
    r"\s*\.(?:macro|altmacro|purgem|include|incbin|if\w*|rept|irpc?|org|previous|\w*section)\b"
)
_SECTION = re.compile(r"\t\.section\t")
_EMPTY = ["s_endpgm"]
RESOURCES = {
    "vgpr_count": "REG",
    "sgpr_count": "SGPR",
    "agpr_count": "AGPR",
    "group_segment_fixed_size": "SHARED",
    "private_segment_fixed_size": "STACK",
}
_THREADS = "max_flat_workgroup_size"


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A function or an object, with its lines."""

    name: str
    kind: str
    lines: tuple[str, ...]


# Reading clang's assembly for AMD GPUs: kernels, with everything that belongs to each.


def read_assembly(text: str, source: str) -> tuple[Kernel, ...]:
    """Returns the kernels of an assembly by name; raises InputError if truncated or empty.

    A kernel consists of its instructions, its launch metadata, and the functions and objects that
    it references. Empty kernels are left out: they stand for other targets.
    """
    lines = [_without_comment(line) for line in text.split("\n")]
    _check_plain_assembly(lines, source)
    symbols = {symbol.name: symbol for symbol in _symbols(lines, source)}
    launched = frozenset(_launched(lines, source))
    metadata = dict(_metadata(lines, source))
    if launched != metadata.keys():
        name = min(launched ^ metadata.keys())
        raise _unreadable(source, f"{name} has no {'metadata' if name in launched else 'code'}")
    missing = sorted(name for name in launched if name not in symbols)
    if missing:
        raise _unreadable(source, f"{missing[0]} has no code")
    kernels = []
    for name in sorted(launched):
        code = _code(symbols[name], source)
        if [row for row in code if not row.startswith(".")] == _EMPTY:
            continue
        following = (*metadata[name], *_reached(name, symbols, source))
        kernels.append(_kernel(name, (*code, *following), metadata[name]))
    if not kernels:
        raise _unreadable(source, "all of its kernels are empty")
    return tuple(kernels)


def sealed(kernel: Kernel) -> Kernel:
    """Returns the kernel with a digest in place of its code."""
    code = hashlib.sha256("\n".join(kernel.code).encode()).hexdigest()
    return kernel.model_copy(update={"code": (code,)})


def _without_comment(line: str) -> str:
    match = _LINE.fullmatch(line)
    return (match[1] if match else line).rstrip()


def _check_plain_assembly(lines: Sequence[str], source: str) -> None:
    """Refuses directives that change the meaning of lines or hide some of them.

    A header may contain assembly; inside a function it is compared verbatim.
    """
    for line in lines:
        if _FOREIGN.match(line) and not _SECTION.match(line):
            raise _unreadable(source, f"{line.strip()!r} is not clang output")


def _kernel(name: str, code: tuple[str, ...], rows: Sequence[str]) -> Kernel:
    counts = {match[1]: int(match[2]) for row in rows if (match := _COUNT.fullmatch(row))}
    resources = {word: counts.get(key, 0) for key, word in RESOURCES.items()}
    return Kernel(name=name, code=code, resources=resources, max_threads=counts.get(_THREADS))


def _symbols(lines: Sequence[str], source: str) -> Iterator[_Symbol]:
    """Yields each symbol with the lines from its label to its size; both must be unique."""
    kinds = {
        type_match[1]: type_match[2] for line in lines if (type_match := _TYPE.fullmatch(line))
    }
    starts, ends = defaultdict(list), defaultdict(list)
    for number, line in enumerate(lines):
        if match := _SIZE.match(line):
            ends[match[1]].append(number)
        elif line.endswith(":"):
            starts[line.removesuffix(":")].append(number)
    for name, kind in kinds.items():
        if not starts[name]:
            continue  # declared here, defined elsewhere
        if len(starts[name]) != 1 or len(ends[name]) != 1 or starts[name] >= ends[name]:
            raise _unreadable(source, f"{name} has no unique end: the listing is truncated")
        yield _Symbol(name, kind, tuple(lines[starts[name][0] + 1 : ends[name][0]]))


def _launched(lines: Sequence[str], source: str) -> Iterator[str]:
    """Yields the functions with a launch descriptor: kernels."""
    for start, line in enumerate(lines):
        if line.startswith(_DESCRIPTOR):
            name = line.removeprefix(_DESCRIPTOR).strip()
            rest = range(start + 1, len(lines))
            ends = (_DESCRIBED, _DESCRIPTOR)
            end = next((number for number in rest if lines[number].startswith(ends)), None)
            if end is None or not lines[end].startswith(_DESCRIBED):
                raise _unreadable(
                    source, f"the launch metadata of {name} is incomplete: the listing is truncated"
                )
            yield name


def _metadata(lines: Sequence[str], source: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the runtime metadata of each kernel: its arguments and resources."""
    if lines.count(_BEGIN) != 1 or lines.count(_END) != 1:
        raise _unreadable(source, "it has no metadata: the listing is truncated")
    rows = lines[lines.index(_BEGIN) : lines.index(_END)]
    if _KERNELS not in rows:
        raise _unreadable(source, "it contains no recognizable kernel")
    start = rows.index(_KERNELS) + 1
    entries: list[list[str]] = []
    for row in rows[start:]:
        if row and not row.startswith(" "):
            break
        if row.startswith(_ENTRY):
            entries.append([])
        if row.strip() and entries:
            entries[-1].append(row[len(_ENTRY) :])
    for entry in entries:
        # The kernel's own name: deeper rows belong to arguments.
        names = {match[1]: match[2].strip("'") for row in entry if (match := _NAMED.fullmatch(row))}
        if "name" not in names:
            raise _unreadable(source, "a kernel's metadata has no name")
        yield names["name"], tuple(_join_rows(row for row in entry if not _NAMED.fullmatch(row)))


def _join_rows(rows: Iterable[str]) -> list[str]:
    """Joins the rows of each item into one."""
    joined: list[str] = []
    for row in rows:
        if row.startswith(".") or not joined:
            joined.append(" ".join(row.split()))
        else:
            joined[-1] += " " + " ".join(row.split())
    return joined


def _code(symbol: _Symbol, source: str) -> tuple[str, ...]:
    """Returns a symbol's code, with jump targets as distances.

    Its own name is replaced, as its launch descriptor includes it.
    """
    rows: list[str] = []
    labels: dict[str, int] = {}
    own_name = re.compile(rf"(?<![\w$]){re.escape(symbol.name)}(?![\w$])")
    for line in symbol.lines:
        if match := _LABEL.fullmatch(line):
            labels[match[1]] = len(rows)
        elif line.strip() and not _DEBUG.match(line):
            rows.append(own_name.sub("@", " ".join(line.split())))
    if all(row.startswith(".") for row in rows):
        raise _unreadable(source, f"{symbol.name} has no code")
    return tuple(_with_distances(row, index, labels) for index, row in enumerate(rows))


def _with_distances(row: str, index: int, labels: Mapping[str, int]) -> str:
    """Rewrites `s_branch .LBB0_7` as `s_branch +0x1c`: label names do not matter."""
    return _LABELS.sub(
        lambda match: f"{labels[match[0]] - index:+#x}" if match[0] in labels else match[0], row
    )


def _reached(name: str, symbols: Mapping[str, _Symbol], source: str) -> Iterator[str]:
    """Yields the functions and objects that a kernel references, directly or indirectly."""
    seen, waiting = {name}, [name]
    while waiting:
        lines = symbols[waiting.pop(0)].lines
        for reference in (word for line in lines for word in _NAMES.findall(line)):
            if reference in symbols and reference not in seen:
                seen.add(reference)
                waiting.append(reference)
                symbol = symbols[reference]
                yield f".{symbol.kind} {reference}"
                if symbol.kind == "function":
                    yield from _code(symbol, source)
                else:
                    yield from (" ".join(line.split()) for line in symbol.lines)


def _unreadable(source: str, why: str) -> InputError:
    return InputError(f"{source}: {why}", NOTHING)
