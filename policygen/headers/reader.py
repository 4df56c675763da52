"""Reads a tuning header into families, entries and policy chains."""

from collections.abc import Mapping

from policygen.headers.comments import SourceFile
from policygen.headers.protocol import notation_of
from policygen.headers.selectors.branches import holds_selectors, read_selectors
from policygen.headers.selectors.functions import find_aggregates
from policygen.headers.specializations.families import holds_tunings, read_families
from policygen.headers.syntax import Guards, check_brackets
from policygen.headers.text import Text, check_hidden, check_words, reachable
from policygen.model.tuning import TuningHeader


def read_header(
    name: str, data: bytes, neighbours: Mapping[str, bytes] = {}, path: str | None = None
) -> TuningHeader:
    """Reads a header; `neighbours` are the other headers of its folder."""
    text = Text(path or name, data)
    text.check()
    guards = Guards(text)
    check_brackets(text, guards)
    check_words(text)
    source = SourceFile(text, guards)
    if notation := notation_of(data):
        check_hidden(text, {})
        return notation.read(source, name, neighbours)
    tunings, returns = holds_tunings(data), holds_selectors(data)
    included = reachable(text.uncommented, neighbours) if tunings or returns else {}
    if tunings or returns:
        check_hidden(text, included)
    selectors = read_selectors(source, name) if returns else ()
    families, chains = read_families(source, name) if tunings else ((), ())
    return TuningHeader(
        name=name,
        families=families,
        chains=chains,
        selectors=selectors,
        format_off=source.format_off if tunings else (),
        aggregates=_aggregates({**included, name: data}) if returns else {},
    )


def _aggregates(headers: Mapping[str, bytes]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Returns the fields of all structs."""
    structs = sorted(find_aggregates(headers).items())
    return {name: struct.typed_fields for name, struct in structs if struct.typed_fields}
