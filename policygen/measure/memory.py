"""Whether a policy's tile fits into shared memory, where that is certain without the compiler."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from policygen.bindings.archs import archs
from policygen.bindings.load import axis_type, is_constant
from policygen.bindings.words import words
from policygen.errors import InputError


@dataclass(frozen=True, slots=True)
class Tile:
    """The fields of a policy that say how much of its input a block has in shared memory."""

    exchange: str
    """How it is loaded or stored: some ways keep the whole tile there."""
    threads: str
    items: str
    element: int
    """Bytes."""

    @property
    def fields(self) -> tuple[str, str, str]:
        """All of them."""
        return self.exchange, self.threads, self.items


def is_static(site: str) -> bool:
    """Whether the kernels of a site have no other place for a tile."""
    return site in words().tiles.static


def tiles(
    site: str, fields: Iterable[str], elements: Mapping[str, int], least: int
) -> Iterator[Tile]:
    """The tiles of a policy; none of a site whose kernels have another place for large ones.

    `elements` has by the field of items the bytes of an element, as far as they are known; others
    have so many at least.
    """
    if not is_static(site):
        return
    fields = frozenset(fields)
    for path in sorted(fields):
        scope, dot, name = path.rpartition(".")
        if name in words().tiles.algorithms:
            threads = _beside(f"{scope}{dot}", words().members.threads, fields)
            items = _beside(f"{scope}{dot}", words().members.items, fields)
            if threads and items and (element := elements.get(items, least)):
                yield Tile(path, threads, items, element)


def element_bytes(site: str, values: Mapping[str, str], version: str) -> int:
    """The bytes of an element by the types of a workload; 0 where that is not known."""
    names = (values[axis] for axis in words().tiles.static.get(site, ()) if axis in values)
    known = (axis_type(name, version).size for name in names if not is_constant(name))
    return max((size for size in known if size is not None), default=0)


def _beside(scope: str, names: tuple[str, ...], fields: Container[str]) -> str | None:
    return next((f"{scope}{name}" for name in names if f"{scope}{name}" in fields), None)


def check_fits(tile: Tile, policy: Mapping[str, str], arch: str) -> None:
    """Refuses a policy whose tile is larger than what a block of the architecture can declare."""
    facts = archs().get(arch)
    how = policy[tile.exchange].rpartition("::")[2]
    if facts is None or how not in words().tiles.exchanges:
        return
    threads, items = int(policy[tile.threads]), int(policy[tile.items])
    if (size := threads * items * tile.element) > facts.static:
        raise InputError(
            f"{threads} threads x {items} items x {tile.element} bytes = {size:,} bytes, which"
            f" {how} keeps in shared memory",
            f"A block of {arch} has {facts.static:,} bytes of shared memory.",
        )
