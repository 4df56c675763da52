"""Choices: what to do for each workload, and why not something else."""

from collections.abc import Iterator, Sequence

from policygen.model.results import Choice, DbTop, RejectedVariant, Rules, ScoredWorkload
from policygen.report.blocks import BLANK, Beside, Block, Note, Words
from policygen.report.layout import wrap
from policygen.report.views import db_words

DIGITS = 8
ROOM = 36
"""The least width for reasons beside their variants."""


def choices(document: DbTop, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show each workload with its choice, then the rules and a count."""
    chosen = [(one, one.choice) for one in document.workloads if one.choice]
    files = verbose or len({one.database for one, _ in chosen}) > 1
    for index, (one, choice) in enumerate(chosen):
        if index:
            yield BLANK
        where = db_words.key_parts(one, one.database if files else None)
        yield db_words.heading(db_words.workload_name(one.algorithm, one.workload), where)
        yield from _choice(one, choice, width)
    if not chosen:
        yield db_words.NOTHING
    elif not quiet:
        yield BLANK
        if any(one.approximate for one in document.workloads):
            yield db_words.approximate()
        yield db_words.note(f"rules: {rules_in_words(document.rules)}")
        used = sum(choice.decision == "use" for _, choice in chosen)
        yield Note(f"use a variant for {used:,}, keep base for {len(chosen) - used:,}")


def _choice(one: ScoredWorkload, choice: Choice, width: int) -> Iterator[Block]:
    use = choice.decision == "use"
    title = f"use {choice.variant}" if use else "keep base"
    style = "bold green" if use else "bold"
    *above, last = wrap(title.split("."), ".", width - 4)
    yield from (Note(f"  {row}", style) for row in above)
    found = next((v for v in one.variants if v.variant == choice.variant), None)
    score = found.score if found else choice.score
    if not use or score is None:
        yield Note(f"  {last}", style)
    else:
        within = f" ({db_words.span(found.interval)})" if found and found.interval else ""
        verdict = f", {found.verdict}" if found and found.verdict else ""
        mark = ", approximate" if one.approximate else ""
        facts = f"score {score:.6f}{within}{verdict}{mark}"
        right = Words(facts.split(), "", "    ", "    ", even=True)
        yield Beside(Words([last], style, "  ", even=True), right)
    yield db_words.prose(choice.reason, "    ")
    yield from _rejected(choice.rejected, width)


def _rejected(rejected: Sequence[RejectedVariant], width: int) -> Iterator[Block]:
    """Show reasons beside the variants where there is room, else below them."""
    if not rejected:
        return
    yield Note("  not taken:", "dim")
    label = max(len(one.variant) for one in rejected)
    room = " " * (4 + label + 2 + DIGITS + 2)
    for one in rejected:
        score = f"{one.score:.6f}" if one.score is not None else "-"
        if width - len(room) >= ROOM:
            head = f"    {one.variant:<{label}}  {score:>{DIGITS}}  "
            if words := one.reason.split():
                yield Words(words, "", head, room, even=True)
            else:
                yield Note(head.rstrip())
        else:
            yield Words(one.variant.split("."), "", "    ", "    ", ".", even=True)
            yield db_words.prose(f"{score} {one.reason}", "      ")


def rules_in_words(rules: Rules) -> str:
    """Tell when a variant is taken."""
    parts = [
        f"score at least {rules.least_score:g}",
        f"no runtime workload under {rules.worst_allowed:g}",
        f"above 1 with {db_words.percent(rules.confidence)} confidence",
    ]
    if rules.prefer_simple:
        parts.append("among those too close to call, the one closest to the current values")
    return ", ".join(parts)
