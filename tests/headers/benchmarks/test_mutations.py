"""Damaged sources: a message or a benchmark, never a traceback or an endless run."""

import random
import re
import time
from pathlib import Path

import pytest

from policygen.headers.benchmark_sources import read_benchmarks, select
from tests.headers.benchmarks.places import CHECKOUT, FIXTURES, write

PIECES = [b"(", b")", b"{", b"}", b"<", b">", b'"', b"'", b"/*", b"*/", b"//", b"\\\n", b"\n#if "]
PIECES += [b"#else\n", b"#endif\n", b"##", b"\0", b"\xff", b"1:2:0", b"%RANGE%", b";", b",", b":"]
PIECES += [b"9" * 40, b"using x = x;", b"NVBENCH_BENCH(", b"// %RANGE% ", b"nvbench::range("]

BENCH = "cub/benchmarks/bench"
READERS = {
    "version.cuh": f"{BENCH}/odd/names.cu",
    "nvbench_helper.cuh": f"{BENCH}/odd/names.cu",
    "common.cuh": f"{BENCH}/sum/plain.cu",
    "shared.cuh": f"{BENCH}/sum/plain.cu",
    "base.h": f"{BENCH}/shuffle/deep/warp.lookahead.cu",
}
"""The benchmark that a damaged neighbour does harm to."""


def mutate(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice([0, 1, 2, 8, 60]))
        match chance.randrange(4):
            case 0:
                data = data[:at] + data[end:]
            case 1:
                data = data[:at] + chance.choice(PIECES) + data[at:]
            case 2:
                data = data[:at] + chance.choice(PIECES) + data[end:]
            case _:
                other = chance.randrange(len(data) + 1)
                data = data[:other] + data[at:end] * chance.choice([1, 3]) + data[other:]
    return data


@pytest.mark.slow
def test_two_thousand_damaged_sources_are_read_or_refused(tmp_path: Path) -> None:
    chance = random.Random(20240817)
    sources = sorted(path for path in CHECKOUT.rglob("*") if path.is_file())
    kept = [(path.relative_to(CHECKOUT).as_posix(), path.read_bytes()) for path in sources]
    for name, data in kept:
        write(tmp_path, data, name)
    meta = (FIXTURES / "meta.csv").read_bytes()
    begun = time.monotonic()
    for round_ in range(2000):
        name, data = chance.choice(kept)
        path = write(tmp_path, mutate(data, chance), name)
        source = tmp_path / READERS.get(path.name, name)
        paths = [source, write(tmp_path, b"ctk_version,1\n" + mutate(meta, chance), "m.csv")]
        document, errors = read_benchmarks(paths)
        select(document, re.compile(""), {})
        assert document.to_json(), round_
        assert len("\n".join(map(str, errors)).splitlines()) < 1000, round_
        path.write_bytes(data)
    assert time.monotonic() - begun < 300
