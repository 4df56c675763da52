"""A scan on the terminal: a table of families, and the entries of each."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from policygen.model.tuning import Entry, Family, PolicyChain, Scan, conjunction, spell
from policygen.report import console
from policygen.report.console import fill, plural

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


def print_scan(scan: Scan, *, entries: bool, head: bool) -> None:
    """Prints what `policygen scan` shows a person."""
    out = console.results()
    if head:
        out.print(console.tree_line(scan.cub), style="dim")
        out.print()
    if entries:
        for block in _blocks(scan, out.width):
            for line in block:
                out.print(line)
            out.print()
    elif scan.families:
        out.print(_table(scan))
        out.print()
    if head:
        for row in _summary(scan):
            out.print(row)


def _summary(scan: Scan) -> list[str]:
    selectors = [family for family in scan.families if is_selector(family)]
    families = [family for family in scan.families if not is_selector(family)]
    owners = plural(len(families), "family", "families")
    told = [
        f"{_counts(families, 'specialization', owners)}; {plural(len(scan.chains), 'policy chain')}"
    ]
    if selectors:
        functions = {(one.header, one.namespace, one.name) for one in selectors}
        owners = plural(len(functions), "function")
        told.append(_counts(selectors, "guarded return", owners))
    return told


def _counts(families: Sequence[Family], entry: str, owners: str) -> str:
    live = sum(len(family.specializations) for family in families)
    disabled = sum(entry.disabled for family in families for entry in family.entries)
    headers = plural(len({family.header for family in families}), "header")
    return f"{plural(live, entry)} in {owners} of {headers}; {disabled:,} disabled"


def is_selector(family: Family) -> bool:
    """Whether these are the guarded returns of a function."""
    return any(entry.kind == "branch" for entry in family.entries)


def _table(scan: Scan) -> "RenderableType":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from policygen.report.terminal import line

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("family", overflow="fold", min_width=34)
    for name in ("live", "inherit", "labelled", "disabled"):
        table.add_column(name, justify="right", no_wrap=True)
    for header, families in groupby(scan.families, key=lambda family: family.header):
        table.add_row(line(header, "bold"))
        for family in families:
            table.add_row(*_row(family))
    return table


def _row(family: Family) -> tuple[str, ...]:
    live = family.specializations
    numbers = (
        len(live),
        sum(entry.inherits is not None for entry in live),
        sum(entry.variant is not None for entry in live),
        sum(entry.disabled for entry in family.entries),
    )
    name = f"{family.namespace}::{family.name}".removeprefix("cub::detail::")
    name += f" {family.arch}" if is_selector(family) else ""
    return (f"  {name}", *(str(number or "·") for number in numbers))


def _blocks(scan: Scan, width: int) -> "Iterator[Iterator[Text]]":
    """The families of each header, then how its policies read them."""
    for header, families in groupby(scan.families, key=lambda family: family.header):
        named = {}
        for family in families:
            named[family.namespace, family.name] = family
            yield _family_lines(family, width)
        for chain in scan.chains:
            uses = [u for p in chain.policies for u in p.uses]
            if chain.header == header and any((chain.namespace, u.family) in named for u in uses):
                yield _chain_lines(chain, width)


def _chain_lines(chain: PolicyChain, width: int) -> "Iterator[Text]":
    from policygen.report.terminal import line

    yield line(f"{chain.header}: {chain.namespace}::{chain.hub}", "bold")
    for policy in chain.policies:
        before = f", else {policy.predecessor}" if policy.predecessor else ""
        bases = f", is a {', '.join(policy.bases)}" if policy.bases else ""
        for row in fill(
            _words([f"{policy.line}: {policy.name} for {policy.arch} and later{before}{bases}"]),
            width,
            "  ",
            "      ",
            " ",
        ):
            yield line(row, "cyan")
        for use in policy.uses:
            receiver = f" through {use.selection}" if use.selection else ""
            fallback = f"; without one of them: {use.fallback}" if use.fallback else ""
            reads = f"reads {use.family}{receiver}: {' '.join(use.reads)}{fallback}"
            for row in fill(_words([reads]), width, "    ", "      ", " "):
                yield line(row)


def _family_lines(family: Family, width: int) -> "Iterator[Text]":
    from policygen.report.terminal import line

    parameters = [f"{p.label}," for p in family.parameters]
    if parameters:
        parameters[-1] = parameters[-1].removesuffix(",")
    if is_selector(family):
        yield line(f"{family.header}: {family.namespace}::{family.name} for {family.arch}", "bold")
        for entry in family.entries:
            yield from _entry_lines(entry, width)
        return
    title = [f"{family.header}: {family.namespace}::{family.name}<", *parameters]
    for row in fill(title, width, "", "    ", " "):
        yield line(row.replace("< ", "<") + (">" if row.endswith(title[-1]) else ""), "bold")
    for entry in family.entries:
        if entry.kind != "primary" or entry.values or entry.inherits:
            yield from _entry_lines(entry, width)


def _entry_lines(entry: Entry, width: int) -> "Iterator[Text]":
    from policygen.report.terminal import line

    title = _words([f"{entry.line}: {_title(entry)}"])
    title += ["DISABLED"] if entry.disabled else []
    title += [f"#if {entry.guard}"] if entry.guard else []
    for row in fill(title, width, "  ", "      ", " "):
        yield line(row, "yellow" if entry.disabled else "cyan")
    if entry.inherits:
        for row in fill(_words([f": {entry.inherits}"]), width, "    ", "      ", " "):
            yield line(row)
    values = [f"{name}={spell(value)}" for name, value in entry.values.items()]
    for row in fill(values, width, "    ", "    ", "  "):
        yield line(row)
    for label in entry.labels:
        scores = ["  ".join(f"{score:.6f}" for score in label.scores)] if label.scores else []
        rejected = ["(rejected)"] if label.rejected else []
        for row in fill([label.variant, *scores, *rejected], width, "    ", "      ", "  "):
            yield line(row, "green")
    for remark in entry.remarks:
        for row in fill(_words([f"// {remark}"]), width, "    ", "    // ", " "):
            yield line(row, "dim")


def _words(texts: list[str]) -> list[str]:
    return [word for text in texts for word in text.split(" ")]


def _title(entry: Entry) -> str:
    if entry.kind == "branch":
        return conjunction(entry.args)
    return "primary template" if entry.kind == "primary" else f"<{', '.join(entry.args)}>"
