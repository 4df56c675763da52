"""The cards at the head of a review: what changed, why, is it proven, what could get worse."""

from policygen.model.arch import arch_number
from policygen.model.performance import VerifyPerformance
from policygen.model.resolve import Differing
from policygen.model.review import Review
from policygen.model.workload import axes, point_of
from policygen.report.blocks import Card, Cards
from policygen.report.console import plural, ratio_words
from policygen.report.views.performance import summary
from policygen.report.views.review_facts import NOISE, measured
from policygen.report.views.review_performance import (
    is_merged,
    runtime_name,
    workload_name,
)
from policygen.report.views.review_words import counted, unfound, versions


def cards(document: Review) -> Cards:
    """Tell what changed, why, whether it is proven, and what could get worse."""
    if not document.entries and not document.others and not document.failures:
        return Cards([Card("What changed", "nothing", ["no workload gets other values"])])
    bad = "bad" if document.failures else ""
    found = [
        _card("What changed", *_what(document)),
        _card("Why", *_why(document)),
        _card("Is it proven", *_proven(document), style=bad),
    ]
    if document.performance is not None:
        found.append(_card("Is it faster", *_faster(document.performance)))
    return Cards([*found, _card("What could get worse", *_worse(document))])


def _card(title: str, answer: tuple[str, str], rows: list[str], style: str = "") -> Card:
    number, words = answer
    return Card(title, number, rows, words, style)


def _reached(document: Review) -> list[Differing]:
    return [*(row for one in document.entries for row in one.reached), *document.others]


def _what(document: Review) -> tuple[tuple[str, str], list[str]]:
    found = [one.change for one in document.entries]
    counts = {c: found.count(c) for c in ("changed", "added", "removed") if c in found}
    entries = "entry" if len(found) == 1 else "entries"
    told = ", ".join(f"{count} {c}" for c, count in counts.items())
    words = f"{entries} {told.partition(' ')[2]}" if len(counts) == 1 else f"{entries}: {told}"
    head = f"{len(found)}", words if counts else entries
    if not document.compared:
        return head, ["which workloads get other values is not known"]
    rows = _reached(document)
    points = plural(len({point_of(row.benchmark, row.workload) for row in rows}), "workload")
    archs = ", ".join(sorted({row.arch for row in rows}, key=arch_number))
    others = f"{points} with other values on {archs}" if rows else "no workload gets other values"
    return head, [others, *counted(document, len(rows))]


def _why(document: Review) -> tuple[tuple[str, str], list[str]]:
    found = measured(document)
    if not found:
        return ("0", "workloads measured"), [unfound(document)]
    scores = sorted(one.scored.score for one in found)
    span = f"{scores[0]:.3f}" if len(scores) == 1 else f"{scores[0]:.3f} to {scores[-1]:.3f}"
    gpus = dict.fromkeys(one.gpu.partition("(")[0].strip() for one in found)
    told = f"{plural(len(found), 'workload')} measured on {', '.join(gpus)}"
    words = "is the score" if len(scores) == 1 else "are the scores"
    return (span, words), [told, "; ".join(dict.fromkeys(map(versions, found)))]


def _proven(document: Review) -> tuple[tuple[str, str], list[str]]:
    if document.unprovable:
        return ("no", ""), [
            f"not provable: {plural(len(document.unprovable), 'place')} in the headers"
        ]
    if not document.compared:
        return ("no", ""), ["no binding covers what changed"]
    effect, sass = document.effect, document.sass
    if effect is None:
        rows = ["effect: not of a plan; what the compiler selects is below"]
    elif effect.wrong:
        rows = [f"effect: {len(effect.wrong)} wrong"]
    else:
        changed = f"{len(effect.changed):,} of {effect.compared:,}"
        rows = [f"effect: {changed} as planned, all others as before"]
    compiled = document.cub.has_machine_code or sass is not None
    if sass is None:
        rows += ["machine code: not compared"] if compiled else []
    else:
        equal = f"{sass.equal + sass.renamed} of {sass.kernels} kernels equal"
        written = sum(row.as_written for row in sass.rows)
        more = f", {written} as written" if written else ""
        rows.append(f"machine code: {equal}{more} on {', '.join(sass.archs)}")
    lost = sum(entry.unreachable is not None for entry in document.entries)
    never = f"{plural(lost, 'entry', 'entries')} never selected"
    rows.append(f"reach: {never if lost else 'each entry is selected'}")
    if document.uncovered:
        rows.append(f"not asked: {plural(len(document.uncovered), 'place')} of the change")
    holds = [
        effect is not None and not effect.wrong,
        *([sass is not None and not sass.changed] if compiled else []),
        not lost and not document.uncovered,
    ]
    answer = "no" if document.failures else "yes" if all(holds) else "in part"
    return (f"{sum(holds)} of {len(holds)}", f"proofs hold: {answer}"), rows


def _faster(told: VerifyPerformance) -> tuple[tuple[str, str], list[str]]:
    found = sorted(one.ratio for one in told.workloads if one.ratio is not None)
    rows = [summary(told)]
    if told.gpu:
        rows.append(f"on {told.gpu.partition('(')[0].strip()}, compared with {told.before}")
    if not found:
        same = told.verdict == "same-code"
        return ("same", "machine code") if same else ("not known", ""), rows
    ends = [ratio_words(one) for one in dict.fromkeys((found[0], found[-1]))]
    lost = sum(one.holds is False for one in told.workloads)
    rows += [f"{plural(lost, 'claim')} of the change not kept"] if lost else []
    return (" to ".join(ends), "times as fast as before"), rows


def _merged_worse(document: Review) -> tuple[tuple[str, str], list[str]]:
    """What is known of the change as it is merged."""
    merged = document.merged.values()
    every = [(row, one) for one in merged for row in one.runtime]
    slower = [row.verdict for row, _ in every].count("slower")
    rows = []
    if every:
        row, one = min(every, key=lambda pair: pair[0].ratio)
        told = f"{runtime_name(one, row)} of {workload_name(one)}"
        rows.append(f"worst: {ratio_words(row.ratio)} for {told}")
    if undecided := [row.verdict for row, _ in every].count("undecided"):
        rows.append(f"{plural(undecided, 'runtime workload')} not decided")
    return (f"{slower} of {len(every):,}", "runtime workloads slower"), rows


def _worse(document: Review) -> tuple[tuple[str, str], list[str]]:
    found, merged = measured(document), document.merged
    points = [(ratio.ratio, one, ratio) for one in found for ratio in one.runtime]
    head: tuple[str, str] = ("not known", "")
    rows: list[str] = []
    if merged:
        head, rows = _merged_worse(document)
    elif points:
        slower = sum(ratio < 1 - NOISE for ratio, _, _ in points)
        head = f"{slower} of {len(points):,}", "runtime workloads slower"
        ratio, one, point = min(points, key=lambda item: item[0])
        rows.append(f"worst: {ratio:.3f} for {' '.join(axes(point.point))} of {one.name}")
    known = {one.point for one in found}
    reached = {row.point for row in _reached(document) if not is_merged(row, merged)}
    if lost := len(reached - known):
        rows.append(f"{plural(lost, 'workload')} with other values not measured")
    rows = rows or ["nothing was measured"]
    if document.performance is None:
        rows.append("as it is merged: not measured")
    return head, rows
