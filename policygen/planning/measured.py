"""Maps results in databases to workloads of a tree, named as the tree names them."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from policygen.bindings.load import bound
from policygen.bindings.recorded import (
    Recorded,
    benchmark_of,
    recorded,
    translate_workload,
    version_of,
)
from policygen.bindings.variants import variant_parameters
from policygen.bindings.words import gpu_arch
from policygen.errors import InputError, PolicygenError
from policygen.model.benchmarks import ParameterRange
from policygen.model.bindings import BenchmarkBinding
from policygen.model.plans import Action, NextBest, Plan, Target
from policygen.model.records import grouped
from policygen.model.results import Choice, Measured, RejectedVariant, ScoredVariant, ScoredWorkload
from policygen.model.trees import BoundVersion
from policygen.model.tuning import Value, spell
from policygen.model.workload import Point, axis_name, in_words, point_of
from policygen.planning.judge import Oracle

Spaces = Mapping[str, Sequence[ParameterRange]]
"""Benchmark → the searched parameter ranges."""
Refused = tuple[ScoredWorkload, Action]
"""A workload that cannot be planned, and its action."""
# v3.0.3, v3.6.0.dev-204-g571f2fc3bc, 3.2.0-rc1, 13.0.88
_RELEASE = re.compile(
    r"v?([0-9]{1,9}(?:\.[0-9]{1,9})*)(?:[-.](dev|rc)([0-9]{0,9}))?(?:-([0-9]{1,9})-g)?"
)
_STAGES = {"dev": 0, "rc": 1, None: 2}
RUN = ("gpu", "ctk", "cccl", "databases")
"""The fields that distinguish runs of a workload."""
MINORS = 100
"""An upper bound on the number of minor versions in a major version of CCCL."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One workload of a database that the tree has, too."""

    scored: ScoredWorkload
    recorded: Recorded
    benchmark: BenchmarkBinding
    """The binding for the tree's version."""
    workload: dict[str, str]
    space: Sequence[ParameterRange] = ()
    """The searched parameter ranges that the user gave, if any."""

    def parameters(self, label: str) -> dict[str, int]:
        """Returns the parameters in a variant's label, as the measured benchmark defines them."""
        return variant_parameters(self.recorded.benchmark, label, self.space)

    @property
    def point(self) -> Point:
        """The workload that was measured."""
        return point_of(self.benchmark.name, self.workload)

    @property
    def name(self) -> str:
        """The workload in words: `cub.bench.reduce.sum T=I8 OffsetT=I32`."""
        return in_words(self.benchmark.name, self.workload)

    @property
    def choice(self) -> Choice:
        """The variant that the rules choose."""
        choice = self.scored.choice
        assert choice is not None
        return choice

    @property
    def chosen(self) -> ScoredVariant | None:
        """The scores of the chosen variant; None if base is kept."""
        variant = self.scored.chosen
        if variant is None or self.choice.score is None or self.choice.raw_score is None:
            return variant
        # Plan with the expected score, not with the raw score, which includes luck.
        return variant.model_copy(update={"score": self.choice.score})

    def rejected(
        self,
        reason: str,
        target: Target | None = None,
        before: Mapping[str, Value] | None = None,
    ) -> Action:
        """Returns the action for a workload that cannot be used."""
        return action(
            self,
            decision="reject",
            reason=reason,
            target=target,
            before=before,
            **in_scores(self.chosen),
        )


def measurements(
    scored: Sequence[ScoredWorkload],
    version: BoundVersion,
    arch: str,
    *,
    force: bool,
    spaces: Spaces | None = None,
) -> tuple[list[Measurement], list[Refused]]:
    """Returns the workloads to plan with, and those that are refused."""
    best_by_point: dict[Point, Measurement] = {}
    refused: list[Refused] = []
    for workload in sorted(
        scored, key=lambda workload: _preference(workload, version, arch), reverse=True
    ):
        if reason := _unusable_reason(workload, arch, force=force):
            refused.append((workload, rejected(workload, reason)))
            continue
        try:
            space = (spaces or {}).get(workload.algorithm, ())
            measurement = _measurement(workload, version, space)
        except InputError as error:
            refused.append((workload, rejected(workload, error.in_line)))
            continue
        best = best_by_point.setdefault(measurement.point, measurement)
        if best is not measurement:
            base_only = workload.base_differs and not best.scored.base_differs
            base = ", with the tree's values as its base" if base_only else ""
            reason = (
                f"measured again {_describe_run(best.scored, workload)}{base}; that result counts"
            )
            refused.append((workload, measurement.rejected(reason)))
    order = {id(workload): position for position, workload in enumerate(scored)}
    return sorted(best_by_point.values(), key=lambda item: order[id(item.scored)]), refused


def of_versions(
    scored: Sequence[ScoredWorkload], version: BoundVersion
) -> Mapping[Point, Sequence[ScoredWorkload]]:
    """Returns the workloads that were measured for several versions, under the tree's names."""
    workloads_by_point: dict[Point, list[ScoredWorkload]] = {}
    for workload in scored:
        with suppress(InputError):  # the workload is rejected for this later
            point = _measurement(workload, version, ()).point
            workloads_by_point.setdefault(point, []).append(workload)
    return {
        point: workloads
        for point, workloads in workloads_by_point.items()
        if len({version_of(workload.cccl) for workload in workloads}) > 1
    }


def related(
    selected: Sequence[ScoredWorkload], left_out: Sequence[ScoredWorkload], version: BoundVersion
) -> tuple[ScoredWorkload, ...]:
    """Returns the omitted workloads that may share an entry with the selected ones."""
    names = {workload.algorithm for workload in selected}
    sites = {site for name in names for site in _sites(name, version)}
    return tuple(workload for workload in left_out if sites & _sites(workload.algorithm, version))


def _sites(name: str, version: BoundVersion) -> set[str]:
    return {
        benchmark.site
        for algorithm in bound(version)
        for benchmark in algorithm.benchmarks
        if benchmark.name == name
    }


def rejected_variants(
    measurement: Measurement, written: str, instead: NextBest | None = None
) -> tuple[RejectedVariant, ...]:
    """Returns the best variants that were not written, and why they were not."""
    rejected_variants = [
        rejected_variant
        for rejected_variant in measurement.choice.rejected
        if rejected_variant.variant != written
    ]
    best = measurement.chosen
    if best is not None and best.variant != written:
        cannot_express = instead is not None and instead.best == best.variant
        reason = "the entry cannot express it" if cannot_express else "best for this workload alone"
        rejected_variants.insert(
            0, RejectedVariant(variant=best.variant, score=best.score, reason=reason)
        )
    return tuple(rejected_variants)


def rejected(scored: ScoredWorkload, reason: str) -> Action:
    """Rejects a workload that the tree does not have, under the database's names."""
    workload = {axis_name(axis): value for axis, value in scored.workload.items()}
    scores = in_scores(scored.chosen)
    return _action(scored, workload, decision="reject", reason=reason, **scores)


def action(measurement: Measurement, **fields: object) -> Action:
    """Returns the action for a measured workload."""
    return _action(measurement.scored, measurement.workload, **fields)


def in_scores(variant: ScoredVariant | None) -> dict[str, object]:
    """Returns a variant and its scores as fields of an action."""
    return {"variant": variant.variant, "scores": numbers(variant)} if variant else {}


def _action(scored: ScoredWorkload, workload: Mapping[str, str], **fields: object) -> Action:
    origin = {name: getattr(scored, name) for name in RUN}
    return Action.model_validate(
        {"benchmark": scored.algorithm, "workload": workload, **origin, **fields}
    )


def numbers(variant: ScoredVariant) -> tuple[float, ...]:
    """Returns score, minimum, mean and maximum, in the order of CUB's comments."""
    return variant.score, variant.min, variant.mean, variant.max


def arch_of(scored: Measured) -> str | None:
    """Returns the measured architecture: as recorded or given, else from the table of GPUs."""
    return scored.arch or gpu_arch(scored.gpu)


def gpu_name(gpu: str) -> str:
    """Returns `H200 (6144, 132, eccon)` without its numbers."""
    return gpu.partition("(")[0].strip()


def _measurement(
    scored: ScoredWorkload, version: BoundVersion, space: Sequence[ParameterRange]
) -> Measurement:
    measured_version = version.at(version_of(scored.cccl))
    as_recorded = recorded(scored.algorithm, scored.workload, measured_version)
    benchmark = benchmark_of(scored.algorithm, version)
    return Measurement(
        scored, as_recorded, benchmark, translate_workload(as_recorded, version), space
    )


def check_gpus(
    scored: Sequence[ScoredWorkload], archs: Sequence[str], remedy: str | None = None
) -> list[str]:
    """Returns the architectures whose GPUs have results; raises if none has; needs no compiler."""
    arch_by_gpu = {workload.gpu: arch_of(workload) for workload in scored}
    measured = [arch for arch in archs if arch in arch_by_gpu.values()]
    if arch_by_gpu and not measured:
        gpus = [(gpu_name(gpu), arch) for gpu, arch in sorted(arch_by_gpu.items())]
        names = ", ".join(f"{name} ({arch or 'not known'})" for name, arch in gpus)
        unknown = [name for name, arch in gpus if arch is None]
        remedy = remedy or "Name the architecture that was measured, or add --any-gpu."
        raise InputError(
            f"the results are from {names}, but --arch is {', '.join(archs)}",
            _say_arch(unknown[0], archs[0]) if unknown else remedy,
        )
    return measured


def _say_arch(name: str, arch: str) -> str:
    """Tells how to name the architecture of a GPU that neither the database nor the table has."""
    return f"If {name} is {arch}, add --gpu-arch {shlex.quote(f'{name}={arch}')}"


def _unusable_reason(scored: ScoredWorkload, arch: str, *, force: bool) -> str | None:
    """Returns why results cannot be used, whatever their scores are; None if they can."""
    if scored.choice is None:
        return "no variant was chosen, because its samples were not examined"
    measured, name = arch_of(scored), gpu_name(scored.gpu)
    if not force and measured is None:
        return f"measured on {name}, an unknown GPU. {_say_arch(name, arch)}"
    if not force and measured != arch:
        return f"measured on {name}, which is {measured}"
    return None


def _preference(scored: ScoredWorkload, version: BoundVersion, arch: str) -> tuple[object, ...]:
    """Sort key for results of the same workload; the highest is used.

    A GPU of the right architecture comes before a forced one, then a matching base, then the
    nearest version.
    """
    arch_matches, nearness = arch_of(scored) == arch, -_version_distance(scored.cccl, version.text)
    ages = _age(scored.cccl), _age(scored.ctk)
    return arch_matches, not scored.base_differs, nearness, *ages, scored.gpu


def _version_distance(cccl: str, version: str) -> int:
    """Counts the minor versions between the measured version and the tree; patches do not count."""
    (major, minor, *_), (tree_major, tree_minor, *_) = (
        (*_parts(text), 0, 0) for text in (cccl, version)
    )
    return abs((major - tree_major) * MINORS + minor - tree_minor)


def _parts(version: str) -> tuple[int, ...]:
    match = _RELEASE.match(version)
    return tuple(map(int, match[1].split("."))) if match else ()


def _age(version: str) -> tuple[object, ...]:
    """Sort key for versions: dev < rc < release < commits after that release."""
    match = _RELEASE.match(version)
    if match is None:
        return (), 0, 0, 0
    digits, stage, number, commits = match.groups()
    parts = tuple(int(part) for part in digits.split("."))
    return parts, _STAGES[stage], int(number or 0), int(commits or 0)


def _describe_run(counts: ScoredWorkload, dropped: ScoredWorkload) -> str:
    """Describes how the preferred run differs from the other."""
    runs = [(workload.gpu, workload.ctk, workload.cccl) for workload in (counts, dropped)]
    if runs[0] == runs[1]:
        return f"in {counts.database}"
    return f"with {counts.cccl}, CUDA {counts.ctk}, {gpu_name(counts.gpu)}"


# Whether the measured base is what the tree selects now.


def base_remarks(plan: Plan, version: BoundVersion, bases: Mapping[str, Oracle]) -> list[str]:
    """Reports where the measured base differs from the tree, or why they could not be compared."""
    remarks: list[str] = []
    # The current values of the others are unknown.
    resolved = (action for action in plan.actions if action.before is not None)
    actions_by_version = grouped(resolved, lambda action: version_of(action.cccl))
    for measured_version, actions in sorted(actions_by_version.items()):
        if measured_version in bases:
            remarks += _differences(
                actions, version, measured_version, bases[measured_version], plan.options.arch
            )
        elif measured_version != version.text:
            remarks.append(
                f"the results are from CCCL {measured_version}, but the tree is CUB"
                f" {version.text}; whether both have the same base is unknown; --measured-on TREE"
                " compares them"
            )
    return remarks


def with_bases(
    scored: Sequence[ScoredWorkload],
    current: Oracle,
    version: BoundVersion,
    bases: Mapping[str, Oracle],
    arch: str,
) -> tuple[ScoredWorkload, ...]:
    """Marks the results with a base that differs from the tree's values.

    Only workloads that were measured for several versions are compared, if the tree of one is
    available.
    """
    differ: set[int] = set()
    for measured_version, oracle in sorted(bases.items()):
        measured: dict[Point, list[ScoredWorkload]] = {}
        old_points: dict[Point, Point] = {}
        for point, workloads in of_versions(scored, version).items():
            measured[point] = [w for w in workloads if version_of(w.cccl) == measured_version]
            old_point = _point(*point, version, measured_version)
            if measured[point] and old_point is not None:
                old_points[point] = old_point
        if not old_points:
            continue
        try:
            measured_rows = oracle.tell([*old_points.values()], arch)
            current_rows = current.tell([*old_points], arch)
        except PolicygenError:
            continue  # base_remarks reports the error
        for point, old_point in old_points.items():
            old, new = measured_rows.get(old_point), current_rows.get(point)
            if old and new and _changed_names(old.values, new.values):
                differ |= {id(workload) for workload in measured[point]}
    return tuple(
        workload.model_copy(update={"base_differs": True}) if id(workload) in differ else workload
        for workload in scored
    )


def _changed_names(measured: Mapping[str, Value], current: Mapping[str, Value]) -> list[str]:
    """Returns the names of values that both versions have and that differ."""
    return [name for name, value in measured.items() if name in current and current[name] != value]


def _differences(
    actions: Sequence[Action],
    version: BoundVersion,
    measured_version: str,
    oracle: Oracle,
    arch: str,
) -> Iterator[str]:
    points = [
        _point(action.benchmark, action.point[1], version, measured_version) for action in actions
    ]
    try:
        rows = oracle.tell([point for point in points if point], arch)
    except PolicygenError as error:
        reason = str(error).partition("\n")[0]
        yield f"whether base is as in CUB {measured_version} could not be checked: {reason}"
        return
    unknown = 0
    for action, point in zip(actions, points, strict=True):
        row = rows.get(point) if point else None
        before = action.before
        assert before is not None
        if row is None:
            unknown += 1
            continue
        if names := _changed_names(row.values, before):
            pairs = ", ".join(
                f"{key} {spell(row.values[key])}, here {spell(before[key])}" for key in names
            )
            name = in_words(action.benchmark, action.workload)
            yield f"{name}: base was measured with different values ({measured_version}: {pairs})"
    if unknown:
        yield (
            f"whether base is the same as in CUB {measured_version} is unknown for {unknown} of"
            f" {len(actions)} workloads"
        )


def _point(
    name: str, workload: Iterable[tuple[str, str]], version: BoundVersion, measured_version: str
) -> Point | None:
    """Returns a workload under the measured version's name: complex<float> was `C64` once."""
    try:
        benchmark = benchmark_of(name, version)
        measured_workload = translate_workload(
            Recorded(benchmark, version, dict(workload)), version.at(measured_version)
        )
    except InputError:
        return None
    return point_of(name, measured_workload)


def mixed_version_remarks(written: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Reports that the written results come from several releases.

    Such a tuning was never measured as a whole. `written` has the name of each written workload and
    the version it was measured on.
    """
    names_by_version: dict[str, set[str]] = {}
    for name, cccl in written:
        names_by_version.setdefault(version_of(cccl), set()).add(name)
    if len(names_by_version) > 1:
        counts = ", ".join(
            f"{version} ({len(names)})" for version, names in sorted(names_by_version.items())
        )
        yield f"results of several versions of CCCL are written, workloads of each: {counts}"
