"""Files as rocPRIM's newer benchmarks write them, with primbench; a seed decides every number."""

import json
import random
import statistics
from pathlib import Path

from tests.results.rocprim_files import configurations

SIZE = 134_217_728
CALLS = 4
MERGE = {"bs": [128, 256], "ipt": [4, 8]}
SCAN = {
    "bs": [64, 256],
    "ipt": [4, 12],
    "method": ["block_scan_algorithm::reduce_then_scan", "block_scan_algorithm::using_warp_scan"],
}
KEYS = ({"key_type": "i32", "value_type": "empty"}, {"key_type": "half", "value_type": "i16"})
DEFAULT = "default"


def rounded(number):
    """A number as a stream of C++ writes it."""
    return float(f"{number:.6g}")


def meta_of(algorithm, types, config):
    """What a benchmark says of itself, in the order of the alphabet."""
    made = {"lvl": "device", "algo": f"device_{algorithm}", **types, "cfg": config}
    if isinstance(config, dict):
        made["cfg"] = dict(sorted(config.items()))
    return dict(sorted(made.items()))


def spelled(found):
    """`{ bs: 128, ipt: 4 }`, or a word."""
    if isinstance(found, dict):
        return "{ " + ", ".join(f"{name}: {spelled(value)}" for name, value in found.items()) + " }"
    return str(found).lower() if isinstance(found, bool) else str(found)


def name_of(meta):
    """What a run is called: its meta without what all have, and without a default."""
    return ", ".join(
        f"{key}: {spelled(value)}"
        for key, value in meta.items()
        if key not in {"lvl", "algo"} and not (key == "cfg" and value == DEFAULT)
    )


def run_of(meta, time, rng, *, noise=0.002, count=10, batches=False, bytes_per_item=8, **more):
    """One run: batches of calls of so many milliseconds, and the rate of the last one."""
    items = SIZE // bytes_per_item
    lots = [[time * rng.gauss(1, noise) for _ in range(CALLS)] for _ in range(count)]
    sums = [sum(lot) for lot in lots]
    rate = items * CALLS / (sums[-1] / 1000)
    apart = 100 * statistics.stdev(sums) / statistics.mean(sums)
    made = {
        "index": 0,
        "name": name_of(meta),
        "bytes_per_second": rounded(rate * bytes_per_item),
        "items_per_second": rounded(rate),
        "bytes_per_item": bytes_per_item,
        "items": items,
        "noise_timeout": apart >= 1.0,
        "noise_percent": rounded(apart),
        "meta": meta,
        "elapsed_secs": {"host": rounded(1 + sum(sums) / 500), "gpu": rounded(sum(sums) / 1000)},
        "gpu_temp_celsius": {"start": 52, "end": 53},
        "calls": {
            "kernel_calls_per_batch": CALLS,
            "ms_per_batch": rounded(sums[0]),
            "batches": count,
            "kernel_calls": CALLS * count,
        },
    }
    if batches:
        made["batches"] = [
            {"batch_ms": rounded(sum(lot)), "iterations_ms": [rounded(one) for one in lot]}
            for lot in lots
        ]
    return {**made, **more}


def results(
    algorithm="merge",
    types=KEYS,
    space=None,
    *,
    seed=1,
    default=True,
    batches=False,
    noise=0.002,
    general=None,
    settings=None,
    **context,
):
    """The whole of a file; `default` is whether the library's own configurations ran, too.

    Of the others each takes a twentieth less than the one before it.
    """
    rng = random.Random(f"{seed} {algorithm}")
    tuned = [] if default == "only" else configurations(MERGE if space is None else space)
    times = [(config, 2.1 * 0.95**at) for at, config in enumerate(tuned)]
    runs = [
        (meta_of(algorithm, one, config), time)
        for one in types
        for config, time in [*([(DEFAULT, 2.0)] if default else []), *times]
    ]
    return document(
        [run_of(meta, time, rng, noise=noise, batches=batches) for meta, time in runs],
        f"device_{algorithm}",
        general=general,
        settings={"output_batches": batches, **(settings or {})},
        **context,
    )


def document(runs, algorithm, *, general=None, settings=None, **context):
    """Runs with all that stands around them, sorted as primbench sorts them."""
    runs = sorted(runs, key=lambda one: one["name"])
    for index, one in enumerate(runs):
        one["index"] = index
    return {
        "context": {
            "results_version": "4.0.0",
            "general": {
                "algorithm": algorithm,
                "specialization_count": len(runs),
                "library_build_type": "release",
                "gpu": {
                    "name": "AMD Instinct MI300X",
                    "arch": "gfx942",
                    "pci_bus_id": "0000:83:00.0",
                },
                "backend": {
                    "name": "hip",
                    "hip_version": "7.2.0-0",
                    "runtime_version": "7.2.0",
                    "driver_version": "7.2.0",
                    "compiler": {"name": "clang", "version": "22.0.0"},
                },
                "monitoring": {"name": "amdsmi", "version": "26.0.0"},
                "temperature_type": "hotspot",
                "host_name": "host",
                "date": "2026-03-01T10:00:00+00:00",
                **(general or {}),
            },
            "settings": {
                "size": SIZE,
                "hot": False,
                "seed": 42,
                "json_out": "results.json",
                "csv_out": "",
                "filter": "",
                "dry": False,
                "min_gpu_ms_per_batch": 10,
                "min_secs": 1,
                "noise_timeout_secs": 10,
                "batch_window_size": 10,
                "noise_tolerance_percent": 1,
                "min_gpu_temp": 50,
                "max_gpu_temp": 60,
                "max_warming_secs": 60,
                "max_cooling_secs": 60,
                "output_batches": False,
                "spaces_per_indent": 4,
                "stream_blocking_timeout_secs": 10,
                **(settings or {}),
            },
            "flags": {"sync": False},
            **context,
        },
        "specializations": runs,
        "summary": {
            "noise_timeouts": sum(one["noise_timeout"] is True for one in runs),
            "elapsed_secs": {"host": 60.0, "gpu": 20.0},
        },
    }


def example():
    """What benchmarks of merge write with `--output-batches`; one run was noisy, one is broken."""
    made = results(types=KEYS[:1], batches=True)
    runs = made["specializations"]
    noisy = run_of(runs[1]["meta"], 1.9, random.Random(7), noise=0.1, batches=True)
    runs[1] = {**noisy, "index": 1}
    runs[2] = {**runs[2], "items_per_second": 0}
    made["summary"]["noise_timeouts"] = 1
    return made


EXAMPLES = {"primbench_merge.json": example}
UPDATE = "python -m tests.results.primbench_files"


def text_of(made):
    """A file as it stands among the examples: a row for each run."""
    rows = ",\n".join(map(json.dumps, made["specializations"]))
    context, summary = json.dumps(made["context"]), json.dumps(made["summary"])
    head = f'{{"context": {context},\n"specializations": [\n'
    return f'{head}{rows}\n],\n"summary": {summary}}}\n'


if __name__ == "__main__":
    for file, make in EXAMPLES.items():
        path = Path(__file__).parent.parent.parent / "fixtures/tuners" / file
        path.write_text(text_of(make()))
