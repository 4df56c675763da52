"""Choices on the terminal: what to do for each workload, and why not something else."""

from collections.abc import Iterator

from policygen.model.results import Choice, DbTop, RejectedVariant, Rules, ScoredWorkload
from policygen.report.bench import wrap
from policygen.report.db_text import (
    APPROXIMATE,
    Line,
    heading,
    key_parts,
    line,
    note,
    percent,
    prose,
    span,
    workload_name,
)

INDENT = "  "
DIGITS = 8
ROOM = 36
"""The least width for reasons beside their variants."""


def choice_lines(document: DbTop, width: int, *, verbose: bool, quiet: bool) -> Iterator[Line]:
    """Each workload with its choice, then the rules and a count."""
    chosen = [(one, one.choice) for one in document.workloads if one.choice]
    files = verbose or len({one.database for one, _ in chosen}) > 1
    for index, (one, choice) in enumerate(chosen):
        if index:
            yield line("")
        where = key_parts(one, one.database if files else None)
        yield from heading(workload_name(one.algorithm, one.workload), where, width)
        yield from _choice(one, choice, width)
    if not chosen:
        yield line("no workload has a base to compare with")
    elif not quiet:
        yield line("")
        yield from _notes(document, [choice for _, choice in chosen], width)


def _choice(one: ScoredWorkload, choice: Choice, width: int) -> Iterator[Line]:
    use = choice.decision == "use"
    title = f"use {choice.variant}" if use else "keep base"
    style = "bold green" if use else "bold"
    *above, last = wrap(title.split("."), ".", width - 2 * len(INDENT))
    yield from (line(INDENT + row, style) for row in above)
    facts = _facts(one, choice)
    if facts and len(INDENT + last) + 2 + len(facts) <= width:
        yield ((INDENT + last, style), (f"  {facts}", ""))
    else:
        yield line(INDENT + last, style)
        yield from prose(facts, width, indent=2 * INDENT)
    yield from prose(choice.reason, width, indent=2 * INDENT)
    yield from _rejected(choice.rejected, width)


def _facts(one: ScoredWorkload, choice: Choice) -> str:
    """The chosen variant's numbers, as far as the document has them."""
    found = next((v for v in one.variants if v.variant == choice.variant), None)
    if choice.decision != "use" or (found is None and choice.score is None):
        return ""
    score = found.score if found else choice.score
    within = f" ({span(found.interval)})" if found and found.interval else ""
    verdict = f", {found.verdict}" if found and found.verdict else ""
    mark = ", approximate" if one.approximate else ""
    return f"score {score:.6f}{within}{verdict}{mark}"


def _rejected(rejected: tuple[RejectedVariant, ...], width: int) -> Iterator[Line]:
    """Reasons beside the variants where there is room, else below them."""
    if not rejected:
        return
    yield line(f"{INDENT}not taken:", "dim")
    label = max(len(one.variant) for one in rejected)
    start = 2 * len(INDENT) + label + 2 + DIGITS + 2
    for one in rejected:
        score = f"{one.score:.6f}" if one.score is not None else "-"
        if width - start >= ROOM:
            rows = wrap(one.reason.split(), " ", width - start) or [""]
            head = f"{2 * INDENT}{one.variant:<{label}}  {score:>{DIGITS}}  "
            yield line((head + rows[0]).rstrip())
            yield from (line(" " * start + row) for row in rows[1:])
        else:
            for row in wrap(one.variant.split("."), ".", width - 2 * len(INDENT)):
                yield line(2 * INDENT + row)
            yield from prose(f"{score}  {one.reason}", width, indent=3 * INDENT)


def _notes(document: DbTop, choices: list[Choice], width: int) -> Iterator[Line]:
    if any(one.approximate for one in document.workloads):
        yield from note(APPROXIMATE, width)
    yield from note(f"rules: {rules_in_words(document.rules)}", width)
    used = sum(choice.decision == "use" for choice in choices)
    yield line(f"use a variant for {used:,}, keep base for {len(choices) - used:,}")


def rules_in_words(rules: Rules) -> str:
    """When a variant is taken."""
    parts = [
        f"score at least {rules.least_score:g}",
        f"no runtime workload under {rules.worst_allowed:g}",
        f"above 1 with {percent(rules.confidence)} confidence",
    ]
    if rules.prefer_simple:
        parts.append("among those too close to call, the one closest to the current values")
    return ", ".join(parts)
