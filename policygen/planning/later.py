"""What a change reaches besides what was measured: this architecture, and later ones."""

from policygen.model.arch import arch_number, is_amd
from policygen.model.changes import changes as told_changes
from policygen.model.plan import Reached
from policygen.model.selection import Delta, DeltaRow, Values


def changed_later(compared: Delta[Values], arch: str) -> list[DeltaRow[Values]]:
    """What changes on later architectures of which there are GPUs."""
    return [c for c in _behind(compared, arch) if c.arch not in compared.between]


def changed_between(compared: Delta[Values], arch: str) -> list[DeltaRow[Values]]:
    """What changes on later ones of which none is known: no policy can keep what they had."""
    return [c for c in _behind(compared, arch) if c.arch in compared.between]


def changed_elsewhere(compared: Delta[Values], arch: str) -> list[DeltaRow[Values]]:
    """What changes on others of AMD's, and not as devices do that share a target with this one."""
    if not is_amd(arch):
        return []
    shared = {id(change) for change in _behind(compared, arch)}
    return [c for c in compared.changes if c.arch != arch and id(c) not in shared]


def _behind(compared: Delta[Values], arch: str) -> list[DeltaRow[Values]]:
    if not is_amd(arch):
        return [c for c in compared.changes if arch_number(c.arch) > arch_number(arch)]
    # None comes after another: a device without a target of its own has what another one has.
    mine = {c.point: (c.before, c.after) for c in compared.changes if c.arch == arch}
    others = (c for c in compared.changes if c.arch != arch)
    return [c for c in others if mine.get(c.point) == (c.before, c.after)]


def in_spite(change: DeltaRow[Values]) -> str:
    """That entries do not keep what they are for."""
    pairs = ", ".join(told_changes(change.before, change.after))
    return (
        f"{change.name} on {change.arch} would change in spite of the entries that are to"
        f" keep what later architectures have: {pairs}"
    )


def as_reached(change: DeltaRow[Values], *, kept: bool = False, between: bool = False) -> Reached:
    """A change that was not measured."""
    return Reached(
        benchmark=change.benchmark,
        workload=dict(change.workload),
        arch=change.arch,
        kept=kept,
        between=between,
    )
