"""`policygen emit`: from a database to a header of policy selectors, proven."""

import json
import os
from pathlib import Path

import jsonschema
import pytest

from fixtures.databases.every import GPUS, benchmark_database
from policygen import __version__
from policygen.app import emit as emitting
from policygen.app import resolve
from policygen.model.selection import Selected
from policygen.textdiff import unified
from tests.cli.tuned import run
from tests.probing import root
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]
ROOT = Path(__file__).parent.parent.parent
GOLDENS = Path(__file__).parent / "goldens"
SUM = "cub.bench.reduce.sum"
GOOD = "ipt_20.tpb_512.ipv_2"
WINNERS = {
    ("F32", "I32"): GOOD,
    ("I64", "I32"): GOOD,
    ("I128", "I32"): "ipt_10.tpb_384.ipv_1",
    ("F64", "I64"): None,
}


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    """Sums of which a variant is better for three."""
    path = tmp_path_factory.mktemp("databases") / "sums.db"
    benchmark_database(path, SUM, "3.6.0", GPUS["sm90"], WINNERS)
    return path


@pytest.fixture(scope="module")
def tops(tmp_path_factory):
    """A benchmark whose policy is CUB's own affair."""
    path = tmp_path_factory.mktemp("databases") / "tops.db"
    won = {("I32", "I32", "I32"): "ipt_4.tpb_128.ld_1"}
    benchmark_database(path, "cub.bench.topk.keys", "3.6.0", GPUS["sm90"], won)
    return path


def emit(capsys, db, *arguments, arch="sm90", cub="3.6.0"):
    return run(capsys, "emit", "--db", db, "--arch", arch, "--cub", root(cub), *arguments)


@pytest.mark.parametrize("std", sampled([17, 20], 17))
def test_a_header_is_written_proven_and_as_it_was_before(capsys, sums, std):
    status, out, err = emit(capsys, sums, "-o", "my_tunings.cuh", "--std", str(std))
    assert status == 0, err
    assert [row for row in out.splitlines() if row.startswith(("write ", "proved", "written"))] == [
        "write cub.bench.reduce.sum T=F32 OffsetT=I32: reduce, ipt_20.tpb_512.ipv_2",
        "write cub.bench.reduce.sum T=I64 OffsetT=I32: reduce, ipt_20.tpb_512.ipv_2",
        "write cub.bench.reduce.sum T=I128 OffsetT=I32: reduce, ipt_10.tpb_384.ipv_1",
        "proved: 9 policies as tuned on sm90, 1,720 policies on 19 architectures as CUB's",
        "written: my_tunings.cuh: reduce",
    ]
    assert "1 workload left to the fallback\n" in out
    assert "  cub.bench.transform_reduce.sum T=F32 OffsetT=I32\n" in out
    text = Path("my_tunings.cuh").read_text()
    golden = GOLDENS / f"my_tunings_{std}.cuh"
    assert str(sums.parent) not in text
    text = text.replace(__version__, "VERSION")
    if os.environ.get("UPDATE_GOLDENS"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    if text != golden.read_text():
        diff = unified(golden.name, golden.read_bytes(), text.encode())
        pytest.fail(f"{diff}\n\nUPDATE_GOLDENS=1 writes it anew")


def test_standard_output_holds_the_header_alone(capsys, sums):
    given = ("-a", "T{ct}=F32", "--no-prove", "--namespace", "my::own")
    status, out, err = emit(capsys, sums, *given)
    assert status == 0
    assert out.startswith("// Made by policygen")
    assert out.endswith("} // namespace my::own\n")
    assert "//! #include <my_own.cuh>\n" in out
    assert "not proven, because of --no-prove\n" in err
    quietly = emit(capsys, sums, *given, "-q")
    assert quietly == (0, out, "")


@pytest.mark.slow
def test_json_says_what_became_of_each_workload(capsys, sums):
    status, out, _ = emit(
        capsys, sums, "--json", "-q", "-o", "1-tunings.h", "--algorithm", "reduce"
    )
    assert status == 0
    document = json.loads(out)
    schema = json.loads((ROOT / "schemas/json/emit-1.schema.json").read_text())
    jsonschema.validate(document, schema)
    assert document["text"] == Path("1-tunings.h").read_text()
    assert document["namespace"] == "tunings"
    decisions = [(a["workload"]["T"], a["decision"], a["variant"]) for a in document["actions"]]
    assert sorted(decisions, key=lambda one: one[0]) == [
        ("F32", "write", GOOD),
        ("F64", "fallback", None),
        ("I128", "write", "ipt_10.tpb_384.ipv_1"),
        ("I64", "write", GOOD),
    ]
    (selector,) = document["selectors"]
    assert selector["parameters"] == [
        "typename AccumT",
        "typename OffsetT",
        "typename ReductionOpT",
        "::cuda::execution::determinism::__determinism_t Determinism",
    ]
    assert [one["guard"] for one in selector["returns"]].count("_CCCL_HAS_INT128()") == 1
    assert document["proof"]["changed"] == 9


def test_verbosely_every_workload_is_told(capsys, sums):
    status, _, err = emit(capsys, sums, "-v", "--no-prove")
    assert status == 0
    assert "fallback cub.bench.reduce.sum T=F64 OffsetT=I64: " in err


@pytest.mark.slow
def test_a_header_that_does_something_else_is_not_written(capsys, tmp_path, monkeypatch):
    name, won = "cub.bench.reduce.deterministic", {("F32", "I32"): "ipt_9.tpb_160"}
    benchmark_database(tmp_path / "run.db", name, "3.6.0", GPUS["sm90"], won)
    real = emitting.render
    monkeypatch.setattr(
        emitting, "render", lambda *given: real(*given).replace("_block = 160", "_block = 64")
    )
    status, out, err = emit(capsys, tmp_path / "run.db", "-q", "-o", "wrong.cuh")
    assert (status, out) == (1, "")
    differs = (
        "T=F32 OffsetT=I32 on sm90: multi_tile.threads_per_block is 64, not 160,"
        " single_tile.threads_per_block is 64, not 160\n"
    )
    assert err == (
        "policygen: error: the effect of the change differs from the plan; nothing was written\n"
        f"  {name} {differs}  cub.bench.reduce.deferred_deterministic {differs}"
    )
    monkeypatch.setattr(emitting, "render", lambda *given: real(*given).replace("return", "retrun"))
    status, _, err = emit(capsys, tmp_path / "run.db", "-q", "-o", "wrong.cuh")
    assert status == 1
    assert "the header does not compile: command failed with status" in err
    assert not Path("wrong.cuh").exists()


@pytest.mark.parametrize(
    ("arguments", "more", "error"),
    [
        (
            (),
            {"cub": "3.2.0"},
            "CUB 3.2.0 does not accept policy selectors in its public API\n"
            "  CUB 3.5 and later do: name such a tree with --cub, or edit the headers with"
            " policygen apply.\n",
        ),
        (
            (),
            {"arch": "sm100"},
            "the results are from Demo H200 (sm90), but --arch is sm100\n"
            "  Name the architecture that was measured, or add --any-gpu.\n",
        ),
        (
            ("--namespace", "my tunings"),
            {},
            "--namespace 'my tunings' is not a C++ namespace\n  Write it like my::tunings.\n",
        ),
        (
            ("--algorithm", "reduce,sorting"),
            {},
            "unknown algorithm sorting\n  Available: adjacent_difference, batched_copy, copy,",
        ),
        (
            ("--algorithm", "scan,deterministic_reduce"),
            {},
            "the databases have no results for deterministic_reduce, scan\n"
            "  They have: cub.bench.reduce.sum\n",
        ),
        (
            ("-a", "T{ct}=F64"),
            {},
            "nothing to emit\n  cub.bench.reduce.sum T=F64 OffsetT=I64: ",
        ),
    ],
)
def test_what_cannot_be_emitted_is_refused(capsys, sums, arguments, more, error):
    status, out, err = emit(capsys, sums, *arguments, "-q", "-o", "none.cuh", **more)
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {error}")
    assert not Path("none.cuh").exists()


def test_a_private_policy_is_refused_with_the_reason(capsys, tops):
    status, _, err = emit(capsys, tops, "-q")
    assert status == 2
    assert err == (
        "policygen: error: nothing to emit\n"
        "  cub.bench.topk.keys KeyT=I32 OffsetT=I32 OutOffsetT=I32: CUB 3.6.0 does not accept a"
        " policy selector for this algorithm\n"
    )


def test_an_architecture_must_be_named(capsys, sums):
    status, _, err = run(capsys, "emit", "--db", sums)
    assert (status, err) == (
        2,
        "policygen: error: no architecture given\n"
        "  Name the architecture that was measured: --arch sm90\n",
    )


class Elsewhere:
    """A tree of another version, where everything has other values."""

    def tell(self, points, arch):
        return {point: Selected({"threads": 1}) for point in points}


@pytest.mark.slow
def test_of_several_versions_the_one_with_the_base_of_the_tree_counts(
    capsys, monkeypatch, tmp_path
):
    """3.5.0 is nearer to 3.6.0 than 3.2.0 is, as long as nobody knows of its base."""
    paths = []
    for version in ("3.2.0", "3.5.0"):
        paths.append(tmp_path / f"{version}.db")
        won = {("I8", "I32"): "ipt_18.tpb_256"}
        name = "cub.bench.radix_sort.keys"
        benchmark_database(paths[-1], name, version, GPUS["sm90"], won)
    given = ("--db", paths[1], "--no-prove", "-o", "a.cuh", "--any-gpu")
    monkeypatch.setattr(resolve, "measured_trees", lambda *_: {})
    assert emit(capsys, paths[0], *given)[0] == 0
    assert "CCCL v3.5.0" in Path("a.cuh").read_text()
    monkeypatch.setattr(resolve, "measured_trees", lambda *_: {"3.5.0": Elsewhere()})
    assert emit(capsys, paths[0], *given)[0] == 0
    assert "CCCL v3.2.0" in Path("a.cuh").read_text()
