"""A tree from before a family was there: it is made again, and says what its labels say."""

import re
from pathlib import Path

import pytest

from fixtures.databases.every import GPUS, Workload, benchmark_database
from policygen import Options, ResultFiles, open_session, plan_tunings
from policygen.headers.scan import read_header
from policygen.headers.spelling import edit_at, splice
from policygen.model.records import Span
from tests.probing import TUNINGS, changed_tree, header

SM100 = "sm100"


def without(version: str, name: str, families: set[str]) -> bytes:
    """A header without families and without the policy that reads them, as before a commit."""
    data = header(version, name)
    read = read_header(name, data)
    spans = [e.span for f in read.families if f.name in families for e in f.entries]
    (chain,) = (
        c for c in read.chains if any(u.family in families for p in c.policies for u in p.uses)
    )
    (policy,) = (p for p in chain.policies if any(u.family in families for u in p.uses))
    spans.append(policy.span)
    less = splice(name, data, [edit_at(data, Span(*span), "", "taken out") for span in spans])
    top = f"= {chain.max_policy};".encode()
    assert (chain.max_policy, less.count(top)) == (policy.name, 1)
    return less.replace(top, f"= {policy.predecessor};".encode())


@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("name", "families", "bench", "workload", "label", "lines"),
    [
        pytest.param(
            "tuning_scan_by_key.cuh",
            {"sm100_tuning"},
            "cub.bench.scan.exclusive.by_key",
            ("I8", "I32", "I32"),
            "ipt_19.tpb_224.ns_1028.dcid_5.l2w_910.trp_1.ld_1",
            ["CacheLoadModifier load_modifier = LOAD_CA;", "Policy1000 : ChainedPolicy<1000,"],
            id="the older families leave a load modifier to their policy",
        ),
        pytest.param(
            "tuning_radix_sort.cuh",
            {"sm100_small_key_tuning"},
            "cub.bench.radix_sort.keys",
            ("I16", "I32"),
            "ipt_20.tpb_512",
            ["sm100_small_key_tuning<2, 0, 4>", "Policy1000 : ChainedPolicy<1000,"],
            id="the older family has fewer parameters than the one that is bound",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.slow
def test_a_family_that_a_tree_does_not_have_yet_says_all_that_its_label_says(
    name: str,
    families: set[str],
    bench: str,
    workload: Workload,
    label: str,
    lines: list[str],
    tmp_path: Path,
) -> None:
    tree = changed_tree(tmp_path, "3.0.1", {name: without("3.0.1", name, families)})
    database = tmp_path / "made.db"
    benchmark_database(database, bench, "3.0.1", GPUS[SM100], {workload: label})
    made = plan_tunings(open_session(str(tree)), ResultFiles([str(database)]), Options(arch=SM100))
    (action,) = made.plan.actions
    assert (action.decision, action.variant) == ("add", label)
    written = _packed(made.changed[name].decode())
    assert [line for line in lines if _packed(line) not in written] == []


def _packed(text: str) -> str:
    """Without white space: columns are aligned."""
    return re.sub(r"\s+", "", text)


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_an_architecture_before_all_families_of_a_header_gets_one_and_then_more(
    tmp_path: Path,
) -> None:
    """Sums have tunings for sm100 alone; the second plan writes to what the first one made."""
    name, bench = "tuning_reduce.cuh", "cub.bench.reduce.sum"
    tree, decided = changed_tree(tmp_path, "3.0.1", {}), []
    for number, workload in enumerate((("I32", "I32"), ("I64", "I32"))):
        database = tmp_path / f"{number}.db"
        winners: dict[Workload | None, str | None] = {workload: "ipt_20.tpb_256.ipv_2"}
        benchmark_database(database, bench, "3.0.1", GPUS["sm90"], winners)
        session, options = open_session(str(tree)), Options(arch="sm90")
        made = plan_tunings(session, ResultFiles([str(database)]), options)
        decided += [(one.decision, one.target and one.target.family) for one in made.plan.actions]
        decided.append(made.plan.policies)
        path = tree / TUNINGS / name
        path.unlink()
        path.write_bytes(made.changed[name])
    assert decided == [("add", "sm90_tuning"), ("Policy900",), ("add", "sm90_tuning"), ()]
