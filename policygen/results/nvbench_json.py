"""The part of NVBench's JSON that is read; everything else in it is left alone."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from policygen.errors import InputError

VERSION = 1


def _or_nothing(value: object) -> object:
    """NVBench writes null where a list would be empty."""
    return [] if value is None else value


def _as_text(value: object) -> object:
    """Numbers stand bare in an axis and quoted in a state."""
    return str(value) if isinstance(value, int | float) else value


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Datum(_Part):
    """One named value of a summary."""

    name: str
    value: Any


class Summary(_Part):
    """One thing that was measured, by its tag."""

    tag: str
    data: Annotated[tuple[Datum, ...], BeforeValidator(_or_nothing)] = ()


class AxisValue(_Part):
    """A value of an axis: as it was typed, and as NVBench holds it."""

    input_string: str
    value: Annotated[str | None, BeforeValidator(_as_text)] = None


class NvbenchAxis(_Part):
    """An axis and all its values."""

    name: str
    flags: str | None = None
    values: Annotated[tuple[AxisValue, ...], BeforeValidator(_or_nothing)] = ()

    @property
    def column(self) -> str:
        """As databases name it: `Elements{io}[pow2]`."""
        return f"{self.name}[{self.flags}]" if self.flags else self.name


class Coordinate(_Part):
    """Where a state stands on an axis."""

    name: str
    value: Annotated[str, BeforeValidator(_as_text)]


class State(_Part):
    """One run of a kernel on one point."""

    name: str = ""
    device: int | None = None
    axis_values: Annotated[tuple[Coordinate, ...], BeforeValidator(_or_nothing)] = ()
    summaries: Annotated[tuple[Summary, ...], BeforeValidator(_or_nothing)] = ()
    is_skipped: bool = False
    skip_reason: str | None = None

    def datum(self, tag: str, name: str) -> Any:
        """A value of a summary; none where it is not there."""
        for summary in self.summaries:
            if summary.tag == tag:
                return next((d.value for d in summary.data if d.name == name), None)
        return None


class Bench(_Part):
    """A sub-benchmark."""

    name: str
    axes: Annotated[tuple[NvbenchAxis, ...], BeforeValidator(_or_nothing)] = ()
    states: Annotated[tuple[State, ...], BeforeValidator(_or_nothing)] = ()


class BenchDevice(_Part):
    """A GPU."""

    id: int
    name: str
    global_memory_bus_width: int
    number_of_sms: int
    ecc_state: bool
    sm_version: int | None = None
    """Its compute capability: 900."""


class _JsonVersion(_Part):
    major: int = VERSION


class _Versions(_Part):
    json_: _JsonVersion = Field(default=_JsonVersion(), alias="json")


class NvbenchMeta(_Part):
    """How the program was called."""

    argv: tuple[str, ...] = Field(min_length=1)
    version: _Versions = _Versions()


class NvbenchFile(_Part):
    """The whole file."""

    meta: NvbenchMeta
    devices: tuple[BenchDevice, ...] = Field(min_length=1)
    benchmarks: tuple[Bench, ...]


def parse(path: Path, data: bytes) -> NvbenchFile:
    """The document, or what is wrong with it and where."""
    try:
        document = NvbenchFile.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            raise InputError(f"{path}: no JSON: {first['msg']}") from error
        raise InputError(
            f"{path}: JSON of something else than NVBench: {_place(first['loc'])}: {first['msg']}"
        ) from error
    major = document.meta.version.json_.major
    if major != VERSION:
        raise InputError(f"{path}: NVBench's JSON of version {major}; policygen knows {VERSION}")
    return document


def _place(steps: tuple[int | str, ...]) -> str:
    """`benchmarks[3].states`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".") or "the document"
