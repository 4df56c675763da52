"""Notable facts about a review, the names of its rows, and annotations beside its lines."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from policygen.errors import noun
from policygen.model.machine_code import Different
from policygen.model.plans import Action
from policygen.model.records import grouped
from policygen.model.reviews import Evidence, Review, ReviewedEntry
from policygen.model.selection import Differing
from policygen.model.tuning import spell
from policygen.model.workload import OnArch, in_words, plain, runtime_name
from policygen.portable import portable
from policygen.report.blocks import Fact, fact
from policygen.report.console import ratio_words, short
from policygen.report.performance_views import (
    claim_words,
    is_merged,
    is_slower,
    measured_as_merged,
    performance_anchor,
    slower_words,
    workload_name,
    worst_runtime,
)
from policygen.untrusted import annotation

NOISE = 0.005
"""Ratios closer to 1 than this are neither wins nor losses."""


def facts(document: Review) -> list[Iterator[Fact]]:
    """Collect facts by kind, starting with what could block a merge."""
    wrong = document.effect.wrong if document.effect else ()
    kernels = document.sass.unmeant if document.sass else ()
    unaccounted = "different values from none of the entries"
    return [
        _never_selected(document),
        _counted(wrong, "workload does", "workloads do", "not get the planned values"),
        _counted(kernels, "kernel differs", "kernels differ", "where none should"),
        _slower_merged(document),
        _slower(document),
        _counted(document.others, "workload gets", "workloads get", unaccounted),
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


def measured(document: Review) -> list[Evidence]:
    """Collect measurements; one that both a return and a family have is counted once."""
    evidence_by_key = {
        (evidence.point, evidence.scored.variant, evidence.gpu): evidence
        for entry in document.entries
        for evidence in entry.evidence
    }
    return list(evidence_by_key.values())


def _never_selected(document: Review) -> Iterator[Fact]:
    unreachable = [entry for entry in document.entries if entry.unreachable is not None]
    if unreachable:
        words = f"{noun(len(unreachable), 'entry is', 'entries are')} never selected"
        yield fact(len(unreachable), words, entry_anchor(unreachable[0]))


def _counted(
    rows: Sequence[OnArch | Different], singular: str, several: str, words: str
) -> Iterator[Fact]:
    """Count rows by benchmark and architecture; changed workloads are linked."""
    groups = grouped(rows, lambda row: (short(row.benchmark), row.arch))
    for (name, arch), group in groups.items():
        text = f"{noun(len(group), singular, several)} {words}: {name} on {arch}"
        first = group[0]
        yield fact(len(group), text, other_anchor(first) if isinstance(first, Differing) else "")


def _slower(document: Review) -> Iterator[Fact]:
    for evidence in measured(document):
        worst = min(evidence.runtime, key=lambda ratio: ratio.ratio, default=None)
        if worst is not None and worst.ratio < 1 - NOISE:
            point = runtime_name(worst.subbench, worst.point)
            words = f"of base's speed for {point} of {short(evidence.name)}"
            yield fact(1 - worst.ratio, words, evidence_anchor(evidence), f"{worst.ratio:.3f}")


def _slower_merged(document: Review) -> Iterator[Fact]:
    """Name workloads that got slower as merged, each by its worst runtime workload."""
    for workload in document.merged.values():
        worst = worst_runtime(workload)
        if workload.ratio is None or not is_slower(workload):
            continue
        ratio, location = workload.ratio, workload_name(workload)
        if worst is not None and worst.ratio < ratio:
            point = runtime_name(worst.subbench, plain(worst.point))
            ratio, location = worst.ratio, f"{point} of {location}"
        words = f"of its previous speed for {location} on {workload.arch}, as merged"
        yield fact(1 - ratio, words, performance_anchor(workload), ratio_words(ratio))


def _faster_merged(document: Review) -> Iterator[Fact]:
    for workload in document.merged.values():
        if workload.ratio is not None and workload.verdict == "faster":
            place = f"{workload_name(workload)} on {workload.arch}"
            words = f"times as fast as before: {place}, as merged"
            ratio = ratio_words(workload.ratio)
            yield fact(workload.ratio, words, performance_anchor(workload), ratio)


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
            workloads = noun(len(unmeasured), "workload")
            words = f"{workloads} changed by {entry.place.where}, not measured"
            yield fact(len(unmeasured), words, entry_anchor(entry))


def _faster(document: Review) -> Iterator[Fact]:
    for evidence in measured(document):
        score = evidence.scored.score
        words = f"is the score of {evidence.scored.variant} for {short(evidence.name)}"
        yield fact(score, words, evidence_anchor(evidence), f"{score:.3f}")


def _reached(document: Review) -> Iterator[Fact]:
    for entry in document.entries:
        for arch, count in Counter(row.arch for row in entry.reached).items():
            verb = noun(count, "workload gets", "workloads get")
            words = f"{verb} different values from {entry.place.name} on {arch}"
            yield fact(count, words, entry_anchor(entry))


def _values(document: Review) -> Iterator[Fact]:
    """Name the values that change most, by the factor of the change."""
    for entry in document.entries:
        for name, new in (entry.after or {}).items():
            old = (entry.before or {}).get(name)
            if isinstance(old, int) and isinstance(new, int) and old != new and old * new > 0:
                number, words = f"{spell(old)} → {spell(new)}", f"{name} of {entry.place.where}"
                yield fact(abs(math.log(new / old)), words, entry_anchor(entry), number)


EACH = "(workloads times architectures)"
"""Unit of the counts."""
COUNTED = (
    "this page covers everything that the changed headers decide, the proof covers what the plan"
    " wrote."
)


# Counts, searched databases, and versions in words


def counted(document: Review, listed_count: int) -> Iterator[str]:
    """State how many workloads are unchanged, consistent with a proof of the same headers."""
    changed = listed_count if document.changed is None else document.changed
    yield f"{document.compared - changed:,} of {document.compared:,} unchanged {EACH}"
    if between := changed - listed_count:
        yield f"{between:,} more change on future architectures between known ones"


def not_measured_reason(document: Review) -> str:
    """State that no database has the written values, and which databases were searched."""
    if not document.databases:
        return "no database given (--db)"
    return f"no row of {', '.join(document.databases)} has these values"


# Findings of a review as GitHub workflow annotations


def annotations(document: Review) -> str:
    """Write the annotations that GitHub shows beside the changed lines."""
    return "".join(f"{row}\n" for row in _annotations(portable(document)))


def _annotations(document: Review) -> Iterator[str]:
    for entry in document.entries:
        path = _path(document, entry.place.header)
        for finding in entry.findings:
            kind = "notice" if finding.severity == "note" else finding.severity
            yield annotation(kind, finding.rule, finding.message, path, finding.line)
        if reach := entry.unreachable:
            yield annotation("error", "never selected", reach.reason, path, reach.line)
        if leak := document.leak_of(entry):
            yield annotation("error", "leak", leak, path, entry.place.line)
        if entry.reached and not entry.evidence and not measured_as_merged(entry, document):
            reason = not_measured_reason(document)
            yield annotation("notice", "not measured", reason, path, entry.place.line)
    for row in document.unjudged:
        yield annotation("error", "not proven", row.what, _path(document, row.header), row.line)
    for place in document.unprovable:
        yield annotation("error", place.rule, place.message, place.path, place.line)
    for workload in document.effect.wrong if document.effect else ():
        yield annotation("error", "effect", f"{workload.name}: {workload.reason}")
    for kernel in document.sass.unmeant if document.sass else ():
        yield annotation("error", "SASS", f"{kernel.where}: {kernel.summary}")
    yield from _performance(document)


def _path(document: Review, header: str) -> str:
    return next((diff.path for diff in document.diffs if diff.path.endswith(header)), header)


def _performance(document: Review) -> Iterator[str]:
    """Annotate each workload that got slower or failed, at the line of the changed entry."""
    performance = document.performance
    for workload in performance.workloads if performance else ():
        entry = document.entry_of(workload)
        location = (_path(document, entry.place.header), entry.place.line) if entry else ()
        workload_on_arch = f"{workload.name} on {workload.arch}"
        if workload.failed is not None:
            text = f"{workload_on_arch}: {workload.failed.kind}: {workload.failed.reason}"
            yield annotation("error", "other results", text, *location)
        elif performance and is_slower(workload):
            kind = "error" if performance.slowed(workload) else "warning"
            text = f"{workload_on_arch}: {slower_words(workload)}"
            yield annotation(kind, "slower", text, *location)
        if workload.holds is False:
            claim = claim_words(workload)
            text = f"{workload_on_arch}: {claim}; measured at most {ratio_words(workload.high)}"
            yield annotation("error", "less than claimed", text, *location)
