"""The facts of a coverage that stand out."""

from collections import Counter
from collections.abc import Iterator, Sequence

from policygen.model.coverage import Compared, Coverage, Fillable, TurnedKind
from policygen.report.console import noun, short
from policygen.report.facts import Fact, fact
from policygen.report.views.coverage_words import Undecided, shares


def facts(document: Coverage, lots: Sequence[Undecided]) -> list[Iterator[Fact]]:
    """Collect them by kind, the worst kind first."""
    return [
        _turned(document.compared, "lost", "lost their tuning on"),
        _undecided(lots, "unreachable", "an entry that is never taken"),
        _undecided(lots, "disabled", "an entry that is commented out"),
        _fillable(document.fillable or ()),
        _turned(document.compared, "gained", "are tuned now, and were not, on"),
        _archs(document),
        _bare(document),
    ]


def _turned(compared: Compared | None, kind: TurnedKind, words: str) -> Iterator[Fact]:
    turned = compared.turned if compared else ()
    counts = Counter((short(one.benchmark), one.arch) for one in turned if one.kind == kind)
    for (name, arch), count in counts.items():
        yield fact(count, f"{_workloads(count)} of {name} {words} {arch}", f"delta/{name}")


def _undecided(lots: Sequence[Undecided], status: str, words: str) -> Iterator[Fact]:
    for one in lots:
        if one.status == status:
            count = len(one.cells)
            text = f"{'cell has' if count == 1 else 'cells have'} {words}: {one.place}, {one.words}"
            yield fact(count, text, one.anchor)


def _fillable(found: Sequence[Fillable]) -> Iterator[Fact]:
    best: dict[tuple[str, str], float] = {}
    counts = Counter((short(one.benchmark), one.arch) for one in found)
    for one in found:
        key = short(one.benchmark), one.arch
        best[key] = max(one.score, best.get(key, 0))
    for (name, arch), count in counts.items():
        words = f"{_workloads(count)} of {name} can be filled for {arch}"
        score = f"the best score is {best[name, arch]:.3f}"
        yield fact(count, f"{words}; {score}", f"workloads/{name}")


def _archs(document: Coverage) -> Iterator[Fact]:
    for share in document.totals.values():
        if not share.counts["tuned"]:
            inherited = f"{share.counts['inherited']:,} inherit what an earlier architecture has"
            words = f"{_workloads(share.workloads)}, and none is tuned for {share.arch}"
            yield fact(share.workloads, f"{words}: {inherited}", "shares/all benchmarks")


def _bare(document: Coverage) -> Iterator[Fact]:
    """Name benchmarks that nobody tuned, those with the most workloads first."""
    for name, lot in shares(document).items():
        if not any(share.counts["tuned"] for share in lot.values()):
            count = max(share.workloads for share in lot.values())
            words = f"{_workloads(count)} of {name}, and none is tuned on any of the architectures"
            yield fact(count, words, f"shares/{name}")


def _workloads(count: int) -> str:
    return noun(count, "workload")
