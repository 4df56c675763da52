"""What is written, line by line: the diffs of single results on CUB 3.0.1, as reviewed.

Only the added lines are kept, they are policygen's own, and how many lines go.
UPDATE_GOLDENS=1 writes them anew.
"""

import difflib
import os
from pathlib import Path

import pytest

from policygen.textdiff import unified
from tests.planning.wanted import Planned, benchmark, scored
from tests.probing import root
from tests.tiers import sampled

VERSION = "3.0.1"
GOLDENS = Path(__file__).parent / "goldens"
DELAY = "ns_500.dcid_1.l2w_700"
CASES = {
    "update": ("sm100", {}, {"scan.exclusive.sum I64 I32": f"ipt_20.tpb_384.{DELAY}.trp_1.ld_1"}),
    "add": ("sm100", {}, {"partition.if I64 I64 true": f"trp_1.ld_1.ipt_9.tpb_384.{DELAY}"}),
    "guard": ("sm100", {}, {"select.flagged I128 I64 false": f"trp_0.ld_0.ipt_9.tpb_256.{DELAY}"}),
    "split": (
        "sm100",
        {"collisions": "split"},
        {
            "select.if I32 I64 true": f"trp_1.ld_0.ipt_18.tpb_256.{DELAY}",
            "select.if F32 I64 true": f"trp_0.ld_1.ipt_16.tpb_384.{DELAY}",
        },
    ),
    "narrow": (
        "sm100",
        {},
        {
            "select.if I32 I64 true": f"trp_1.ld_0.ipt_18.tpb_256.{DELAY}",
            "select.if F32 I64 true": None,
        },
    ),
    "line": ("sm90", {}, {"radix_sort.keys I8 I32": "ipt_18.tpb_384"}),
    "base": ("sm90", {}, {"scan.exclusive.sum F64 I32": f"ipt_20.tpb_256.{DELAY}.trp_1.ld_0"}),
    # No entry has keys of 128 bits: they get a heading as the others have one.
    "heading": (
        "sm100",
        {},
        {
            "select.unique_by_key I128 I16 I32": f"ipt_12.tpb_512.trp_0.ld_0.{DELAY}",
            "select.unique_by_key I128 I32 I32": f"ipt_13.tpb_512.trp_0.ld_0.{DELAY}",
        },
    ),
    # What its siblings inherit does not fit: values, in the order of the family beside it.
    "values": (
        "sm90",
        {},
        {"scan.exclusive.sum I16 I32": "ipt_20.tpb_384.ns_500.dcid_2.l2w_700.trp_0.ld_0"},
    ),
    # No entry of sm90 has a load modifier: it stands where those of sm100 have it.
    "added member": ("sm90", {}, {"select.if I32 I64 false": f"trp_1.ld_1.ipt_18.tpb_256.{DELAY}"}),
    "rewrite": ("sm100", {}, {"radix_sort.keys I8 I32": "ipt_18.tpb_384"}),
    "fixed": (
        "sm100",
        {},
        {
            # The benchmark loads by LOAD_DEFAULT, and the policy by LOAD_LDG.
            "reduce.sum I32 I32": "ipt_20.tpb_256.ipv_2",
            "reduce.sum F32 I32": "ipt_18.tpb_256.ipv_1",
        },
    ),
    # What has its values already needs nothing; of what has not, no later architecture hears.
    "new policy": (
        "sm103",
        {"reach": "only"},
        {"radix_sort.keys I8 I32": "ipt_18.tpb_384", "radix_sort.keys I16 I32": "ipt_20.tpb_512"},
    ),
    "new family": ("sm120", {}, {"radix_sort.keys I8 I32": "ipt_18.tpb_384"}),
}


def results(wanted, version=VERSION):
    """`scan.exclusive.sum I64 I32` and its winner, or base."""
    for text, variant in wanted.items():
        name, *values = text.split()
        of = benchmark(version, name)
        workload = dict(zip(of.axes, values, strict=True))
        yield scored(of, workload, variant, version)


def shown(planned):
    """Decisions, then by file how many lines go and which come."""
    rows = [f"{name}: {decision}" for name, decision in planned.decisions.items()]
    for name, after in sorted(planned.after.items()):
        lines = unified(name, planned.data[name], after).splitlines()[3:]
        gone = sum(line.startswith("-") for line in lines)
        rows += ["", f"{name}: {gone} lines go"]
        rows += [line for line in lines if line.startswith("+")]
    return "\n".join(rows) + "\n"


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("name", sampled(CASES, "add", "new family"))
def test_what_is_written_is_what_was_reviewed(name):
    arch, options, wanted = CASES[name]
    planned = Planned(root(VERSION), list(results(wanted)), arch=arch, force=True, **options)
    assert planned.effect().wrong == ()
    path = GOLDENS / f"{name.replace(' ', '_')}.txt"
    text = shown(planned)
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text)
    known = path.read_text()
    if text != known:
        diff = "\n".join(difflib.unified_diff(known.splitlines(), text.splitlines(), lineterm=""))
        pytest.fail(f"{diff}\n\nUPDATE_GOLDENS=1 writes it anew")
