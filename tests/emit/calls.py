"""The calls in the comments of an emitted header, compiled: which kernels they launch, and how."""

import re
import subprocess

from policygen.proof.kernel_code import read_cubin
from tests.emit.made import FILE
from tests.probing import root
from tests.toolchain import nvcc

THREADS = "threads_per_block"


def examples(text):
    """The code in the comments of a header, each in a namespace of its own."""
    blocks = re.findall(r"^//! @code\n(.*?)^//! @endcode", text, re.M | re.S)
    for number, block in enumerate(blocks):
        rows = [row.removeprefix("//!").removeprefix(" ") for row in block.splitlines()]
        assert rows[0] == f"#include <{FILE}>"
        yield "\n".join([f"namespace example_{number}", "{", *rows[1:], "}", ""])


def kernels(folder, made, code):
    """Selector → kernel → its launch bound, of calls that are compiled for the architecture."""
    folder.mkdir()
    (folder / FILE).write_text(made.text)
    (folder / "unit.cu").write_text(f"#include <{FILE}>\n{code}")
    command = [nvcc(), "-cubin", f"-std=c++{made.target.std}", "-arch=sm_90", "-w"]
    command += [f"-I{folder}", f"-I{root(made.target.version.text)}", "-o", folder / "unit.cubin"]
    done = subprocess.run([*command, folder / "unit.cu"], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[:4000]
    found = {}
    for name, sealed in read_cubin((folder / "unit.cubin").read_bytes(), "unit.cu").items():
        match = re.search(r"10my_tunings(\d+)(\w+)", name)
        selector = match[2][: int(match[1])] if match else ""
        found.setdefault(selector, {})[name] = sealed.max_threads
    return found


def tuned_threads(one):
    """The threads of blocks that a selector changes, for the first workload that it was given."""
    after, before = one.written[0].values, one.spots[0].base.fields
    return {
        int(value)
        for path, value in after.items()
        if path.endswith(THREADS) and value != before[path]
    }
