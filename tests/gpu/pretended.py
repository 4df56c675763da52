"""What tests of measuring pretend: workloads without a tree, and a compiler that is none."""

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError, ProcessError
from policygen.gpu.space import SearchSpace
from policygen.model.benchmarks import ParameterRange
from policygen.model.trees import BoundVersion
from policygen.proof.compile import RefusedError

REDUCE = benchmark_of("cub.bench.reduce.sum", BoundVersion("3.6.0"))


def space(**ranges):
    """A search space: `ipt="1:4:1"`."""
    given = []
    for label, text in ranges.items():
        start, end, step = map(int, text.split(":"))
        given.append(ParameterRange(macro="", label=label, start=start, end=end, step=step))
    return SearchSpace(REDUCE, tuple(given))


@dataclass
class PretendedMeaning:
    """A policy whose items are halved, and whose threads are no more than fit; `ld` is free."""

    point = ("cub.bench.reduce.sum", (("T", "I32"),))
    arch = "sm90"
    benchmark = REDUCE
    base: dict = field(default_factory=lambda: {"items": "2", "threads": "64", "load": "1"})
    asked: int = 0

    def policy(self, variant):
        self.asked += 1
        items, threads = variant["ipt"] // 2, variant["tpb"]
        if items < 1:
            raise InputError(f"items = {items} cannot be", "A thread has one item at least.")
        fits = min(threads, 256 // items)
        return {"items": str(items), "threads": str(fits), "load": str(variant.get("ld", 1))}

    def groups(self):
        return [(("ipt", "tpb"), ("items", "threads"), None), (("ld",), ("load",), None)]


@dataclass
class PretendedCompiler:
    """Refuses units whose text holds what is bad, as nvcc does."""

    folder: Path
    bad: tuple = ()
    words: str = "main.cu(3): error: static assertion failed"
    named: bool = False
    """Whether the assembler names the kernels."""
    killed: tuple = ()
    texts: list = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def make(self, source):
        with self.lock:
            self.texts.append(source.text)
            number = len(self.texts)
        lines = source.text.split()
        if any(line in self.killed for line in lines):
            raise ProcessError(["nvcc"], -9, "it was killed", "Is there enough memory?")
        found = [at for at, line in enumerate(lines) if line in self.bad]
        if found and self.named:
            rows = (
                f"ptxas error   : Entry function '_Z20policygen_selector_{at}EP' uses too much"
                f" shared data (0x{at}e180 bytes, 0xc000 max)"
                for at in found
            )
            raise RefusedError(["nvcc"], 255, "\n".join(rows))
        if found:
            raise RefusedError(["nvcc"], 2, self.words)
        return self.folder / f"{number}.so"
