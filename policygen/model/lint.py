"""What `policygen audit lint` finds: values of tuning entries that cannot be what was meant."""

from typing import Literal

from policygen.model.base import Document, Problem, Record
from policygen.model.cub import Cub

RuleName = Literal[
    "duplicate-key",
    "items-not-divisible-by-vector",
    "label-contradicts-values",
    "label-stores-exponent",
    "not-provable",
    "same-as-inherited",
    "score-of-other-gpu",
    "shared-memory-over-limit",
    "threads-not-warp-multiple",
    "threads-over-limit",
]
Severity = Literal["error", "warning", "note"]
"""It cannot work; it is not what was meant; it is not needed."""


class Finding(Record):
    """One place in a header, and what is wrong there."""

    rule: RuleName
    severity: Severity
    header: str
    family: str
    """Empty where a header is meant, or a file that it includes."""
    args: tuple[str, ...]
    line: int
    column: int
    message: str
    path: str
    text: str
    """The source line, for a caret below it."""
    width: int

    @property
    def where(self) -> str:
        """The place, and what is found there."""
        return f"{self.path}:{self.line}: {self.message}"


class LintReport(Document):
    """What `policygen audit lint --json` prints."""

    format: Literal["policygen/audit-lint/1"] = "policygen/audit-lint/1"
    cub: Cub
    off: tuple[RuleName, ...]
    """Rules that were not asked."""
    families: int
    entries: int
    """Live entries that were judged."""
    unbound: tuple[str, ...]
    """Families without a binding: how their members are counted and labelled is not known."""
    findings: tuple[Finding, ...]
    counts: dict[RuleName, int]
    """Findings of each rule that was asked."""
    problems: tuple[Problem, ...] = ()
