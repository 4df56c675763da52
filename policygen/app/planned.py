"""A plan together with the tree that it is for."""

from collections.abc import Mapping
from dataclasses import dataclass

from policygen.app.reading import ReadTree
from policygen.model.plan import Plan
from policygen.planning.files import changed_headers
from policygen.proof.oracle import Compiler


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, the tree that it is for, and the compiler that knows it."""

    plan: Plan
    tree: ReadTree
    data: Mapping[str, bytes]
    compiler: Compiler

    @property
    def changed(self) -> dict[str, bytes]:
        """The headers that the plan changes, as they shall be."""
        return changed_headers(self.plan, self.data)
