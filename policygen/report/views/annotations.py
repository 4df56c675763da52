"""What a review found, as a workflow's annotations: GitHub shows them beside the lines."""

from policygen.model.review import Review
from policygen.portable import portable
from policygen.report.views.review_words import unfound
from policygen.untrusted import annotation

KINDS = {"error": "error", "warning": "warning"}


def annotations(document: Review) -> str:
    """Write what GitHub shows beside the lines of a change."""
    rows = []
    document = portable(document)
    for entry in document.entries:
        header = entry.place.header
        path = next((one.path for one in document.diffs if one.path.endswith(header)), header)
        for one in entry.findings:
            kind = KINDS.get(one.severity, "notice")
            rows.append(annotation(kind, one.rule, one.message, path, one.line))
        if lost := entry.unreachable:
            rows.append(annotation("error", "never selected", lost.reason, path, lost.line))
        if entry.reached and not entry.evidence:
            text, line = unfound(document), entry.place.line
            rows.append(annotation("notice", "not measured", text, path, line))
    places = document.unprovable
    rows += [annotation("error", one.rule, one.message, one.path, one.line) for one in places]
    wrong = document.effect.wrong if document.effect else ()
    rows += [annotation("error", "effect", f"{one.name}: {one.reason}") for one in wrong]
    kernels = document.sass.unmeant if document.sass else ()
    rows += [annotation("error", "SASS", f"{one.where}: {one.summary}") for one in kernels]
    return "".join(f"{row}\n" for row in rows)
