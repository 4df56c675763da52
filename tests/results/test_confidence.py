import math
import random
import re
import sys

import numpy as np
import pytest

from policygen.cli.main import main
from policygen.errors import MissingToolError
from policygen.installation import pip
from policygen.model.results import Rules
from policygen.results import samples as samples_module
from policygen.results.noise import DRAWS, generator, medians
from policygen.results.ranking import p_value, rank
from policygen.results.samples import BadSamplesError, encode
from tests.results.build import ALGORITHM, IO, Builder, simple


@pytest.mark.parametrize("count", [1, 2, 5, 20, 101])
def test_drawn_medians_are_distributed_as_those_of_real_resamples(count):
    samples = np.sort(np.random.default_rng(1).lognormal(size=count))
    rng = np.random.default_rng(2)
    real = np.median(rng.choice(samples, (20_000, count)), axis=1)
    drawn = np.concatenate([medians(samples, generator("x", str(i))) for i in range(20)])
    assert drawn.size == 20 * DRAWS
    grid = np.unique(np.concatenate([samples, drawn]))
    gap = np.searchsorted(np.sort(real), grid, "right") / real.size
    gap -= np.searchsorted(np.sort(drawn), grid, "right") / drawn.size
    assert np.abs(gap).max() < 0.025  # the largest distance of the two distributions


def test_the_same_question_has_the_same_answer(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0}, ipt_1={"16": 1.9}, ipt_2={"16": 1.8})
    assert rank([path]) == rank([path])
    one, both = rank([path], top=1).workloads[0], rank([path]).workloads[0]
    assert one.variants[0] == both.variants[0]


def verdicts(tmp_path, base, rules=None, spread=0.001, **variants):
    path = tmp_path / "db"
    built = Builder(path).table()
    for name, centers in {"base": base, **variants}.items():
        built.rows(name, centers, "I32", spread=spread)
    (workload,) = rank([path], rules=rules).workloads
    return {v.variant: v for v in workload.variants}


def test_a_verdict_says_what_can_be_said(tmp_path):
    base = {"16": 1.0, "20": 1.0, "24": 1.0, "28": 1.0}
    found = verdicts(
        tmp_path,
        base,
        ipt_1=dict.fromkeys(base, 0.9),
        ipt_2=dict.fromkeys(base, 1.1),
        ipt_3=dict.fromkeys(base, 0.995),
        ipt_4={**dict.fromkeys(base, 0.8), "16": 1.25},
    )
    assert {name: v.verdict for name, v in found.items()} == {
        "base": None,
        "ipt_1": "better",
        "ipt_2": "worse",
        "ipt_3": "too close to call",
        "ipt_4": "mixed",
    }
    mixed = found["ipt_4"]
    assert (mixed.slower, mixed.worst.point) == (1, {IO: "16"})
    assert mixed.loss == pytest.approx(0.2, abs=1e-6)
    assert found["ipt_1"].interval.low < found["ipt_1"].score < found["ipt_1"].interval.high
    assert found["ipt_1"].loss is None


def test_noisy_samples_make_wide_intervals(tmp_path):
    quiet = verdicts(tmp_path, {"16": 1.0}, ipt_1={"16": 0.97}, spread=0.001)["ipt_1"]
    (tmp_path / "db").unlink()
    noisy = verdicts(tmp_path, {"16": 1.0}, ipt_1={"16": 0.97}, spread=0.5)["ipt_1"]
    assert (quiet.verdict, noisy.verdict) == ("better", "too close to call")
    assert noisy.interval.high - noisy.interval.low > 10 * (
        quiet.interval.high - quiet.interval.low
    )


def test_without_samples_nothing_is_said_about_confidence(tmp_path):
    path = tmp_path / "db"
    built = Builder(path, samples=False).table()
    built.row("base", 1.0, "I32", "16").row("ipt_1", 0.5, "I32", "16")
    (workload,) = rank([path]).workloads
    assert (workload.variants[0].verdict, workload.variants[0].interval) == (None, None)
    assert workload.choice.decision == "keep base"
    assert workload.choice.reason.endswith("without samples, its uncertainty is unknown")
    allowed = rank([path], rules=Rules(without_samples=True)).workloads[0]
    assert allowed.choice.variant == "ipt_1"
    plain = rank([path], samples=False).workloads[0]
    assert (plain.variants[0].verdict, plain.choice) == (None, None)


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", "no samples"),
        (b"junk", "not an fpzip blob"),
        (encode(np.array([7.0, 8.0])), "their median differs from the row's center"),
        (encode(np.array([1.0, np.inf])), "they are not positive and finite"),
        (encode(np.array([0.0, 1.0])), "they are not positive and finite"),
    ],
)
def test_samples_that_cannot_be_used_are_told_with_their_row(tmp_path, blob, reason):
    path = simple(tmp_path / "db", base={"16": 2.0})
    built = Builder(path).row("ipt_1", 1.0, "I32", "16", blob=b"x")
    built.execute("UPDATE \"cub.bench.demo.base\" SET samples = ? WHERE variant = 'ipt_1'", (blob,))
    document = rank([path])
    assert document.workloads[0].variants[0].interval is None
    (warning,) = document.warnings
    start = f"{path}: {ALGORITHM}.base: samples cannot be used: "
    assert re.fullmatch(rf"{re.escape(start)}(?:{reason}).* \(row 2\)", str(warning))


def test_a_blob_that_crashes_fpzip_is_a_bad_one_and_no_crash(tmp_path, monkeypatch):
    worker = (
        "import os, sys; from policygen.results.samples import *\n"
        "while (blob := read_part(sys.stdin.buffer)) is not None:\n"
        "    if blob == b'deadly': os.kill(os.getpid(), 11)\n"
        "    sys.stdout.buffer.write(framed(b'+' + decode(blob).tobytes()))\n"
        "    sys.stdout.buffer.flush()\n"
    )
    monkeypatch.setattr(samples_module, "WORKER", (sys.executable, "-c", worker))
    good = encode(np.array([1.0, 2.0]))
    with samples_module.Decoder() as found:
        answers = found.decode([good, b"deadly", "text", good, b"deadly", good])
    assert [str(a) if isinstance(a, BadSamplesError) else list(a) for a in answers] == [
        [1.0, 2.0],
        "fpzip crashes on them",
        "they are not a blob",
        [1.0, 2.0],
        "fpzip crashes on them",
        [1.0, 2.0],
    ]


def test_damaged_blobs_never_end_the_process():
    rng = random.Random(4)
    blob = encode(np.random.default_rng(4).lognormal(size=100))
    with samples_module.Decoder() as found:
        for _ in range(60):
            broken = bytearray(blob)
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
            (answer,) = found.decode([bytes(broken)])
            assert isinstance(answer, BadSamplesError | np.ndarray)


def test_many_large_blobs_fit_through_the_pipe():
    samples = np.random.default_rng(5).lognormal(size=40_000)
    with samples_module.Decoder() as found:
        answers = found.decode([encode(samples)] * 5)
    assert [a.size for a in answers] == [40_000] * 5


def test_a_decoder_that_answers_nothing_is_ended_and_no_fault_of_the_database(monkeypatch):
    monkeypatch.setattr(samples_module, "LIMIT", 0.05)
    monkeypatch.setattr(
        samples_module, "WORKER", (sys.executable, "-c", "import time; time.sleep(60)")
    )
    with samples_module.Decoder() as found, pytest.raises(MissingToolError) as caught:
        found.decode([b"x"])
    assert str(caught.value) == (
        f"an fpzip that works is missing\n  {pip()} install --force-reinstall fpzip"
    )


@pytest.mark.parametrize(
    "broken",
    [
        "def decompress(blob): raise RuntimeError('no')",
        "import numpy\ndef decompress(blob): return numpy.full((1, 1, 1, 2), 3.0)",
        "import no_such_module",
    ],
)
def test_a_broken_fpzip_is_a_missing_tool_and_no_reason_to_keep_base(
    tmp_path, capsys, monkeypatch, broken
):
    path = simple(tmp_path / "db", base={"16": 2.0}, ipt_1={"16": 1.0})
    worker = f"import sys, types\nmade = types.ModuleType('fpzip')\nexec({broken!r}, vars(made))\n"
    worker += "sys.modules['fpzip'] = made\nfrom policygen.results.samples import *\n"
    worker += "serve(sys.stdin.buffer, sys.stdout.buffer)"
    monkeypatch.setattr(samples_module, "WORKER", (sys.executable, "-c", worker))
    assert main(["db", "choose", str(path)]) == 3
    assert "policygen: error: an fpzip that works is missing\n" in capsys.readouterr().err


def test_samples_that_were_not_kept_are_no_fault(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0}, ipt_1={"16": 1.0})
    Builder(path).execute('UPDATE "cub.bench.demo.base" SET samples = NULL')
    document = rank([path])
    assert document.warnings == ()
    assert document.workloads[0].variants[0].interval is None


def test_rows_that_fail_in_the_same_way_are_counted(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0, "20": 2.0}, ipt_1={"16": 1.0, "20": 1.0})
    Builder(path).execute(
        "UPDATE \"cub.bench.demo.base\" SET samples = x'00' WHERE variant != 'base'"
    )
    (warning,) = rank([path]).warnings
    assert str(warning).endswith("samples cannot be used: not an fpzip blob (2, row 3)")


def choice(tmp_path, rules=None, current=None, **variants):
    path = tmp_path / "db"
    built = Builder(path).table()
    for name, centers in {"base": {"16": 1.0, "20": 1.0}, **variants}.items():
        built.rows(name, centers, "I32", spread=0.001)
    (workload,) = rank([path], rules=rules, current=current).workloads
    return workload.choice


def test_the_best_variant_that_passes_all_rules_is_chosen(tmp_path):
    found = choice(
        tmp_path,
        ipt_1={"16": 1.2, "20": 0.5},
        ipt_2={"16": 0.9, "20": 0.9},
        ipt_3={"16": 0.95, "20": 0.95},
        ipt_4={"16": 0.99, "20": 0.99},
    )
    assert (found.decision, found.variant) == ("use", "ipt_2")
    assert found.reason.startswith("best score: 1.11")
    assert [(r.variant, r.reason) for r in found.rejected] == [
        ("ipt_1", f"worst runtime workload {IO}=16 at 0.8333, under 0.95"),
        ("ipt_3", "score 1.052632 is lower"),
        ("ipt_4", "score 1.010101 is under 1.015"),
    ]


def test_keeping_base_is_a_result_too(tmp_path):
    found = choice(tmp_path, ipt_1={"16": 0.99, "20": 0.99})
    assert (found.decision, found.variant) == ("keep base", None)
    assert found.reason == (
        "no variant passes the rules; the best is ipt_1: score 1.010101 is under 1.015"
    )


def test_with_base_alone_there_is_nothing_to_choose(tmp_path):
    found = choice(tmp_path)
    assert found.reason.endswith("none was measured on all runtime workloads")


def test_a_score_that_may_be_chance_is_not_chosen(tmp_path):
    path = tmp_path / "db"
    built = Builder(path).table()
    built.row("base", 1.0, "I32", "16", spread=0.8, count=11)
    built.row("ipt_1", 0.95, "I32", "16", spread=0.8, count=11)
    found = rank([path]).workloads[0].choice
    assert found.decision == "keep base"
    assert "the best is ipt_1: too close to call: 1.052632 is not above" in found.reason


def test_among_those_too_close_to_call_the_simplest_can_be_preferred(tmp_path):
    variants = {
        "ipt_9.tpb_64": {"16": 0.9, "20": 0.9},
        "ipt_5.tpb_96": {"16": 0.9001, "20": 0.9001},
        "ipt_5.tpb_128": {"16": 0.94, "20": 0.94},
    }
    simple_rules = Rules(prefer_simple=True)
    found = choice(tmp_path, simple_rules, "ipt_5.tpb_128", **variants)
    assert found.variant == "ipt_5.tpb_96"
    assert found.reason.startswith("closest to ipt_5.tpb_128 among those too close to ipt_9.tpb_64")
    assert (
        found.rejected[0].reason
        == "ipt_5.tpb_96 is closer to the current values and too close to call"
    )
    (tmp_path / "db").unlink()
    assert choice(tmp_path, None, "ipt_5.tpb_128", **variants).variant == "ipt_9.tpb_64"
    (tmp_path / "db").unlink()
    assert choice(tmp_path, simple_rules, "ipt_9.tpb_64", **variants).reason.startswith(
        "best score"
    )


def test_rules_can_be_changed(tmp_path):
    lax = Rules(least_score=1.001, worst_allowed=0.5, noise=0.001)
    assert choice(tmp_path, lax, ipt_1={"16": 0.99, "20": 0.99}).variant == "ipt_1"


# p values of SciPy 1.17's mannwhitneyu(x, y)
@pytest.mark.parametrize(
    ("one", "other", "p"),
    [
        ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 0.1),
        ([1.0, 3.0, 5.0], [2.0, 4.0, 6.0], 0.7),
        ([1.0] * 20, [1.0] * 20, 1.0),
        ([1.0] * 9 + [2.0], [2.0] * 9 + [3.0], None),
    ],
)
def test_mann_whitney_tells_whether_samples_differ(one, other, p):
    found = p_value(np.array(one), np.array(other))
    assert found == pytest.approx(p_value(np.array(other), np.array(one)))
    if p is not None:
        assert found == pytest.approx(p)
    else:
        assert found < 0.001


def test_mann_whitney_approximates_what_it_does_not_count():
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=8), rng.normal(0.5, 1, size=8)
    exact = p_value(one, other)
    u = sum((a > b) + (a == b) / 2 for a in one for b in other)
    z = (max(u, 64 - u) - 32 - 0.5) / math.sqrt(64 * 17 / 12)
    assert exact == pytest.approx(math.erfc(z / math.sqrt(2)), abs=0.01)


def test_alpha_counts_only_workloads_that_differ_from_base(tmp_path):
    path = simple(
        tmp_path / "db",
        base={"16": 1.0, "20": 1.0},
        ipt_1={"16": 0.9, "20": 1.0},
        ipt_2={"16": 1.0, "20": 1.0},
    )
    (found,) = rank([path], alpha=0.05).workloads
    assert [(v.variant, v.score) for v in found.variants] == [("ipt_1", pytest.approx(1 / 0.9))]
    assert found.runtime_workloads == 1
    same = simple(tmp_path / "same", base={"16": 1.0}, ipt_1={"16": 1.0})
    assert rank([same], alpha=0.05).workloads == ()


def test_alpha_needs_samples(tmp_path):
    path = simple(tmp_path / "db", base={"16": 1.0, "20": 1.0}, ipt_1={"16": 0.5, "20": 0.5})
    Builder(path).execute('UPDATE "cub.bench.demo.base" SET samples = NULL WHERE rowid IN (1, 3)')
    (found,) = rank([path], alpha=0.05).workloads
    assert found.runtime_workloads == 1


def test_the_ranking_is_walked_until_a_variant_passes(tmp_path):
    """However many louder ones lose somewhere."""
    loud = {f"ipt_{i}": {"16": 1.5, "20": 0.5} for i in range(9)}
    found = choice(tmp_path, ipt_99={"16": 0.9, "20": 0.9}, **loud)
    assert (found.decision, found.variant) == ("use", "ipt_99")
    assert [r.variant for r in found.rejected] == [f"ipt_{i}" for i in range(5)]


def test_a_sub_benchmark_without_base_keeps_a_workload_from_being_chosen(tmp_path):
    path = tmp_path / "db"
    built = Builder(path).table().table("other")
    for bench in ("base", "other"):
        built.row("ipt_1", 0.5, "I32", "16", bench=bench)
    built.row("base", 1.0, "I32", "16")
    document = rank([path])
    (workload,) = document.workloads
    assert workload.choice.reason == "base was not measured in cub.bench.demo.other"
    assert "base was not measured, so nothing can be compared" in str(document.warnings[0])


def test_an_incomplete_variant_does_not_decide_what_alpha_counts(tmp_path):
    path = simple(
        tmp_path / "db",
        base={"16": 1.0, "20": 1.0},
        ipt_1={"16": 0.9, "20": 1.0},
        ipt_2={"20": 0.5},
    )
    (found,) = rank([path], alpha=0.05).workloads
    assert [v.variant for v in found.variants] == ["ipt_1"]


def test_nothing_that_differs_is_told(tmp_path):
    path = simple(tmp_path / "db", base={"16": 1.0}, ipt_1={"16": 1.0})
    (warning,) = rank([path], alpha=0.05).warnings
    assert str(warning).endswith(
        "cub.bench.demo[T{ct}=I32]: no samples differ from base's (alpha 0.05)"
    )
