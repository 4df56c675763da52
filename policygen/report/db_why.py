"""Why a choice is what it is: rows, weights, noise, luck, confirmation, what would change it."""

from collections.abc import Iterator

from policygen.model.results import Choice, DbTop, Reasoning, Rules, ScoredVariant, ScoredWorkload
from policygen.report.console import plural
from policygen.report.db_choices import choice_lines
from policygen.report.db_text import Line, filled, line, span


def why_lines(document: DbTop, width: int) -> Iterator[Line]:
    """Each workload with its choice, then what it rests on."""
    for one in document.workloads:
        alone = document.model_copy(update={"workloads": (one,)})
        yield from choice_lines(alone, width, verbose=True, quiet=True)
        if one.choice is not None and one.reasoning is not None:
            yield line("")
            for title, text in _parts(one, one.choice, one.reasoning, document.rules):
                yield from filled(text.split(), " ", width, first=f"{title:<10}", hang=" " * 10)


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
            f" noise of a ratio {runtime.noise:.2%}",
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
        return "by no run: --confirm DB names one that the choice did not see"
    files = " + ".join(reasoning.confirming)
    return f"{'yes' if choice.decision == 'use' else 'no'}, by {files}"


def _changes(one: ScoredWorkload, choice: Choice, reasoning: Reasoning, rules: Rules) -> str:
    if one.missing:
        return "base measured there, too"
    if reasoning.enough is None:
        return (
            f"a variant with at least {rules.least_score:g} and no runtime workload under"
            f" {rules.worst_allowed:g}, or other rules"
        )
    if reasoning.confirming:
        return "further confirming runs: their mean is less noisy"
    if choice.decision == "use":
        return f"a confirming run where it has less than {reasoning.enough:.4f}"
    return f"a confirming run where the best has at least {reasoning.enough:.4f}"
