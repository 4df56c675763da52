"""What an import brought in, and what it could not."""

from typing import Literal

from policygen.model.arch import Arch
from policygen.model.base import Document, Record
from policygen.model.labels import Variant


class ImportedParameter(Record):
    """A parameter of labels, with all values that were tuned."""

    name: str
    algorithm: str = ""
    """Whose it is."""
    numbered: bool
    """Whether a label has numbers that stand for its values, and not the values themselves."""
    values: dict[int, str]
    """What each number stands for, as JSON writes it."""


class ImportedFile(Record):
    """A file that was read."""

    path: str
    sha256: str
    program: str
    """Which tuner wrote it."""
    kernel: str | None
    device: str | None
    size: str
    configurations: int
    notes: tuple[str, ...] = ()


class ImportedFailure(Record):
    """Configurations without a time, for one reason."""

    kind: str
    reason: str
    count: int
    variants: tuple[Variant, ...]
    """Some of them."""
    places: tuple[str, ...] = ()
    """Where some of them stand: `reduce.json: benchmarks[12]`."""


class ImportedWorkload(Record):
    """An algorithm with values of its axes, as the database has it."""

    algorithm: str
    workload: dict[str, str]
    base: Variant
    """Its label; `base` where what a library has by default ran, and nobody says what that is."""
    base_from: Literal["option", "default", "tree"]
    """`--base`, a run of what the library has by default, or the entry that a tree has."""
    base_values: dict[str, str]
    sizes: tuple[str, ...]
    variants: int
    rows: int
    without_samples: int
    deviation: float | None = None
    """The largest share of a time that samples were apart which files have not kept."""


class ImportedLeftOut(Record):
    """Workloads that are in files and not in the database, for one reason."""

    algorithm: str
    reason: str
    count: int
    workload: dict[str, str]
    """One of them."""
    size: str
    """Of it; empty for all of them."""


class DbImport(Document):
    """What `policygen db import --json` prints."""

    format: Literal["policygen/db-import/1"] = "policygen/db-import/1"
    out: str
    algorithm: str
    workload: dict[str, str]
    gpu: str
    arch: Arch
    ctk: str
    cccl: str
    base: Variant
    """The label of what stands as `base` in the database."""
    base_values: dict[str, str]
    """The same by parameter, as JSON writes values."""
    sizes: tuple[str, ...]
    variants: int
    """Those with a time on any size; base is none."""
    rows: int
    without_samples: int
    """Rows of which nothing but one time is known."""
    joined: int
    """Measurements beyond the first of a row."""
    warmup: int
    """As many first launches of each configuration do not count."""
    copies: int
    """Measurements that are copies of others, and left out."""
    parameters: tuple[ImportedParameter, ...]
    files: tuple[ImportedFile, ...]
    failures: tuple[ImportedFailure, ...]
    other_failures: int
    """How many more reasons there are."""
    library: str = ""
    """`rocprim`, where files are of its benchmarks; `algorithm` and `base` are of the first one."""
    workloads: tuple[ImportedWorkload, ...] = ()
    left_out: tuple[ImportedLeftOut, ...] = ()
