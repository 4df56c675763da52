"""What a review found, as a workflow's annotations: GitHub shows them beside the lines."""

from collections.abc import Iterator

from policygen.model.review import Review
from policygen.portable import portable
from policygen.report.console import ratio_words
from policygen.report.views.review_performance import (
    claim_words,
    is_slower,
    measured_as_merged,
    slower_words,
)
from policygen.report.views.review_words import unfound
from policygen.untrusted import annotation

KINDS = {"error": "error", "warning": "warning"}


def annotations(document: Review) -> str:
    """Write what GitHub shows beside the lines of a change."""
    rows = []
    document = portable(document)
    for entry in document.entries:
        header = entry.place.header
        path = _path(document, header)
        for one in entry.findings:
            kind = KINDS.get(one.severity, "notice")
            rows.append(annotation(kind, one.rule, one.message, path, one.line))
        if lost := entry.unreachable:
            rows.append(annotation("error", "never selected", lost.reason, path, lost.line))
        if entry.reached and not entry.evidence and not measured_as_merged(entry, document):
            text, line = unfound(document), entry.place.line
            rows.append(annotation("notice", "not measured", text, path, line))
    places = document.unprovable
    rows += [annotation("error", one.rule, one.message, one.path, one.line) for one in places]
    wrong = document.effect.wrong if document.effect else ()
    rows += [annotation("error", "effect", f"{one.name}: {one.reason}") for one in wrong]
    kernels = document.sass.unmeant if document.sass else ()
    rows += [annotation("error", "SASS", f"{one.where}: {one.summary}") for one in kernels]
    rows += _performance(document)
    return "".join(f"{row}\n" for row in rows)


def _path(document: Review, header: str) -> str:
    return next((one.path for one in document.diffs if one.path.endswith(header)), header)


def _performance(document: Review) -> Iterator[str]:
    """Each workload that got slower or runs otherwise, at the line of the entry that changed."""
    told = document.performance
    for one in told.workloads if told else ():
        entry = document.entry_of(one)
        place = (_path(document, entry.place.header), entry.place.line) if entry else ()
        name = f"{one.name} on {one.arch}"
        if one.failed is not None:
            text = f"{name}: {one.failed.kind}: {one.failed.reason}"
            yield annotation("error", "other results", text, *place)
        elif told and is_slower(one):
            kind = "error" if told.slowed(one) else "warning"
            yield annotation(kind, "slower", f"{name}: {slower_words(one)}", *place)
        if one.holds is False:
            text = f"{name}: {claim_words(one)}; it is {ratio_words(one.high)} at most"
            yield annotation("error", "less than was claimed", text, *place)
