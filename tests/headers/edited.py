"""What tests of edits share: other values than an entry has, keys that a family lacks."""

import re
from functools import cache

from policygen.headers.scan import read_header, scan_headers
from policygen.headers.specializations.entry_edits import Writer, typical
from policygen.headers.spelling import edit_at, splice
from policygen.headers.text import Text
from policygen.model.records import Span
from policygen.model.tuning import spell
from tests.probing import TUNINGS, root

VERSIONS = ["2.8.2", "3.0.1", "3.1.4", "3.2.0"]
LABEL = "ipt_9.tpb_96 1.500000  1.000000  1.400000  1.600000"
# Two values of each enumeration: a member gets the one that it has not.
_OTHERS = {
    "BlockLoadAlgorithm": ("BLOCK_LOAD_DIRECT", "BLOCK_LOAD_WARP_TRANSPOSE"),
    "BlockStoreAlgorithm": ("BLOCK_STORE_DIRECT", "BLOCK_STORE_WARP_TRANSPOSE"),
    "CacheLoadModifier": ("LOAD_DEFAULT", "LOAD_CA"),
    "BlockHistogramMemoryPreference": ("SMEM", "GMEM"),
    "using": ("exponential_backon_constructor_t<208, 104>", "no_delay_constructor_t<208>"),
}


def other(member):
    """A value that a member has not, as results give it."""
    if isinstance(member.value, bool):
        return str(not member.value).lower()
    if isinstance(member.value, int):
        return str(member.value * 2)
    pair = _OTHERS[member.type]
    return pair[member.spelling.rpartition("::")[2] == pair[0]]


@cache
def real(version):
    """Each tuning header of a tree that has entries, as read and as bytes."""
    scanned = scan_headers(sorted((root(version) / TUNINGS).glob("*.cuh")))
    assert not scanned.errors
    return [
        (header, (root(version) / TUNINGS / header.name).read_bytes())
        for header in scanned.headers
        if any(family.specializations for family in header.families)
    ]


def new_values(header, family, entry):
    """Values for an entry: other ones, or where it has none those of the closest that has."""
    shown = typical(header, family, entry)
    return {member.name: other(member) for member in shown.members}


def family_of(header, family):
    """The same family of another reading."""
    place = family.namespace, family.name
    return next(f for f in header.families if (f.namespace, f.name) == place)


def entry_of(header, family, key):
    """The one live entry with a key."""
    (found,) = [e for e in family_of(header, family).specializations if e.slots == key]
    return found


def bare(values):
    """Values as results give them: without namespaces."""
    return {name: re.sub(r"^(\w*::)+", "", spell(value)) for name, value in values.items()}


def updated(header, data, family, entry, content):
    edits = Writer(header, Text(header.name, data)).update(family, entry, content, "why")
    return splice(header.name, data, edits)


def inserted(header, data, family, new):
    at, text = Writer(header, Text(header.name, data)).insertion(family, new)
    return splice(header.name, data, [edit_at(data, Span(at, at), text, "why")])


def reread(header, data):
    return read_header(header.name, data)


def new_key(family, entry):
    """A key that a family lacks: like an entry's, but with another type or number."""
    known = {e.slots for e in family.specializations}
    key = entry.slots
    for position, parameter in enumerate(family.parameters):
        number = (key[position] or "").isdigit()
        names = ["short", "long"] if parameter.kind == "type" else ["3", "32"] if number else []
        for name in names:
            made = (*key[:position], name, *key[position + 1 :])
            if made not in known:
                return made
    raise AssertionError(key)
