import pytest

from tests.proof.lint.toys import entry, find

# `Threads` reaches the base as an argument, as in CUB's sm90 tunings of scans.
FORWARDED = """template <int Threads, int Items> struct sm90_tuning_vals
{{ static constexpr int threads = Threads; static constexpr int items = Items; }};
template <class T> struct sm90_tuning<T, 4> : sm90_tuning_vals<{}, 24> {{{}}};
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (entry(["threads = 100"]), ("100", "100 threads are not a multiple of the warp size 32")),
        (entry(["threads = 16"]), ("16", "16 threads are not a multiple of the warp size 32")),
        (
            entry(["threads_per_block = 4 * 25"]),
            ("4 * 25", "100 threads are not a multiple of the warp size 32"),
        ),
        (
            FORWARDED.format(100, ""),
            ("sm90_tuning_vals<100, 24>", "100 threads are not a multiple of the warp size 32"),
        ),
    ],
)
def test_finds_threads_that_leave_a_warp_half_empty(body, found):
    assert find("threads-not-warp-multiple", body) == [found]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (entry(["threads = 1056"]), ("1056", "1056 threads: a block has at most 1024")),
        (entry(["threads = 31"]), ("31", "31 threads: a block needs at least a warp, 32")),
        (
            FORWARDED.format(2048, ""),
            ("sm90_tuning_vals<2048, 24>", "2048 threads: a block has at most 1024"),
        ),
    ],
)
def test_finds_threads_that_no_block_can_have(body, found):
    assert find("threads-over-limit", body) == [found]


@pytest.mark.parametrize("rule", ["threads-not-warp-multiple", "threads-over-limit"])
@pytest.mark.parametrize(
    "body",
    [
        entry(["threads = 32"]),
        entry(["threads = 1024"]),
        entry(["items = 100"]),
        entry(["threads = unknown()"]),
        entry(["threads_of_warps = 7"]),
        "// " + entry(["threads = 7"]).replace("\n", "\n// "),
        FORWARDED.format(128, ""),
        # What the entry itself says goes before what it hands on.
        FORWARDED.format(7, " static constexpr int threads = 128; "),
        "template <class T> struct sm90_tuning<T, 4> : elsewhere<7> {};",
    ],
)
def test_leaves_threads_alone_that_a_block_can_have(rule, body):
    assert find(rule, body) == []
