"""Asking the compiler, against the bare compiler on the same units."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import Commands, Figure, run
from benchmarks.scan import fresh
from policygen.bindings.load import bound
from policygen.model.trees import BoundVersion
from policygen.process import threads
from policygen.proof.probe import workloads
from policygen.proof.toolchain import find_toolchain
from policygen.proof.units import SiteQuery, context, render

VERSION = "3.0.1"
ROUNDS = 3


def commands(root: Path, work: Path) -> Commands:
    """The same units by nvcc alone and through `policygen`, then the commands with a limit."""
    units = sources(work)
    asking = [sys.executable, "-m", "benchmarks.probe", str(root), str(work)]
    resolve = [sys.executable, "-m", "policygen", "resolve", "--json", "-q", "--cub", str(root)]
    resolve += ["--arch", "sm90"]
    one, warm = [*resolve, "scan"], work / "warm"
    run(one, warm)
    return {
        f"floor: nvcc on {len(units)} units": (lambda: compile_bare(units, root), None),
        f"policygen on {len(units)} units, cold": (lambda: run(asking, fresh(work)), None),
        "policygen resolve, one header, cold": (lambda: run(one, fresh(work)), 3.5),
        "policygen resolve, one header, cached": (lambda: run(one, warm), 0.5),
        "policygen resolve, all headers, cold": (lambda: run(resolve, fresh(work)), 30.0),
    }


def once(root: Path, work: Path) -> Commands:
    """What takes minutes."""
    reach = [
        sys.executable,
        "-m",
        "policygen",
        "audit",
        "reach",
        "--json",
        "-q",
        "--cub",
        str(root),
    ]
    return {"policygen audit reach, whole tree, cold": (lambda: found(reach, fresh(work)), 300.0)}


def rates(figures: list[Figure], units: int) -> str:
    """Compiles a second, bare and through policygen."""
    rows = [
        f"{figure.name}: {units / figure.median:.2f} compiles a second" for figure in figures[:2]
    ]
    return "\n".join(rows)


def found(command: list[str], cache: Path) -> None:
    """A check that finds something ends with 1."""
    environment = {**os.environ, "POLICYGEN_CACHE": str(cache)}
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=environment)
    assert done.returncode == 1, done


def sections() -> list[SiteQuery]:
    """One section a site: all its workloads on sm90."""
    made = []
    for algorithm in bound(BoundVersion(VERSION)):
        for site in algorithm.sites:
            if site.dialect == "specializations":
                calls = [b for b in algorithm.benchmarks if b.site == site.name]
                points = [
                    point for call in calls for point in workloads(call, BoundVersion(VERSION))
                ]
                if points:
                    made.append(SiteQuery(site, tuple(points), ("sm90",)))
    return made


def sources(work: Path) -> list[Path]:
    """The units as files, for the bare compiler."""
    paths = []
    for number, section in enumerate(sections()):
        path = work / f"unit_{number}.cu"
        path.write_text(render(context([section], BoundVersion(VERSION))))
        paths.append(path)
    return paths


def compile_bare(units: list[Path], root: Path) -> None:
    """As many at a time as there are cores."""
    nvcc = find_toolchain().nvcc

    def one(path: Path) -> None:
        command = [str(nvcc), "-std=c++17", "-ptx", "--expt-relaxed-constexpr", "-w", "-arch=sm_90"]
        command += [f"-I{root}", "-o", str(path.with_suffix(".ptx")), str(path)]
        subprocess.run(command, check=True)

    with threads() as pool:
        list(pool.map(one, units))


def main(root: str) -> None:
    """The same units through the compile of policygen, in a process of its own."""
    from functools import partial

    from policygen.cache import written_by
    from policygen.proof import answers
    from policygen.proof.answers import pack
    from policygen.proof.compile import TranslationUnit, compile_all
    from policygen.proof.units import identity

    made = []
    for section in sections():
        source = context([section], BoundVersion(VERSION))
        made.append(TranslationUnit("", identity(source), partial(render, source), (root,), "sm90"))
    results = compile_all(made, find_toolchain(), pack, writer=written_by(answers))
    assert all(isinstance(result, str) for result in results), results


if __name__ == "__main__":
    main(sys.argv[1])
