"""The facts of a review that stand out, and what its rows are called."""

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
"""Less than this from 1 is neither a win nor a loss."""


def facts(document: Review) -> list[Iterator[Fact]]:
    """Collect them by kind, what could keep it from being merged first."""
    return [
        _never(document),
        _wrong(document),
        _kernels(document),
        _slower_merged(document),
        _slower(document),
        _others(document),
        _unmeasured(document),
        _faster_merged(document),
        _faster(document),
        _reached(document),
        _values(document),
    ]


def entry_anchor(one: ReviewedEntry) -> str:
    """Name an entry's heading on a page."""
    return f"entry/{one.place.header}/{one.place.name}"


def evidence_anchor(one: Evidence) -> str:
    """Name the measurement of a workload on a page."""
    return "/".join(["evidence", one.gpu, one.scored.variant, short(one.name)])


def other_anchor(one: Differing) -> str:
    """Name the row of a workload that gets other values by none of the entries."""
    return f"others/{one.arch}/{named(one)}"


def named(one: Differing | Action) -> str:
    """Name a workload; that of an older dispatcher says so."""
    structs = " (struct families)" if one.legacy else ""
    return f"{in_words(short(one.benchmark), one.workload)}{structs}"


def runtime_point(ratio: PointRatio) -> str:
    """Name a runtime workload."""
    return " ".join(axes(ratio.point))


def measured(document: Review) -> list[Evidence]:
    """Collect what was measured; what a return and a family have both of it counts once."""
    found = (one for entry in document.entries for one in entry.evidence)
    return list({(one.point, one.scored.variant, one.gpu): one for one in found}.values())


def _never(document: Review) -> Iterator[Fact]:
    lost = [one for one in document.entries if one.unreachable is not None]
    if lost:
        are = "entry is" if len(lost) == 1 else "entries are"
        yield fact(len(lost), f"{are} never selected", entry_anchor(lost[0]))


def _wrong(document: Review) -> Iterator[Fact]:
    wrong = document.effect.wrong if document.effect else ()
    for (name, arch), count in Counter((short(w.benchmark), w.arch) for w in wrong).items():
        do = "workload does" if count == 1 else "workloads do"
        yield fact(count, f"{do} not get what was planned: {name} on {arch}")


def _kernels(document: Review) -> Iterator[Fact]:
    rows = document.sass.unmeant if document.sass else ()
    for (name, arch), count in Counter((short(k.benchmark), k.arch) for k in rows).items():
        differ = "kernel differs" if count == 1 else "kernels differ"
        yield fact(count, f"{differ} where none should: {name} on {arch}")


def _slower(document: Review) -> Iterator[Fact]:
    for one in measured(document):
        worst = min(one.runtime, key=lambda ratio: ratio.ratio, default=None)
        if worst is not None and worst.ratio < 1 - NOISE:
            words = f"of base's speed for {runtime_point(worst)} of {short(one.name)}"
            yield fact(1 - worst.ratio, words, evidence_anchor(one), f"{worst.ratio:.3f}")


def _slower_merged(document: Review) -> Iterator[Fact]:
    """Name the workloads that got slower as they are merged, each by what is worst of it."""
    for one in document.merged.values():
        worst = worst_runtime(one)
        if one.ratio is None or not is_slower(one):
            continue
        ratio, where = one.ratio, workload_name(one)
        if worst is not None and worst.ratio < ratio:
            ratio, where = worst.ratio, f"{runtime_name(one, worst)} of {where}"
        words = f"of its speed before for {where} on {one.arch}, as it is merged"
        yield fact(1 - ratio, words, performance_anchor(one), ratio_words(ratio))


def _faster_merged(document: Review) -> Iterator[Fact]:
    for one in document.merged.values():
        if one.ratio is not None and one.verdict == "faster":
            words = f"times as fast as before: {workload_name(one)} on {one.arch}, as it is merged"
            yield fact(one.ratio, words, performance_anchor(one), ratio_words(one.ratio))


def _unmeasured(document: Review) -> Iterator[Fact]:
    merged = document.merged
    for one in document.entries:
        known = {found.point for found in one.evidence}
        lost = {
            (row.benchmark, *row.workload.items())
            for row in one.reached
            if row.point not in known and not is_merged(row, merged)
        }
        if lost:
            words = (
                f"{noun(len(lost), 'workload')} with other values by {_where(one)}, not measured"
            )
            yield fact(len(lost), words, entry_anchor(one))


def _faster(document: Review) -> Iterator[Fact]:
    for one in measured(document):
        score = one.scored.score
        words = f"is the score of {one.scored.variant} for {short(one.name)}"
        yield fact(score, words, evidence_anchor(one), f"{score:.3f}")


def _reached(document: Review) -> Iterator[Fact]:
    for one in document.entries:
        for arch, count in Counter(row.arch for row in one.reached).items():
            get = "workload gets" if count == 1 else "workloads get"
            yield fact(
                count, f"{get} other values by {one.place.name} on {arch}", entry_anchor(one)
            )


def _others(document: Review) -> Iterator[Fact]:
    first: dict[tuple[str, str], Differing] = {}
    counts = Counter((short(one.benchmark), one.arch) for one in document.others)
    for one in document.others:
        first.setdefault((short(one.benchmark), one.arch), one)
    for (name, arch), count in counts.items():
        get = "workload gets" if count == 1 else "workloads get"
        words = f"{get} other values by none of the entries: {name} on {arch}"
        yield fact(count, words, other_anchor(first[name, arch]))


def _values(document: Review) -> Iterator[Fact]:
    """Name the values that change most, by how many times they are larger or smaller."""
    for one in document.entries:
        for name, new in (one.after or {}).items():
            old = (one.before or {}).get(name)
            if isinstance(old, int) and isinstance(new, int) and old != new and old * new > 0:
                number, words = f"{spell(old)} → {spell(new)}", f"{name} of {_where(one)}"
                yield fact(abs(math.log(new / old)), words, entry_anchor(one), number)


def _where(one: ReviewedEntry) -> str:
    return f"{one.place.header}:{one.place.line}"


EACH = "(workloads times architectures)"
"""What is counted."""
COUNTED = (
    "this page asks about all that the changed headers decide, and the proof about what the plan"
    " wrote."
)


# What a review counts, where it looked, and what was measured, in words.


def counted(document: Review, listed: int) -> Iterator[str]:
    """Tell how many were asked about: the same number as in a proof of the same headers."""
    changed = listed if document.changed is None else document.changed
    yield f"{document.compared - changed:,} of {document.compared:,} as before {EACH}"
    if between := changed - listed:
        yield f"{between:,} more change on what may come between known architectures"


def unfound(document: Review) -> str:
    """Say that nothing measured what was written, and where was looked for it."""
    if not document.databases:
        return "no database is at hand (--db names one)"
    return f"no row of {', '.join(document.databases)} has these values"


def versions(one: Evidence) -> str:
    """Tell what it was measured with."""
    return measured_with(one.ctk, one.cccl)


def measured_with(ctk: str, release: str) -> str:
    """Name what was measured with: `CUDA 13.1, CCCL 3.2.0`; of others `rocPRIM 4.2.0`."""
    called = {str(name): text for name, text in CALLED.items()}
    library, _, version = release.rpartition("@")
    named = f"{called.get(library, library)} {version}" if library else f"CCCL {release}"
    return f"CUDA {ctk}, {named}" if ctk or not library else named
