"""Notable facts about a review, and the names of its rows."""

import math
from collections import Counter
from collections.abc import Iterator

from policygen.model.plans import Action
from policygen.model.results import PointRatio
from policygen.model.reviews import Evidence, Review, ReviewedEntry
from policygen.model.selection import Differing
from policygen.model.trees import CALLED
from policygen.model.tuning import spell
from policygen.model.workload import axes, in_words
from policygen.report.blocks import Fact, fact
from policygen.report.console import noun, ratio_words, short
from policygen.report.performance_views import (
    is_merged,
    is_slower,
    performance_anchor,
    runtime_name,
    workload_name,
    worst_runtime,
)

NOISE = 0.005
"""Ratios closer to 1 than this are neither wins nor losses."""


def facts(document: Review) -> list[Iterator[Fact]]:
    """Collect facts by kind, starting with what could block a merge."""
    return [
        _never_selected(document),
        _wrong_workloads(document),
        _changed_kernels(document),
        _slower_merged(document),
        _slower(document),
        _other_values(document),
        _unmeasured(document),
        _faster_merged(document),
        _faster(document),
        _reached(document),
        _values(document),
    ]


def entry_anchor(entry: ReviewedEntry) -> str:
    """Anchor of an entry's heading on a page."""
    return f"entry/{entry.place.header}/{entry.place.name}"


def evidence_anchor(evidence: Evidence) -> str:
    """Anchor of a workload's measurement on a page."""
    return "/".join(["evidence", evidence.gpu, evidence.scored.variant, short(evidence.name)])


def other_anchor(row: Differing) -> str:
    """Anchor of a changed workload that none of the entries accounts for."""
    return f"others/{row.arch}/{named(row)}"


def named(workload: Differing | Action) -> str:
    """Name a workload, marking those of the legacy dispatcher."""
    suffix = " (struct families)" if workload.legacy else ""
    return f"{in_words(short(workload.benchmark), workload.workload)}{suffix}"


def runtime_point(ratio: PointRatio) -> str:
    """Name a runtime workload by its axis values."""
    return " ".join(axes(ratio.point))


def measured(document: Review) -> list[Evidence]:
    """Collect measurements; one that both a return and a family have is counted once."""
    every_evidence = (evidence for entry in document.entries for evidence in entry.evidence)
    return list(
        {
            (evidence.point, evidence.scored.variant, evidence.gpu): evidence
            for evidence in every_evidence
        }.values()
    )


def _never_selected(document: Review) -> Iterator[Fact]:
    unreachable = [entry for entry in document.entries if entry.unreachable is not None]
    if unreachable:
        verb = "entry is" if len(unreachable) == 1 else "entries are"
        yield fact(len(unreachable), f"{verb} never selected", entry_anchor(unreachable[0]))


def _wrong_workloads(document: Review) -> Iterator[Fact]:
    wrong = document.effect.wrong if document.effect else ()
    for (name, arch), count in Counter(
        (short(workload.benchmark), workload.arch) for workload in wrong
    ).items():
        verb = "workload does" if count == 1 else "workloads do"
        yield fact(count, f"{verb} not get what was planned: {name} on {arch}")


def _changed_kernels(document: Review) -> Iterator[Fact]:
    rows = document.sass.unmeant if document.sass else ()
    for (name, arch), count in Counter(
        (short(kernel.benchmark), kernel.arch) for kernel in rows
    ).items():
        verb = "kernel differs" if count == 1 else "kernels differ"
        yield fact(count, f"{verb} where none should: {name} on {arch}")


def _slower(document: Review) -> Iterator[Fact]:
    for evidence in measured(document):
        worst = min(evidence.runtime, key=lambda ratio: ratio.ratio, default=None)
        if worst is not None and worst.ratio < 1 - NOISE:
            words = f"of base's speed for {runtime_point(worst)} of {short(evidence.name)}"
            yield fact(1 - worst.ratio, words, evidence_anchor(evidence), f"{worst.ratio:.3f}")


def _slower_merged(document: Review) -> Iterator[Fact]:
    """Name workloads that got slower as merged, each by its worst runtime workload."""
    for workload in document.merged.values():
        worst = worst_runtime(workload)
        if workload.ratio is None or not is_slower(workload):
            continue
        ratio, location = workload.ratio, workload_name(workload)
        if worst is not None and worst.ratio < ratio:
            ratio, location = worst.ratio, f"{runtime_name(workload, worst)} of {location}"
        words = f"of its speed before for {location} on {workload.arch}, as it is merged"
        yield fact(1 - ratio, words, performance_anchor(workload), ratio_words(ratio))


def _faster_merged(document: Review) -> Iterator[Fact]:
    for workload in document.merged.values():
        if workload.ratio is not None and workload.verdict == "faster":
            words = (
                f"times as fast as before: {workload_name(workload)} on {workload.arch},"
                " as it is merged"
            )
            yield fact(
                workload.ratio, words, performance_anchor(workload), ratio_words(workload.ratio)
            )


def _unmeasured(document: Review) -> Iterator[Fact]:
    merged = document.merged
    for entry in document.entries:
        measured_points = {evidence.point for evidence in entry.evidence}
        unmeasured = {
            (row.benchmark, *row.workload.items())
            for row in entry.reached
            if row.point not in measured_points and not is_merged(row, merged)
        }
        if unmeasured:
            words = (
                f"{noun(len(unmeasured), 'workload')} with other values by {_location(entry)},"
                " not measured"
            )
            yield fact(len(unmeasured), words, entry_anchor(entry))


def _faster(document: Review) -> Iterator[Fact]:
    for evidence in measured(document):
        score = evidence.scored.score
        words = f"is the score of {evidence.scored.variant} for {short(evidence.name)}"
        yield fact(score, words, evidence_anchor(evidence), f"{score:.3f}")


def _reached(document: Review) -> Iterator[Fact]:
    for entry in document.entries:
        for arch, count in Counter(row.arch for row in entry.reached).items():
            verb = "workload gets" if count == 1 else "workloads get"
            yield fact(
                count, f"{verb} other values by {entry.place.name} on {arch}", entry_anchor(entry)
            )


def _other_values(document: Review) -> Iterator[Fact]:
    first_rows: dict[tuple[str, str], Differing] = {}
    counts = Counter((short(row.benchmark), row.arch) for row in document.others)
    for row in document.others:
        first_rows.setdefault((short(row.benchmark), row.arch), row)
    for (name, arch), count in counts.items():
        verb = "workload gets" if count == 1 else "workloads get"
        words = f"{verb} other values by none of the entries: {name} on {arch}"
        yield fact(count, words, other_anchor(first_rows[name, arch]))


def _values(document: Review) -> Iterator[Fact]:
    """Name the values that change most, by the factor of the change."""
    for entry in document.entries:
        for name, new in (entry.after or {}).items():
            old = (entry.before or {}).get(name)
            if isinstance(old, int) and isinstance(new, int) and old != new and old * new > 0:
                number, words = f"{spell(old)} → {spell(new)}", f"{name} of {_location(entry)}"
                yield fact(abs(math.log(new / old)), words, entry_anchor(entry), number)


def _location(entry: ReviewedEntry) -> str:
    return f"{entry.place.header}:{entry.place.line}"


EACH = "(workloads times architectures)"
"""Unit of the counts."""
COUNTED = (
    "this page asks about all that the changed headers decide, and the proof about what the plan"
    " wrote."
)


# Counts, searched databases, and versions in words


def counted(document: Review, listed_count: int) -> Iterator[str]:
    """State how many workloads are unchanged, consistent with a proof of the same headers."""
    changed = listed_count if document.changed is None else document.changed
    yield f"{document.compared - changed:,} of {document.compared:,} as before {EACH}"
    if between := changed - listed_count:
        yield f"{between:,} more change on what may come between known architectures"


def not_measured_reason(document: Review) -> str:
    """State that no database has the written values, and which databases were searched."""
    if not document.databases:
        return "no database is at hand (--db names one)"
    return f"no row of {', '.join(document.databases)} has these values"


def versions(evidence: Evidence) -> str:
    """Name the CUDA and library versions of a measurement."""
    return measured_with(evidence.ctk, evidence.cccl)


def measured_with(ctk: str, release: str) -> str:
    """Name the versions: `CUDA 13.1, CCCL 3.2.0`, or `rocPRIM 4.2.0` for other libraries."""
    names = {str(name): text for name, text in CALLED.items()}
    library, _, version = release.rpartition("@")
    library_version = f"{names.get(library, library)} {version}" if library else f"CCCL {release}"
    return f"CUDA {ctk}, {library_version}" if ctk or not library else library_version
