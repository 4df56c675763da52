"""Files as rocPRIM's benchmarks and its tuner write them; a seed decides every number."""

import json
import random
from itertools import product
from pathlib import Path

SIZE = 33_554_432
BATCH = 10
CONTEXT = {
    "date": "2026-03-01T10:00:00+00:00",
    "executable": "benchmark_device",
    "num_cpus": 8,
    "library_build_type": "release",
    "hdp_name": "AMD Instinct MI300X",
    "hdp_clock_rate": "2100000",
    "hdp_memory_clock_rate": "1300000",
    "hdp_memory_bus_width": "8192",
    "hdp_multi_processor_count": "304",
    "hdp_gcn_arch_name": "gfx942:sramecc+:xnack-",
    "hdp_ecc_enabled": "1",
    "size": str(SIZE),
    "seed": "random",
}
METHODS = ["raking_reduce", "using_warp_reduce"]
SCANS = ["block_scan_algorithm::reduce_then_scan", "block_scan_algorithm::using_warp_scan"]
RANKS = ["block_radix_rank_algorithm::basic", "block_radix_rank_algorithm::match"]
REDUCE = {"bs": [128, 256], "ipt": [8, 16], "method": METHODS}
SCAN = {"bs": [64, 256], "ipt": [4, 12], "method": SCANS}
ONESWEEP = {
    "histogram": {"bs": [256], "ipt": [12]},
    "sort": {"bs": [256, 512], "ipt": [6, 12]},
    "bits_per_place": [8],
    "algorithm": RANKS,
}
BLOCK_SORT = {"bs": [256, 512], "ipt": [2, 4]}
HISTOGRAM = {
    "bs": [128, 256],
    "ipt": [8],
    "max_grid_size": [1024],
    "shared_impl_max_bins": [2048],
    "shared_impl_histograms": [2, 3],
}
ALGORITHMS = {
    ("reduce", "key_type:int"): REDUCE,
    ("reduce", "key_type:rocprim::half"): REDUCE,
    ("scan", "exclusive:true,value_type:float"): SCAN,
    ("radix_sort_onesweep", "key_type:int,value_type:custom_type<int,int>"): ONESWEEP,
    ("merge_sort_block_sort", "key_type:int8_t,value_type:empty_type"): BLOCK_SORT,
    ("histogram", "value_type:uint8_t,channels:4,active_channels:3"): HISTOGRAM,
}
DEFAULT = "default_config"


def configurations(space):
    """All configurations of a space, nested as it is."""
    names = list(space)
    values = [configurations(one) if isinstance(one, dict) else one for one in space.values()]
    return [dict(zip(names, point, strict=True)) for point in product(*values)]


def spelled(found):
    """A configuration as rocPRIM writes it."""
    if not isinstance(found, dict):
        return str(found)
    return "{" + ",".join(f"{name}:{spelled(value)}" for name, value in found.items()) + "}"


def as_pairs(text):
    """`key_type:int,value_type:custom_type<int,int>` as an object."""
    parts = []
    for part in text.split(","):
        if ":" in part:
            parts.append(part)
        else:
            parts[-1] += f",{part}"
    pairs = dict(part.split(":", 1) for part in parts)
    return {name: int(value) if value.isdigit() else value for name, value in pairs.items()}


def name_of(algorithm, types, config, spelling):
    """The name of a benchmark: `txt`, or `json`."""
    if spelling == "txt":
        text = spelled(config) if isinstance(config, dict) else f" {config}"
        return f"{{lvl:device,algo:{algorithm},{types},cfg:{text}}}/manual_time"
    made = {"lvl": "device", "algo": algorithm, **as_pairs(types), "cfg": config}
    return json.dumps(made, separators=(",", ":")) + "/manual_time"


def milliseconds(config):
    """What an iteration takes: the configuration with the longest text is a fifth faster."""
    length = len(spelled(config)) % 7
    return 2.0 if config == DEFAULT else 2.0 * (1.05 - 0.03 * length)


def row(name, time, *, repetition=0, repetitions=1, **more):
    """One repetition, as Google Benchmark writes it; the time is of an iteration."""
    return {
        "name": name,
        "family_index": 0,
        "per_family_instance_index": 0,
        "run_name": name,
        "run_type": "iteration",
        "repetitions": repetitions,
        "repetition_index": repetition,
        "threads": 1,
        "iterations": 250,
        "real_time": round(time, 9),
        "cpu_time": round(time * 1.1, 9),
        "time_unit": "ms",
        "bytes_per_second": round(BATCH * SIZE * 4 / time * 1000, 1),
        "items_per_second": round(BATCH * SIZE / time * 1000, 1),
        **more,
    }


def aggregate(name, kind, time, **more):
    """What all repetitions are together."""
    made = row(f"{name}_{kind}", time, run_type="aggregate", aggregate_name=kind)
    return {**made, "run_name": name, "aggregate_unit": "time", "repetition_index": 0, **more}


def benchmarks(
    algorithms=None, *, seed=1, repetitions=5, spelling="json", default=True, only=(), **context
):
    """The whole of a file; `default` is whether the library's own configurations ran, too."""
    rng = random.Random(f"{seed} {repetitions}")
    rows = []
    for (algorithm, types), space in (ALGORITHMS if algorithms is None else algorithms).items():
        tuned = [] if default == "only" else configurations(space)
        for config in [*([DEFAULT] if default else []), *tuned]:
            name = name_of(algorithm, types, config, spelling)
            time = milliseconds(config)
            times = [time * rng.gauss(1, 0.002) for _ in range(repetitions)]
            if not only:
                rows += [
                    row(name, one, repetition=at, repetitions=repetitions)
                    for at, one in enumerate(times)
                ]
            if only or repetitions > 1:
                rows.append(aggregate(name, "mean", sum(times) / len(times)))
                rows.append(aggregate(name, "median", sorted(times)[len(times) // 2]))
                rows.append(aggregate(name, "stddev", time * 0.002))
    known = {key: value for key, value in {**CONTEXT, **context}.items() if value is not None}
    return {"context": known, "benchmarks": rows}


def cache(types=None, *, seed=1, algorithm="device_merge", space=None, count=1, **more):
    """A cache of rocPRIM's tuner: milliseconds for a GiB, one for each configuration."""
    rng = random.Random(f"{seed} {algorithm} {types}")
    space = space or {"block_size_x": [128, 256, 512], "ipt": [4, 8]}
    entries = {}
    for at, point in enumerate(product(*space.values())):
        values = dict(zip(space, point, strict=True))
        time = 0.3 * (1 - 0.02 * at)
        times = [time * rng.gauss(1, 0.002) for _ in range(count)]
        entries[",".join(map(str, point))] = {
            **values,
            "time": sum(times) / count,
            "times": times,
            "compile_time": 9000.0,
            "verification_time": 0,
            "benchmark_time": 800.0,
            "GiB/s": 1000.0 / time,
            "timestamp": f"2026-03-01 10:00:{at % 60:02}.{seed:06}+00:00",
        }
    return {
        "arch_name": "gfx942",
        "algo_name": algorithm,
        **(types or {"key_type": "rocprim::int128_t", "value_type": "empty_type"}),
        "device_name": "x86_64",
        "kernel_name": f"{algorithm}_wrapper",
        "problem_size": SIZE,
        "tune_params_keys": list(space),
        "tune_params": {name: list(values) for name, values in space.items()},
        "objective": "time",
        **more,
        "cache": entries,
    }


SHOWN = {
    key: ALGORITHMS[key] for key in ALGORITHMS if key[0] in {"merge_sort_block_sort", "histogram"}
} | {("reduce", "key_type:int"): REDUCE}


def tuned_example():
    """What benchmarks that are built to tune write: no default_config; one run failed."""
    made = benchmarks(SHOWN, default=False)
    made["benchmarks"] = [one for one in made["benchmarks"] if one["run_type"] == "iteration"]
    broken = made["benchmarks"][4]
    made["benchmarks"][4] = {**broken, "real_time": 0.0}
    return made


def default_example():
    """What the same benchmarks write as they are: nothing but default_config, and not of all."""
    chosen = {key: space for key, space in SHOWN.items() if key[0] != "histogram"}
    return benchmarks(chosen, seed=2, spelling="txt", default="only")


EXAMPLES = {
    "rocprim_tuned.json": tuned_example,
    "rocprim_default.json": default_example,
    "device_merge_gfx942_int128_t_cache.json": cache,
}
UPDATE = "python -m tests.results.rocprim_files"


def text_of(made):
    """A file as it stands among the examples: a row for each benchmark."""
    rows = made.get("benchmarks")
    if rows is None:
        return json.dumps(made, indent=1) + "\n"
    lines = ",\n".join(json.dumps(one) for one in rows)
    return f'{{"context": {json.dumps(made["context"])},\n"benchmarks": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    for file, make in EXAMPLES.items():
        path = Path(__file__).parent.parent.parent / "fixtures/tuners" / file
        path.write_text(text_of(make()))
