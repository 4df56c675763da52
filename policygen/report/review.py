"""A review as JSON, Markdown, or a page."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from policygen.model.arch import arch_number
from policygen.model.changes import changes
from policygen.model.resolve import Differing
from policygen.model.results import PointRatio
from policygen.model.review import Evidence, Review, ReviewedEntry
from policygen.model.sass import VerifySass
from policygen.model.tuning import Value, spell
from policygen.model.workload import axes, in_words, point_of
from policygen.rendering import fill
from policygen.report.console import plural, short, tree_line
from policygen.report.sass import alike
from policygen.report.side_by_side import coloured, side_by_side

COMMENT = 65_536
"""Characters that a comment of a pull request holds."""
_EMPTY = re.compile(r"\n{3,}")
UNTOUCHED = "No workload gets other values by it: those that it decides keep theirs."
UNASKED = "Which workloads get other values by it is not known: the headers are not provable."
COMPUTED = "No workload gets other values by it alone: it computes them from other returns."
NOISE = 0.005
"""Less than this from 1 is neither a win nor a loss."""


def render(document: Review, form: str) -> str:
    """`json`, `md` or `html`."""
    if form == "json":
        return document.to_json() + "\n"
    if form == "html":
        return fill("report/review.html.j2", {**_values(document), "diffs": _diffs(document)})
    return _markdown(document)


def _markdown(document: Review) -> str:
    """As long as it may be: the longest lists are cut first, and say by how much."""
    values = _values(document)
    for rows in (400, 200, 100, 50, 20, 10, 5, 2, 1):
        text = _EMPTY.sub("\n\n", fill("report/review.md.j2", {**values, "rows": rows}))
        if len(text) <= COMMENT:
            return text
    told = "\n\nThe rest does not fit into a comment.\n"
    return text[: COMMENT - len(told)] + told


def _values(document: Review) -> dict[str, Any]:
    return {
        "title": _title(document),
        "facts": [
            ("tree", tree_line(document.cub)),
            ("compared with", document.base),
            ("compiler", document.toolchain or "not asked"),
        ],
        "archs": document.archs,
        "algorithms": sorted({short(r.benchmark) for e in document.entries for r in e.reached}),
        "types": sorted(
            {value for e in document.entries for r in e.reached for value in r.workload.values()}
        ),
        "cards": _cards(document),
        "failures": document.failures,
        "entries": [_entry(one, asked=not document.unprovable) for one in document.entries],
        "others": [_differing(one) for one in document.others],
        "actions": [
            {
                "decision": action.decision,
                "workload": in_words(short(action.benchmark), action.workload)
                + (" (struct families)" if action.legacy else ""),
                "variant": action.variant or "",
                "reason": action.reason,
            }
            for action in document.actions
        ],
        "effect": _effect(document),
        "sass": _sass(document.sass) if document.sass else None,
        "patches": [(one.path, one.diff.rstrip("\n").split("\n")) for one in document.diffs],
        "commands": document.commands,
        "remarks": document.remarks,
    }


def _title(document: Review) -> str:
    headers = plural(len(document.diffs), "header")
    return f"{plural(len(document.entries), 'tuning entry', 'tuning entries')} in {headers}"


def _cards(document: Review) -> list[tuple[str, str, list[str], bool]]:
    """What changed, why, is it proven, what could get worse: a title, words, rows, if it is bad."""
    if not document.entries and not document.others and not document.failures:
        return [("What changed", "nothing", ["no workload gets other values"], False)]
    return [
        ("What changed", *_what(document), False),
        ("Why", *_why(document), False),
        ("Is it proven", *_proven(document), bool(document.failures)),
        ("What could get worse", *_worse(document), False),
    ]


def _what(document: Review) -> tuple[str, list[str]]:
    counts = [
        f"{sum(one.change == change for one in document.entries)} {change}"
        for change in ("changed", "added", "removed")
        if any(one.change == change for one in document.entries)
    ]
    rows = [row for one in document.entries for row in one.reached] + list(document.others)
    archs = sorted({row.arch for row in rows}, key=arch_number)
    points = {point_of(row.benchmark, row.workload) for row in rows}
    if document.unprovable:
        return ", ".join(counts) or "no entry", ["which workloads get other values is not known"]
    return ", ".join(counts) or "no entry", [
        f"{plural(len(points), 'workload')} with other values on {', '.join(archs)}"
        if rows
        else "no workload gets other values",
        f"{document.compared - len(rows):,} of {document.compared:,} as before",
    ]


def _measured(document: Review) -> list[Evidence]:
    """What was measured; a return and a family that have the same of it count once."""
    found = (one for entry in document.entries for one in entry.evidence)
    return list({(one.point, one.scored.variant, one.gpu): one for one in found}.values())


def _why(document: Review) -> tuple[str, list[str]]:
    found = _measured(document)
    if not found:
        return "no measurement", ["no database row was found for what was written"]
    scores = sorted(one.scored.score for one in found)
    span = f"{scores[0]:.3f}" if len(scores) == 1 else f"{scores[0]:.3f} to {scores[-1]:.3f}"
    gpus = dict.fromkeys(one.gpu.partition("(")[0].strip() for one in found)
    versions = dict.fromkeys(f"CUDA {one.ctk}, CCCL {one.cccl}" for one in found)
    return f"score {span}", [
        f"{plural(len(found), 'workload')} measured on {', '.join(gpus)}",
        "; ".join(versions),
    ]


def _proven(document: Review) -> tuple[str, list[str]]:
    if document.unprovable:
        return "no", [f"not provable: {plural(len(document.unprovable), 'place')} in the headers"]
    rows = []
    if document.effect is None:
        rows.append("effect: not of a plan; what the compiler selects is below")
    else:
        effect = document.effect
        rows.append(
            f"effect: {len(effect.wrong)} wrong"
            if effect.wrong
            else f"effect: {plural(len(effect.changed), 'workload')} as planned, all others as"
            " before"
        )
    if document.sass is None:
        rows.append("machine code: not compared")
    else:
        one = document.sass
        rows.append(
            f"machine code: {one.equal + one.renamed} of {one.kernels} kernels equal on"
            f" {', '.join(one.archs)}"
        )
    lost = sum(entry.unreachable is not None for entry in document.entries)
    rows.append(
        f"reach: {plural(lost, 'entry', 'entries')} never selected"
        if lost
        else "reach: each entry is selected"
    )
    whole = document.effect is not None and document.sass is not None
    return ("no" if document.failures else "yes" if whole else "in part"), rows


def _worse(document: Review) -> tuple[str, list[str]]:
    found = _measured(document)
    points = [(ratio.ratio, one, ratio) for one in found for ratio in one.runtime]
    slower = [point for point in points if point[0] < 1 - NOISE]
    rows = []
    if points:
        ratio, one, point = min(points, key=lambda item: item[0])
        rows.append(f"worst: {ratio:.3f} for {' '.join(axes(point.point))} of {one.name}")
    known = {one.point for one in found}
    reached = {
        point_of(row.benchmark, row.workload)
        for row in [*document.others, *(r for e in document.entries for r in e.reached)]
    }
    if lost := len(reached - known):
        rows.append(f"{plural(lost, 'workload')} with other values not measured")
    head = (
        f"{len(slower)} of {plural(len(points), 'runtime workload')} slower"
        if points
        else "not known"
    )
    return head, rows or ["nothing was measured"]


def _entry(one: ReviewedEntry, *, asked: bool) -> dict[str, Any]:
    before, after = one.before or {}, one.after or {}
    return {
        "change": one.change,
        "name": one.place.name,
        "where": f"{one.place.header}:{one.place.line}",
        "algorithms": sorted({short(row.benchmark) for row in one.reached}),
        "types": sorted({value for row in one.reached for value in row.workload.values()}),
        "arch": one.arch,
        "values": [
            {"name": name, "before": _spelled(before, name), "after": _spelled(after, name)}
            for name in {**before, **after}
        ],
        "takes": _takes(one),
        "untouched": _untouched(one) if asked else UNASKED,
        "variant": one.variant,
        "scores": [f"{score:.3f}" for score in one.scores or ()],
        "reached": _reached(one.reached),
        "evidence": [_evidence(found) for found in one.evidence],
        "measured": bool(one.evidence),
        "findings": [
            *(f"{f.severity}: {f.message} ({f.rule}, line {f.line})" for f in one.findings),
            *([f"never selected: {one.unreachable.reason}"] if one.unreachable else []),
        ],
    }


def _untouched(one: ReviewedEntry) -> str:
    return COMPUTED if one.kind == "branch" and any(one.inherits) else UNTOUCHED


def _takes(one: ReviewedEntry) -> tuple[str, tuple[str, ...]] | None:
    """What it says besides values: the entry that it inherits from, or what it computes."""
    if not any(one.inherits):
        return None
    if one.kind == "branch":
        return "returns", tuple(dict.fromkeys(text for text in one.inherits if text))
    return "inherits", tuple(dict.fromkeys(text or "nothing" for text in one.inherits))


def _spelled(values: Mapping[str, Value], name: str) -> str:
    return spell(values[name]) if name in values else ""


def _reached(rows: Sequence[Differing]) -> list[dict[str, Any]]:
    """Workloads with the same difference together."""
    lots: dict[tuple[str, ...], list[Differing]] = {}
    for row in rows:
        lots.setdefault((row.arch, *_changes(row)), []).append(row)
    return [
        {
            "arch": arch,
            "changes": "; ".join(found),
            "workloads": [in_words(short(row.benchmark), row.workload) for row in lot],
            "whole": _whole(lot[0]),
        }
        for (arch, *found), lot in lots.items()
    ]


def _whole(row: Differing) -> list[tuple[str, str, str]]:
    """All resolved values, also those that stay."""
    before, after = row.before or {}, row.after or {}
    return [(name, _spelled(before, name), _spelled(after, name)) for name in {**before, **after}]


def _changes(row: Differing) -> list[str]:
    return list(changes(row.before or {}, row.after or {}))


def _differing(row: Differing) -> dict[str, str]:
    return {
        "arch": row.arch,
        "workload": in_words(short(row.benchmark), row.workload)
        + (" (struct families)" if row.legacy else ""),
        "changes": "; ".join(_changes(row)),
    }


def _evidence(one: Evidence) -> dict[str, Any]:
    interval = one.scored.interval
    worst = one.scored.worst
    return {
        "workload": in_words(short(one.benchmark), one.workload),
        "variant": one.scored.variant,
        "score": f"{one.scored.score:.3f}",
        "interval": f"{interval.low:.3f} to {interval.high:.3f}" if interval else "",
        "worst": f"{worst.ratio:.3f} for {' '.join(axes(worst.point))}" if worst else "",
        "runtime": [_runtime(ratio) for ratio in one.runtime],
        "wins": sum(ratio.ratio > 1 + NOISE for ratio in one.runtime),
        "losses": sum(ratio.ratio < 1 - NOISE for ratio in one.runtime),
        "gpu": one.gpu,
        "versions": f"CUDA {one.ctk}, CCCL {one.cccl}",
        "databases": ", ".join(one.databases),
        "rejected": [f"{v.variant} {v.score:.3f}: {v.reason}" for v in one.rejected],
    }


def _runtime(ratio: PointRatio) -> dict[str, Any]:
    """A bar of 50 % is a third faster, or slower."""
    away = ratio.ratio - 1
    kind = "same" if abs(away) <= NOISE else "win" if away > 0 else "loss"
    return {
        "point": " ".join(axes(ratio.point)),
        "ratio": f"{ratio.ratio:.3f}",
        "kind": kind,
        "width": round(min(50, abs(away) * 150), 1),
    }


def _effect(document: Review) -> dict[str, Any] | None:
    one = document.effect
    if one is None:
        return None
    roles = {
        role: sum(changed.role == role for changed in one.changed)
        for role in ("written", "shared", "later")
    }
    told = ", ".join(f"{count} {role}" for role, count in roles.items() if count)
    return {
        "words": f"{one.compared:,} compared, {len(one.changed):,} changed ({told or 'none'}),"
        f" {len(one.wrong):,} wrong; {', '.join(one.archs)}",
        "wrong": [f"{wrong.name}: {wrong.reason}" for wrong in one.wrong],
    }


def _sass(one: VerifySass) -> dict[str, Any]:
    rows = [
        {
            **lot[0].model_dump(exclude={"arch"}),
            "benchmark": short(lot[0].benchmark),
            "archs": ", ".join(row.arch for row in lot),
        }
        for lot in alike(one.rows)
    ]
    return {
        "words": f"{one.toolchain}, compared with {one.base}",
        "rows": rows,
        "different": [f"{kernel.where}: {kernel.summary}" for kernel in one.different],
    }


def _diffs(document: Review) -> list[dict[str, Any]]:
    return [{"path": one.path, "rows": list(_columns(one.diff))} for one in document.diffs]


def _columns(diff: str) -> Iterable[dict[str, Any]]:
    for row in side_by_side(diff):
        yield {
            "kind": row.kind,
            **{
                name: side and (side[0], Markup(coloured(side[1])))  # noqa: S704  it is escaped
                for name, side in (("old", row.old), ("new", row.new))
            },
        }
