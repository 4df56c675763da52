"""Noise, luck, missing rows, repeats and confirming runs: what a choice must not be made of."""

import csv
from zlib import crc32

import numpy as np
import pytest

from policygen.errors import InputError
from policygen.model.results import Rules
from policygen.results.cases import NOT_ASKED, split
from policygen.results.choice import held_back
from policygen.results.noise import (
    confirmed_threshold,
    kept_share,
    largest,
    power,
    prior_of,
    runs_to_find,
    threshold,
)
from policygen.results.ranking import ANY, Warnings, open_cases, rank
from policygen.results.score import score_case
from policygen.results.tables import axes_of
from tests.results.build import ALGORITHM, IO, Builder, simple
from tests.results.measured import MEASURED

SIZES = ("16", "20", "24", "28")
BASE = dict.fromkeys(SIZES, 1.0)


def run(path, shift=0.0, **speeds):
    """One run: base takes a second, and variants are as much faster, but for 0.1 % of noise."""
    random = np.random.default_rng(crc32(path.name.encode()))
    built = Builder(path).table()
    for name, speed in {"base": 1.0, **speeds}.items():
        centers = {s: float((1 + shift) / speed * (1 + random.normal(0, 1e-3))) for s in SIZES}
        built.rows(name, centers, "I32")
    return path


def choice(*paths, **more):
    (found,) = rank(paths, **more).workloads
    return found.choice


def test_the_threshold_is_that_of_dunnett_s_table():
    # One-sided, 5 %, many degrees of freedom, as the tables print them.
    assert [round(threshold(n, 0.05), 2) for n in (1, 2, 5, 9)] == [1.64, 1.92, 2.23, 2.42]
    drawn = np.random.default_rng(1).normal(size=(20_000, 101)) / 2**0.5
    best = (drawn[:, 1:] + drawn[:, :1]).max(axis=1)
    assert np.mean(best > threshold(100, 0.05)) == pytest.approx(0.05, abs=0.006)
    assert largest(np.array([-9.0, 9.0]), 7) == pytest.approx([0, 1])


def test_a_confirming_run_lowers_the_threshold_and_more_finalists_raise_it():
    alone = threshold(100, 0.05)
    one, eight = (confirmed_threshold(100, k, 1, 0.05) for k in (1, 8))
    assert one < eight < alone
    assert confirmed_threshold(100, 8, 3, 0.05) < eight


def search_and_confirm(gain, variants=60, finalists=8, runs=2, searches=4000):
    """Searches whose best ones are measured again: what both say of each, and which it was."""
    random = np.random.default_rng(7)
    noise = random.normal(size=(2, searches, variants)) + random.normal(size=(2, searches, 1))
    search, later = noise[0] / 2**0.5, noise[1] / 2**0.5 / runs**0.5
    search[:, 0] += gain
    best = np.argsort(-search, axis=1)[:, :finalists]
    later[:, 0] += gain
    both = (0.5 * search + runs * later) / (0.5 + runs)
    return np.take_along_axis(both, best, 1), best


def test_of_searches_that_find_nothing_one_in_twenty_confirms_something():
    both, _ = search_and_confirm(0.0)
    limit = confirmed_threshold(60, 8, 2, 0.05)
    assert np.mean(both.max(axis=1) > limit) == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize(("finalists", "variants"), [(8, 60), (8, 8), (1, 60), (1, 1)])
def test_the_power_of_confirming_runs_is_that_of_simulated_ones(finalists, variants):
    both, best = search_and_confirm(2.5, variants, finalists)
    limit = confirmed_threshold(variants, finalists, 2, 0.05)
    found = (both.max(axis=1) > limit) & (
        np.take_along_axis(best, both.argmax(axis=1)[:, None], 1)[:, 0] == 0
    )
    assert power(variants, finalists, 2, 2.5, limit) == pytest.approx(np.mean(found), abs=0.02)


def test_more_noise_and_more_variants_take_more_confirming_runs():
    asked = [runs_to_find(n, noise, 0.05, 0.015) for n in (1, 500) for noise in (0.005, 0.015)]
    assert asked == [1, 1, 1, 5]
    assert runs_to_find(500, 0.05, 0.05, 0.015) is None


def test_of_a_gain_as_much_is_kept_as_is_no_luck():
    luck = np.random.default_rng(1).normal(0, 0.01, 100)
    assert kept_share(np.append(luck, 0.025), 0.025, 0.01) < 0.3
    assert kept_share(np.append(luck, 0.1), 0.1, 0.01) > 0.95
    assert kept_share(np.array([0.005]), 0.005, 0.01) == 0


def test_small_inputs_are_noisier_and_what_is_not_known_is_no_quieter():
    known = prior_of("H200 (6016, 132, eccon)", "cub.bench.reduce.sum")
    other = prior_of("Unheard of (1, 2, eccon)", "cub.bench.reduce.sum")
    small, large = known.deviation(np.array([7e-6, 250e-6]))
    assert small > 10 * large
    assert other.deviation(np.array([7e-6]))[0] > small
    assert "nothing was measured" in other.origin


def test_the_best_of_many_needs_more_than_the_only_one(tmp_path):
    alone = run(tmp_path / "1", ipt_1=1.02)
    many = run(tmp_path / "2", ipt_1=1.02, **{f"ipt_{i}": 1.0 for i in range(2, 300)})
    rules = Rules(noise=0.008)
    assert choice(alone, rules=rules).decision == "use"
    found = choice(many, rules=rules)
    assert (found.decision, found.tried) == ("keep base", 299)
    assert "too close to call: 1.0" in found.reason
    assert "299 variants that are as fast as base" in found.reason


def test_what_is_told_is_without_luck_and_says_so(tmp_path):
    found = choice(run(tmp_path / "a", ipt_1=1.03))
    assert found.origin == "shrunken"
    assert 1 < found.score < found.raw_score
    assert found.unconfirmed
    assert f"{found.score:.6f} bias-corrected, unconfirmed" in found.reason


def test_use_is_never_said_of_what_is_not_better(tmp_path):
    for speed in np.linspace(1.0, 1.05, 11):
        path = run(tmp_path / f"{speed:.3f}", ipt_1=float(speed), ipt_2=0.9)
        (found,) = rank([path]).workloads
        if found.choice.decision == "use":
            chosen = next(v for v in found.variants if v.variant == found.choice.variant)
            assert (chosen.verdict, chosen.interval.low > 1) == ("better", True)


def test_a_stated_noise_counts_in_place_of_the_known_one(tmp_path):
    path = run(tmp_path / "a", ipt_1=1.03)
    found = choice(path, rules=Rules(noise=0.02))
    assert (found.decision, found.noise) == ("keep base", 0.02)
    assert found.noise_origin == "stated in the rules"


def test_few_samples_make_no_interval(tmp_path):
    path = tmp_path / "db"
    built = Builder(path).table()
    for count, name in ((101, "base"), (4, "ipt_1"), (5, "ipt_2")):
        built.row(name, 1.0 if name == "base" else 0.5, "I32", "16", count=count)
    found = {v.variant: v for v in rank([path]).workloads[0].variants}
    assert (found["ipt_1"].interval, found["ipt_1"].verdict) == (None, None)
    assert found["ipt_2"].verdict == "better"


# Missing rows


def test_base_that_is_missing_where_variants_were_measured_is_a_reason_against(tmp_path):
    path = run(tmp_path / "a", ipt_1=1.2)
    kept = f"variant = 'base' AND \"{IO}\" != '28'"
    Builder(path).execute(f'DELETE FROM "{ALGORITHM}.base" WHERE {kept}')
    (found,) = rank([path]).workloads
    assert found.choice.decision == "keep base"
    assert found.choice.reason == (f"base was not measured in {IO}=16; {IO}=20; {IO}=24")
    assert found.missing == (f"{IO}=16", f"{IO}=20", f"{IO}=24")


def test_a_sub_benchmark_that_is_registered_and_has_no_table_is_missing(tmp_path):
    path = run(tmp_path / "a", ipt_1=1.2)
    Builder(path).execute(f"INSERT INTO subbenches VALUES ('{ALGORITHM}', 'pairs')")
    assert choice(path).reason == f"base was not measured in {ALGORITHM}.pairs"


def test_a_sub_benchmark_that_the_source_declares_is_missing(tmp_path):
    path = run(tmp_path / "a", ipt_1=1.2)
    declared = {(ALGORITHM, sub, IO): SIZES for sub in ("base", "pairs")}
    assert choice(path, declared=declared).reason == f"base was not measured in {ALGORITHM}.pairs"


def test_a_part_of_what_is_declared_is_told(tmp_path):
    path = run(tmp_path / "a", ipt_1=1.2)
    declared = {(ALGORITHM, "base", IO): (*SIZES, "30", "32")}
    (found,) = rank([path], declared=declared).workloads
    assert (found.runtime_workloads, found.declared) == (4, 6)
    assert found.choice.reason.endswith("; measured on 4 of 6 declared runtime workloads")


def test_nothing_is_chosen_by_a_part_of_the_runtime_workloads(tmp_path):
    path = run(tmp_path / "a", ipt_1=1.2)
    (found,) = rank([path], axes={IO: frozenset({"28"})}).workloads
    assert (found.runtime_workloads, found.choice) == (1, None)


def test_what_is_not_asked_for_stays_known_and_keeps_base(tmp_path):
    path = run(tmp_path / "a", ipt_1=1.2)
    Builder(path).rows("base", BASE, "I8").rows("ipt_1", dict.fromkeys(SIZES, 0.5), "I8")
    workloads = rank([path]).workloads
    asked, others = split(workloads, ANY, {"T{ct}": frozenset({"I8"})})
    assert [one.workload["T{ct}"] for one in asked] == ["I8"]
    assert [(one.workload["T{ct}"], one.choice.reason) for one in others] == [("I32", NOT_ASKED)]
    with pytest.raises(InputError) as caught:
        split(workloads, ANY, {IO: frozenset({"16"})})
    assert f"-a {IO}: there is no such compile-time axis" in str(caught.value)


def test_the_axes_of_cub_s_benchmarks_are_known_by_version():
    name, base = "cub.bench.scan.exclusive.sum", "base"
    assert axes_of("v3.0.3")[name, base, IO] == SIZES
    assert axes_of("v3.6.0.dev-204-g571f2fc3bc")[name, base, IO] == (*SIZES, "32")
    assert axes_of("")[name, base, IO] == SIZES


# Runs of the same workload


def test_runs_give_the_same_choice_in_any_order(tmp_path):
    one, two = run(tmp_path / "1", ipt_1=1.05), run(tmp_path / "2", ipt_1=1.03)
    found, other = choice(one, two), choice(two, one)
    assert (found.decision, found.runs) == ("use", 2)
    assert (found.variant, found.raw_score) == (other.variant, pytest.approx(other.raw_score))


def test_runs_that_disagree_are_the_answer(tmp_path):
    one, two = run(tmp_path / "1", ipt_1=1.2), run(tmp_path / "2", ipt_1=0.98)
    found = choice(one, two)
    assert found.decision == "keep base"
    assert "the runs disagree: 1." in found.reason


def test_repeats_tell_of_noise(tmp_path):
    one, two = run(tmp_path / "1", ipt_1=1.05, ipt_2=1), run(tmp_path / "2", ipt_1=1.05, ipt_2=1)
    alone, both = choice(one), choice(one, two)
    assert both.noise < alone.noise
    assert both.noise_origin.startswith("12 rows measured again, and ")


def test_a_copy_is_no_repeat(tmp_path):
    one = run(tmp_path / "1", ipt_1=1.05, ipt_2=1.0)
    two = tmp_path / "2"
    two.write_bytes(one.read_bytes())
    Builder(two).rows("ipt_3", BASE, "I32")
    alone, both = choice(one), choice(one, two)
    assert both.noise == alone.noise
    assert both.tried == 3


def test_rows_that_stand_there_twice_and_differ_do_not_count(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0}, ipt_1={"16": 1.0}, ipt_2={"16": 1.5})
    Builder(path).row("ipt_1", 0.5, "I32", "16").row("ipt_2", 1.5, "I32", "16")
    document = rank([path])
    assert [v.variant for v in document.workloads[0].variants] == ["ipt_2", "base"]
    (warning,) = document.warnings
    assert str(warning).endswith("twice with different centers are ignored (row 2)")


# Confirmation


def test_a_confirming_run_decides(tmp_path):
    search = run(tmp_path / "a", ipt_1=1.04, ipt_2=1.03)
    good = run(tmp_path / "b", ipt_1=1.03, ipt_2=1.02)
    bad = run(tmp_path / "c", ipt_1=0.99, ipt_2=0.99)
    found = choice(search, confirm_with=[good])
    assert (found.decision, found.variant, found.unconfirmed) == ("use", "ipt_1", False)
    assert (found.origin, round(found.score, 2), round(found.raw_score, 2)) == (
        "confirmed",
        1.03,
        1.04,
    )
    assert "in a run that the choice has not seen" in found.reason
    found = choice(search, confirm_with=[bad])
    assert found.decision == "keep base"
    assert "not confirmed: 0.99" in found.reason
    both = choice(search, confirm_with=[good, bad])
    assert both.decision == "keep base"


def test_a_confirming_run_finds_what_the_search_alone_could_not_tell(tmp_path):
    rest = {f"ipt_{i}": 1.0 for i in range(2, 200)}
    search = run(tmp_path / "a", ipt_1=1.02, **rest)
    again = run(tmp_path / "b", ipt_1=1.02)
    rules = Rules(noise=0.008)
    assert choice(search, rules=rules).decision == "keep base"
    assert choice(search, rules=rules, confirm_with=[again]).decision == "use"


def test_only_finalists_of_the_search_are_confirmed(tmp_path):
    rest = {f"ipt_{i}": 1.1 for i in range(1, 17)}
    search = run(tmp_path / "a", ipt_17=1.02, **rest)
    again = run(tmp_path / "b", ipt_17=1.5, **rest)
    found = choice(search, confirm_with=[again], rules=Rules(candidates=17))
    assert (found.decision, found.variant == "ipt_17") == ("use", False)
    (reason,) = (one.reason for one in found.rejected if one.variant == "ipt_17")
    assert reason == "not a finalist, or not measured in the confirming run"


def test_a_finalist_need_not_have_convinced_in_the_search(tmp_path):
    rest = {f"ipt_{i}": 1.02 - i / 1000 for i in range(2, 9)}
    search = run(tmp_path / "a", ipt_1=1.01, **rest)
    again = run(tmp_path / "b", ipt_1=1.06, ipt_2=1.0)
    found = choice(search, confirm_with=[again], top=1)
    assert (found.decision, found.variant) == ("use", "ipt_1")


def test_the_threshold_of_a_confirming_run_pays_for_the_finalists(tmp_path):
    rest = {f"ipt_{i}": 1.011 for i in range(2, 9)}
    search = run(tmp_path / "a", ipt_1=1.012, **rest)
    alone, among = run(tmp_path / "b", ipt_1=1.0188), run(tmp_path / "c", ipt_1=1.0188, **rest)
    rules = Rules(noise=0.01)
    assert choice(search, rules=rules, confirm_with=[alone]).decision == "use"
    found = choice(search, rules=rules, confirm_with=[among])
    assert found.decision == "keep base"
    assert "which is under 1.0178" in found.reason


def test_what_loses_too_much_beyond_noise_is_no_finalist(tmp_path):
    search, again = run(tmp_path / "a"), run(tmp_path / "b", ipt_1=1.2)
    Builder(search).rows("ipt_1", {**dict.fromkeys(SIZES[:3], 0.5), "28": 1.5}, "I32")
    found = choice(search, confirm_with=[again])
    assert found.decision == "keep base"
    assert f"worst runtime workload {IO}=28 at 0.66" in found.reason


def test_a_loss_in_both_runs_is_a_reason_against(tmp_path):
    search, again = run(tmp_path / "a"), run(tmp_path / "b")
    for path in (search, again):
        Builder(path).rows("ipt_1", {**dict.fromkeys(SIZES[1:], 0.9), "16": 1.06}, "I32")
    found = choice(search, confirm_with=[again], rules=Rules(noise=0.01))
    assert found.decision == "keep base"
    assert "not confirmed: a runtime workload at 0.94" in found.reason


def test_a_run_does_not_confirm_itself(tmp_path):
    search = run(tmp_path / "a", ipt_1=1.03)
    with pytest.raises(InputError) as caught:
        choice(search, confirm_with=[search])
    assert "these rows belong to the search that they should confirm" in str(caught.value)


def test_a_run_of_something_else_confirms_nothing(tmp_path):
    search = run(tmp_path / "a", ipt_1=1.1)
    other = Builder(tmp_path / "b").table().rows("base", BASE, "I64").path
    assert choice(search, confirm_with=[other]).unconfirmed
    part = Builder(tmp_path / "c").table().row("base", 1.0, "I32", "16").path
    assert choice(search, confirm_with=[part]).decision == "keep base"


def test_a_claim_that_may_be_luck_waits(tmp_path):
    (small,) = rank([run(tmp_path / "a", ipt_1=1.04)]).workloads
    (large,) = rank([run(tmp_path / "b", ipt_1=1.1)]).workloads
    held = held_back(small, Rules())
    assert (held.choice.decision, held.choice.variant) == ("keep base", None)
    assert held.choice.reason.startswith("unconfirmed: 1.0")
    assert "; measure it again and add that run with --confirm" in held.choice.reason
    assert held.choice.rejected[0].reason == "unconfirmed"
    assert held_back(small, Rules(accept_unconfirmed=True)) == small
    assert held_back(large, Rules()) == large


# Measured repeats


def test_what_a_measured_run_chooses_the_other_one_does_not_contradict():
    """The best of both types was faster than base in one search, and slower in the other."""
    with (MEASURED / "repeats.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["benchmark"].startswith("cub.bench.red")]
    differs = {(row["workload"], row["variant"], row["runtime"]): row for row in rows}

    def elsewhere(scores, variant):
        """A score in the other search: this one's ratios, changed by what both differ by."""
        case = scores.case
        (part,), (ratios,), (weights,) = case.parts, scores.ratios, scores.weights
        names = [
            (f"T={case.workload['T{ct}']}", v, p) for (p,) in part.points for v in (variant, "base")
        ]
        logs = [float(differs[name]["difference"]) for name in names]
        changed = np.exp(np.subtract(logs[::2], logs[1::2]))
        return float(weights @ (ratios[case.variants.index(variant)] * changed))

    path = MEASURED / "A_reduce_sum/cccl_meta_bench.db"
    with open_cases([path], Warnings()) as cases:
        scores = {case.workload["T{ct}"]: score_case(case, {}) for case in cases}
        for least in (1.001, 1.01, 1.015):
            for found in rank([path], rules=Rules(least_score=least)).workloads:
                best, one = found.variants[0], scores[found.workload["T{ct}"]]
                assert best.score > 1.01
                assert elsewhere(one, best.variant) < 1
                assert found.choice.decision == "keep base"
