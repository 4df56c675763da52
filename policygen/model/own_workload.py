"""A workload of one's own: the file that `policygen tune` takes."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from policygen.model.base import Record
from policygen.model.versions import Versioned

# A name, with template arguments: no statement, no call, no text.
_CPP = re.compile(r"(?:::)?[A-Za-z_]\w*(?:[\w:<>,* ]*[\w>*])?", re.ASCII)
ENTROPIES = ("1.000", "0.811", "0.544", "0.337", "0.201", "0.000")
"""As CCCL's benchmarks draw numbers."""
NAMED = {"generator": "generator", "file": "file", "entropy": "entropy"}
"""How inputs look → the key that says more of it."""


def _beside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError("it is no path of a file below the folder of the workload")
    return path


def _type_name(text: str) -> str:
    if not _CPP.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a type")
    return text


CppType = Annotated[str, Field(max_length=400), AfterValidator(_type_name)]
"""The name of a type: `float`, `I32`, `sim::Particle`, `sim::Vec<float, 3>`."""
Beside = Annotated[str, Field(pattern=r"^[\w./+ -]{1,200}$"), AfterValidator(_beside)]
"""A file, seen from the workload's."""


class WorkloadSize(Record):
    """A size that matters."""

    elements: int = Field(ge=1, le=1 << 40)
    weight: float = Field(default=1, gt=0, le=1e6, allow_inf_nan=False)
    """How much it counts beside the others."""


class WorkloadInput(Record):
    """What the elements look like."""

    how: Literal["random", "entropy", "sorted", "constant", "bytes", "file", "generator"] = "random"
    entropy: Literal["1.000", "0.811", "0.544", "0.337", "0.201", "0.000"] | None = None
    file: Beside | None = None
    """Its bytes are elements, again from the start where they are too few."""
    generator: CppType | None = None
    """A functor of an index and of 64 random bits."""
    least: float | None = Field(default=None, allow_inf_nan=False)
    """The least of random numbers, which are said with `most` or of all sizes."""
    most: float | None = Field(default=None, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_both_ends(self) -> Self:
        if (self.least is None) != (self.most is None):
            raise ValueError("least and most are said together")
        if self.least is not None and self.most is not None:
            if self.how != "random":
                raise ValueError('least and most are said with how = "random", and only then')
            if self.least >= self.most:
                raise ValueError("least must be less than most")
        return self

    @model_validator(mode="after")
    def _says_it_once(self) -> Self:
        wanted = NAMED.get(self.how)
        for key in NAMED.values():
            given = getattr(self, key) is not None
            if given != (key == wanted):
                raise ValueError(f'{key} is said with how = "{key}", and only then')
        return self


class WorkloadResult(Record):
    """When a result is right: when it is what CUB's own policy gives."""

    tolerance: float = Field(default=0, ge=0, le=1, allow_inf_nan=False)
    """How far a number may be from it, as a share of it; none: it has the same bytes."""
    same: CppType | None = None
    """A functor of two elements that says whether they are the same."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.tolerance and self.same:
            raise ValueError("tolerance and same exclude each other")
        return self


class OwnWorkload(Record):
    """An algorithm of CUB's with types, an operator, sizes and inputs of one's own."""

    algorithm: str
    """`DeviceReduce::Reduce`."""
    name: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w{0,60}$")
    """What results call it; the file's name, where it has none."""
    header: Beside | None = None
    """What declares the types and functors."""
    types: dict[str, CppType] = Field(default_factory=dict)
    """Axis → type: `T`, `OffsetT`."""
    operator: CppType | None = None
    size: tuple[WorkloadSize, ...] = Field(min_length=1, max_length=64)
    axes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Further axes that inputs have, `MaxSegSize` for one, with their values."""
    input: WorkloadInput = WorkloadInput()
    result: WorkloadResult = WorkloadResult()

    @model_validator(mode="after")
    def _sizes_differ(self) -> Self:
        counts = [one.elements for one in self.size]
        if len({*counts}) < len(counts):
            raise ValueError("the same number of elements is there twice")
        return self


class OwnCallBinding(Versioned):
    """What a workload of one's own makes of a benchmark: a table `[[workload]]` of bindings."""

    algorithm: str
    """What the workload's file calls it: `DeviceReduce::Reduce`."""
    like: str
    """The benchmark whose policies, search space and buffers it has."""
    about: str
    """For a template of such a file."""
    types: dict[str, str]
    """Axis → what it is, for a template; all of them are types, or constants."""
    defaults: dict[str, str] = Field(default_factory=dict)
    """Axis → the value that it has where a file says nothing; others must be said."""
    operator: str | None = None
    """What a functor is for, for a template; none where there is no place for one."""
    role: str | None = None
    """The role that the functor fills."""
    plain: str | None = None
    """The functor where a file names none."""
    numbers: tuple[str, ...] = ()
    """Axes that are types of numbers, and none of one's own."""
    inputs: tuple[str, ...] = ("in",)
    """The buffers that hold what a file describes."""
    arguments: str | None = None
    """Of the call, in place of the benchmark's; the functor is `axis::Op`."""
    roles: dict[str, str] = Field(default_factory=dict)
    """Roles that are filled otherwise than in the benchmark."""
    fills: dict[str, str] = Field(default_factory=dict)
    """Buffer → the call that makes its contents, in place of the benchmark's."""
    sizes: dict[str, str] | None = None
    """Whole numbers, in place of the benchmark's."""
    axes: dict[str, str] = Field(default_factory=dict)
    """Runtime axis → its value where a file says nothing."""
