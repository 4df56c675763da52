"""Results of searches on AMD's GPUs that nobody ran, for configs that a tree has."""

import json
import random
from pathlib import Path

from policygen.bindings.load import bindings
from policygen.cli.main import main
from tests.results.rocprim_files import CONTEXT, name_of, row, text_of
from tests.rocprim.places import resolved

REPETITIONS = 6
MI210 = {
    "hdp_name": "AMD Instinct MI210",
    "hdp_memory_bus_width": "4096",
    "hdp_multi_processor_count": "104",
}
DEVICES = {"gfx90a": MI210}


def rules(benchmark, values):
    """By member of a config the parameter that it comes from, in the form that has the values."""
    for binding in bindings():
        for one in binding.benchmarks:
            if one.name == benchmark and binding.library == "rocprim":
                families = [f for f in binding.families if f.site == one.site]
                known = [f.members.keys() for f in families]
                fit = [(names <= values.keys(), len(names & values.keys())) for names in known]
                family = families[fit.index(max(fit))]
                return {member: rule.parameter for member, rule in family.members.items()}
    raise AssertionError(benchmark)


def config_of(found):
    """The values of a row of `resolve`, as results have them."""
    known = rules(found["benchmark"], found["values"]).items()
    return {name: found["values"][member] for member, name in known if name}


def measured(runs, arch, seed=1):
    """A file of runs: benchmark, workload, configuration and milliseconds each."""
    rng = random.Random(seed)
    rows = []
    for benchmark, workload, config, time in runs:
        algorithm = benchmark.removeprefix("rocprim.device_")
        types = ",".join(f"{axis}:{value}" for axis, value in workload.items())
        name = name_of(algorithm, types, config, "json")
        rows += [
            row(name, time * rng.gauss(1, 0.001), repetition=at, repetitions=REPETITIONS)
            for at in range(REPETITIONS)
        ]
    context = {**CONTEXT, **DEVICES.get(arch, {}), "hdp_gcn_arch_name": arch}
    return {"context": context, "benchmarks": rows}


def imported(capsys, tree, runs, arch, file="results.json", db="run.db"):
    """Writes a file of runs, and a database of it."""
    made = runs if isinstance(runs, dict) else measured(runs, arch)
    Path(file).write_text(text_of(made))
    status = main(["db", "import", file, "-o", db, "--cub", str(tree), "--force"])
    told = capsys.readouterr()
    return status, told.out, told.err


def against(found, changes, gain=1.2, base=2.0):
    """The run of what a row has, and one of other values that takes less time."""
    config = config_of(found)
    where = (found["benchmark"], found["workload"])
    return [(*where, config, base), (*where, {**config, **changes}, base / gain)]


def row_for(document, benchmark, **workload):
    """The row of a workload."""
    (found,) = [
        one
        for one in document["rows"]
        if one["benchmark"] == f"rocprim.device_{benchmark}" and one["workload"] == workload
    ]
    return found


def on(capsys, tree, arch, *options):
    """What a tree has on one architecture."""
    return resolved(capsys, tree, "--arch", arch, *options)[0]


def applied(capsys, tree, *options, db="run.db", arch="gfx90a", status=0):
    """What `apply` says."""
    given = ["apply", "--db", db, "--arch", arch, "--cub", str(tree), "--store", "store.db"]
    found = main([*given, *options])
    told = capsys.readouterr()
    assert found == status, told
    return told.out + told.err


def as_json(capsys, *arguments):
    """A document, and the status."""
    status = main([*arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)
