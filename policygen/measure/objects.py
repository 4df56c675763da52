"""One shared object of a translation unit, compiled once for what it reads."""

import re
from dataclasses import dataclass
from pathlib import Path

from policygen.cache import digest
from policygen.errors import ProcessError
from policygen.model.arch import arch_number
from policygen.paths import cache_folder, write_atomically
from policygen.proof.compile import RefusedError, compile_file, unit_file
from policygen.proof.deps import Listings, Made, remembered
from policygen.proof.mark import check_unnamed
from policygen.proof.toolchain import Toolchain
from policygen.untrusted import visible

KIND = "objects"
FLAGS = (
    "-std=c++17",
    "-O3",
    "-DNDEBUG",  # as CCCL's benchmarks are built
    "-w",  # what CUB's headers warn of is not the user's
    "-shared",
    "-Xcompiler",
    # Two objects define the same kernels: neither may take the other's for its own, and one that
    # is closed must go.
    "-fPIC,-fno-gnu-unique,-fvisibility=hidden",
)
_MADE, _REFUSED = b"made", b"refused"
# ptxas error   : Entry function '_ZN3cub…' uses too much shared data (0xe180 bytes, 0xc000 max)
_PTXAS = re.compile(
    r"^ptxas (?:error|fatal)\s*: (?:Entry function '([^']*)' (?:with )?)?(.+)$", re.M
)
# _ZN3cub6detail4scan16DeviceScanKernelINS2_18policygen_workload20policygen_selector_2EPaS6_…
_SELECTOR = re.compile(r"policygen_selector_(\d+)E")
_LIMIT = "uses too much"


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """A translation unit, where it looks for headers, and for which architecture it is."""

    text: str
    includes: tuple[str, ...]
    arch: str

    @property
    def flags(self) -> list[str]:
        """Options of the compiler that name no place."""
        number = arch_number(self.arch)
        # Machine code for this architecture alone: nothing is left to the driver to compile.
        return [*FLAGS, "-gencode", f"arch=compute_{number},code=sm_{number}"]


def runtime_of(toolchain: Toolchain) -> Path | None:
    """Finds the CUDA runtime as a library of its own; wheels have one with a number alone."""
    folders = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
    for root in toolchain.roots:
        for folder in folders:
            if found := sorted((Path(root) / folder).glob("libcudart.so.*")):
                return found[0]
    return None


def runtime_flags(toolchain: Toolchain) -> list[str]:
    """Links the runtime of the process that loads an object, which all objects there share.

    With one of its own, each would have its own idea of streams and of errors.
    """
    if found := runtime_of(toolchain):
        return ["-cudart", "none", "-Xlinker", f"--no-as-needed,{found}"]
    return ["-cudart", "shared"]


def as_made(data: bytes) -> bytes:
    """An object as it is kept."""
    return _MADE + b"\n" + data


def as_refused(error: RefusedError) -> bytes:
    """What the compiler says, as it is kept."""
    return _REFUSED + b"\n" + error.stderr.encode()


def object_in(folder: Path, key: str, kept: bytes) -> Path:
    """The file of an object that was kept; refused with the compiler's words."""
    kind, _, data = kept.partition(b"\n")
    if kind == _REFUSED:
        raise RefusedError(["nvcc"], 1, data.decode())
    path = folder / f"{digest(key, data)[:32]}.so"
    if not path.exists():
        write_atomically(path, data)
    return path


@dataclass(frozen=True, slots=True)
class ObjectCompiler:
    """What compiles, and where the objects lie that a process loads."""

    toolchain: Toolchain
    folder: Path
    there: Listings

    def make(self, source: ObjectSource) -> Path:
        """Makes an object, or takes the one that is kept; refused with the compiler's words."""
        listing = self.there.of(source.includes)
        key = digest(self.toolchain.identity, *source.flags, source.text, listing)
        paths = (*source.includes, *self.toolchain.roots)
        kept = remembered(KIND, key, paths, lambda: self._made(source, key))
        return object_in(self.folder, key, kept)

    def _made(self, source: ObjectSource, key: str) -> Made:
        """Compiles; that a unit is refused for what it says is kept, too."""
        cache = cache_folder()
        with unit_file(source.text, cache) as unit:
            folder, made = unit.parent, unit.with_suffix(".so")
            folders = (f"-I{one}" for one in source.includes)
            linked = runtime_flags(self.toolchain)
            command = [str(self.toolchain.nvcc), *source.flags, *linked, *folders]
            try:
                compile_file(command, unit, made, cache, key, "--keep", "--keep-dir", str(folder))
                found = as_made(made.read_bytes())
            except RefusedError as error:
                if not is_said_of_code(error):
                    raise
                found = as_refused(error)
            preprocessed = b"".join(path.read_bytes() for path in sorted(folder.glob("*.ii")))
            check_unnamed(preprocessed, unit)
            return Made(found, preprocessed, unit)


def is_said_of_code(error: RefusedError) -> bool:
    """Whether a compiler refuses what it read, and would again; not for want of memory or disk."""
    lines = _PTXAS.findall(error.stderr)
    return any(_LIMIT in words for _, words in lines) or error.has_place


def reason(error: ProcessError) -> str:
    """What the compiler says of a unit, in a line."""
    if not isinstance(error, RefusedError):
        return visible(". ".join(part for part in (error.stderr.strip(), error.remedy) if part))
    found = _PTXAS.search(error.stderr)
    return visible(f"ptxas: it {found[2]}" if found and found[1] else error.first)


def named_culprits(error: ProcessError) -> dict[int, str]:
    """The variants of a unit whose kernels the assembler refuses by name, with its words."""
    if not isinstance(error, RefusedError):
        return {}
    return {
        int(number[1]): visible(f"ptxas: it {words}")
        for kernel, words in _PTXAS.findall(error.stderr)
        if (number := _SELECTOR.search(kernel))
    }
