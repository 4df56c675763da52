"""Views of `policygen db`: imports, merges, exports, plots, and the comparison of two databases."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from policygen.errors import plural
from policygen.model.databases import (
    Agreement,
    ComparedWorkload,
    DbCompare,
    DbImport,
    ImportedLeftOut,
    ImportedParameter,
    ImportedWorkload,
    LoneWorkload,
    Winner,
)
from policygen.model.records import grouped
from policygen.model.results import DbExport, DbPlot, MergeReport
from policygen.model.workload import BASE, axes, axis_name, plain, runtime_name
from policygen.report.blocks import (
    BLANK,
    Block,
    Chapter,
    Fold,
    Heading,
    Note,
    Page,
    Styled,
    Table,
    TableRows,
    Words,
    cut,
    more,
)
from policygen.report.console import percent_words
from policygen.report.plots import pairs_drawings, pairs_key
from policygen.report.ranking_views import (
    CALLED,
    DOT,
    heading,
    key_parts,
    note,
    prose,
    versions_of,
    workload_name,
)

SHOWN = 8
"""Items of each kind listed without -v."""
FROM = {"default": "default_config", "tree": "what the tree has", "option": "what --base gives"}


def imported(document: DbImport, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show the name of the kernel, its base, the meaning of labels, and failures."""
    if document.library:
        yield from _suite(document, verbose=verbose, head=head)
        return
    known_versions = versions_of(document.ctk or "", document.cccl or "")
    name = workload_name(document.algorithm, document.workload)
    yield heading(name, [document.gpu, document.arch, *known_versions])
    base_values = ", ".join(axes(document.base_values))
    is_numbered = any(parameter.numbered for parameter in document.parameters)
    base = [document.base, f"({base_values})"] if is_numbered else [document.base]
    yield Words(["base is", *base], "", "  ", "    ", even=True)
    if not head:
        return
    yield Note(f"  {', '.join(_counts(document))}")
    for size in document.sizes if verbose else ():
        yield Note(f"  Elements={size}")
    yield from _files(document, verbose=verbose)
    if document.warmup and document.without_samples < document.rows:
        few = "launch is" if document.warmup == 1 else f"{document.warmup} launches are"
        yield prose(f"the first {few} treated as warm-up and ignored; --warmup 0 counts all", "  ")
    yield from _without_samples(document)
    for parameter in document.parameters:
        if parameter.numbered:
            yield _numbered(parameter, "  ", verbose=verbose)
    yield from _ending(document, "", verbose=verbose)


def _files(document: DbImport, *, verbose: bool) -> Iterator[Block]:
    for file in document.files:
        if verbose:
            yield Note(f"  {file.path}: {plural(file.configurations, 'configuration')}")
        for text in file.notes:
            yield prose(f"{file.path}: {text}", "  ", "yellow")


def _counts(document: DbImport) -> list[str]:
    """Count rows, variants, and sizes, and what was joined or is a copy."""
    parts = [plural(document.rows, "row"), plural(document.variants, "variant")]
    parts += [plural(len(document.sizes), "size")]
    if document.joined:
        parts.append(f"{plural(document.joined, 'measurement')} combined with earlier ones")
    if document.copies:
        parts.append(f"{plural(document.copies, 'copy', 'copies')} of measurements ignored")
    return parts


def _without_samples(document: DbImport) -> Iterator[Block]:
    if document.without_samples:
        text = (
            f"{plural(document.without_samples, 'row')} without samples: their uncertainty is"
            " unknown, so `db choose` uses them only with --without-samples"
        )
        yield prose(text, "  ", "yellow")


def _numbered(parameter: ImportedParameter, indent: str, *, verbose: bool) -> Block:
    shown, hidden = cut(list(parameter.values.items()), SHOWN, verbose=verbose)
    words = [f"{number} is {text}" for number, text in shown]
    words += [f"… {hidden:,} more (-v lists them)"] if hidden else []
    return Words(words, "", f"{indent}{parameter.name}: ", f"{indent}  ", ", ", even=True)


def _ending(document: DbImport, style: str, *, verbose: bool) -> Iterator[Block]:
    """List why configurations failed, count the other reasons, and name the database."""
    shown, hidden = cut(document.failures, SHOWN, verbose=verbose)
    for failure in shown:
        place = f" ({failure.places[0]})" if failure.places else ""
        example = f", such as {failure.variants[0]}{place}"
        yield prose(f"{failure.count:,} {failure.kind}: {failure.reason}{example}", "  ", style)
    if hidden := hidden + document.other_failures:
        yield Note(f"  and {plural(hidden, 'more reason')}")
    yield Note(f"written to {document.out}")


# Imports of a library's benchmarks, by algorithm


def _suite(document: DbImport, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show the workloads of each algorithm, its base, and what was left out and why."""
    library = CALLED.get(document.library, document.library)
    location = dict.fromkeys([document.gpu, document.arch])
    known_versions = versions_of(document.ctk or "", document.cccl or "")
    yield heading([library], [*location, *known_versions])
    algorithms = grouped(document.workloads, lambda workload: workload.algorithm)
    workloads = plural(len(document.workloads), "workload")
    summary = f"{workloads} of {plural(len(algorithms), 'algorithm')}"
    yield prose(", ".join([summary, *_counts(document)]), "  ")
    if not head:
        return
    yield from _files(document, verbose=verbose)
    names, hidden = cut(list(algorithms), SHOWN, verbose=verbose)
    for name in names:
        yield from _algorithm(document, algorithms[name], verbose=verbose)
    if hidden:
        yield Note(f"  and {plural(hidden, 'more algorithm')}, see them with -v")
    yield from _without_samples(document)
    yield from _left_out(document.left_out, verbose=verbose)
    yield from _ending(document, "yellow", verbose=verbose)


def _algorithm(
    document: DbImport, workloads: Sequence[ImportedWorkload], *, verbose: bool
) -> Iterator[Block]:
    """Show the workloads of an algorithm, or their count, and the meaning of numbers."""
    name = workloads[0].algorithm
    variants = plural(sum(workload.variants for workload in workloads), "variant")
    base = " or ".join(dict.fromkeys(FROM[workload.base_from] for workload in workloads))
    yield prose(f"{name}: {plural(len(workloads), 'workload')}, {variants}, base is {base}", "  ")
    for workload in workloads if verbose else ():
        parts = ", ".join(workload_name("", workload.workload))
        label = "" if workload.base == BASE else f", base is {workload.base}"
        yield prose(f"{parts} {plural(workload.variants, 'variant')}{label}", "    ")
    for parameter in document.parameters:
        if parameter.algorithm == name and parameter.numbered:
            yield _numbered(parameter, "    ", verbose=verbose)


def _left_out(left_out: Sequence[ImportedLeftOut], *, verbose: bool) -> Iterator[Block]:
    shown, _ = cut(left_out, SHOWN, verbose=verbose)
    for entry in shown:
        workload = ", ".join(workload_name(entry.algorithm, entry.workload))
        size = f" Elements={entry.size}" if entry.size else ""
        noun = "size" if entry.size else "workload"
        suffix = f" and {plural(entry.count - 1, f'more {noun}')}" if entry.count > 1 else ""
        yield prose(f"left out: {workload}{size}{suffix}: {entry.reason}", "  ", "yellow")
    if hidden := sum(entry.count for entry in left_out[len(shown) :]):
        yield Note(f"  and {hidden:,} more left out (-v says why)")


MERGE_SHOWN = 10
"""Conflicts listed without -v."""


# `policygen db merge`, `export`, and `plot`


def merged(report: MergeReport, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show one line per table, then the conflicts."""
    for table in report.tables if head else ():
        counts = {
            "duplicate": table.duplicates,
            "in conflict": table.conflicts,
            "unusable": table.unusable,
        }
        details = ", ".join(f"{number:,} {label}" for label, number in counts.items() if number)
        yield Note(f"{table.table}: {plural(table.rows, 'row')}{details and f' ({details})'}")
    shown, hidden = cut(report.conflicts, MERGE_SHOWN, verbose=verbose)
    for conflict in shown:
        yield Note(f"conflict in {conflict.table}: {conflict.what}")
        yield Note(f"  kept {conflict.kept}, refused {conflict.refused} of {conflict.path}")
    yield from more(hidden + report.unlisted, "conflict")
    if head:
        yield Note(f"{plural(len(report.databases), 'database')} merged into {report.out}")


def exported(document: DbExport, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show the number of rows written, and the source databases."""
    if head:
        yield Note(f"{document.rows:,} rows written to {document.out}")
    yield from (Note(f"  {name}") for name in (document.databases if verbose else ()))


def plotted(document: DbPlot, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show where the plot is, and what it shows."""
    if verbose:
        location = key_parts(document.measured_on, " + ".join(document.databases))
        yield heading(workload_name(document.algorithm, document.workload), location)
        subject = f"{', '.join(document.variants)} on "
        subject += plural(document.panels, "runtime workload")
        if document.parameters is not None:
            subject = f"{plural(document.panels, 'score')} over {' and '.join(document.parameters)}"
        yield Words(subject, "", "  ")
    if head:
        yield Note(f"written to {document.out}")


WIDE = 100
"""Minimum terminal width, in characters, at which all columns fit."""
PAGE_WIDTH = 10_000
"""Effectively unlimited, because a page scrolls wide tables."""
NEEDED = 58
"""Characters that a winner takes in addition to the label of its variant."""
STYLES = {"holds": "green", "same variant": "green", "contradicts": "red"}
ON_PAGE = {"holds": "holds", "same variant": "holds", "contradicts": "contradicts"}
KEYS = {"gpu": "GPUs", "ctk": "versions of the toolkit", "cccl": "versions of CCCL"}
AGREED: Mapping[Agreement | None, str] = {
    "same variant": "both use the same variant",
    "both keep base": "both keep base",
    "holds": "they choose different variants, each confirmed by the other side",
    "not confirmed": "a choice is not confirmed",
    "contradicts": "a choice is contradicted",
    "not measured": "the variant that one side chose was not measured on the other",
    None: "no choice, because not all runtime workloads were measured",
}
MORE = 1.5
"""Measured noise above this multiple of the expected noise is more than chance."""
ASSESSMENT_VERBS = {"contradicts": "contradicts", "not confirmed": "does not confirm"}
MEANING = (
    "order: Spearman's rank correlation of the scores; best: how many of A's best variants are"
    " among B's best; shift and spread: mean and standard deviation of B's score minus A's; by"
    " noise: the spread that noise alone would cause, as assumed by choices; there: how it did on"
    " the other side; costs: how far it is behind the best variant there"
)


# Two databases compared: as tables on the terminal, and as a page with plots


def compared(document: DbCompare, width: int, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show both sides, a table for each benchmark, and notes that apply to all."""
    for name, side in (("A", document.a), ("B", document.b)):
        yield Words(side.databases, "bold", f"{name}  ", "   ", " + ", even=True)
        for key in side.keys:
            yield Words(key_parts(key, None), "dim", "   ", "     ", DOT, even=True)
    for title, workloads in _groups(document.workloads).items():
        yield BLANK
        yield Words([title], "cyan", "", "    ", ", ", even=True)
        yield _overview(workloads, STYLES)
        yield BLANK
        yield from _winners(workloads, STYLES, width)
        for text in _reasons(workloads) if head else ():
            yield prose(text, "  ")
        for workload in workloads if verbose else ():
            yield BLANK
            yield Note(f"{_name(workload)}: runtime workloads", "bold")
            yield _points(workload)
    if head:
        yield BLANK
        yield note(MEANING)
        yield from map(note, _remarks(document, verbose=verbose))
        yield from map(prose, _summary(document.workloads))


def page(document: DbCompare, *, is_page: bool) -> Page:
    """Build a page with plots, or Markdown without."""
    facts = {
        name: "; ".join(
            [" + ".join(side.databases), *(", ".join(key_parts(key, None)) for key in side.keys)]
        )
        for name, side in (("A", document.a), ("B", document.b))
    }
    return Page("Two databases compared", facts, list(_page(document, page=is_page)))


def _page(document: DbCompare, *, page: bool) -> Iterator[Block]:
    yield from map(Note, _summary(document.workloads))
    yield from map(Note, _remarks(document, verbose=True))
    if page:
        yield Chapter([pairs_key(document.workloads)], "figures", {})
        yield Chapter(pairs_drawings(document.workloads), "figures small", {})
    for title, workloads in _groups(document.workloads).items():
        yield Heading(title)
        yield _overview(workloads, ON_PAGE)
        yield from _winners(workloads, ON_PAGE, PAGE_WIDTH)
        yield from map(Note, _reasons(workloads))
        for workload in workloads:
            name = f"{_name(workload)}: runtime workloads"
            table = _points(workload)
            if page:
                yield Fold(name, [table])
            else:
                yield from (Heading(name, 3), table)
    yield Note(MEANING, "soft")


def _groups(workloads: Sequence[ComparedWorkload]) -> dict[str, list[ComparedWorkload]]:
    """Group workloads by benchmark and by what they were measured on, on either side."""
    groups: dict[str, list[ComparedWorkload]] = {}
    run_keys = {
        tuple(getattr(side, key) for side in (workload.a, workload.b) for key in KEYS)
        for workload in workloads
    }
    for workload in workloads:
        a, b = (" ".join(key_parts(side, None)) for side in (workload.a, workload.b))
        location = f": A on {a}, B on {b}" if len(run_keys) > 1 else ""
        groups.setdefault(f"{workload.algorithm}{location}", []).append(workload)
    return groups


def _name(workload: ComparedWorkload) -> str:
    return ", ".join(workload.workload.values()) or workload.algorithm


def _axes(workloads: Sequence[ComparedWorkload]) -> str:
    return ", ".join(map(axis_name, workloads[0].workload)) or "workload"


def _overview(workloads: Sequence[ComparedWorkload], styles: Mapping[str, str]) -> Table:
    """Show whether both sides agree, and how far apart they are."""
    return TableRows(workloads).table(
        (_axes(workloads), "", _name),
        ("variants", "whole", lambda workload: f"{len(workload.scores):,}"),
        ("order", "whole", lambda w: "-" if (rho := w.order.spearman) is None else f"{rho:.2f}"),
        ("best", "whole", lambda workload: f"{workload.order.in_both}/{workload.order.best}"),
        ("shift", "whole", lambda workload: f"{workload.difference.shift * 100:+.2f} %"),
        ("spread", "whole", lambda workload: _or_dash(workload.difference.spread)),
        ("by noise", "whole", lambda workload: percent_words(workload.difference.expected)),
        ("choices", "", lambda workload: _assessed(workload.agreement or "-", styles)),
        style="plain",
        label="Differences between the two sides",
    )


def _assessed(assessment: str, styles: Mapping[str, str]) -> Styled:
    return Styled(assessment, styles.get(assessment, ""))


def _winners(
    workloads: Sequence[ComparedWorkload], styles: Mapping[str, str], width: int
) -> Iterator[Block]:
    """Show what each side chooses or ranks best, and how that performs on the other side.

    A label too long for a table is wrapped at its dots.
    """
    winners = [
        (_name(workload), name, side.winner)
        for workload in workloads
        for name, side in (("A", workload.a), ("B", workload.b))
        if side.winner is not None
    ]
    if max((len(winner.variant) for *_, winner in winners), default=0) <= width - NEEDED:
        yield TableRows(winners).table(
            (_axes(workloads), "", lambda row: row[0]),
            ("winner", "", lambda row: _wins(*row[1:])),
            ("variant", "name", lambda row: row[2].variant),
            ("in A", "whole", lambda row: _score_in("A", *row[1:])),
            ("in B", "whole", lambda row: _score_in("B", *row[1:])),
            ("costs", "whole", lambda row: _or_dash(row[2].costs)) if width >= WIDE else None,
            ("there", "", lambda row: _assessed(_assessment(row[2]), styles)),
            style="plain",
            label="Winners, and how they rank on the other side",
        )
        return
    for workload, name, winner in winners:
        head = f"{workload}  {_wins(name, winner)}  "
        yield Words(winner.variant.split("."), "", head, "    ", ".", even=True)
        a, b = (_score_in(side, name, winner) for side in "AB")
        assessment = _assessment(winner)
        parts = [f"A {a}", f"B {b}", f"costs {_or_dash(winner.costs)}", assessment]
        yield Words(parts, styles.get(assessment, ""), "    ", "    ", DOT, even=True)


def _wins(name: str, winner: Winner) -> str:
    return f"{name} uses" if winner.chosen else f"{name}'s best"


def _score_in(side: str, name: str, winner: Winner) -> str:
    """Format score and rank of the winner of a side, at home or on the other side."""
    if winner.other_score is None:
        return f"{winner.score:.4f}" if side == name else "-"
    if side == name:
        return f"{winner.score:.4f} #{winner.rank:,}"
    return f"{winner.other_score:.4f} #{winner.other_rank:,}"


def _assessment(winner: Winner) -> str:
    unknown = "not measured" if winner.other_score is None else "-"
    return winner.says or winner.verdict or unknown


def _reasons(workloads: Sequence[ComparedWorkload]) -> Iterator[str]:
    for workload in workloads:
        for name, other, side in (("A", "B", workload.a), ("B", "A", workload.b)):
            winner = side.winner
            if winner is not None and winner.says in ASSESSMENT_VERBS:
                claim = f"{other} {ASSESSMENT_VERBS[winner.says]} {name}'s {winner.variant}"
                yield f"{_name(workload)}: {claim}: {winner.reason}"


def _points(workload: ComparedWorkload) -> Table:
    """Show each runtime workload: base's times, and how far apart the ratios are."""
    return TableRows(workload.points).table(
        ("runtime workload", "", lambda row: runtime_name(row.subbench, plain(row.point))),
        ("weight", "whole", lambda row: f"{row.weight:.3f}"),
        ("base A", "whole", lambda row: _time(row.base_a)),
        ("base B", "whole", lambda row: _time(row.base_b)),
        ("shift", "whole", lambda row: f"{row.shift * 100:+.2f} %"),
        ("spread", "whole", lambda row: _or_dash(row.spread)),
        ("by noise", "whole", lambda row: percent_words(row.expected)),
        style="plain",
        label="Runtime workloads",
    )


def _remarks(document: DbCompare, *, verbose: bool) -> Iterator[str]:
    workloads = document.workloads
    different = [
        label
        for key, label in KEYS.items()
        if any(key in workload.differs for workload in workloads)
    ]
    if different:
        label = " and ".join(filter(None, [", ".join(different[:-1]), different[-1]]))
        yield f"A and B used different {label}: noise alone does not explain how far they differ"
    if copies := sum(workload.copy_of_rows for workload in workloads):
        yield (
            f"{plural(copies, 'workload')} of B {'is a copy' if copies == 1 else 'are copies'} of"
            " A's, bit for bit: a copy says nothing about noise and confirms nothing"
        )
    if any(workload.a.approximate or workload.b.approximate for workload in workloads):
        yield (
            "scores are approximate: the declared values of the {io} axes are unknown (--bench"
            " provides them)"
        )
    for name, other, sides, lone in (
        ("A", "B", [workload.a for workload in workloads], document.only_a),
        ("B", "A", [workload.b for workload in workloads], document.only_b),
    ):
        if count := sum(side.only for side in sides):
            yield f"{plural(count, 'variant')} only in {name}"
        if count := sum(side.runtime_only for side in sides):
            yield (
                f"{plural(count, 'runtime workload')} only in {name}: ignored here, although"
                f" choices of {name} use them"
            )
        if lone:
            yield f"not in {other}: {_listed(lone, verbose=verbose)}"


def _listed(lone_workloads: Sequence[LoneWorkload], *, verbose: bool) -> str:
    shown, hidden = cut(lone_workloads, SHOWN, verbose=verbose)
    names = [", ".join(workload_name(row.algorithm, row.workload)) for row in shown]
    return "; ".join([*names, *([f"and {hidden:,} more (-v lists them)"] if hidden else [])])


def _summary(workloads: Sequence[ComparedWorkload]) -> Iterator[str]:
    counts = Counter(workload.agreement for workload in workloads)
    agreements = [f"{text} for {counts[key]:,}" for key, text in AGREED.items() if counts[key]]
    yield f"{plural(len(workloads), 'workload')} in both: {', '.join(agreements)}"
    differences = [workload.difference for workload in workloads]
    noise = sorted(row.noise for row in differences if row.noise is not None)
    if noise:
        expected = median(row.expected for row in differences)
        middle, low, high = map(percent_words, (median(noise), noise[0], noise[-1]))
        yield (
            f"noise of a score in one run, estimated from both sides: {middle} ({low} to {high});"
            f" choices assume {percent_words(expected)}"
        )
        if median(noise) > MORE * expected:
            yield (
                "choices assume less noise: set noise under [choose] in a policygen.toml, or find"
                " out what else differs between A and B"
            )


def _or_dash(value: float | None) -> str:
    return "-" if value is None else percent_words(value)


def _time(seconds: float) -> str:
    """Write `6.88 µs`, `1.23 ms`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("\N{MICRO SIGN}s", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"
