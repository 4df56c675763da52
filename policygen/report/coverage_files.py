"""Coverage as CSV, Markdown, and a page with a heat map."""

import csv
import io
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from policygen.model.coverage import STATUSES, Cell, Coverage, Fillable, Share
from policygen.model.workload import axes, point_of
from policygen.rendering import fill
from policygen.report.console import short, tree_line
from policygen.report.coverage import WORDS, share_in_words, undecided

ROWS = 100
"""Of a list in Markdown."""
SHORT = {"tuned": "tuned", "default": "·", "disabled": "off", "unreachable": "never"}


def render(document: Coverage, form: str) -> str:
    """`csv`, `md` or `html`."""
    if form == "csv":
        return _csv(document)
    values = _values(document)
    if form == "md":
        return fill("report/coverage.md.j2", _cut(values))
    return fill("report/coverage.html.j2", values)


def _csv(document: Coverage) -> str:
    """A line for each workload on each architecture."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["benchmark", "workload", "arch", "status", "since", "header", "line", "reason", "score",
         "variant"]
    )  # fmt: skip
    could = {(point_of(f.benchmark, f.workload), f.arch): f for f in document.fillable or ()}
    for cell in document.cells:
        fillable = could.get((cell.point, cell.arch))
        writer.writerow(
            [
                cell.benchmark,
                " ".join(axes(cell.workload)),
                cell.arch,
                cell.status,
                cell.since,
                cell.entry.header if cell.entry else None,
                cell.entry.line if cell.entry else None,
                cell.reason,
                fillable.score if fillable else None,
                fillable.variant if fillable else None,
            ]
        )
    return out.getvalue()


def _values(document: Coverage) -> dict[str, Any]:
    """What the templates name."""
    return {
        "title": f"Tuning coverage of CUB {document.cub.version}",
        "facts": [("tree", tree_line(document.cub)), ("compiler", document.toolchain)],
        "archs": document.archs,
        "statuses": list(WORDS.items()),
        "totals": [_total(share) for share in document.totals.values()],
        "benchmarks": list(_benchmarks(document)),
        "reasons": undecided(document.cells),
        "fillable": None if document.fillable is None else _fillable(document.fillable),
        "compared": _compared(document),
        "remarks": [
            *document.remarks,
            *(f"{one.benchmark}: {one.reason}" for one in document.unresolved),
        ],
    }


def _fillable(found: Iterable[Fillable]) -> list[dict[str, Any]]:
    return [
        {
            "score": f"{one.score:.3f}",
            "benchmark": short(one.benchmark),
            "workload": " ".join(axes(one.workload)),
            "arch": one.arch,
            "status": one.status,
            "variant": one.variant,
        }
        for one in found
    ]


def _total(share: Share) -> dict[str, Any]:
    parts = [{"status": s, "percent": round(share.percent((s,)), 1)} for s in STATUSES]
    return {
        "arch": share.arch,
        "percent": f"{share.percent(('tuned',)):.0f}",
        "words": share_in_words(share).partition(": ")[2],
        "parts": [part for part in parts if part["percent"]],
        "counts": share.counts,
        "workloads": share.workloads,
    }


def _benchmarks(document: Coverage) -> Iterable[dict[str, Any]]:
    shares = [share for share in document.shares if share.benchmark is not None]
    by_benchmark: dict[str, list[Cell]] = {}
    for cell in document.cells:
        by_benchmark.setdefault(cell.benchmark, []).append(cell)
    for benchmark, lot in groupby(shares, key=lambda share: share.benchmark):
        rows: dict[object, list[Cell]] = {}
        for cell in by_benchmark[str(benchmark)]:
            rows.setdefault(cell.point, []).append(cell)
        yield {
            "name": short(str(benchmark)),
            "shares": [
                {
                    "arch": share.arch,
                    "tuned": share.counts["tuned"],
                    "workloads": share.workloads,
                    "percent": round(share.percent(("tuned",))),
                }
                for share in lot
            ],
            "rows": [
                {
                    "workload": " ".join(axes(cells[0].workload)),
                    "cells": [_shown(cell) for cell in cells],
                }
                for cells in rows.values()
            ],
        }


def _shown(cell: Cell) -> dict[str, Any]:
    where = f"{cell.entry.header}:{cell.entry.line}" if cell.entry else ""
    return {
        "arch": cell.arch,
        "status": cell.status,
        "text": SHORT.get(cell.status) or str(cell.since),
        "why": ": ".join(part for part in (where, cell.reason) if part),
    }


def _compared(document: Coverage) -> dict[str, Any] | None:
    if document.compared is None:
        return None
    return {
        "since": tree_line(document.compared.cub),
        "words": document.compared.in_words,
        "rows": [
            {
                "benchmark": short(one.benchmark),
                "workload": " ".join(axes(one.workload)),
                "arch": one.arch,
                "before": one.before,
                "after": one.after,
            }
            for one in document.compared.ordered
        ],
    }


def _cut(values: dict[str, Any]) -> dict[str, Any]:
    """The same with long lists cut: a comment holds 65,536 characters."""
    lists = {"fillable": values["fillable"] or [], "reasons": values["reasons"]}
    compared = values["compared"]
    cut = {name: max(0, len(rows) - ROWS) for name, rows in lists.items()}
    if compared is not None:
        cut["compared"] = max(0, len(compared["rows"]) - ROWS)
        compared = {**compared, "rows": compared["rows"][:ROWS]}
    fillable = values["fillable"]
    return {
        **values,
        "compared": compared,
        "fillable": None if fillable is None else fillable[:ROWS],
        "reasons": values["reasons"][:ROWS],
        "cut": cut,
    }
