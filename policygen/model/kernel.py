"""What became of the policy header of a kernel of one's own."""

from policygen.model.arch import Arch
from policygen.model.base import Record
from policygen.model.effect import Effect
from policygen.model.plan import Action


class KernelHeader(Record):
    """A policy header, what was decided for it, and what the compiler says of that."""

    path: str
    arch: Arch
    is_new: bool
    """Whether there was none."""
    actions: tuple[Action, ...]
    """By class of sizes."""
    effect: Effect | None
    """None where nothing changes."""
    diff: str
    text: str
    """The whole header."""

    @property
    def changed(self) -> bool:
        """Whether something is written."""
        return bool(self.diff) and any(one.written for one in self.actions)

    @property
    def has_already(self) -> bool:
        """Whether what is faster stands in it: nothing is written then."""
        kept = any(one.decision == "keep" and one.variant for one in self.actions)
        return not self.is_new and not self.changed and kept
