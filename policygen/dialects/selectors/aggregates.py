"""The public aggregates that policy selectors return: their fields, as headers declare them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from policygen.dialects.selectors.functions import Struct, find_structs
from policygen.errors import InputError
from policygen.source.files import read_bytes
from policygen.source.text import Text


@dataclass(frozen=True, slots=True)
class Field:
    """One field, with its own where it is an aggregate itself."""

    name: str
    type: str
    fields: tuple["Field", ...] = ()


def find_aggregates(headers: Mapping[str, bytes]) -> dict[str, Struct]:
    """All structs of some headers by name."""
    found: dict[str, Struct] = {}
    for name, data in headers.items():
        found |= find_structs(Text(name, data).code)
    return found


def policy_structs(folder: Path) -> dict[str, Struct]:
    """What a folder of tuning headers declares, those without selectors included."""
    return find_aggregates({path.name: read_bytes(path) for path in sorted(folder.glob("*.cuh"))})


def read_aggregate(structs: Mapping[str, Struct], name: str) -> tuple[Field, ...]:
    """The fields of a policy, in order."""
    struct = structs.get(name)
    if struct is None or not struct.fields:
        raise InputError(
            f"the tree has no policy {name}", "Correct the selector in schemas/bindings."
        )
    return tuple(_fields(structs, struct))


def _fields(structs: Mapping[str, Struct], struct: Struct) -> Iterator[Field]:
    """What is declared twice has its value from a macro of the user's: it is left to that."""
    chosen = {name for name in struct.fields if struct.fields.count(name) > 1}
    for name, of in zip(struct.fields, struct.types, strict=True):
        if name in chosen:
            continue
        inner = structs.get(of)
        nested = tuple(_fields(structs, inner)) if inner and inner.fields else ()
        yield Field(name, of, nested)


def leaves(fields: tuple[Field, ...], within: str = "") -> Iterator[tuple[str, str]]:
    """Each value's path and type: `multi_tile.items_per_thread`, `int`."""
    for field in fields:
        path = f"{within}{field.name}"
        if field.fields:
            yield from leaves(field.fields, f"{path}.")
        else:
            yield path, field.type
