"""Results of databases as workloads of a tree: what was measured, in the tree's words."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from policygen.bindings.load import bound
from policygen.bindings.recorded import Recorded, benchmark_of, recorded, today, version_of
from policygen.bindings.variants import variant_parameters
from policygen.bindings.words import gpu_arch
from policygen.errors import InputError, PolicygenError
from policygen.model.benchmarks import ParameterRange
from policygen.model.bindings import BenchmarkBinding
from policygen.model.plans import Action, NextBest, Plan, Target
from policygen.model.results import Choice, Measured, RejectedVariant, ScoredVariant, ScoredWorkload
from policygen.model.tuning import Value, spell
from policygen.model.workload import Point, axis_name, in_words, point_of
from policygen.planning.judge import Oracle

Spaces = Mapping[str, Sequence[ParameterRange]]
"""Benchmark → what was searched."""
Refused = tuple[ScoredWorkload, Action]
"""A workload that cannot be planned with, and what becomes of it."""
# v3.0.3, v3.6.0.dev-204-g571f2fc3bc, 3.2.0-rc1, 13.0.88
_RELEASE = re.compile(
    r"v?([0-9]{1,9}(?:\.[0-9]{1,9})*)(?:[-.](dev|rc)([0-9]{0,9}))?(?:-([0-9]{1,9})-g)?"
)
_STAGES = {"dev": 0, "rc": 1, None: 2}
RUN = ("gpu", "ctk", "cccl", "databases")
"""What tells the run of a result from others of its workload."""
MINORS = 100
"""More than a major version of CCCL has minor ones."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One workload of a database that the tree has."""

    scored: ScoredWorkload
    recorded: Recorded
    benchmark: BenchmarkBinding
    """As the tree's version has it."""
    workload: dict[str, str]
    space: Sequence[ParameterRange] = ()
    """What the user says that was searched, where that is known."""

    def parameters(self, label: str) -> dict[str, int]:
        """What a variant's label says, as far as the benchmark that was measured can mean it."""
        return variant_parameters(self.recorded.benchmark, label, self.space)

    @property
    def point(self) -> Point:
        """What it is a measurement of."""
        return point_of(self.benchmark.name, self.workload)

    @property
    def name(self) -> str:
        """In words: `cub.bench.reduce.sum T=I8 OffsetT=I32`."""
        return in_words(self.benchmark.name, self.workload)

    @property
    def choice(self) -> Choice:
        """What the rules say of its variants."""
        choice = self.scored.choice
        assert choice is not None
        return choice

    @property
    def chosen(self) -> ScoredVariant | None:
        """The scores of the variant that is chosen; none where base is kept."""
        found = self.variant(self.choice.variant)
        if found is None or self.choice.score is None or self.choice.raw_score is None:
            return found
        # What is written is what is expected, not what luck made of it.
        return found.model_copy(update={"score": self.choice.score})

    def variant(self, label: str | None) -> ScoredVariant | None:
        """The scores of one of its variants."""
        return next((v for v in self.scored.variants if v.variant == label), None)

    def rejected(
        self,
        reason: str,
        target: Target | None = None,
        before: Mapping[str, Value] | None = None,
    ) -> Action:
        """What becomes of it when it cannot be used."""
        now = None if before is None else dict(before)
        return _rejected(self.scored, self.workload, reason, self.chosen, target=target, before=now)


def measurements(
    scored: Sequence[ScoredWorkload],
    version: str,
    arch: str,
    *,
    force: bool,
    spaces: Spaces | None = None,
) -> tuple[list[Measurement], list[Refused]]:
    """What can be planned with, and what cannot; a GPU of another architecture is an error."""
    if not force:
        _check_gpus(scored, arch)
    found: dict[Point, Measurement] = {}
    refused: list[Refused] = []
    for one in sorted(scored, key=lambda one: _worth(one, version, arch), reverse=True):
        if reason := _useless(one, arch, force=force):
            refused.append((one, rejected(one, reason)))
            continue
        try:
            space = (spaces or {}).get(one.algorithm, ())
            measurement = _measurement(one, version, space)
        except InputError as error:
            refused.append((one, rejected(one, error.in_line)))
            continue
        better = found.setdefault(measurement.point, measurement)
        if better is not measurement:
            same = one.base_differs and not better.scored.base_differs
            base = ", whose base has the tree's values" if same else ""
            reason = f"measured again {_how(better.scored, one)}{base}: that counts"
            refused.append((one, measurement.rejected(reason)))
    order = {id(one): position for position, one in enumerate(scored)}
    return sorted(found.values(), key=lambda m: order[id(m.scored)]), refused


def of_versions(
    scored: Sequence[ScoredWorkload], version: str
) -> Mapping[Point, Sequence[ScoredWorkload]]:
    """The workloads that several versions of CCCL were measured for, as the tree calls them."""
    found: dict[Point, list[ScoredWorkload]] = {}
    for one in scored:
        with suppress(InputError):  # it is rejected for that
            found.setdefault(_measurement(one, version, ()).point, []).append(one)
    return {
        point: each
        for point, each in found.items()
        if len({version_of(one.cccl) for one in each}) > 1
    }


def related(
    asked: Sequence[ScoredWorkload], left_out: Sequence[ScoredWorkload], version: str
) -> tuple[ScoredWorkload, ...]:
    """What was left out and may share an entry with what is asked for."""
    names = {one.algorithm for one in asked}
    sites = {s for name in names for s in _sites(name, version)}
    return tuple(one for one in left_out if sites & _sites(one.algorithm, version))


def _sites(name: str, version: str) -> set[str]:
    return {
        benchmark.site
        for algorithm in bound(version)
        for benchmark in algorithm.benchmarks
        if benchmark.name == name
    }


def others(
    measurement: Measurement, written: str, instead: NextBest | None = None
) -> tuple[RejectedVariant, ...]:
    """The best variants besides the one that was written, and why it is none of them."""
    found = [one for one in measurement.choice.rejected if one.variant != written]
    best = measurement.chosen
    if best is not None and best.variant != written:
        unsaid = instead is not None and instead.best == best.variant
        reason = "the entry cannot say it" if unsaid else "best for this workload alone"
        found.insert(0, RejectedVariant(variant=best.variant, score=best.score, reason=reason))
    return tuple(found)


def rejected(scored: ScoredWorkload, reason: str) -> Action:
    """A workload that the tree does not have, in the database's words."""
    workload = {axis_name(axis): value for axis, value in scored.workload.items()}
    label = scored.choice.variant if scored.choice else None
    variant = next((v for v in scored.variants if v.variant == label), None)
    return _rejected(scored, workload, reason, variant)


def _rejected(
    scored: ScoredWorkload,
    workload: dict[str, str],
    reason: str,
    variant: ScoredVariant | None,
    **more: object,
) -> Action:
    told = {"decision": "reject", "reason": reason, **in_scores(variant), **more}
    return _action(scored, workload, **told)


def action(measurement: Measurement, **more: object) -> Action:
    """What becomes of a measured workload."""
    return _action(measurement.scored, measurement.workload, **more)


def in_scores(variant: ScoredVariant | None) -> dict[str, object]:
    """A variant and its scores, as actions have them."""
    return {"variant": variant.variant, "scores": numbers(variant)} if variant else {}


def _action(scored: ScoredWorkload, workload: Mapping[str, str], **more: object) -> Action:
    origin = {name: getattr(scored, name) for name in RUN}
    return Action.model_validate(
        {"benchmark": scored.algorithm, "workload": workload, **origin, **more}
    )


def numbers(variant: ScoredVariant) -> tuple[float, ...]:
    """Score, minimum, mean and maximum, in the order in which CUB's comments have them."""
    return variant.score, variant.min, variant.mean, variant.max


def arch_of(scored: Measured) -> str | None:
    """The architecture that was measured: as the database or the user says, else as it is known."""
    return scored.arch or gpu_arch(scored.gpu)


def gpu_name(gpu: str) -> str:
    """`H200 (6144, 132, eccon)` without its numbers."""
    return gpu.partition("(")[0].strip()


def _measurement(
    scored: ScoredWorkload, version: str, space: Sequence[ParameterRange]
) -> Measurement:
    then = recorded(scored.algorithm, scored.workload, scored.cccl)
    benchmark = benchmark_of(scored.algorithm, version)
    return Measurement(scored, then, benchmark, today(then, version), space)


def _check_gpus(scored: Sequence[ScoredWorkload], arch: str) -> None:
    gpus = {one.gpu: arch_of(one) for one in scored}
    if gpus and arch not in gpus.values():
        unknown = [gpu_name(gpu) for gpu, of in sorted(gpus.items()) if of is None]
        remedy = "Name the architecture that was measured, or say --any-gpu."
        raise InputError(
            f"the results are from {told_gpus(gpus)}, and --arch is {arch}",
            say_arch(unknown[0], arch) if unknown else remedy,
        )


def told_gpus(gpus: Mapping[str, str | None]) -> str:
    """`H200 (sm90), Pretend GPU 1 (not known)`."""
    return ", ".join(f"{gpu_name(g)} ({of or 'not known'})" for g, of in sorted(gpus.items()))


def say_arch(name: str, arch: str) -> str:
    """How the user tells what neither a database nor the table of GPUs knows."""
    return f"If {name} is {arch}, say so: --gpu-arch {shlex.quote(f'{name}={arch}')}"


def _useless(scored: ScoredWorkload, arch: str, *, force: bool) -> str | None:
    """Why results say nothing, whatever they are."""
    if scored.choice is None:
        return "no variant was chosen: its samples were not looked at"
    measured, name = arch_of(scored), gpu_name(scored.gpu)
    if not force and measured is None:
        return f"measured on {name}, which is not known. {say_arch(name, arch)}"
    if not force and measured != arch:
        return f"measured on {name}, which is {measured}"
    return None


def _worth(scored: ScoredWorkload, version: str, arch: str) -> tuple[object, ...]:
    """A GPU that fits counts more than one that is forced; then the same base; then the nearest."""
    fits, near = arch_of(scored) == arch, -_apart(scored.cccl, version)
    ages = _age(scored.cccl), _age(scored.ctk)
    return fits, not scored.base_differs, near, *ages, scored.gpu


def _apart(cccl: str, version: str) -> int:
    """Minor versions between what was measured and the tree; patches are none."""
    (major, minor, *_), (other, second, *_) = ((*_parts(v), 0, 0) for v in (cccl, version))
    return abs((major - other) * MINORS + minor - second)


def _parts(version: str) -> tuple[int, ...]:
    match = _RELEASE.match(version)
    return tuple(map(int, match[1].split("."))) if match else ()


def _age(version: str) -> tuple[object, ...]:
    """A release comes after what led to it, and commits after a release come after that."""
    match = _RELEASE.match(version)
    if match is None:
        return (), 0, 0, 0
    digits, stage, number, commits = match.groups()
    parts = tuple(int(part) for part in digits.split("."))
    return parts, _STAGES[stage], int(number or 0), int(commits or 0)


def _how(counts: ScoredWorkload, other: ScoredWorkload) -> str:
    """What is different about the results that count."""
    runs = [(one.gpu, one.ctk, one.cccl) for one in (counts, other)]
    if runs[0] == runs[1]:
        return f"in {counts.database}"
    return f"with {counts.cccl}, CUDA {counts.ctk}, {gpu_name(counts.gpu)}"


# Whether what was measured as base is what the tree selects now.


def base_remarks(plan: Plan, version: str, bases: Mapping[str, Oracle]) -> list[str]:
    """What differs between the measured bases and the tree, or that it could not be compared."""
    found: list[str] = []
    for measured, actions in _by_version(plan).items():
        if measured in bases:
            found += _differences(actions, version, measured, bases[measured], plan.options.arch)
        elif measured != version:
            found.append(
                f"the results are of CCCL {measured}, and the tree is CUB {version}: whether their"
                " base is the same is not known; --measured-on TREE compares them"
            )
    return found


def with_bases(
    scored: Sequence[ScoredWorkload],
    now: Oracle,
    version: str,
    bases: Mapping[str, Oracle],
    arch: str,
) -> tuple[ScoredWorkload, ...]:
    """The results, which say where base had other values than the tree has.

    Asked are workloads of several versions alone, where the tree of one is at hand.
    """
    several = of_versions(scored, version)
    differ: set[int] = set()
    for measured in sorted(bases):
        rows = {
            point: [one for one in each if version_of(one.cccl) == measured]
            for point, each in several.items()
        }
        named = {point: _point(*point, version, measured) for point, ones in rows.items() if ones}
        olds = {point: old for point, old in named.items() if old is not None}
        if not olds:
            continue
        try:
            then, here = bases[measured].tell([*olds.values()], arch), now.tell([*olds], arch)
        except PolicygenError:
            continue  # what is said of the plan's bases tells why
        for point, old in olds.items():
            if old in then and point in here and _others(then[old].values, here[point].values):
                differ |= {id(one) for one in rows[point]}
    return tuple(
        one.model_copy(update={"base_differs": True}) if id(one) in differ else one
        for one in scored
    )


def _others(then: Mapping[str, Value], now: Mapping[str, Value]) -> list[str]:
    """The names of values that both versions have, and that differ."""
    return [name for name, value in then.items() if name in now and now[name] != value]


def _by_version(plan: Plan) -> Mapping[str, list[Action]]:
    """The workloads that the tree was asked about, by the version that was measured."""
    found: dict[str, list[Action]] = {}
    for action in plan.actions:
        if action.before is not None:
            found.setdefault(version_of(action.cccl), []).append(action)
    return dict(sorted(found.items()))


def _differences(
    actions: Sequence[Action], version: str, measured: str, oracle: Oracle, arch: str
) -> Iterator[str]:
    points = [_point(action.benchmark, action.point[1], version, measured) for action in actions]
    try:
        told = oracle.tell([point for point in points if point], arch)
    except PolicygenError as error:
        reason = str(error).partition("\n")[0]
        yield f"whether base is the same as in CUB {measured} could not be asked: {reason}"
        return
    silent = 0
    for action, point in zip(actions, points, strict=True):
        then = told.get(point) if point else None
        before = action.before
        assert before is not None
        if then is None:
            silent += 1
            continue
        if names := _others(then.values, before):
            pairs = ", ".join(
                f"{n} {spell(then.values[n])}, here {spell(before[n])}" for n in names
            )
            name = in_words(action.benchmark, action.workload)
            yield f"{name}: base was measured with other values ({measured}: {pairs})"
    if silent:
        yield (
            f"whether base is the same as in CUB {measured} is not known for {silent} of"
            f" {len(actions)} workloads"
        )


def _point(
    name: str, workload: Iterable[tuple[str, str]], version: str, measured: str
) -> Point | None:
    """A workload as the measured version calls it: complex<float> was `C64` once."""
    try:
        benchmark = benchmark_of(name, version)
        then = today(Recorded(benchmark, version, dict(workload)), measured)
    except InputError:
        return None
    return point_of(name, then)


def several(written: Iterable[tuple[str, str]]) -> Iterator[str]:
    """That results of several releases are written, which is no tuning that was measured whole.

    Of each that is written: its workload, and what it was measured on.
    """
    found: dict[str, set[str]] = {}
    for name, cccl in written:
        found.setdefault(version_of(cccl), set()).add(name)
    if len(found) > 1:
        told = ", ".join(f"{version} ({len(names)})" for version, names in sorted(found.items()))
        yield f"results of several versions of CCCL are written, by workloads: {told}"
