"""One tuning header: bytes to families, entries and policy chains."""

from policygen.dialects.known import SELECTORS, SPECIALIZATIONS
from policygen.dialects.protocol import Held
from policygen.model.tuning import TuningHeader
from policygen.source.brackets import check_brackets
from policygen.source.clang import Neighbours
from policygen.source.comments import Comments, format_off_regions
from policygen.source.guards import Guards
from policygen.source.hidden import check_hidden
from policygen.source.limits import check_limits
from policygen.source.source import Source
from policygen.source.text import Text


def read_header(
    name: str, data: bytes, neighbours: Neighbours | None = None, path: str | None = None
) -> TuningHeader:
    """Reads a header; `neighbours` are the other headers of its folder."""
    text = Text(path or name, data)
    text.check()
    guards = Guards(text)
    check_brackets(text, guards)
    check_limits(text)
    neighbours = neighbours or Neighbours({})
    held = [dialect for dialect in (SELECTORS, SPECIALIZATIONS) if dialect.holds(data)]
    if held:
        check_hidden(text, neighbours.reachable(text.uncommented))
    source = Source(text, guards, Comments(text), format_off_regions(text))
    found = {dialect: dialect.read(source, name, neighbours) for dialect in held}
    own = found.get(SPECIALIZATIONS)
    return TuningHeader(
        name=name,
        families=own.families if own else (),
        chains=own.chains if own else (),
        selectors=found.get(SELECTORS, Held(())).families,
        format_off=source.format_off if own else (),
    )
