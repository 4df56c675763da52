"""Entries of real headers as edits that fit together."""

from dataclasses import replace

import pytest

from policygen import trees
from policygen.bindings.load import bound
from policygen.headers.protocol import EntryWrite
from policygen.headers.scan import read_header, scan_headers
from policygen.headers.specializations.entry_edits import write_entries
from policygen.headers.specializations.placement import EntryKey, Specialization
from policygen.headers.spelling import splice
from policygen.model.selection import FamilyKey, Selected
from policygen.model.trees import BoundVersion
from policygen.model.tuning import Content
from tests.real_trees import tree as cub_tree
from tests.tiers import sampled

pytestmark = pytest.mark.trees
VERSIONS = ("2.8.2", "3.0.1", "3.2.0")
NOTHING = Selected({}, None, {}, {})
LABEL = "ipt_1.tpb_32 1.1  1.0  1.1  1.2"


def families(version):
    """Each family that is bound, with its header."""
    paths = {p.name: p for p in trees.tuning_headers(trees.open_tree(cub_tree(version)))}
    headers = {h.name: h for h in scan_headers(tuple(paths.values())).headers}
    for algorithm in bound(BoundVersion(version)):
        for binding in algorithm.families:
            site = algorithm.site(binding.site, "specializations")
            for family in headers[site.header].families if site else ():
                if (family.namespace, family.name) == (f"cub::{site.namespace}", binding.name):
                    to = Specialization(NOTHING, site, binding, family, family.name)
                    yield headers[site.header], paths[site.header], to


def other_key(entry, number):
    """The same key with another size, that no entry has."""
    found = list(entry.slots)
    for position in reversed(range(len(found))):
        if found[position] and found[position][-1].isdigit():
            found[position] = f"{found[position].rstrip('0123456789')}{number}"
            return tuple(found)
    return None


@pytest.mark.slow
@pytest.mark.parametrize("version", sampled(VERSIONS, "3.0.1"))
def test_an_update_and_a_new_entry_beside_it_fit_together(version):
    tried = 0
    for header, path, to in families(version):
        data = path.read_bytes()
        valued = [entry for entry in to.family.specializations if entry.members]
        for entry in {id(e): e for e in (*valued[:2], *valued[::9], *valued[-1:])}.values():
            values = {m.name: "77" for m in entry.members}
            for number in (0, 99):
                key = other_key(entry, number)
                if key is None:
                    continue
                lead = FamilyKey((), (to.family, entry))
                there = replace(to, selected=replace(NOTHING, keys={to.family.name: lead}))
                added = replace(there, named_key=EntryKey(key))
                content = Content("values", values, label=LABEL)
                writes = [
                    EntryWrite((there,), content, "one"),
                    EntryWrite((added,), content, "two"),
                ]
                found = write_entries(header, data, writes, to.family.arch, None)
                after = splice(header.name, data, found.edits)
                (again,) = [
                    f
                    for f in read_header(header.name, after).families
                    if (f.namespace, f.name) == (to.family.namespace, to.family.name)
                ]
                assert len(again.entries) == len(to.family.entries) + 1
                tried += 1
    assert tried > 100
