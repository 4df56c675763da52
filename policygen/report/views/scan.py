"""A scan: a table of families, or the entries of each."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from policygen.model.cub import NAMESPACES, OF_TYPES
from policygen.model.tuning import Entry, Family, PolicyChain, Scan, conjunction, spell
from policygen.report.blocks import BLANK, Block, Column, Inline, Note, Styled, Table, Words
from policygen.report.console import plural, printed, tree_line

OF_CONFIGS = tuple(NAMESPACES[dialect] for dialect in sorted(OF_TYPES))
"""Where configs stand."""


def scanned(scan: Scan, *, entries: bool, head: bool) -> Iterator[Block]:
    """Show what `policygen scan` found."""
    if head:
        yield Note(tree_line(scan.cub), "dim", folded=True)
        yield BLANK
    if entries:
        yield from _entries(scan)
    elif scan.families:
        yield _table(scan)
        yield BLANK
    if head:
        yield from _summary(scan)


def _summary(scan: Scan) -> Iterator[Block]:
    if not scan.cub.has_returns:
        owners = plural(
            len({(one.header, one.name) for one in scan.families}), "family", "families"
        )
        yield Note(_counts(scan.families, "config", owners), folded=True)
        return
    selectors = [family for family in scan.families if _is_selector(family)]
    families = [family for family in scan.families if not _is_selector(family)]
    told = _counts(families, "specialization", plural(len(families), "family", "families"))
    yield Note(f"{told}; {plural(len(scan.chains), 'policy chain')}", folded=True)
    if selectors:
        functions = {(one.header, one.namespace, one.name) for one in selectors}
        told = _counts(selectors, "guarded return", plural(len(functions), "function"))
        yield Note(told, folded=True)


def _counts(families: Sequence[Family], entry: str, owners: str) -> str:
    live = sum(len(_live(family)) for family in families)
    disabled = sum(entry.disabled for family in families for entry in family.entries)
    headers = plural(len({family.header for family in families}), "header")
    return f"{plural(live, entry)} in {owners} of {headers}; {disabled:,} disabled"


def _live(family: Family) -> Sequence[Entry]:
    """List what decides: of configs also what they are without a condition."""
    if not _is_config(family):
        return family.specializations
    return [entry for entry in family.entries if not entry.disabled]


def _is_config(family: Family) -> bool:
    """Say whether it is a config for an architecture, whose conditions are types."""
    return family.namespace.startswith(OF_CONFIGS)


def _is_selector(family: Family) -> bool:
    """Say whether these are the guarded returns of a function."""
    return any(entry.kind == "branch" for entry in family.entries)


def _table(scan: Scan) -> Table:
    rows: list[list[Inline | Styled]] = []
    for header, families in groupby(scan.families, key=lambda family: family.header):
        rows.append([Styled(header, "bold")])
        for family in families:
            live = _live(family)
            name = f"{family.namespace}::{family.name}".removeprefix("cub::detail::")
            name = name.removeprefix("rocprim::detail::")
            by_arch = _is_selector(family) or _is_config(family)
            name += f" {family.arch}" if by_arch else ""
            numbers = (
                len(live),
                sum(_inherits(entry, family) for entry in live),
                sum(entry.variant is not None for entry in live),
                sum(entry.disabled for entry in family.entries),
            )
            rows.append([f"  {name}", *(str(number or "·") for number in numbers)])
    titles = ("live", "inherit", "labelled", "disabled")
    first = Column("family", least=34)
    return Table((first, *(Column(title, "whole") for title in titles)), rows)


def _inherits(entry: Entry, family: Family) -> bool:
    """Say whether its values are another one's; a config inherits its own from a template."""
    return entry.inherits is not None and not (_is_config(family) and entry.values)


def _entries(scan: Scan) -> Iterator[Block]:
    """Show the families of each header, then how its policies read them."""
    for header, families in groupby(scan.families, key=lambda family: family.header):
        named = set()
        for family in families:
            named.add((family.namespace, family.name))
            yield from _family(family)
            yield BLANK
        for chain in scan.chains:
            uses = [use for policy in chain.policies for use in policy.uses]
            if chain.header == header and any((chain.namespace, u.family) in named for u in uses):
                yield from _chain(chain)
                yield BLANK


def _chain(chain: PolicyChain) -> Iterator[Block]:
    yield Words([f"{chain.header}: {chain.namespace}::{chain.hub}"], "bold")
    for policy in chain.policies:
        before = f", else {policy.predecessor}" if policy.predecessor else ""
        bases = f", is a {', '.join(policy.bases)}" if policy.bases else ""
        text = f"{policy.line}: {policy.name} for {policy.arch} and later{before}{bases}"
        yield Words(text, "cyan", "  ", "      ")
        for use in policy.uses:
            receiver = f" through {use.selection}" if use.selection else ""
            fallback = f"; without one of them: {use.fallback}" if use.fallback else ""
            reads = f"reads {use.family}{receiver}: {' '.join(use.reads)}{fallback}"
            yield Words(reads, "", "    ", "      ")


def _family(family: Family) -> Iterator[Block]:
    title = f"{family.header}: {family.namespace}::{family.name}"
    selector = _is_selector(family) or _is_config(family)
    if selector:
        yield Words([f"{title} for {family.arch}"], "bold")
    else:
        labels = "".join(f"{parameter.label}, " for parameter in family.parameters)
        words = f"{labels.removesuffix(', ')}>"
        yield Words(words, "bold", f"{title}<", "    ")
    for entry in family.entries:
        if selector or entry.kind != "primary" or entry.values or entry.inherits:
            yield from _entry(entry)


def _entry(entry: Entry) -> Iterator[Block]:
    title = f"{entry.line}: {_title(entry)}".split(" ")
    title += ["DISABLED"] if entry.disabled else []
    title += [f"#if {entry.guard}"] if entry.guard else []
    yield Words(title, "yellow" if entry.disabled else "cyan", "  ", "      ")
    if entry.inherits:
        yield Words(f": {entry.inherits}", "", "    ", "      ")
    values = [f"{name}={spell(value)}" for name, value in entry.values.items()]
    yield Words(values, "", "    ", "    ", joint="  ")
    for label in entry.labels:
        scores = ["  ".join(f"{score:.6f}" for score in label.scores)] if label.scores else []
        rejected = ["(rejected)"] if label.rejected else []
        words = [label.variant, *scores, *rejected]
        yield Words(words, "green", "    ", "      ", joint="  ")
    for remark in entry.remarks:
        yield Words(f"// {remark}", "dim", "    ", "    // ")


def _title(entry: Entry) -> str:
    if entry.kind == "branch":
        return conjunction(entry.args)
    return "primary template" if entry.kind == "primary" else f"<{', '.join(entry.args)}>"


print_scan = printed(scanned)
