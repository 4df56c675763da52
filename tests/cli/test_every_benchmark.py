"""Databases of every benchmark whose results have a place: one plan, applied and proved."""

import json
import random
import re

import pytest

from fixtures.databases.every import benchmark_of, workloads
from policygen.bindings.load import axis_type, bound
from policygen.model.trees import BoundVersion
from tests.cli.tuned import database, run
from tests.probing import TUNINGS, changed_tree, header
from tests.tiers import slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

VERSION = "3.0.1"
WRITABLE = {
    benchmark.name: algorithm
    for algorithm in bound(BoundVersion(VERSION))
    for benchmark in algorithm.benchmarks
    if benchmark.writable
}
HEADERS = {
    site.header
    for algorithm in WRITABLE.values()
    for site in algorithm.sites
    if site.dialect == "specializations"
}


def has_family(name, arch):
    site = benchmark_of(name, VERSION).site
    return any(f.site == site and f.name.startswith(arch) for f in WRITABLE[name].families)


BENCHMARKS = {
    "sm90": [name for name in WRITABLE if has_family(name, "sm90")],
    "sm100": [name for name in WRITABLE if not has_family(name, "sm90")],
}


def winner(name, workload):
    """A variant out of the search space, the same every time."""
    rng = random.Random(f"{name} {workload}")
    parts = []
    for label, space in benchmark_of(name, VERSION).parameters.items():
        start, end, step = map(int, space.split(":"))
        parts.append(f"{label}_{rng.randrange(start, end + 1, step)}")
    return ".".join(parts)


def databases(folder, arch):
    """One for each benchmark; two of its workloads are won."""
    for name in BENCHMARKS[arch]:
        points = workloads(benchmark_of(name, VERSION), VERSION)
        won = random.Random(f"{name} {arch}").sample(points, 2)
        found = {point: winner(name, point) for point in won}
        yield database(folder / f"{name}.db", found, arch, name)


ONE_ENTRY = re.compile(
    "(?:one entry decides [0-9]+ workloads, and )?(?:nothing that an entry can name distinguishes"
    r" them, and |an entry only for \S+ does not help \()?no variant suits all of them: "
)


def is_true(action, actions):
    """Whether the reason of a rejection holds, as far as the workloads alone tell."""
    reason = action["reason"]
    types = [
        axis_type(v, BoundVersion(VERSION))
        for a, v in action["workload"].items()
        if a in {"T", "KeyT"}
    ]
    if ONE_ENTRY.match(reason):
        others = [a for a in actions if a["target"] == action["target"] and a is not action]
        return any(a["variant"] != action["variant"] for a in others)
    if reason == "would be unreachable: the policy reads the family only where KeySize is 1 or 2":
        return types[0].size > 2
    if "entries of sm90_tuning cannot have vec_size: 4 is not an argument" in reason:
        return bool(re.search(r"\bvec_[013]\b", action["variant"]))
    if "no would also match every other type of this size" in reason:
        return "complex" in types[0].cpp
    return False


def test_every_writable_benchmark_has_an_architecture():
    assert [name for lot in BENCHMARKS.values() for name in lot] != []
    assert {name for lot in BENCHMARKS.values() for name in lot} == set(WRITABLE)
    assert all(has_family(name, "sm100") for name in BENCHMARKS["sm100"])


@slow
@pytest.mark.parametrize("arch", BENCHMARKS)
def test_every_benchmark_is_written_proved_and_taken_back(capsys, tmp_path, arch):
    tree = changed_tree(tmp_path, VERSION, {name: header(VERSION, name) for name in HEADERS})
    before = {path.name: path.read_bytes() for path in (tree / TUNINGS).iterdir()}
    given = [part for path in databases(tmp_path, arch) for part in ("--db", path)]
    # No policy follows sm100; that of sm90 serves calls of no benchmark on sm100, too.
    given += ["--reach", "later"] if arch == "sm100" else ["--reaches", "sm100"]
    arguments = ("apply", "--cub", tree, "--arch", arch, *given, "-q")
    status, out, _ = run(capsys, *arguments, "--json")
    assert status == 0
    actions = json.loads(out)["actions"]
    written = [a for a in actions if a["decision"] in {"update", "add"}]
    others = [a for a in actions if a["decision"] not in {"update", "add"}]
    assert {a["benchmark"] for a in actions} == set(BENCHMARKS[arch])
    assert [a["reason"] for a in others if not is_true(a, actions)] == []
    assert all(a["decision"] == "reject" for a in others)
    said = [a for a in others if "cannot have vec_size" not in a["reason"]]
    assert len(written) > len(said)
    assert run(capsys, "verify-effect", "--cub", tree, "-q") == (0, "", "")
    check_scan(capsys, tree, written)
    assert run(capsys, "undo", "-q")[0] == 0
    assert {path.name: path.read_bytes() for path in (tree / TUNINGS).iterdir()} == before


def check_scan(capsys, tree, written):
    """The headers can be read, and have an entry with each variant that was written."""
    status, out, _ = run(capsys, "scan", "--cub", tree, "--json")
    document = json.loads(out)
    assert (status, document["problems"]) == (0, [])
    there = {
        (family["header"], family["namespace"], family["name"], entry["variant"])
        for family in document["families"]
        for entry in family["entries"]
    }
    for action in written:
        target = action["target"]
        place = target["header"], target["namespace"], target["family"]
        assert (*place, action["variant"]) in there
