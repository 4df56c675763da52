"""What `policygen audit lint` found."""

from collections.abc import Iterator

from policygen.errors import SourceError
from policygen.model.lint import LintReport
from policygen.report.blocks import Block, Note
from policygen.report.console import plural, printed

STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}


def lint(report: LintReport, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show each finding with its line and a caret, then a summary."""
    for finding in report.findings:
        error = SourceError(
            path=finding.path,
            line=finding.line,
            column=finding.column,
            message=f"[{finding.rule}] {finding.message}",
            text=finding.text,
            width=finding.width,
        )
        # What an editor or a terminal makes a link of must stay on one line.
        for row in str(error).split("\n"):
            yield Note(row, STYLES[finding.severity])
    if verbose and report.unbound:
        yield Note(f"without a binding: {', '.join(report.unbound)}", "dim", folded=True)
    if head and not report.cub.has_returns:
        asked = f"asked of {report.cub.called}'s configs: {', '.join(report.counts)}"
        yield Note(asked, "dim", folded=True)
    if head:
        yield Note(_summary(report), folded=True)


def _summary(report: LintReport) -> str:
    parts = [
        f"{plural(len(report.findings), 'finding')} in {plural(report.entries, 'entry', 'entries')}"
        f" of {plural(report.families, 'family', 'families')}"
    ]
    parts += [f"{name} {count}" for name, count in report.counts.items() if count]
    parts += [f"{plural(len(report.off), 'rule')} off"] if report.off else []
    if report.unbound:
        parts.append(f"{plural(len(report.unbound), 'family', 'families')} without a binding")
    return "; ".join(parts)


print_lint = printed(lint)
