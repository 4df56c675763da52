"""Under which arguments an entry is written, by the families of real trees and small ones."""

from functools import cache

import pytest

from policygen import trees
from policygen.bindings.variants import fits, type_name
from policygen.errors import InputError
from policygen.headers.protocol import can_name
from policygen.headers.scan import read_header, scan_headers
from policygen.headers.specializations.placement import (
    EntryKey,
    general_key,
    named_key,
    too_general,
)
from tests.planning.pretend import SUM_INT, SUMS, source
from tests.real_trees import tree as cub_tree

GUARD = "_CCCL_HAS_INT128()"
COMPLEX = "cuda::std::__4::complex<float>"


@cache
def headers(version):
    paths = trees.tuning_headers(trees.open_tree(cub_tree(version)))
    return {header.name: header for header in scan_headers(paths).headers}


def family(name, namespace, header, version="3.0.1"):
    found = headers(version)[f"tuning_{header}.cuh"].families
    (one,) = [f for f in found if f.name == name and f.namespace == f"cub::detail::{namespace}"]
    return one


SCAN90 = ("sm90_tuning", "scan", "scan")
SCAN100 = ("sm100_tuning", "scan", "scan")
SELECT = ("sm90_tuning", "select", "select_if")
SELECT100 = ("sm100_tuning", "select", "select_if")
RLE = ("sm90_tuning", "rle::encode", "run_length_encode")
UNIQUE = ("sm90_tuning", "unique_by_key", "unique_by_key")
SUMS_BY_KEY = ("sm90_tuning", "reduce_by_key", "reduce_by_key")
REDUCE = ("sm100_tuning", "reduce", "reduce")
SMALL90 = ("sm90_small_key_tuning", "radix", "radix_sort")
SMALL100 = ("sm100_small_key_tuning", "radix", "radix_sort")

GENERAL = [
    (
        SCAN90,
        ("int", "yes", "yes", "_4"),
        (None, "primitive_op::yes", "primitive_accum::yes", "accum_size::_4"),
        None,
        None,
    ),
    (
        SCAN90,
        ("__int128", "yes", "no", "_16"),
        ("__int128_t", "primitive_op::yes", "primitive_accum::no", "accum_size::_16"),
        GUARD,
        ("__uint128_t", "primitive_op::yes", "primitive_accum::no", "accum_size::_16"),
    ),
    (
        SCAN100,
        ("__int128", "__int128", "unsigned int", "plus", "no", "_4", "_16"),
        ("__int128_t", None, None, "op_type::plus", "primitive_accum::no", "offset_size::_4",
         "value_size::_16"),
        GUARD,
        ("__uint128_t", None, None, "op_type::plus", "primitive_accum::no", "offset_size::_4",
         "value_size::_16"),
    ),
    (
        RLE,
        ("int", "__int128", "yes", "no", "_4", "_16"),
        (None, "__int128_t", "primitive_length::yes", "primitive_key::no", "length_size::_4",
         "key_size::_16"),
        GUARD,
        (None, "__uint128_t", "primitive_length::yes", "primitive_key::no", "length_size::_4",
         "key_size::_16"),
    ),
    (
        UNIQUE,
        ("signed char", "__int128", "yes", "no", "_1", "_16"),
        (None, "__int128_t", "primitive_key::yes", "primitive_val::no", "key_size::_1",
         "val_size::_16"),
        GUARD,
        (None, "__uint128_t", "primitive_key::yes", "primitive_val::no", "key_size::_1",
         "val_size::_16"),
    ),
    (
        UNIQUE,
        ("__int128", "__int128", "no", "no", "_16", "_16"),
        ("__int128_t", "__int128_t", "primitive_key::no", "primitive_val::no", "key_size::_16",
         "val_size::_16"),
        GUARD,
        ("__uint128_t", "__uint128_t", "primitive_key::no", "primitive_val::no", "key_size::_16",
         "val_size::_16"),
    ),
    (
        REDUCE,
        ("__int128", "unsigned int", "plus", "_4", "unknown"),
        ("__int128_t", None, "op_type::plus", "offset_size::_4", "accum_size::unknown"),
        GUARD,
        ("__uint128_t", None, "op_type::plus", "offset_size::_4", "accum_size::unknown"),
    ),
    (
        SELECT,
        ("float", "no", "no", "_4", "yes", "_4"),
        (None, "flagged::no", "keep_rejects::no", "offset_size::_4", "primitive::yes",
         "input_size::_4"),
        None,
        None,
    ),
    (
        SELECT100,
        ("signed char", "no", "no", "_8", "yes", "_1", "no", "no"),
        (None, "flagged::no", "keep_rejects::no", "offset_size::_8", "primitive::yes",
         "input_size::_1", "may_alias::no", None),
        None,
        None,
    ),
    (SMALL90, ("2", "0", "4"), ("2", "0", "4"), None, None),
    (SMALL100, ("cub::NullType", "2", "0", "4"), (None, "2", "0", "4"), None, None),
    (
        SMALL100,
        ("__int128", "2", "16", "4"),
        ("__int128_t", "2", "16", "4"),
        GUARD,
        ("__uint128_t", "2", "16", "4"),
    ),
]  # fmt: skip


@pytest.mark.trees
@pytest.mark.parametrize(("of", "args", "slots", "guard", "alias"), GENERAL)
def test_the_general_key_is_that_of_the_siblings(of, args, slots, guard, alias):
    key = general_key(family(*of), args)
    assert key == EntryKey(slots, guard, alias)
    assert fits(family(*of).parameters, key.slots, args)


RFA = "template <typename AccumT> struct sm90_tuning;"


def made(text, namespace="rfa"):
    (found,) = read_header("tuning_reduce.cuh", source(namespace, text)).families
    return found


@pytest.mark.parametrize(("arg", "slot"), [("float", "float"), ("long", "int64_t")])
def test_a_family_of_types_alone_names_them(arg, slot):
    assert general_key(made(RFA), [arg]) == EntryKey((slot,))


def test_a_type_that_no_entry_can_name_has_no_key_there():
    with pytest.raises(InputError) as caught:
        general_key(made(RFA), [COMPLEX])
    assert str(caught.value) == (
        f"an entry cannot name the type {COMPLEX}\n  The header does not declare it."
    )


@pytest.mark.parametrize(
    ("arg", "name", "nameable"),
    [
        ("signed char", "signed char", True),
        ("signed int", "int", True),
        ("signed long", "long", True),
        ("unsigned __int128", "unsigned __int128", True),
        ("unsigned long long", "unsigned long long", True),
        ("float", "float", True),
        (COMPLEX, COMPLEX, False),
    ],
)
def test_types_have_their_usual_names(arg, name, nameable):
    assert (type_name(arg), can_name(arg)) == (name, nameable)


@pytest.mark.trees
@pytest.mark.parametrize(
    ("of", "args", "position", "slots"),
    [
        (
            SCAN90,
            ("double", "yes", "yes", "_8"),
            0,
            ("double", "primitive_op::yes", "primitive_accum::yes", "accum_size::_8"),
        ),
        (
            RLE,
            ("int", "__int128", "yes", "no", "_4", "_16"),
            0,
            ("int", "__int128_t", "primitive_length::yes", "primitive_key::no", "length_size::_4",
             "key_size::_16"),
        ),
    ],
)  # fmt: skip
def test_a_named_key_names_one_type_more(of, args, position, slots):
    key = named_key(family(*of), args, position)
    assert key.slots == slots
    assert fits(family(*of).parameters, key.slots, args)
    other = list(args)
    other[position] = "short"
    assert not fits(family(*of).parameters, key.slots, other)


def test_a_value_that_the_closest_sibling_leaves_open_is_left_open():
    text = SUM_INT.replace("class OffsetT>", "class OffsetT, offset_size O>")
    found = made(SUMS + text.replace("offset_size::_4", "O"), "reduce")
    key = general_key(found, ("long", "unsigned int", "plus", "_4", "_8"))
    assert key == EntryKey((None, None, "op_type::plus", None, "accum_size::_8"))
    assert fits(found.parameters, key.slots, ("long", "unsigned long long", "plus", "_8", "_8"))
    assert not fits(found.parameters, key.slots, ("int", "unsigned int", "plus", "_4", "_4"))


@pytest.mark.trees
@pytest.mark.parametrize(
    ("of", "args", "parameter"),
    [
        (SCAN90, (COMPLEX, "yes", "no", "_8"), "PrimitiveAccumulator"),
        (SCAN90, ("__int128", "yes", "no", "_16"), None),
        (SCAN90, ("int", "yes", "yes", "_4"), None),
        (UNIQUE, ("int", COMPLEX, "yes", "no", "_4", "_8"), "PrimitiveAccum"),
        (UNIQUE, ("__int128", COMPLEX, "no", "no", "_16", "_8"), "PrimitiveAccum"),
        (UNIQUE, ("__int128", "__int128", "no", "no", "_16", "_16"), None),
        (REDUCE, (COMPLEX, "unsigned int", "plus", "_4", "_8"), None),
    ],
)
def test_an_entry_for_all_that_is_no_number_is_too_general(of, args, parameter):
    found = family(*of)
    assert too_general(found, general_key(found, args)) == parameter
