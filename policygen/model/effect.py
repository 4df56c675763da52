"""What a change of the headers does to what CUB selects."""

from typing import Literal

from policygen.model.arch import Arch
from policygen.model.base import Document
from policygen.model.cub import Cub
from policygen.model.tuning import Value
from policygen.model.workload import OnArch

Role = Literal["written", "shared", "later"]
"""Why a workload may change.

`written`: it is one that was tuned. `shared`: the same entry decides it. `later`: it inherits, and
was allowed to.
"""


class Changed(OnArch):
    """A workload that resolves to something else, as it shall."""

    role: Role
    before: dict[str, Value]
    after: dict[str, Value]
    legacy: bool = False
    """Whether it is what a struct family beside a policy selector gives."""


class Wrong(OnArch):
    """A workload that does not resolve to what it shall."""

    reason: str
    before: dict[str, Value] | None = None
    after: dict[str, Value] | None = None
    legacy: bool = False
    """Whether it is what a struct family beside a policy selector gives."""

    @property
    def name(self) -> str:
        """In words: `cub.bench.reduce.sum T=I8 OffsetT=I32 on sm90`."""
        by = " by struct families" if self.legacy else ""
        return f"{super().name} on {self.arch}{by}"


class Effect(Document):
    """What `policygen verify-effect --json` prints."""

    format: Literal["policygen/effect/1"] = "policygen/effect/1"
    cub: Cub
    content: str = ""
    """A digest of the tree's headers: the same in all documents of one tree."""
    toolchain: str
    headers: tuple[str, ...]
    archs: tuple[Arch, ...]
    between: tuple[Arch, ...] = ()
    """Those of which no GPU is known: each stands for all up to the next that is known."""
    compared: int
    """Workloads times architectures."""
    changed: tuple[Changed, ...]
    wrong: tuple[Wrong, ...] = ()

    @property
    def covered(self) -> str:
        """The architectures in words: one by one, where nothing lies between them."""
        if not self.between:
            return ", ".join(self.archs)
        first, *_, last = (arch for arch in self.archs if arch not in self.between)
        return f"{first} to {last}, and all between and after them"
