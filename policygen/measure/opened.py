"""Workloads that are ready to be compiled: what variants mean for them, and how each is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError, PolicygenError
from policygen.measure.compiling import Candidate, WorkloadToCompile
from policygen.measure.entries import EntryWorkload
from policygen.measure.kernels import KernelWorkload
from policygen.measure.overlays import HeaderVariants
from policygen.measure.public import PublicWorkload
from policygen.measure.runs import WorkloadRun
from policygen.measure.space import SearchSpace
from policygen.measure.units import PublicPolicy, inputs_text, variants_text
from policygen.model.workload import in_words


@dataclass(frozen=True, slots=True)
class Candidates:
    """Variants that can be compiled, those that cannot be made, and those that are base."""

    made: tuple[Candidate, ...]
    refused: Mapping[str, str]
    base: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenedWorkload:
    """A workload on an architecture, with its search space and how it runs."""

    meaning: PublicWorkload | EntryWorkload | KernelWorkload
    space: SearchSpace
    runs: tuple[WorkloadRun, ...]
    """One for each sub-benchmark."""
    headers: HeaderVariants | None = None
    """What writes variants where they are changed headers."""

    @property
    def name(self) -> str:
        """In words: `cub.bench.reduce.sum T=I32 OffsetT=I32`."""
        benchmark, workload = self.meaning.point
        return in_words(benchmark, dict(workload))

    def candidates(self, labels: Sequence[str]) -> Candidates:
        """The variants of some labels; headers are written, and asked of the compiler, for them."""
        if self.headers is not None:
            return self._with_headers(self.headers, labels)
        made, refused, base = [], {}, []
        for label in labels:
            try:
                policy = self.meaning.policy(self.space.variant(label))
            except InputError as error:
                refused[label] = error.in_line
                continue
            if policy == self.meaning.base:
                base.append(label)
            else:
                made.append(Candidate(label, policy))
        return Candidates(tuple(made), refused, tuple(base))

    def _with_headers(self, headers: HeaderVariants, labels: Sequence[str]) -> Candidates:
        made, refused, base = [], {}, []
        for label, found in headers.all(self.space, labels).items():
            if isinstance(found, PolicygenError):
                refused[label] = found.in_line
            elif found.folders:
                made.append(Candidate(label, None, found.folders))
            else:
                base.append(label)
        return Candidates(tuple(made), refused, tuple(base))

    def to_compile(self, run: WorkloadRun, candidates: Sequence[Candidate]) -> WorkloadToCompile:
        """A sub-benchmark of it with variants."""
        meaning = self.meaning
        policy = None
        if isinstance(meaning, PublicWorkload):
            policy = PublicPolicy(meaning.selector.selector.policy, meaning.fields)

        def render(lot: Sequence[Candidate]) -> str:
            policies = [one.policy for one in lot]
            if isinstance(meaning, KernelWorkload):
                return meaning.text(run, policies)
            return variants_text(run, policies, policy)

        return WorkloadToCompile(
            self.name,
            meaning.arch,
            run.cub.include_folders,
            inputs_text(run),
            render,
            tuple(candidates),
            alone=isinstance(meaning, KernelWorkload) and meaning.is_alone,
        )
