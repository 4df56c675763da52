"""What entries hold, where a family has a manner of its own."""

from dataclasses import replace

import pytest

from policygen.headers.comments import EXPLICIT
from policygen.headers.protocol import TuningTree
from policygen.headers.scan import read_header
from policygen.headers.specializations.placement import family_spot
from policygen.model.selection import FamilyKey, Selected
from policygen.model.trees import BoundVersion
from policygen.model.tuning import Content
from policygen.planning.measured import measurements
from tests.planning.pretend import CUB, SUM_MIN, SUMS, source, summed, want
from tests.planning.wanted import GPUS, benchmark, scored

NAME = "cub.bench.reduce.sum"
SCAN = """
template <class T, int threads, int items, int ns, int l2w> struct sm90_tuning_vals {};
template <class AccumT, primitive_op Op, primitive_accum A, accum_size S> struct sm90_tuning;
"""


def spot(header, namespace, text, found, args, arch, entry=None):
    """A place in the newest family of a small header."""
    tree = {header: read_header(header, source(namespace, text))}
    (known,), _ = measurements([found], BoundVersion(CUB.version), arch, force=True)
    to = family_spot(known.benchmark, Selected({}, None, {}, {}), TuningTree(CUB, tree, {}), arch)
    if entry is not None:
        entry = to.family, to.family.entries[entry]
    return replace(to, selected=Selected({}, None, {to.family.name: FamilyKey(args, entry)}, {}))


@pytest.mark.parametrize(
    ("delay", "load", "kind"),
    [
        ("fixed_delay_constructor_t<168, 1140>", "BLOCK_LOAD_WARP_TRANSPOSE", "inherits"),
        ("no_delay_constructor_t<1140>", "BLOCK_LOAD_WARP_TRANSPOSE", "values"),
        ("fixed_delay_constructor_t<168, 1140>", "BLOCK_LOAD_DIRECT", "values"),
    ],
)
def test_values_are_inherited_from_what_the_family_has_for_them_where_that_gives_them(
    delay, load, kind
):
    point = {"T": "I32", "OffsetT": "I32"}
    found = scored(benchmark("3.0.1", "scan.exclusive.sum"), point, None, "3.0.1", GPUS["sm90"])
    one = spot("tuning_scan.cuh", "scan", SCAN, found, ("int", "yes", "yes", "_4"), "sm90")
    members = {
        "threads": "192",
        "items": "22",
        "delay_constructor": delay,
        "load_algorithm": load,
        "store_algorithm": load.replace("LOAD", "STORE"),
    }
    base = "sm90_tuning_vals<{0}, 192, 22, 168, 1140>" if kind == "inherits" else None
    assert one.content(members, "label") == Content(kind, members, base, "label")


def reduce(text, arch="sm100", entry=None):
    args = ("float", "unsigned int", "plus", "_4", "_4")
    found = want(summed("F32"), None)
    return spot("tuning_reduce.cuh", "reduce", text + SUM_MIN, found, args, arch, entry)


def test_a_new_family_falls_back_by_itself_where_the_one_before_only_declares_itself():
    assert reduce(SUMS, "sm103").kept(NAME) == Content("empty", label=EXPLICIT)


def test_a_new_family_inherits_from_one_that_has_a_body():
    text = SUMS.replace(";", " {};")
    base = "sm100_tuning<{0}, {1}, {2}, {3}, {4}>"
    assert reduce(text, "sm103").kept(NAME) == Content("inherits", base=base, label=EXPLICIT)


def test_an_entry_without_values_stays_without_values():
    assert reduce(SUMS.replace(";", " {};")).kept(NAME) == Content("empty", label=EXPLICIT)


NESTED = """
template <class T, class OffsetT>
struct sm100_tuning<pair<T, T>, OffsetT, op_type::plus, offset_size::_4, accum_size::_4>
    : sm90_tuning<T, OffsetT>
{};
"""


def test_what_is_inherited_by_more_than_the_arguments_is_written_out():
    one = reduce(SUMS + NESTED, entry=1)
    values = {"items": 7, "threads": 64, "items_per_vec_load": 1}
    told = Selected(values, None, one.selected.keys, {"AccumT": 4})
    kept = replace(one, selected=told).kept(NAME)
    members = {"items": "7", "threads": "64", "items_per_vec_load": "1"}
    assert kept == Content("values", members)
