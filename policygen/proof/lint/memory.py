"""Whether a tile fits into shared memory."""

from collections.abc import Iterator

from policygen.bindings.archs import archs
from policygen.bindings.variant import fitting_threads
from policygen.bindings.words import words
from policygen.model.bindings import FamilyBinding
from policygen.proof.lint.subject import Remark, Subject
from policygen.proof.lint.units import role_sizes, scale_items


def fits(subject: Subject) -> Iterator[Remark]:
    """A tile that is transposed lies in static shared memory, of which a block has 48 KiB."""
    facts = archs().get(subject.family.arch)
    exchange = next((m for m in subject.entry.members if _is_exchange(m.value)), None)
    threads = subject.first(words().members.threads)
    if facts is None or exchange is None or threads is None or not subject.bindings:
        return
    tiles = [_tile(binding, subject) for binding in subject.bindings]
    if any(tile is None or _size(tile) <= facts.static for tile in tiles):
        return
    tile = min((t for t in tiles if t), key=_size)
    more = f", or {facts.opt_in:,} when its launch asks for them" if facts.opt_in else ""
    yield Remark(
        threads.value_span,
        f"{tile[0]} threads x {tile[1]} items x {tile[2]} bytes = {_size(tile):,} bytes, which"
        f" {exchange.value} keeps in shared memory: a block of {facts.name} has"
        f" {facts.static:,}{more}",
    )


def _is_exchange(value: object) -> bool:
    return isinstance(value, str) and value.rpartition("::")[2] in words().tiles.exchanges


def _tile(binding: FamilyBinding, subject: Subject) -> tuple[int, int, int] | None:
    """Threads, items and bytes of an element, as far as they are certain."""
    items = subject.first(words().members.items)
    threads = subject.first(words().members.threads)
    if items is None or threads is None or items.name not in binding.members:
        return None
    if type(items.value) is not int or type(threads.value) is not int:
        return None
    sizes = role_sizes(binding, subject.entry)
    unit = binding.members[items.name].unit
    count = scale_items(unit, items.value, sizes)
    elements = [size for role, size in sizes.items() if role not in words().tiles.outside]
    if count is None or not elements:
        return None
    element = sizes[unit.of] if unit else max(elements)
    return fitting_threads(unit, threads.value, count, sizes), count, element


def _size(tile: tuple[int, int, int]) -> int:
    return tile[0] * tile[1] * tile[2]
