"""Which guarded return decides a workload, by the compiler, against what the header's text says."""

import re

import pytest

from policygen.headers.scan import read_changed
from policygen.headers.selectors.branches import expose_traits, mark_returns
from policygen.model.tuning import STEP, mark
from policygen.proof.oracle import marked_copies
from policygen.proof.sites import places
from policygen.proof.toolchain import find_toolchain
from policygen.proof.values import resolve
from tests.probing import TUNINGS, read, root
from tests.tiers import sampled

ARCHS = ("sm80", "sm90", "sm100", "sm107", "sm120")
# How a policy's member is called, and how `resolve` calls its value.
NAMES = {
    "threads_per_block": "threads",
    "pixels_per_thread": "items",
    "items_per_thread": "items",
    "load_algorithm": "load_algorithm",
    "load_modifier": "load_modifier",
    "store_algorithm": "store_algorithm",
    "reduce_and_scan_warps": "lookahead_warps",
    "lookahead_items_per_thread": "lookahead_items_per_thread",
    "vec_size": "vec_size",
}
COUNTS = {"threads", "items", "nominal_4b_items"}


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("version", sampled(["3.5.0", "3.6.0"], "3.6.0"))
def test_the_return_that_decides_has_the_values_that_are_resolved(version):
    tree = read(root(version))
    asked = places(tree.cub, tree.headers, re.compile(""), {})
    found, errors = resolve(
        tree.cub, asked, marked_copies(tree, "selectors"), ARCHS, find_toolchain()
    )
    assert (errors, found.unresolved) == ((), ())
    entries = {
        (family.header, family.name, entry.line): entry
        for header in tree.headers
        for family in header.selectors
        for entry in family.entries
    }
    compared = 0
    for row in found.rows:
        if row.entry is None:
            continue
        entry = entries[row.entry.header, row.entry.family, row.entry.line]
        assert entry.specific
        assert not entry.disabled
        ahead = "reduce_and_scan_warps" in entry.values
        for name, value in entry.values.items():
            short = name.rpartition(".")[2]
            own = "lookahead_items" if ahead and short == "items_per_thread" else NAMES.get(short)
            # What a function is given is scaled; its values are compared by what stays.
            scaled = entry.inherits is not None or "items" in entry.values
            if own in row.values and not (scaled and own in COUNTS):
                assert row.values[own] == value, (row.benchmark, row.workload, row.arch, entry.line)
                compared += 1
        # What a return for a key decides is tuned, whether or not a benchmark can be written back.
        assert row.status in {"tuned", "inherited"}
        assert row.since in {*ARCHS, "sm75"}
    # Every tuned workload but those whose values are computed has its return.
    tuned = [row for row in found.rows if row.status != "default"]
    lost = [row for row in tuned if row.entry is None]
    assert len(lost) < len(tuned) / 8
    # nvcc 13.4 and newer let sm120 scan by lookahead, whose policy there is computed.
    lookahead = [row for row in lost if row.values.get("algorithm") == "lookahead"]
    scans = [row for row in lookahead if row.arch == "sm120" and ".scan." in row.benchmark]
    assert {row.benchmark.split(".")[2] for row in lost if row not in scans} <= {
        "reduce",
        "radix_sort",
        "run_length_encode",
    }
    assert compared > 4_500


@pytest.mark.trees
def test_a_mark_changes_no_more_than_a_return_and_its_type():
    path = root("3.6.0") / TUNINGS / "tuning_histogram.cuh"
    data = path.read_bytes()
    marked = mark_returns(read_changed(path, data), data)
    (first, *_) = [entry for _, entry in marked.entries]
    text = marked.data.decode()
    assert "return ::policygen_marks::marked(HistogramPolicy{928, 12, 1 << 2, BLOCK_L" in text
    assert f"LOAD_CA, false, SMEM, false, 2048}}, {mark(0)});" in text
    assert text.count("int policygen_entry = -1;}") == 1
    assert first.values["threads_per_block"] == 928
    plain = re.sub(r", \d{4,}\)(?=;)", "", text.replace("::policygen_marks::marked(", ""))
    told, traits = expose_traits(data)
    assert traits == marked.traits
    assert traits[:2] == ("sample_is_primitive", "sample_size")
    for _, edit in told:
        plain = plain.replace(edit, "", 1)
    assert plain.replace("int policygen_entry = -1;", "") == data.decode()
    numbers = range(len(marked.entries))
    assert [marked.entry(mark(number)) for number in numbers] == [*numbers]
    assert marked.entry(STEP // 16 - 1) is None
