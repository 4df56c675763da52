"""Sources that would keep a reader busy for minutes are refused after seconds of processor time."""

import gc
import os
import signal
import sys
import threading
import time

import pytest

from policygen.errors import SourceError
from policygen.headers import scan
from policygen.headers.benchmark_sources import read_benchmarks
from policygen.headers.scan import scan_headers
from policygen.headers.text import Text, check_words, limited
from tests.headers.headers import read_entries, wrap
from tests.tiers import sampled

RANGE = "// %RANGE% TUNE_A a 1:2:1\n"
SLOW = {
    "a string that never ends": RANGE + '"\\' * 300_000 + "\n",
    "macros that could register": RANGE
    + "".join(f"#define X{i} R(NVBENCH_BENCH(f))\n" for i in range(60_000))
    + "X1\n" * 1000,
}


def busy(seconds, first=lambda: None):
    first()
    end = time.process_time() + seconds
    while time.process_time() < end:
        check_words(Text("a.cu", b"a b " * 20))


def test_what_takes_longer_is_refused():
    with (
        pytest.raises(SourceError, match=r"more than 0\.05 seconds of processor time"),
        limited("a.cu", 0.05),
    ):
        busy(20)


def test_the_limit_is_not_lost_in_a_callback(monkeypatch):
    """Python only prints what a callback of the garbage collector raises."""
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def callback(_phase, _info):
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass

    gc.callbacks.append(callback)
    try:
        with pytest.raises(SourceError), limited("a.cu", 0.05):
            busy(20, gc.collect)
    finally:
        gc.callbacks.remove(callback)
    assert not unraisable


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


ENTRY = "template <> struct sm90_tuning<int, 4> { static constexpr int items = 7; };"
MANY = "".join(
    f"template <> struct sm90_tuning<T{i}, 1> {{ static constexpr int a = 1; }};\n"
    for i in range(40_000)
)
MACROS = "#define X0 1 +\n" + "".join(f"#define X{i} X{i - 1} X{i - 1}\n" for i in range(1, 40))
REFUSED = {
    "words without a sign, at each of which a search starts": (
        "template <> struct " + "A B " * 20_000 + "{};",
        "4:13: more than 100 words without punctuation",
    ),
    "conditions within each other": (
        "#if 1\n" * 4_000 + "#endif\n" * 4_000,
        "104:1: #if nested more than 100 deep",
    ),
    "branches of one condition": (
        "#if 1\n" + "#elif 1\n" * 4_000 + "#endif\n",
        "105:1: more than 100 branches of one #if",
    ),
    "brackets within each other": (
        "template <> struct sm90_tuning<" + "(" * 9_000 + ")" * 9_000 + "> {};",
        "4:61: brackets nested more than 200 deep",
    ),
    "a macro that doubles": (
        MACROS + "X39",
        "44:1: X39 is a macro of line 43; policygen does not expand it",
    ),
    "an include that never ends": (
        '#import "/dev/zero"\n',
        "4:1: cannot determine what this includes",
    ),
    "an include in two lines": (
        '#inc\\\nlude_next "/dev/zero"\n',
        "4:1: cannot determine what this includes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_header_that_would_take_minutes_is_refused_where_it_does(tmp_path, name):
    text, message = REFUSED[name]
    path = tmp_path / "tuning_x.cuh"
    path.write_bytes(wrap(text))
    (error,) = scan_headers([path], cached=False).errors
    assert str(error).startswith(f"{path}:{message}\n")


def test_a_header_that_takes_longer_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "limited", lambda path: limited(path, 0.2))
    path = tmp_path / "tuning_x.cuh"
    path.write_bytes(wrap(MANY))
    (error,) = scan_headers([path], cached=False).errors
    assert str(error).startswith(
        f"{path}:1:1: reading it takes more than 0.2 seconds of processor time\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        MACROS + "#if X39\n#endif\n",
        "constexpr int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
        "struct x { static constexpr int a = f(70) + 1; };\n",
        *(
            f"{directive}\n"
            for directive in (
                '#line 271 "{}"',
                '# 271 "{}" 1',
                '#pragma GCC dependency "{}"',
                '#if __has_include("{}")\n#endif',
                '#pragma GCC \\\n dependency "{}"',
            )
        ),
    ],
)
def test_what_only_a_compiler_evaluates_is_not(tmp_path, text):
    """`/dev/zero` never ends, and a pipe never begins."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", tmp_path / "pipe"):
        (entry,) = read_entries(text.replace("{}", str(name)) + ENTRY)
        assert entry.values == {"items": 7}
