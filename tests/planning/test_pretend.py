"""What is pretended of a small header is what nvcc says of it, beside CUB's own policies."""

import pytest

from policygen import trees
from policygen.headers.scan import read_header
from policygen.proof.oracle import compiler_for
from policygen.proof.reading import read_tree
from tests.planning.pretend import (
    KEYED,
    KEYED_INT,
    KEYED_LATER,
    SUM,
    SUM_INT,
    SUM_MIN,
    SUMS,
    VERSION,
    by_key,
    sums,
)
from tests.planning.test_decide import VALUED
from tests.planning.test_plan import OPEN
from tests.probing import changed_tree, header
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

SUM_FLOAT = SUM_INT.replace("<class T, class", "<class").replace("<T, ", "<float, ")
SUM_WIDE = SUM_INT.replace("accum_size::_4", "accum_size::_16").replace("= 512", "= 1024")
EMPTY = SUM_FLOAT.partition("\n{")[0] + "\n{};\n"
KEYED_BASE = (
    "sm90_tuning<KeyT, AccumT, primitive_op::yes, primitive_key::yes, primitive_accum::yes,"
    " key_size::_4, accum_size::_4>"
)
KEYED_SAME = KEYED_LATER.partition("\n{")[0].replace("_8", "_4") + f" : {KEYED_BASE}\n{{}};\n"
TOYS = {
    "no entries": SUMS,
    "one": SUMS + SUM_INT,
    "a named type": SUMS + SUM_INT + SUM_FLOAT,
    "one without values": SUMS + SUM_INT + EMPTY,
    "more than fits": SUMS + SUM_WIDE,
    "an open offset": SUMS + OPEN,
    "values for all": VALUED,
}
KEYED_TOYS = {
    "no entries": KEYED,
    "one": KEYED + KEYED_INT,
    "two architectures": KEYED + KEYED_INT + KEYED_LATER,
    "one that inherits": KEYED + KEYED_INT + KEYED_SAME,
}
TYPES = ("I8", "I16", "I32", "F32", "I64", "F64", "I128", "C64")
PAIRS = [(k, v) for k in ("I8", "I32", "I64") for v in ("I8", "I32", "F32", "F64", "C64")]


def completed(name, namespace, text):
    """CUB's own header with other specializations."""
    # What is pretended has what the benchmarks fix.
    data = header(VERSION, name).replace(b"LOAD_LDG", b"LOAD_DEFAULT")
    families = [f for f in read_header(name, data).families if f.namespace == namespace]
    entries = [entry for family in families for entry in family.entries]
    end = max(entry.span.end for entry in entries if entry.kind == "primary")
    changes = [(*entry.span, b"") for entry in entries if entry.kind != "primary"]
    for start, stop, new in sorted([*changes, (end, end, text.encode())], reverse=True):
        data = data[:start] + new + data[stop:]
    return data


def compiler(folder, name, data):
    """The real one, for CUB with a changed header."""
    found = read_tree(trees.open_tree(changed_tree(folder, VERSION, {name: data})), [name])
    assert not found.errors
    return compiler_for(found)


def lead(found):
    """What a key is, and the entry that it leads to."""
    entry = found.entry[1] if found.entry else None
    return found.args, entry and (entry.args, entry.values)


def assert_same(folder, oracle, namespace, text):
    real = compiler(
        folder, oracle.header, completed(oracle.header, f"cub::detail::{namespace}", text)
    )
    for arch in ("sm90", "sm100"):
        said, pretended = real.tell(oracle.points, arch), oracle.tell(oracle.points, arch)
        for point in oracle.points:
            assert pretended[point].values == said[point].values, (point, arch)
            assert pretended[point].sizes == said[point].sizes, (point, arch)
            for name, key in said[point].keys.items():
                assert lead(pretended[point].keys[name]) == lead(key), (point, arch, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(TOYS, "a named type"))
def test_of_sums(name, tmp_path):
    oracle = sums(TOYS[name], types=TYPES, offsets=("I32", "I64"))
    assert {point[0] for point in oracle.points} == {SUM}
    assert_same(tmp_path, oracle, "reduce", TOYS[name] + SUM_MIN)


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(KEYED_TOYS, "one that inherits"))
def test_of_sums_by_key(name, tmp_path):
    oracle = by_key(KEYED_TOYS[name], pairs=PAIRS)
    assert_same(tmp_path, oracle, "reduce_by_key", KEYED_TOYS[name])
