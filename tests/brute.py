"""What CUB selects, by another way than the probe's: a program prints the policies of workloads."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen.model.bindings import Site
from policygen.model.trees import BoundVersion
from policygen.model.workload import Point
from policygen.proof.toolchain import find_toolchain
from policygen.proof.units import SiteQuery, Workload, axis_declaration, axis_headers

CAPABILITIES = range(50, 131)
# The host alone says all of it: for the device there is nothing to compile.
PROGRAM = """\
#ifndef __CUDA_ARCH__
#include <cub/device/dispatch/tuning/{header}>
{includes}
#include <cuda/std/functional>
#include <iostream>
CUB_NAMESPACE_BEGIN
namespace brute
{{
template <int Size> struct user_type {{ alignas(Size < 8 ? Size : 8) unsigned char bytes[Size]; }};
struct user_op {{ template <class T> __host__ __device__ T operator()(const T&, const T&) const; }};
template <class Op, class T> using accumulator = ::cuda::std::decay_t<
  decltype(::cuda::std::declval<Op&>()(::cuda::std::declval<T>(), ::cuda::std::declval<T>()))>;
template <class T> using offset =
  ::cuda::std::conditional_t<(sizeof(T) <= 4), ::cuda::std::uint32_t, unsigned long long>;
{support}
}}
{sections}
CUB_NAMESPACE_END
int main() {{ {calls} }}
#endif
"""
SECTION = """\
{opens}namespace brute_{number} {{
using namespace brute;
{workloads}
void show() {{
{prints}
}}
}} {closes}
"""


@dataclass(frozen=True, slots=True)
class Printer:
    """How policies are printed."""

    workload: Callable[[Site, int], str]
    """A statement that prints those of the struct `w7`, whose hub or selector is `w7::hub`."""
    support: str = ""
    """C++ templates of it."""
    site: Callable[[Site], str] = lambda _: ""
    """More of them, in terms of what a site calls the values."""


def program(
    name: str, version: BoundVersion, asked: Sequence[SiteQuery], printer: Printer
) -> tuple[str, list[Point]]:
    """A program that prints the policies of all workloads, each behind its number."""
    includes: set[str] = set()
    sections, calls = [], []
    points: list[Point] = []
    for number, place in enumerate(asked):
        site, structs, prints = place.site, [*place.site.support, printer.site(place.site)], []
        includes |= set(site.includes)
        for workload in place.points:
            index = len(points)
            points.append(workload.point)
            includes |= set(axis_headers(workload, version))
            structs.append(_struct(index, workload, site, version))
            prints.append(printer.workload(site, index))
        spaces = site.namespace.split("::")
        opens = "".join(f"namespace {space} {{ " for space in spaces)
        sections.append(
            SECTION.format(
                number=number, opens=opens, workloads="\n".join(structs),
                prints="\n".join(prints), closes="} " * len(spaces),
            )
        )  # fmt: skip
        calls.append(f"cub::{site.namespace}::brute_{number}::show();")
    lines = "\n".join(f"#include <{one}>" for one in sorted(includes))
    text = PROGRAM.format(
        header=name, includes=lines, support=printer.support, sections="\n".join(sections),
        calls=" ".join(calls),
    )  # fmt: skip
    return text, points


def _struct(index: int, workload: Workload, site: Site, version: BoundVersion) -> str:
    axes = " ".join(axis_declaration(a, v, version) for a, v in workload.values.items())
    roles = "".join(f"using {r} = {t};" for r, t in workload.call.roles.items())
    values = workload.call.constants.items()
    roles += "".join(f"static constexpr auto {r} = {t};" for r, t in values)
    return f"struct w{index} {{ struct axis {{ {axes} }}; {roles} using hub = {site.hub}; }};"


def run(folder: Path, text: str, include: Path) -> list[str]:
    """What a program says that was compiled with the headers of a tree, line by line."""
    nvcc = find_toolchain().nvcc
    source, binary = folder / "brute.cu", folder / "brute"
    source.write_text(text)
    libraries = nvcc.parent.parent / "lib"
    command = [nvcc, "-std=c++17", "-w", f"-I{include}", f"-L{libraries}", "-o", binary, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines()
