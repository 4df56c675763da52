"""Sources that would keep a reader busy for minutes are refused after seconds of processor time."""

import signal
import threading
import time

import pytest

from policygen.errors import SourceError
from policygen.headers.benchmark_sources import read_benchmarks
from policygen.headers.text import limited
from tests.tiers import sampled

RANGE = "// %RANGE% TUNE_A a 1:2:1\n"
SLOW = {
    "a string that never ends": RANGE + '"\\' * 300_000 + "\n",
    "macros that could register": RANGE
    + "".join(f"#define X{i} R(NVBENCH_BENCH(f))\n" for i in range(60_000))
    + "X1\n" * 1000,
}


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_what_takes_longer_is_refused():
    with (
        pytest.raises(SourceError, match=r"more than 0\.05 seconds of processor time"),
        limited("a.cu", 0.05),
    ):
        busy(20)


def test_what_takes_less_is_not_and_leaves_nothing():
    before = signal.getsignal(signal.SIGVTALRM)
    with limited("a.cu", 0.05):
        pass
    busy(0.2)
    assert signal.getsignal(signal.SIGVTALRM) == before


def test_beside_the_main_thread_nothing_is_limited():
    ended = []

    def work():
        with limited("a.cu", 0.05):
            busy(0.2)
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]


@pytest.mark.slow
@pytest.mark.parametrize("kind", sampled(SLOW, "a string that never ends"))
def test_a_benchmark_that_would_hang_is_refused(tmp_path, kind):
    folder = tmp_path / "bench/a"
    folder.mkdir(parents=True)
    (folder / "slow.cu").write_text(SLOW[kind])
    (folder / "good.cu").write_text(RANGE + "NVBENCH_BENCH(f);\n")
    found, errors = read_benchmarks([tmp_path / "bench"])
    assert [one.name for one in found.benchmarks] == ["cub.bench.a.good"]
    assert "seconds of processor time" in str(*errors)
