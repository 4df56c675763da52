"""Kernels of one's own, for tests: the examples of the documentation, and a small one."""

import shutil
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
SMALL = """\
kernel = "add.cu"
function = "add<ipt>"
arguments = ["in", "out", "one", "elements"]
grid = "min(ceil_div(elements, tpb * ipt), resident * 2)"
block = "tpb"
shared = "tpb * 4"
constraints = ["tpb * ipt <= 1024"]

[parameter.ipt]
values = [1, 4, 16]
default = 4

[buffer.in]
type = "int"
input = { how = "sorted" }

[buffer.out]
type = "int"
result = true

[scalar.one]
type = "int"
value = "1"

[[size]]
elements = 1000
class = "short"

[[size]]
elements = 70_001
class = "long"
"""
ADD = """\
// %RANGE% TUNE_BLOCK tpb 128:512:128
#include <cuda_runtime.h>

#ifndef TUNE_BLOCK
#  error "it is a macro of each unit"
#endif

template <int Items>
__global__ void add(const int* in, int* out, int one, long long elements)
{
  const long long step = 1ll * gridDim.x * TUNE_BLOCK;
  for (long long at = 1ll * blockIdx.x * TUNE_BLOCK + threadIdx.x; at < elements; at += step)
  {
    out[at] = in[at] + one;
  }
}

int main() {}
"""


def write_small(folder, *changed, source=ADD):
    """The small kernel's files, with some text in the place of other."""
    text = SMALL
    for old, new in changed:
        assert old in text
        text = text.replace(old, new)
    (folder / "add.cu").write_text(source)
    path = folder / "small.toml"
    path.write_text(text)
    return path


def write_saxpy(folder, *changed):
    """The documentation's example of strategies."""
    shutil.copy(EXAMPLES / "saxpy/saxpy.cu", folder)
    text = (EXAMPLES / "saxpy/saxpy.toml").read_text()
    for old, new in changed:
        assert old in text
        text = text.replace(old, new)
    path = folder / "saxpy.toml"
    path.write_text(text)
    return path
