"""Why a choice is what it is: rows, weights, noise, luck, confirmation, what would change it."""

from collections.abc import Iterator

from policygen.model.results import Choice, DbTop, Reasoning, Rules, ScoredVariant, ScoredWorkload
from policygen.report.blocks import BLANK, Block, Words
from policygen.report.console import plural
from policygen.report.views.db_choices import choices
from policygen.report.views.db_words import span

ROOM = 10
"""For the name of a step."""


def why(document: DbTop, width: int) -> Iterator[Block]:
    """Show each workload with its choice, then what it rests on."""
    for index, one in enumerate(document.workloads):
        if index:
            yield BLANK
        alone = document.model_copy(update={"workloads": (one,)})
        yield from choices(alone, width, verbose=True, quiet=True)
        if one.choice is not None and one.reasoning is not None:
            yield BLANK
            for title, text in _parts(one, one.choice, one.reasoning, document.rules):
                head = f"{title:<{ROOM}}"
                yield Words(text, "", head, " " * ROOM, mark="bold")


def _parts(
    one: ScoredWorkload, choice: Choice, reasoning: Reasoning, rules: Rules
) -> Iterator[tuple[str, str]]:
    yield "rows", _rows(one, choice)
    for runtime in reasoning.runtime:
        named = ", ".join(f"{axis}={value}" for axis, value in runtime.point.items())
        title = f"{runtime.subbench}: {named}" if runtime.subbench != "base" else named
        yield (
            "",
            f"{title}: weight {runtime.weight:.4f}, base {runtime.base * 1e6:,.2f} us,"
            f" noise {runtime.noise:.2%}",
        )
    yield "noise", f"{choice.noise or 0:.4f} of a score in one run, from {choice.noise_origin}"
    yield (
        "luck",
        f"of {plural(choice.tried, 'variant')} as fast as base, the best gets above"
        f" {choice.luck or 1:.4f} in {1 - rules.confidence:.0%} of searches",
    )
    best = next((v for v in one.variants if v.variant != "base"), None)
    if best is not None:
        yield "best", _best(best)
    yield "confirmed", _confirmed(choice, reasoning)
    yield "changes", _changes(one, choice, reasoning, rules)


def _rows(one: ScoredWorkload, choice: Choice) -> str:
    runs = plural(choice.runs, "run")
    of = "" if one.declared is None else f" of {one.declared:,} declared"
    missing = f"; base is missing in {'; '.join(one.missing)}" if one.missing else ""
    weights = ", weights from the values present" if one.approximate else ""
    return (
        f"{plural(choice.tried, 'variant')} and base on {one.runtime_workloads:,}{of} runtime"
        f" workloads in {runs} ({one.database}), {one.incomplete:,} not measured whole"
        f"{weights}{missing}"
    )


def _best(best: ScoredVariant) -> str:
    within = f", {span(best.interval)}" if best.interval else ""
    return f"{best.variant} with {best.score:.6f}{within}: {best.verdict or 'no samples'}"


def _confirmed(choice: Choice, reasoning: Reasoning) -> str:
    if not reasoning.confirming:
        runs = "more than nine runs" if reasoning.runs is None else plural(reasoning.runs, "run")
        return (
            "by no run: --confirm DB names one that the choice did not see; a gain of 3% takes"
            f" {runs} of the finalists to be found in 4 of 5 searches"
        )
    files = " + ".join(reasoning.confirming)
    return f"{'yes' if choice.decision == 'use' else 'no'}, by {files}"


def _changes(one: ScoredWorkload, choice: Choice, reasoning: Reasoning, rules: Rules) -> str:
    if one.missing:
        return "base measured there, too"
    if reasoning.enough is None:
        return f"a variant with no runtime workload under {rules.worst_allowed:g}, or other rules"
    if reasoning.confirming:
        return "further confirming runs: their mean is less noisy"
    if choice.decision == "use":
        return f"a confirming run where it has less than {reasoning.enough:.4f}"
    return f"a confirming run where the best has at least {reasoning.enough:.4f}"
