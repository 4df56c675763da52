"""nvcc of the extra `cuda`; a test that needs it fails, and does not skip, when it is missing."""

import shutil
import subprocess
import sysconfig
from pathlib import Path


def nvcc() -> Path:
    """The compiler of the installed wheels, else the one on PATH."""
    wheel = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin" / "nvcc"
    found = str(wheel) if wheel.is_file() else shutil.which("nvcc")
    assert found, "nvcc is missing; install policygen[cuda]"
    return Path(found)


def compile_to_ptx(
    source: Path, root: Path, arch: str = "sm_90"
) -> subprocess.CompletedProcess[str]:
    """Compiles a translation unit against a CUB tree; the text of the errors tells all."""
    command = [
        str(nvcc()),
        "-ptx",
        f"-arch={arch}",
        "-std=c++17",
        f"-I{root}",
        "-diag-suppress=20012",
    ]
    command += ["-o", str(source.with_suffix(".ptx")), str(source)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def compiled(source: Path, made: Path, *options: str) -> Path:
    """What nvcc makes of a source; a failure shows its words."""
    command = [str(nvcc()), *options, "-std=c++17", "-o", str(made), str(source)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return made
