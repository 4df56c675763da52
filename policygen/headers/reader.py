"""Reads a tuning header into families, entries and policy chains."""

from collections.abc import Mapping

from policygen.headers.comments import Comments, SourceFile, format_off_regions
from policygen.headers.parsers import NeighborHeaders
from policygen.headers.selectors.branches import holds_selectors, read_selectors
from policygen.headers.selectors.functions import Struct, find_structs
from policygen.headers.specializations.families import holds_tunings, read_families
from policygen.headers.syntax import Guards, check_brackets
from policygen.headers.text import Text, check_hidden, check_limits
from policygen.model.tuning import TuningHeader
from policygen.rocprim.structs import holds_configs, read_configs


def read_header(
    name: str, data: bytes, neighbours: NeighborHeaders | None = None, path: str | None = None
) -> TuningHeader:
    """Reads a header; `neighbours` are the other headers of its folder."""
    text = Text(path or name, data)
    text.check()
    guards = Guards(text)
    check_brackets(text, guards)
    check_limits(text)
    neighbours = neighbours or NeighborHeaders({})
    if holds_configs(data):
        return _read_config_header(text, guards, name, neighbours)
    tunings, returns = holds_tunings(data), holds_selectors(data)
    reachable = neighbours.reachable(text.uncommented) if tunings or returns else {}
    if tunings or returns:
        check_hidden(text, reachable)
    source = SourceFile(text, guards, Comments(text), format_off_regions(text))
    selectors = read_selectors(source, name) if returns else ()
    families, chains = read_families(source, name, neighbours) if tunings else ((), ())
    return TuningHeader(
        name=name,
        families=families,
        chains=chains,
        selectors=selectors,
        format_off=source.format_off if tunings else (),
        aggregates=_aggregates(text, reachable) if returns else {},
    )


def _read_config_header(
    text: Text, guards: Guards, name: str, neighbours: NeighborHeaders
) -> TuningHeader:
    check_hidden(text, {})
    source = SourceFile(text, guards, Comments(text), format_off_regions(text))
    families, aggregates, needed = read_configs(source, name, neighbours.headers)
    return TuningHeader(
        name=name,
        families=families,
        chains=(),
        format_off=source.format_off,
        aggregates=aggregates,
        needed=needed,
    )


def _aggregates(
    text: Text, neighbours: Mapping[str, bytes]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Returns the fields of all structs, including those of included neighbors."""
    structs: dict[str, Struct] = {}
    for name, data in neighbours.items():
        structs |= find_structs(Text(name, data).code)
    structs |= find_structs(text.code)
    return {
        name: tuple(zip(struct.fields, struct.types, strict=True))
        for name, struct in sorted(structs.items())
        if struct.fields
    }
