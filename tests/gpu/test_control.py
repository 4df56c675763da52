"""What a variant does to its process, or its GPU, costs that variant and nothing else."""

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.gpu import control
from policygen.gpu.control import controlling, read_facts, worker_command
from policygen.gpu.device import GoneError, Limits, LostGpuError, VariantFunction, Watch
from policygen.gpu.machine import BusyGpuError, gpu_lock
from tests.gpu.simulated import BASE, FACTS, LAUNCH, Plan, case, variants

GOOD, OTHER, THIRD = variants("ipt_1", "ipt_2", "ipt_3")
AT_ONCE = Watch(pause=0.0, warm=1)


@dataclass(frozen=True, slots=True)
class Patient(Limits):
    """A busy machine may take long; who hangs is known to the test."""

    hangs: str = ""

    def seconds(self, variant, base):
        return 0.5 if variant and variant == self.hangs else 300.0


@contextmanager
def controlled(tmp_path, hangs="", watch=AT_ONCE, **plan):
    one = Plan(str(tmp_path), **plan)
    with controlling(
        one.command(), limits=Patient(hangs=hangs), watch=watch, locks=one.locks
    ) as controller:
        yield controller


def test_a_worker_says_what_its_gpu_is(tmp_path):
    with controlled(tmp_path) as controller:
        assert controller.facts == FACTS
    assert FACTS.label == "H200 (6144, 132, eccon)"


def test_the_worker_of_a_gpu_is_a_module_of_ours(tmp_path, monkeypatch):
    """It runs in a folder of its own: what it is given is no path from here."""
    monkeypatch.chdir(tmp_path)
    runner, runtime = tmp_path / "runner.so", tmp_path / "libcudart.so.13"
    command = worker_command(1, Path("runner.so"), Path("libcudart.so.13"))
    assert command[-4:] == ("policygen.gpu.worker", "1", str(runner), str(runtime))
    assert worker_command(0, Path("runner.so"), None)[-2:] == (str(runner), "")


def test_base_and_variants_are_measured_in_rounds(tmp_path):
    with controlled(tmp_path, ratios={"ipt_1": 2.0}) as controller:
        assert controller.open(case(16), BASE) is None
        found = controller.rounds([GOOD, OTHER], 5, seed=1)
    assert {label: len(times) for label, times in found.samples.items()} == {
        "base": 10,
        "ipt_1": 5,
        "ipt_2": 5,
    }
    assert max(found.samples["ipt_1"]) < min(found.samples["base"])
    assert found.failed == {}
    assert found.elapsed.keys() == found.samples.keys()
    assert min(found.elapsed.values()) > 0
    assert (found.repeated, found.throttled, controller.restarts) == (0, 0, 0)


def test_without_variants_base_is_measured_alone(tmp_path):
    with controlled(tmp_path) as controller:
        controller.open(case(16), BASE)
        assert {
            label: len(times) for label, times in controller.rounds([BASE], 3, 1).samples.items()
        } == {"base": 6}


def test_many_variants_are_asked_in_several_requests(tmp_path):
    many = variants(*(f"ipt_{number}" for number in range(1, 201)))
    with controlled(tmp_path, does={"ipt_70": "wrong", "ipt_130": "crash"}) as controller:
        controller.open(case(16), BASE)
        checked = controller.check(many)
        found = controller.rounds(many, 2, 1)
    assert found.failed.keys() == checked.keys() == {"ipt_70", "ipt_130"}
    assert len(found.samples) == 199
    assert all(len(times) == 2 for label, times in found.samples.items() if label != "base")


BAD = [
    ("crash", "crash", "it was ended by signal 11", 1),
    ("exit", "crash", "it ended with 3: no more of this", 1),
    ("hang", "hang", "it did not finish within 0.5 seconds", 1),
    ("sticky", "error", "an illegal memory access was encountered", 1),
    ("memory", "memory", "out of memory", 0),
    ("wrong", "wrong", "3 of 65,536 elements differ, the first at 7", 0),
]


@pytest.mark.parametrize(("does", "kind", "reason", "restarts"), BAD, ids=[b[0] for b in BAD])
def test_what_a_variant_does_when_it_is_checked_is_its_own_failure(
    tmp_path, does, kind, reason, restarts
):
    with controlled(tmp_path, hangs="ipt_2", does={"ipt_2": does}) as controller:
        controller.open(case(16), BASE)
        checked = controller.check([GOOD, OTHER, THIRD])
        assert {k: (f.kind, f.reason) for k, f in checked.items()} == {"ipt_2": (kind, reason)}
        found = controller.rounds([GOOD, OTHER, THIRD], 3, 1)
        assert controller.restarts == restarts
    assert found.samples.keys() == {"base", "ipt_1", "ipt_3"}
    assert found.failed == checked


@pytest.mark.parametrize(
    ("does", "kind", "reason", "restarts"), BAD[:5], ids=[b[0] for b in BAD[:5]]
)
def test_what_a_variant_does_when_it_is_timed_is_its_own_failure(
    tmp_path, does, kind, reason, restarts
):
    with controlled(tmp_path, hangs="ipt_2", does={"ipt_2": f"sample: {does}"}) as controller:
        controller.open(case(16), BASE)
        assert controller.check([GOOD, OTHER, THIRD]) == {}
        found = controller.rounds([GOOD, OTHER, THIRD], 3, 1)
        assert controller.restarts == restarts
    assert {label: len(times) for label, times in found.samples.items()} == {
        "base": 6,
        "ipt_1": 3,
        "ipt_3": 3,
    }
    assert {k: (f.kind, f.reason) for k, f in found.failed.items()} == {"ipt_2": (kind, reason)}


def test_a_variant_whose_process_is_killed_is_asked_once_more(tmp_path):
    """Somebody else may have killed it, or a system without memory: the second time it counts."""
    does = {"ipt_1": "killed once", "ipt_2": "killed"}
    with controlled(tmp_path, does=does) as controller:
        controller.open(case(16), BASE)
        checked = controller.check([GOOD, OTHER, THIRD])
        assert controller.restarts == 3
    assert checked.keys() == {"ipt_2"}
    assert checked["ipt_2"].reason == "it was ended by signal 9"


@pytest.mark.parametrize("seconds", ["inf", "-1.0"])
def test_a_time_that_is_none_is_a_failure(tmp_path, seconds):
    with controlled(tmp_path, does={"ipt_1": f"sample: {seconds}"}) as controller:
        controller.open(case(16), BASE)
        found = controller.rounds([GOOD, OTHER], 2, 1)
    assert found.failed["ipt_1"].reason == f"it took {seconds} seconds"
    assert "ipt_2" in found.samples


def test_what_a_variant_prints_is_no_answer(tmp_path):
    with controlled(tmp_path, does={"ipt_1": "prints"}) as controller:
        controller.open(case(16), BASE)
        assert controller.check([GOOD]) == {}


def test_all_may_fail(tmp_path):
    does = {"ipt_1": "crash", "ipt_2": "wrong"}
    with controlled(tmp_path, does=does) as controller:
        controller.open(case(16), BASE)
        found = controller.rounds([GOOD, OTHER], 2, 1)
    assert found.samples.keys() == {"base"}
    assert found.failed.keys() == does.keys()


def test_a_variant_is_checked_once(tmp_path):
    with controlled(tmp_path) as controller:
        controller.open(case(16), BASE)
        first, second = (controller.rounds([GOOD], 0, 1) for _ in range(2))
    assert first.failed == second.failed == {}
    assert ["ipt_1" in result.elapsed for result in (first, second)] == [True, False]


def test_base_may_differ_from_itself(tmp_path):
    """It is told, and measured: what all are compared with cannot be left out."""
    with controlled(tmp_path, does={"base": "wrong"}) as controller:
        controller.open(case(16), BASE)
        assert controller.check([BASE, GOOD])["base"].kind == "wrong"
        assert controller.rounds([GOOD], 2, 1).samples.keys() == {"base", "ipt_1"}


def test_what_is_known_is_known_of_one_runtime_workload(tmp_path):
    with controlled(tmp_path, does={"ipt_1": "wrong"}) as controller:
        controller.open(case(16), BASE)
        controller.check([GOOD])
        controller.open(case(20), BASE)
        assert "ipt_1" in controller.rounds([GOOD], 0, 1).elapsed
        found = controller.rounds([], 1, 1)
    assert min(found.samples["base"]) > 1e-4


def test_a_benchmark_may_skip_a_runtime_workload(tmp_path):
    with controlled(tmp_path, skips=[28]) as controller:
        assert controller.open(case(28), BASE) == "the benchmark skips it"
        with pytest.raises(ValueError, match="no runtime workload is open"):
            controller.check([GOOD])
        assert controller.open(case(16), BASE) is None


def test_inputs_that_do_not_fit_are_no_lost_gpu(tmp_path):
    with controlled(tmp_path, opening=["memory"]) as controller:
        assert controller.open(case(28), BASE) == "out of memory"
        assert controller.open(case(16), BASE) is None
        assert controller.restarts == 0


def test_a_base_that_does_not_fit_is_no_lost_gpu(tmp_path):
    with controlled(tmp_path, does={"base": "memory"}) as controller:
        assert controller.open(case(28), BASE) == "out of memory"
        assert controller.restarts == 0


@pytest.mark.parametrize("what", ["crash", "sticky"])
def test_a_process_that_ends_while_it_makes_inputs_is_started_again(tmp_path, what):
    with controlled(tmp_path, opening=[what, what]) as controller:
        assert controller.open(case(16), BASE) is None
        assert controller.restarts == 2


@pytest.mark.parametrize("what", ["crash", "sticky", "memory"])
def test_a_base_that_fails_twice_is_measured_in_other_processes(tmp_path, what):
    with controlled(tmp_path, bases=["", "", "", what, what]) as controller:
        controller.open(case(16), BASE)
        found = controller.rounds([GOOD], 4, 1)
        assert controller.restarts == 2
    assert {label: len(times) for label, times in found.samples.items()} == {"base": 8, "ipt_1": 4}


@pytest.mark.parametrize("what", ["crash", "sticky", "memory"])
def test_a_gpu_on_which_base_fails_again_and_again_is_lost(tmp_path, what):
    with controlled(tmp_path, does={"base": f"sample: {what}"}) as controller:
        controller.open(case(16), BASE)
        with pytest.raises(LostGpuError, match=r"H200 .* base failed 3 times in a row") as caught:
            controller.rounds([GOOD], 4, 1)
    assert caught.value.exit_code == 3
    assert "Check the GPU" in str(caught.value)


def test_a_gpu_that_no_longer_takes_the_inputs_is_lost(tmp_path):
    opening = ["", *["memory"] * 9]
    with controlled(tmp_path, opening=opening, does={"ipt_1": "crash"}) as controller:
        controller.open(case(16), BASE)
        with pytest.raises(LostGpuError, match="3 times in a row: out of memory"):
            controller.check([GOOD, OTHER])


def test_another_gpu_under_the_same_number_is_no_continuation(tmp_path):
    with (
        pytest.raises(LostGpuError, match="a different GPU has its number now: GPU-2"),
        controlled(tmp_path, others=["GPU-1", "GPU-2"]) as controller,
    ):
        controller.restart()


def test_without_a_gpu_it_is_said_why(tmp_path):
    with (
        pytest.raises(LostGpuError, match="the GPU cannot be used: no driver is loaded"),
        controlled(tmp_path, refuses="no driver is loaded"),
    ):
        pass


def test_a_fresh_process_knows_what_was_found_out(tmp_path):
    with controlled(tmp_path, does={"ipt_1": "wrong"}, shift=1.0) as controller:
        controller.open(case(16), BASE)
        controller.check([GOOD, OTHER])
        before = controller.rounds([GOOD, OTHER], 2, 1)
        controller.restart()
        after = controller.rounds([GOOD, OTHER], 2, 1)
        # Base's results are made again where they are needed.
        assert controller.check([THIRD]) == {}
    assert before.failed == after.failed
    assert max(before.samples["base"]) < min(after.samples["base"])
    assert controller.restarts == 1


def test_throttled_samples_are_taken_again(tmp_path):
    """The first look is that after base has warmed the GPU, the second that of the first round."""
    with controlled(tmp_path, throttled=[1, 2]) as controller:
        controller.open(case(16), BASE)
        found = controller.rounds([GOOD], 2, 1)
    assert {label: len(times) for label, times in found.samples.items()} == {"base": 4, "ipt_1": 2}
    assert (found.repeated, found.throttled) == (6, 0)


def test_low_clocks_are_throttling_too(tmp_path):
    with controlled(tmp_path, clocks=[1980, 1400, 1500]) as controller:
        controller.open(case(16), BASE)
        found = controller.rounds([GOOD], 1, 1)
    assert (found.repeated, found.throttled) == (3, 0)


def test_what_is_throttled_for_ever_is_taken_and_told(tmp_path, monkeypatch):
    watch, pauses = Watch(repeats=2, pause=0.25, warm=1), []
    with controlled(tmp_path, watch=watch, throttled=list(range(99))) as controller:
        controller.open(case(16), BASE)
        monkeypatch.setattr(control.time, "sleep", pauses.append)
        found = controller.rounds([GOOD], 1, 1)
        monkeypatch.undo()
    assert len(found.samples["ipt_1"]) == 1
    assert (found.repeated, found.throttled) == (6, 3)
    assert pauses.count(0.25) == 2  # before each repeat, and not after the last one


def test_a_gpu_that_never_cools_costs_a_share_of_the_time(tmp_path):
    """Of 16 requests two, as often as one may be repeated, and a quarter of the others."""
    watch = Watch(repeats=2, pause=0.0, warm=1)
    many = variants(*(f"ipt_{number}" for number in range(1, 57)))
    with controlled(tmp_path, watch=watch, throttled=list(range(999))) as controller:
        controller.open(case(16), BASE)
        found = controller.rounds(many, 16, 1)
    assert found.repeated == (2 + 3) * 64
    assert found.throttled == 16 * 64 == sum(map(len, found.samples.values()))


def test_two_measurements_do_not_share_a_gpu(tmp_path):
    with controlled(tmp_path) as controller:
        controller.open(case(16), BASE)
        words = r"another measurement is running on GPU-5f3b: process \d+"
        with pytest.raises(BusyGpuError, match=words), controlled(tmp_path):
            pass
        assert len(controller.rounds([GOOD], 1, 1).samples) == 2
    with controlled(tmp_path) as controller:
        assert controller.facts.uuid == "GPU-5f3b"


def test_the_lock_is_free_after_a_failure(tmp_path):
    with pytest.raises(InputError), controlled(tmp_path, refuses="no"):
        pass
    with gpu_lock("GPU-5f3b", folder=tmp_path):
        assert (tmp_path / "policygen-GPU-5f3b.session").exists()


def test_a_variant_that_has_base_s_label_is_not_base(tmp_path):
    """Who is meant is a function, not its label."""
    twin = VariantFunction("ipt_1", "other.so", "policygen_run_1")
    with controlled(tmp_path) as controller:
        controller.open(case(16), BASE)
        controller.check([GOOD])
        assert "ipt_1" in controller.rounds([twin], 0, 1).elapsed


def test_a_process_that_is_killed_as_it_starts_is_started_once_more(tmp_path, monkeypatch):
    asked = []

    def facts(line, limits):
        asked.append(line)
        if len(asked) == 1:
            raise GoneError("it was ended by signal 9", outside=True)
        return read_facts(line, limits)

    monkeypatch.setattr(control, "read_facts", facts)
    with controlled(tmp_path) as controller:
        assert controller.open(case(16), BASE) is None
    assert len(set(asked)) == 2


def test_launches_are_known_of_base_and_what_was_checked_on_what_is_open(tmp_path):
    with controlled(tmp_path, copies="4e12", does={"ipt_2": "wrong"}) as controller:
        assert controller.launches == {}
        controller.open(case(16), BASE)
        controller.check([GOOD, OTHER])
        assert controller.launches == {"base": LAUNCH, "ipt_1": LAUNCH}
        controller.restart()
        assert controller.launches == {"base": LAUNCH, "ipt_1": LAUNCH}
        controller.open(case(18), BASE)
        assert controller.launches == {"base": LAUNCH}


@pytest.mark.parametrize(
    ("copies", "found", "restarts"),
    [
        ("4e12", 4e12, 0),
        ("", None, 0),
        ("memory", None, 0),
        ("crash", None, 1),
        ("sticky", None, 1),
    ],
)
def test_a_copy_takes_what_it_takes_or_nothing_is_known(tmp_path, copies, found, restarts):
    with controlled(tmp_path, copies=copies) as controller:
        assert controller.bandwidth() == found
        assert controller.restarts == restarts
        assert controller.open(case(16), BASE) is None
