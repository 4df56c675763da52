"""The text of an entry that a header does not have yet, in the manner of its family."""

from collections.abc import Mapping, Sequence

from policygen.errors import InputError
from policygen.model.entry_text import Content, NewEntry, Slot
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.rendering import fill
from policygen.source import spelling
from policygen.source.brackets import split_list

MemberTypes = Mapping[str, tuple[str, str]]
"""Member → its type, `using` for an alias, and a spelling to take after; in neighbours' order."""


def typical(header: TuningHeader, family: Family, sibling: Entry | None) -> Entry | None:
    """The entry whose members show how values are laid out: the closest that has some."""
    if sibling is not None and sibling.members:
        return sibling
    at = sibling.span.start if sibling else family.entries[0].span.start
    valued = [entry for entry in family.specializations if entry.members]
    if valued:
        return min(valued, key=lambda entry: abs(entry.span.start - at))
    others = [family, *_beside(header, family)]
    found = (e for other in others for e in other.entries if e.members and not e.disabled)
    return next(found, None)


def member_types(header: TuningHeader, family: Family, shown: Entry | None) -> MemberTypes:
    """How members are declared, and in which order: by one entry, else by those closest to it."""
    families = [family, *_beside(header, family)]
    entries = [e for one in families for e in _by_distance(one, shown) if not e.disabled]
    found: dict[str, tuple[str, str]] = {}
    order: list[str] = []
    for entry in [shown, *entries] if shown else entries:
        order = _among(order, [member.name for member in entry.members])
        for member in entry.members:
            found.setdefault(member.name, (member.type, member.spelling))
    return {name: found[name] for name in order}


def _by_distance(family: Family, shown: Entry | None) -> list[Entry]:
    """The entries of a family, those that stand closest to one first."""
    if shown is None:
        return list(family.entries)
    at = shown.span.start
    return sorted(family.entries, key=lambda entry: abs(entry.span.start - at))


def _among(order: list[str], others: Sequence[str]) -> list[str]:
    """Names with those that they lack, each behind what it stands behind elsewhere."""
    found = list(order)
    for position, name in enumerate(others):
        if name not in order:
            before = next((n for n in reversed(others[:position]) if n in found), None)
            after = next((n for n in others[position:] if n in order), None)
            if before is not None:
                found.insert(found.index(before) + 1, name)
            else:
                found.insert(found.index(after) if after else len(found), name)
    return found


def _beside(header: TuningHeader, family: Family) -> list[Family]:
    """The other families of a namespace, the closest first, of two as close the one before."""
    same = [f for f in header.families if f.namespace == family.namespace]
    home = next((i for i, f in enumerate(same) if f.name == family.name), len(same))
    places = sorted(range(len(same)), key=lambda i: (abs(i - home), i))
    return [same[i] for i in places if i != home]


def block(
    family: Family,
    name: str,
    new: NewEntry,
    types: MemberTypes,
    sibling: Entry | None,
) -> str:
    """An entry over several lines, with its guard and the one for the unsigned type."""
    declared, args = spelling.parameters(family, new.key, sibling)
    lead = len("struct ")
    return fill(
        "edit/block.h.j2",
        {
            "guard": new.guard,
            "template": _template(declared),
            "head": spelling.head(name, args, lead=lead),
            "base": _base(new.content, args, wrapped=True),
            "label": new.content.label,
            "members": _members(family, new.content, types, aligned=True),
            "alias": _alias(family, name, new.alias, args, sibling),
        },
    ).removesuffix("\n")


def line(
    family: Family,
    name: str,
    new: NewEntry,
    types: MemberTypes,
    sibling: Entry,
) -> str:
    """An entry on one line, its arguments in the columns of those that are."""
    declared, args = spelling.parameters(family, new.key, sibling)
    closest = sorted(
        family.specializations, key=lambda entry: abs(entry.span.start - sibling.span.start)
    )
    return fill(
        "edit/line.h.j2",
        {
            "parameters": declared,
            "head": f"{name}<{spelling.columns(closest, args)}>",
            "base": _base(new.content, args, wrapped=False),
            "label": new.content.label,
            "members": _members(family, new.content, types, aligned=False),
        },
    ).removesuffix("\n")


def body(
    family: Family,
    content: Content,
    args: Sequence[str],
    types: MemberTypes,
    *,
    layout: str,
) -> str:
    """What stands behind an entry's head: its values, or what it inherits them from."""
    members = _members(family, content, types, aligned=layout == "block")
    base = _base(content, args, wrapped=layout == "block")
    if layout == "line":
        inside = f" {' '.join(members)} " if members else ""
        return f"{f' : {base}' if base else ''} {{{inside}}};"
    rows = [f"// {content.label}", *members] if content.label and members else members
    inside = "".join(f"  {row}\n" for row in rows)
    return "\n" + (f"    : {base}\n" if base else "") + (f"{{\n{inside}}};" if rows else "{};")


def base_of(content: Content, args: Sequence[str]) -> tuple[str, list[str]] | None:
    """What an entry inherits from, and its arguments; `{0}` is the entry's own first argument."""
    if content.kind != "inherits" or content.base is None:
        return None
    text = content.base.format(*args).encode()
    name, found, _ = text.partition(b"<")
    spans = split_list(text, len(name) + 1, text.rindex(b">")) if found else []
    return name.decode(), [spelling.text_of(text, span) for span in spans]


def _base(content: Content, args: Sequence[str], *, wrapped: bool) -> str | None:
    found = base_of(content, args)
    if found is None:
        return None
    name, theirs = found
    if not theirs:
        return name
    return spelling.head(name, theirs, lead=len("    : ")) if wrapped else _one_line(name, theirs)


def _one_line(name: str, args: Sequence[str]) -> str:
    return f"{name}<{', '.join(args)}>"


def _template(declared: Sequence[str]) -> str:
    return spelling.head("template ", declared, lead=0)


def _members(
    family: Family,
    content: Content,
    types: MemberTypes,
    *,
    aligned: bool,
) -> list[str]:
    """Members as they are declared, in the order in which neighbours have them."""
    values = content.values if content.kind == "values" else {}
    order = [*(name for name in types if name in values), *(n for n in values if n not in types)]
    types = {**{name: (kind, "") for name, kind in content.types.items()}, **types}
    if unknown := values.keys() - types.keys():
        raise InputError(
            f"{family.header}: no entry of {family.namespace} has {', '.join(sorted(unknown))}",
            "The type of a member is that of another entry's.",
        )
    return spelling.declarations({n: values[n] for n in order}, types, aligned=aligned)


def _alias(
    family: Family, name: str, key: tuple[Slot, ...] | None, base: list[str], sibling: Entry | None
) -> dict[str, str] | None:
    if key is None:
        return None
    declared, args = spelling.parameters(family, key, sibling)
    return {
        "template": _template(declared),
        "head": spelling.head(name, args, lead=len("struct ")),
        "base": spelling.head(name, base, lead=len("    : ")),
    }
