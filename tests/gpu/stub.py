"""A CUDA runtime without a GPU, loaded before all units: what CUB does on the host can be seen."""

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from policygen.cache import digest
from policygen.gpu.compiling import runtime_flags
from policygen.paths import cache_folder
from policygen.process import run
from policygen.proof.toolchain import find_toolchain

HERE = Path(__file__).parent
SOURCE = HERE / "stub_runtime.c"
GCC = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-O1")
OUT_OF_MEMORY = 2
"""cudaErrorMemoryAllocation."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel that would have run."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int

    @property
    def blocks(self) -> int:
        """How many."""
        x, y, z = self.grid
        return x * y * z


class Arena(ctypes.Structure):
    """Temporary storage, as units have it."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("capacity", ctypes.c_size_t),
        ("used", ctypes.c_size_t),
        ("needed", ctypes.c_size_t),
    )


class StubRuntime:
    """What the stub was asked to do."""

    def __init__(self, path: Path) -> None:
        """Loads it for all that is loaded later."""
        self.path = path
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self._library.stub_name.restype = ctypes.c_char_p
        self._library.stub_allocated.restype = ctypes.c_size_t

    def forget(self) -> None:
        """Forgets launches and errors."""
        self._library.stub_forget()

    @property
    def launches(self) -> list[Launch]:
        """The kernels since then, in their order."""
        return [self._launch(at) for at in range(self._library.stub_launches())]

    @property
    def harm(self) -> int:
        """How often something was written, or read, beside what was allocated."""
        return int(self._library.stub_broken()) + int(self._library.stub_refused())

    @property
    def allocated(self) -> int:
        """Bytes of the device's memory that are in use."""
        return int(self._library.stub_allocated())

    def allocate(self, size: int) -> int:
        """Takes memory of the device."""
        place = ctypes.c_void_p()
        assert not self._library.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(size))
        assert place.value is not None
        return place.value

    def release(self, place: int) -> None:
        """Gives it back."""
        assert not self._library.cudaFree(ctypes.c_void_p(place))

    def set(self, place: int, size: int) -> int:
        """Writes to the device's memory; returns an error's number."""
        return int(self._library.cudaMemset(ctypes.c_void_p(place), 1, ctypes.c_size_t(size)))

    def _launch(self, at: int) -> Launch:
        seven = (ctypes.c_ulonglong * 7)()
        self._library.stub_dimensions(at, seven)
        gx, gy, gz, bx, by, bz, shared = seven
        name = self._library.stub_name(at).decode()
        return Launch(name, (gx, gy, gz), (bx, by, bz), shared)


@cache
def stub() -> StubRuntime:
    """The stub, in place of the runtime that units are linked with."""
    toolchain = find_toolchain()
    folder = cache_folder() / "test-units"
    folder.mkdir(parents=True, exist_ok=True)
    # libcudart.so.13: the loader takes it for what units ask for by this name.
    name = runtime_flags(toolchain)[-1].rpartition("/")[2]
    made = folder / f"{digest(SOURCE.read_bytes(), toolchain.identity, *GCC)[:32]}-{name}"
    if not made.exists():
        versions = folder / f"{made.name}.map"
        versions.write_text(f"{name} {{ *; }};\n")
        linked = f"-Wl,-soname,{name},--version-script,{versions}"
        headers = f"-I{toolchain.roots[0]}/include"
        run(["gcc", *GCC, headers, linked, "-o", str(made), str(SOURCE)], install="gcc")
    return StubRuntime(made)
