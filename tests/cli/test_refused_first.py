"""What is wrong is said before a compiler runs or answers from its cache, and before a GPU."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from policygen.app import measure, sass, search
from policygen.app.filters import Filter
from policygen.app.measured_workloads import check_runtime_axes, chosen_workloads
from policygen.cli import review
from policygen.errors import InputError
from policygen.gpu import compiling
from policygen.model.machine_code import SassCompiles
from policygen.proof import probe
from tests.cli.tuned import database, run
from tests.gpu.real import session
from tests.probing import root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
SUM = "cub.bench.reduce.sum"
NO_TREE = "'9.9' is neither a folder, a "
ANOTHER = "the results are from Demo H200 (sm90), but {} sm100\n  "
VALUES = "no workload has T = NOPE\n  T is one of "
SIZE = "Elements{io}[pow2]"
NO_SIZE = f"no workload has {SIZE} = 17\n  {SIZE} is one of "
BAD = ("-R", "cub.bench.reduce", "-a", "T{ct}=[I8,NOPE]")


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch, tmp_path):
    """Two databases and two campaigns, no compiler, and no GPU."""
    monkeypatch.chdir(tmp_path)
    database(tmp_path / "three.db")
    kept = {("F64", "I64"): None, ("F32", "I32"): None}
    benchmark_database(tmp_path / "none.db", SUM, "3.6.0", GPUS["sm90"], kept)

    def refuse(*_arguments, **_more):
        raise AssertionError("a compiler or a GPU is asked")

    for name in ("NOPE", "I8"):
        group = f'[[workload]]\nbenchmark = "reduce.sum"\naxes = ["T{{ct}}=[I8,{name}]"]\n'
        (tmp_path / f"{name}.toml").write_text(group)
    monkeypatch.setattr(probe, "compile_divided", refuse)
    monkeypatch.setattr(compiling, "remembered", refuse)
    monkeypatch.setattr(search, "open_place", refuse)
    monkeypatch.setattr(measure, "find_gpu", refuse)


@pytest.mark.parametrize(
    ("arguments", "version", "told"),
    [
        (("audit", "coverage", "--arch", "sm90", "--compare", "9.9"), "3.0.1", NO_TREE),
        (("resolve", "--arch", "sm90", "--compare", "9.9"), "3.0.1", NO_TREE),
        (
            ("audit", "coverage", "--arch", "sm100", "--db", "three.db"),
            "3.0.1",
            ANOTHER.format("--arch is"),
        ),
        (("plan", "--db", "three.db", "--arch", "sm100"), "3.0.1", ANOTHER.format("--arch is")),
        (("apply", "--db", "three.db", "--arch", "sm100"), "3.0.1", ANOTHER.format("--arch is")),
        (("plan", "--db", "three.db", "--arch", "sm90", "--measured-on", "9.9"), "3.0.1", NO_TREE),
        (("emit", "--db", "none.db", "--arch", "sm100"), "3.6.0", ANOTHER.format("--arch is")),
        (
            ("emit", "--db", "none.db", "--arch", "sm90"),
            "3.6.0",
            f"nothing to emit\n  {SUM} T=F32 OffsetT=I32: no variant passes the rules;",
        ),
        (("resolve", *BAD), "3.0.1", VALUES),
        (("resolve", *BAD, "--compare", str(root("3.6.0"))), "3.0.1", VALUES),
        (("audit", "coverage", *BAD), "3.0.1", VALUES),
        # Others of these benchmarks have no such axis, and would be asked.
        (("resolve", "-R", "cub.bench", "-a", "T{ct}=NOPE"), "3.0.1", VALUES),
        (("measure", "--compile-only", "--arch", "sm90", *BAD), "3.6.0", VALUES),
        (("measure", "--variant", "ipt_19.tpb_512", *BAD), "3.6.0", VALUES),
        (("search", "--db", "x.db", *BAD), "3.6.0", VALUES),
        (("search", "--db", "x.db", "-R", "x.*"), "3.6.0", "no workload matches -R 'x.*'\n"),
        (("search", "--db", "x.db", "-R", f"{SUM}$", "-a", f"{SIZE}=[16,17]"), "3.6.0", NO_SIZE),
        (("tune", "--db", "x.db", "-o", "x.cuh", *BAD), "3.6.0", VALUES),
        (("campaign", "NOPE.toml"), "3.6.0", f"workload 1 of the plan: {VALUES}"),
        (("campaign", "I8.toml", *BAD), "3.6.0", VALUES),
        (("campaign", "I8.toml", "-a", f"{SIZE}=[16,17]"), "3.6.0", NO_SIZE),
        (("campaign", "I8.toml", "-R", "cub.bench.scan"), "3.6.0", "-R and -a select no workload"),
    ],
)
def test_before_a_compiler_runs(capsys, arguments, version, told):
    status, out, err = run(capsys, *arguments, "--cub", root(version), "-q")
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {told}")


@pytest.mark.parametrize(
    ("axis", "told"),
    [
        (
            "Elements{io}[pow2]=32",
            f"-a leaves no runtime workload of {SUM}\n  Elements{{io}}[pow2] is ",
        ),
        ("Elements{io}[pow2]=[16,17]", "no workload has Elements{io}[pow2] = 17\n  Elements"),
        ("Elements[pow2]=16", "no workload has a runtime axis Elements[pow2]\n  They have: Elem"),
    ],
)
def test_runtime_axes_are_looked_at_before_anything_is_compiled(axis, told):
    sums = r"cub\.bench\.(reduce|scan\.exclusive)\.sum$"  # only the latter has 2^32 elements
    where = Filter(regex=sums, axes=("T{ct}=F32", "Elements{io}[pow2]=[16,20]"))
    selected = chosen_workloads(session("3.6.0"), where.compile_time)
    check_runtime_axes(session("3.6.0"), where, selected)
    with pytest.raises(InputError) as caught:
        check_runtime_axes(session("3.6.0"), replace(where, axes=("T{ct}=F32", axis)), selected)
    assert str(caught.value).startswith(told)


def test_what_machine_code_takes_grows_with_its_units():
    spots = [((f"reduce {number}", "sm90"), "") for number in range(6)]
    sides = {spot: "" for spot, _ in spots}
    compiles = SimpleNamespace(
        before=sides, after=sides, base=None, spots=spots, archs=("sm90",), changed=6
    )
    compiles.untouched, compiles.remarks = 0, ()
    told = sass._estimate(compiles, SimpleNamespace(tools="nvcc 13.2.86", seconds=40.0), 2)
    assert (told.units, told.at_once, told.minutes) == (6, 2, 2.0)


def test_a_dry_run_of_a_review_needs_its_machine_code_and_no_document(capsys, monkeypatch):
    compiles = SassCompiles(
        base="HEAD",
        toolchain="nvcc 13.2.86",
        archs=("sm80",),
        workloads=2,
        changed=1,
        untouched=0,
        units=4,
        at_once=2,
        minutes=10.0,
    )
    monkeypatch.setattr(review, "start", lambda *_, **__: None)
    monkeypatch.setattr(review, "tell_earlier", lambda *_: compiles)
    status, out, _ = run(capsys, "review", "--run-sass", "--dry-run", "--json")
    assert (status, json.loads(out)["units"]) == (0, 4)
    for more in ([], ["--run-sass", "--from", "review.json"]):
        status, _, err = run(capsys, "review", "--dry-run", *more)
        assert status == 2
        assert "--dry-run is for --run-sass." in err
