"""Files as Kernel Tuner and its like write them, made here; a seed decides every number."""

import json
import random
from itertools import product
from pathlib import Path

SPACE = {"block_size_x": [64, 128, 256], "tile": [1, 2, 4]}
BEST = {"block_size_x": 128, "tile": 4}
BASE = "block_size_x=256,tile=1"


def milliseconds(values, size):
    """What a configuration takes: the best one is a quarter faster than base."""
    number = sum(map(len, map(str, values.values())))
    if values == BEST:
        return size * 1e-6 * 0.75
    return size * 1e-6 * (1 + (number % 5) / 50)


def entry(values, size, rng, *, count=32, at=0):
    """A configuration that was measured; the first launches are slow."""
    time = milliseconds(values, size)
    times = [time * rng.gauss(1, 0.002) for _ in range(count)]
    times[:1] = [time * 3] * bool(count)
    taken = {"time": sum(times) / count, "times": times} if count else {"time": time}
    return {
        **values,
        **taken,
        "compile_time": 400.0,
        "verification_time": 0,
        "benchmark_time": 12.0,
        "strategy_time": 0,
        "framework_time": 1.5,
        "timestamp": f"2026-03-01 10:00:{at % 60:02}.{at:06}+00:00",
    }


def failed(values, error, *, old=False):
    """One that was not: older releases have the error in place of the time."""
    place = "time" if old else "__error__"
    return {**values, place: error, "compile_time": 9.0, "verification_time": 0}


def document(
    size=1_000_000, seed=1, *, space=None, count=32, kernel="vector_add", device="NVIDIA H200"
):
    """The whole of a cache, as Python has it."""
    rng = random.Random(f"{seed} {size}")
    space = {name: list(values) for name, values in (space or SPACE).items()}
    points = [dict(zip(space, point, strict=True)) for point in product(*space.values())]
    return {
        "device_name": device,
        "kernel_name": kernel,
        "problem_size": size if isinstance(size, int | str) else list(size),
        "tune_params_keys": list(space),
        "tune_params": space,
        "objective": "time",
        "cache": {
            ",".join(map(str, values.values())): entry(
                values, size if isinstance(size, int) else 4096, rng, count=count, at=at
            )
            for at, values in enumerate(points)
        },
    }


def text_of(made, *, closed=True):
    """As Kernel Tuner writes it: a header, and a line for each configuration."""
    head = json.dumps({**made, "cache": {}}, indent="")[: -len("}\n}")]
    lines = "".join(
        f"\n{json.dumps(name)}: {json.dumps(cells)}," for name, cells in made["cache"].items()
    )
    return f"{head}{lines.removesuffix(',')}}}\n}}" if closed else f"{head}{lines}"


def write_cache(path, *given, closed=True, **more):
    """A cache in a file."""
    Path(path).write_text(text_of(document(*given, **more), closed=closed))
    return path


def t4_document(size=1_000_000, seed=1, *, unit="microseconds", device="NVIDIA H200"):
    """The same as T4 results, whose texts are numbers."""
    scale = {"nanoseconds": 1e6, "microseconds": 1e3, "milliseconds": 1.0, "seconds": 1e-3}[unit]
    return {
        "schema_version": "1.1.0",
        "metadata": {"timeunit": unit, "device": device, "autotuner": "KTT"},
        "results": [
            {
                "timestamp": cells["timestamp"],
                "configuration": {name: str(cells[name]) for name in SPACE},
                "objectives": ["time"],
                "times": {
                    "compilation_time": cells["compile_time"] * scale,
                    "runtimes": [time * scale for time in cells["times"]],
                },
                "invalidity": "correct",
                "correctness": 1,
                "measurements": [{"name": "time", "value": cells["time"] * scale, "unit": ""}],
            }
            for cells in document(size, seed)["cache"].values()
        ],
    }


def example(size, seed, *, closed):
    """One of `fixtures/tuners`: a kernel with an integer, a text and a truth value to tune."""
    space = {"block_size_x": [64, 128, 256], "order": ["rows", "blocks"], "use_ldg": [False, True]}
    made = document(size, seed, space=space, count=7, kernel="transpose")
    rng = random.Random(seed)
    for at, (name, cells) in enumerate(made["cache"].items()):
        values = {key: cells[key] for key in space}
        time = size * 1e-7 * (1.0 if values["order"] == "rows" else 0.8)
        time *= {64: 1.1, 128: 1.0, 256: 1.05}[values["block_size_x"]]
        times = [round(time * rng.gauss(1, 0.003), 6) for _ in range(7)]
        times[0] = round(time * 4, 6)
        made["cache"][name] = {
            **values,
            "time": round(sum(times) / 7, 6),
            "times": times,
            "compile_time": 412.5,
            "verification_time": 0,
            "benchmark_time": 3.25,
            "strategy_time": 0,
            "framework_time": 1.5,
            "timestamp": f"2026-03-01 10:00:{at:02}.{seed:06}+00:00",
        }
    broken = {"block_size_x": 256, "order": "blocks", "use_ldg": True}
    made["cache"]["256,blocks,True"] = failed(broken, "CompilationFailedConfig")
    return text_of(made, closed=closed)


EXAMPLES = {
    "transpose_16m.json": (16_777_216, 1, True),
    "transpose_64m.json": (67_108_864, 2, False),
}
UPDATE = "python -m tests.results.tuner_files"


if __name__ == "__main__":
    for name, (size, seed, closed) in EXAMPLES.items():
        path = Path(__file__).parent.parent.parent / "fixtures/tuners" / name
        path.write_text(example(size, seed, closed=closed))
