"""The cards of a searched workload: its winner, what was close, whether it had converged."""

from policygen.model.search_report import ReportedWorkload
from policygen.report.blocks import Card, Cards
from policygen.report.console import plural
from policygen.report.views import search_words


def cards(one: ReportedWorkload) -> Cards:
    """Tell what a reader wants to know first."""
    found = [_winner(one), *([_today(one)] if one.origin == "search" else [])]
    if one.finalists:
        count = sum(final.close for final in one.finalists)
        lines = [f"{final.score:.3f}  {final.variant}" for final in one.finalists if final.close]
        hidden = [f"and {len(lines) - 3:,} more"] if len(lines) > 3 else []
        words = search_words.close(one).partition(" of ")[2]
        rest = f"of {words}" if words else "others to compare it with"
        found.append(Card("What else was close", f"{count:,}", [*lines[:3], *hidden], rest))
    return Cards([*found, _extent(one), *_lost(one)])


def _winner(one: ReportedWorkload) -> Card:
    first = next((f for f in one.finalists if f.variant == one.best), None)
    if first is None:
        lines = []
        for final in one.finalists[:1]:
            lines = [f"the best: {final.variant}", search_words.found(final)]
            lines += [search_words.luck(final)] if final.screened is not None else []
        rest = "is not beaten beyond noise" if one.rung in {None, "last"} else "for now"
        return Card("Winner", "base", lines, rest, "plain")
    lines = [first.variant]
    if first.interval:
        how = f", {plural(first.processes, 'process', 'processes')}" if first.processes else ""
        lines.append(f"95 %: {first.interval.low:.3f} to {first.interval.high:.3f}{how}")
    lines += [text] if (text := search_words.luck(first)) else []
    return Card("Winner", f"{first.score:.3f}", lines, "times as fast as base", "good")


def _today(one: ReportedWorkload) -> Card:
    if one.base is None:
        return Card("CUB selects today", "base", [search_words.today(one)])
    own = next((v for v in one.variants if v.variant == one.base), None)
    lines = [] if own is None else [f"itself measured as a variant: {own.score:.3f}"]
    return Card("CUB selects today", one.base, lines, style="label")


def _extent(one: ReportedWorkload) -> Card:
    if one.curve is None:
        return Card("Measured", f"{one.counts.measured:,}", [], "variants")
    last = one.curve.best[-1].evaluation
    lines = [f"the best of the screening rose last at {last:,}", *search_words.tried(one)]
    found = {variant.variant: variant.evaluation for variant in one.variants}
    if place := found.get(one.best or ""):
        rest = f"of {one.curve.evaluations:,} measured was the winner"
        return Card("Had it converged", f"number {place:,}", lines, rest)
    return Card("Had it converged", f"{one.counts.measured:,}", lines, "measured, none won")


def _lost(one: ReportedWorkload) -> list[Card]:
    """Count what failed; rows alone do not tell."""
    counts = one.counts
    kinds = [f"{group.count:,} {group.kind}: {group.reason}" for group in one.failures[:3]]
    if one.origin == "rows":
        failed = sum(group.count for group in one.failures)
        rest = "of the benchmark, on any workload"
        return [Card("Failed", f"{failed:,}", kinds, rest)] if failed else []
    if counts.wrong:
        lines = [f"{plural(counts.wrong, 'variant')} computed something else than base"]
        rest = f"of {counts.tried:,} tried"
        return [Card("Failed", f"{counts.failed + counts.wrong:,}", lines, rest, "bad")]
    return [Card("Failed", f"{counts.failed:,}", kinds, f"of {counts.tried:,} tried")]
