"""Drafts the edits of a tree's headers, for a plan as for a variant that is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.words import ladder
from policygen.errors import InputError
from policygen.headers.dialects import dialect_of
from policygen.headers.protocol import Dialect, EntryWrite, HeaderEdits, TuningTree
from policygen.headers.spelling import splice
from policygen.model.arch import arch_number
from policygen.model.plans import Options
from policygen.planning.losses import points_of


@dataclass(frozen=True, slots=True)
class Draft:
    """The edited headers."""

    edits: Mapping[str, HeaderEdits]
    after: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Drafter:
    """Writes entries into the headers of one tree."""

    sources: TuningTree
    options: Options

    @property
    def dialect(self) -> Dialect:
        """How the tree spells its tunings."""
        arch, number = self.options.arch, arch_number(self.options.arch)
        kept = filter(self.options.keeps, (a for a in ladder() if arch_number(a) > number))
        return dialect_of(self.sources, arch, next(kept, None))

    def drafted(self, writes: Sequence[EntryWrite]) -> Draft:
        """Writes entries into their headers."""
        edits, after = {}, {}
        by_header: dict[str, list[EntryWrite]] = {}
        for write in writes:
            by_header.setdefault(write.header, []).append(write)
        for name, group in by_header.items():
            try:
                header_edits, data = self._header(name, group)
            except InputError as error:
                raise NotWritableError(self._culprits(name, group, error)) from error
            if header_edits.edits:
                edits[name], after[name] = header_edits, data
        return Draft(edits, after)

    def _header(self, name: str, writes: Sequence[EntryWrite]) -> tuple[HeaderEdits, bytes]:
        header_edits = self.dialect.write(name, writes)
        return header_edits, splice(name, self.sources.data[name], header_edits.edits)

    def _culprits(
        self, name: str, writes: Sequence[EntryWrite], error: InputError
    ) -> list[tuple[EntryWrite, InputError]]:
        """Returns the writes that fail on their own, or all writes if none does."""
        failing = []
        for write in writes:
            try:
                self._header(name, [write])
            except InputError as write_error:
                failing.append((write, write_error))
        return failing or [(write, error) for write in writes]


class NotWritableError(Exception):
    """Entries that have no place in their header."""

    def __init__(self, writes: Sequence[tuple[EntryWrite, InputError]]) -> None:
        super().__init__(writes[0][1].message)
        self.reasons = {
            point: error.in_line for write, error in writes for point in points_of([write])
        }
