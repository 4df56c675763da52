"""What a review found, as a workflow's annotations: GitHub shows them beside the lines."""

from policygen.model.review import Review
from policygen.untrusted import visible


def annotations(document: Review) -> str:
    """What GitHub shows beside the lines of a change."""
    rows = []
    for entry in document.entries:
        path = _path(document, entry.place.header)
        for finding in entry.findings:
            kind = {"error": "error", "warning": "warning"}.get(finding.severity, "notice")
            rows.append(_annotation(kind, path, finding.line, finding.rule, finding.message))
        if one := entry.unreachable:
            rows.append(_annotation("error", path, one.line, "never selected", one.reason))
        if entry.reached and not entry.evidence:
            rows.append(
                _annotation(
                    "notice", path, entry.place.line, "no database row", "found in no database"
                )
            )
    rows += [
        _annotation("error", one.path, one.line, one.rule, one.message)
        for one in document.unprovable
    ]
    wrong = document.effect.wrong if document.effect else ()
    kernels = document.sass.different if document.sass else ()
    told = [("effect", f"{one.name}: {one.reason}") for one in wrong]
    told += [("SASS", f"{one.where}: {one.summary}") for one in kernels]
    rows += [_annotation("error", None, None, title, text) for title, text in told]
    return "".join(f"{row}\n" for row in rows)


def _annotation(kind: str, path: str | None, line: int | None, title: str, message: str) -> str:
    """What GitHub shows; nothing of it begins another command."""
    place = [f"file={_property(path)}", f"line={line}"] if path else []
    title = _property(f"policygen {title}")
    return f"::{kind} {','.join([*place, f'title={title}'])}::{_message(message)}"


def _message(text: str) -> str:
    """Percent and line ends mean something to GitHub."""
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    """So do, in a property, colons and commas."""
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _path(document: Review, header: str) -> str:
    return next((one.path for one in document.diffs if one.path.endswith(header)), header)
