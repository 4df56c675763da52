"""Compiles the batches of a search: variants of several workloads side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import PolicygenError
from policygen.measure.compiling import CompiledWorkload, MakesObjects, compile_workloads
from policygen.measure.opened import Candidates
from policygen.measure.spots import Keeps, runtime_spots
from policygen.measure.units import runner_text
from policygen.model.labels import BASE
from policygen.search.bench import Batch, CompiledBatch
from policygen.search.workload import WorkloadSearch
from policygen.steps import Progress


@dataclass(frozen=True, slots=True)
class BatchCompiler:
    """What compiles, and for which workloads."""

    searches: Mapping[str, WorkloadSearch]
    compiler: MakesObjects
    slots: int
    keeps: Keeps
    """Which runtime workloads are measured."""
    progress: Progress | None = None

    def __call__(self, batch: Batch) -> dict[str, CompiledBatch]:
        """The objects of all variants of a batch, or why there are none."""
        chosen = {
            name: self.searches[name].opened.candidates(labels) for name, labels in batch.items()
        }
        tasks = [
            (name, self.searches[name].opened.to_compile(run, candidates.made))
            for name, candidates in chosen.items()
            for run in self.searches[name].opened.runs
        ]
        made = compile_workloads(
            [task for _, task in tasks],
            runner_text(),
            self.compiler,
            slots=self.slots,
            progress=self.progress,
        )
        found: dict[str, list[CompiledWorkload | PolicygenError]] = {name: [] for name in batch}
        for (name, _), one in zip(tasks, made, strict=True):
            found[name].append(one)
        return {name: self._batch(name, chosen[name], lot) for name, lot in found.items()}

    def _batch(
        self,
        name: str,
        candidates: Candidates,
        made: Sequence[CompiledWorkload | PolicygenError],
    ) -> CompiledBatch:
        fine = [one for one in made if isinstance(one, CompiledWorkload)]
        problems = [one.in_line for one in made if isinstance(one, PolicygenError)]
        if problems:
            return CompiledBatch((), (), (), {}, problems[0])
        runs = self.searches[name].opened.runs
        failed = {label: ("invalid", reason) for label, reason in candidates.refused.items()}
        failed |= dict.fromkeys(candidates.base, ("base", "it is what CUB selects"))
        for one in fine:
            failed |= {label: ("compile", reason) for label, reason in one.failed.items()}
        return CompiledBatch(
            bases=tuple(one.functions[0] for one in fine),
            functions=tuple(
                {each.variant: each for each in one.functions if each.variant != BASE}
                for one in fine
            ),
            runtimes=tuple(
                tuple(runtime_spots(run, one.inputs, self.keeps))
                for run, one in zip(runs, fine, strict=True)
            ),
            failed=failed,
        )
