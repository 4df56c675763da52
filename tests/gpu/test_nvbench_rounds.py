"""Where NVBench measures, each process measures one runtime workload; who fails costs itself."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from policygen.gpu import worker
from policygen.gpu.checkout_rounds import NvbenchController
from policygen.gpu.control import controlling
from policygen.gpu.device import LostGpuError, Watch
from tests.gpu.simulated import BASE, Plan, case, variants
from tests.gpu.simulated_nvbench import SAMPLES, command
from tests.gpu.test_control import Patient

GOOD, OTHER, THIRD = variants("ipt_1", "ipt_2", "ipt_3")
AT_ONCE = Watch(pause=0.0, warm=1)


@contextmanager
def controlled(tmp_path, **plan):
    one = Plan(str(tmp_path), **plan)
    with controlling(
        command(one), kind=NvbenchController, limits=Patient(), watch=AT_ONCE, locks=one.locks
    ) as controller:
        yield controller


def counts(found):
    return {label: len(times) for label, times in found.samples.items()}


def test_each_place_of_the_order_gives_all_its_samples(tmp_path):
    with controlled(tmp_path, ratios={"ipt_1": 2.0}) as controller:
        assert controller.open(case(16), BASE) is None
        found = controller.rounds([BASE, GOOD, OTHER], 2, seed=1)
    assert counts(found) == {"base": 4 * SAMPLES, "ipt_1": 2 * SAMPLES, "ipt_2": 2 * SAMPLES}
    assert max(found.samples["ipt_1"]) < min(found.samples["base"])
    assert (found.failed, controller.restarts) == ({}, 0)


def test_each_runtime_workload_has_a_process_of_its_own(tmp_path):
    with controlled(tmp_path) as controller:
        for number, size in enumerate((16, 20, 24)):
            assert controller.open(case(size), BASE) is None
            assert counts(controller.rounds([GOOD], 1, 1)) == {
                "base": 2 * SAMPLES,
                "ipt_1": SAMPLES,
            }
            assert controller.restarts == number
        # What was found out of a variant stays.
        assert controller.check([GOOD]) == {}


def test_a_process_that_was_started_anew_is_used(tmp_path):
    with controlled(tmp_path) as controller:
        controller.open(case(16), BASE)
        controller.rounds([], 1, 1)
        controller.restart()
        assert counts(controller.rounds([], 1, 1)) == {"base": 2 * SAMPLES}
        assert controller.restarts == 1


@pytest.mark.parametrize(
    ("does", "kind", "restarts"),
    [
        ("wrong", "wrong", 0),
        ("sample: crash", "crash", 1),
        ("sample: memory", "memory", 0),
        ("sample: sticky", "error", 1),
    ],
)
def test_a_variant_that_fails_costs_itself_alone(tmp_path, does, kind, restarts):
    with controlled(tmp_path, does={"ipt_2": does}) as controller:
        controller.open(case(16), BASE)
        found = controller.rounds([GOOD, OTHER, THIRD], 2, 1)
    assert {label: one.kind for label, one in found.failed.items()} == {"ipt_2": kind}
    assert counts(found) == {
        "base": 4 * SAMPLES,
        "ipt_1": 2 * SAMPLES,
        "ipt_3": 2 * SAMPLES,
    }
    assert controller.restarts == restarts


def test_a_worker_without_nvbench_is_not_asked_for_ever(tmp_path):
    plan = Plan(str(tmp_path))
    with controlling(
        plan.command(), kind=NvbenchController, limits=Patient(), watch=AT_ONCE, locks=plan.locks
    ) as controller:
        controller.open(case(16), BASE)
        with pytest.raises(LostGpuError, match="this worker was not started for NVBench"):
            controller.rounds([GOOD], 1, 1)


def test_the_command_of_a_worker_names_nvbenchs_options(monkeypatch):
    where = ["2", "/a/runner.so", ""]
    options = ["--stopping-criterion", "stdrel", "--min-samples", "20", "--timeout", "0.05"]
    seen = []

    class Seen:
        def __init__(self, *arguments):
            seen.append(arguments)

    monkeypatch.setattr(worker, "run_worker", lambda make: make() and 0)
    monkeypatch.setattr(worker, "NvbenchDevice", Seen)
    monkeypatch.setattr(worker, "CudaDevice", Seen)
    worker.main([*where, "nvbench", *options])
    worker.main(["0", "/a/runner.so", "/a/libcudart.so"])
    worker.main(["0", "/a/runner.so", ""])
    assert seen == [
        (2, Path("/a/runner.so"), None, options),
        (0, Path("/a/runner.so"), Path("/a/libcudart.so")),
        (0, Path("/a/runner.so"), None),
    ]
