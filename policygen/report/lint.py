"""What `policygen audit lint` found, on the terminal."""

from policygen.errors import SourceError
from policygen.model.lint import Finding, LintReport
from policygen.report import console
from policygen.report.console import plural

STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}


def print_lint(report: LintReport, *, head: bool, verbose: bool) -> None:
    """Each finding with its line and a caret, then a summary."""
    from rich.text import Text

    out = console.results()
    for finding in report.findings:
        # What an editor or a terminal makes a link of must stay on one line.
        out.print(Text(_lines(finding), STYLES[finding.severity]), soft_wrap=True)
    if verbose and report.unbound:
        out.print(f"without a binding: {', '.join(report.unbound)}", style="dim")
    if head:
        out.print(_summary(report))


def _lines(finding: Finding) -> str:
    return str(
        SourceError(
            path=finding.path,
            line=finding.line,
            column=finding.column,
            message=f"[{finding.rule}] {finding.message}",
            text=finding.text,
            width=finding.width,
        )
    )


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
