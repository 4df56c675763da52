"""The table of one sub-benchmark in a tuning database."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResultTable:
    """The table of one sub-benchmark."""

    name: str
    algorithm: str
    subbench: str
    version: str
    """The name of the version column."""
    axes: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def quoted(self) -> str:
        """The name as SQL needs it."""
        return quote(self.name)

    @property
    def ct_axes(self) -> tuple[str, ...]:
        """Compile-time axes, in the order of the columns."""
        return tuple(axis for axis in self.axes if "{ct}" in axis)

    @property
    def rt_axes(self) -> tuple[str, ...]:
        """Runtime axes, in the order of the columns."""
        return tuple(axis for axis in self.axes if "{ct}" not in axis)


def quote(name: str) -> str:
    """A name as SQL needs it; benchmark names hold dots, axis names anything."""
    return '"' + name.replace('"', '""') + '"'
