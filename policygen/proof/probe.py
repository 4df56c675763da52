"""Asks the compiler which values CUB selects, and which entry they come from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from policygen.bindings.load import axis_values, types
from policygen.errors import InputError, PolicygenError
from policygen.model.bindings import Call, DelayConstructor, FamilyBinding, Site
from policygen.model.tuning import Value
from policygen.proof import answers
from policygen.proof.compile import Progress, Unit, compile_all
from policygen.proof.toolchain import Toolchain
from policygen.proof.unit import CHUNK, Question, Workload, render


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions that one compile answers."""

    site: Site
    questions: tuple[Question, ...]
    unit: Unit
    marked: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """What the compiler said, and which batches it refused."""

    rows: Mapping[tuple[int, str, bool], tuple[str, ...]]
    """By the identity of a workload, the architecture, and whether the tree is marked."""
    errors: tuple[PolicygenError, ...]

    def of(self, workload: Workload, arch: str, *, marked: bool = False) -> tuple[str, ...] | None:
        """The answers for one workload on one architecture."""
        return self.rows.get((id(workload), arch, marked))


def workloads(call: Call, version: str) -> tuple[Workload, ...]:
    """Every point of a call's axes."""
    names = tuple(call.axes)
    lists = [axis_values(call, axis, version) for axis in names]
    return tuple(Workload(call, dict(zip(names, point, strict=True))) for point in product(*lists))


def batches(
    site: Site,
    version: str,
    includes: Sequence[str],
    points: Sequence[Workload],
    archs: Sequence[str],
    toolchain: Toolchain,
    *,
    families: Iterable[tuple[FamilyBinding, Sequence[str]]] | None = None,
) -> list[Batch]:
    """The compiles that answer for all workloads; `families` ask for entries of a marked tree.

    In the specialization dialect the compile's architecture decides, in the other one it is asked
    for: one compile answers for all of them.
    """
    if site.dialect == "selectors":
        lots = [(toolchain.newest, [Question(w, arch) for w in points for arch in archs])]
    else:
        lots = [(arch, [Question(w, arch) for w in points]) for arch in archs]
    found = []
    for arch, questions in lots:
        for start in range(0, len(questions), CHUNK):
            chunk = tuple(questions[start : start + CHUNK])
            text = render(site, version, chunk, tuple(families or ()), marked=families is not None)
            unit = Unit(f"{site.header} {arch}", text, tuple(includes), arch)
            found.append(Batch(site, chunk, unit, families is not None))
    return found


def ask(
    lots: Sequence[Batch], toolchain: Toolchain, *, progress: Progress | None = None
) -> Answered:
    """Compiles, and reads the answers back."""
    rows: dict[tuple[int, str, bool], tuple[str, ...]] = {}
    errors = []
    results = compile_all([batch.unit for batch in lots], toolchain, progress=progress)
    for batch, result in zip(lots, results, strict=True):
        if isinstance(result, PolicygenError):
            errors.append(result)
            continue
        found = answers.read_answers(result)
        for index, question in enumerate(batch.questions):
            rows[id(question.workload), question.arch, batch.marked] = found[index]
    return Answered(rows, tuple(errors))


def values(site: Site, row: Sequence[str]) -> dict[str, Value]:
    """The values of a policy by name, a delay as CUB's type."""
    row = row[: len(row) - 2] if site.dialect == "selectors" else row
    names = [*site.values, *site.types]
    found = {name: answers.value(text) for name, text in zip(names, row, strict=False)}
    if site.delay:
        kind, delay, latency = (answers.value(text) for text in row[len(names) :])
        found["delay_constructor"] = _delay(str(kind)).spelled(delay, latency)
    return found


def origin(row: Sequence[str]) -> tuple[str, bool]:
    """In the selector dialect: since which arch a policy is the same; if it is the default."""
    since, default = (answers.value(text) for text in row[-2:])
    return f"sm{since}", bool(default)


def _delay(kind: str) -> DelayConstructor:
    for delay in types().delays:
        if delay.kind == kind:
            return delay
    raise InputError(f"no delay constructor is called {kind!r}", "Add it to types.toml.")
