"""The sentences that documents state of themselves, and what holds where."""

import pytest

from policygen.model.emitted import KernelHeader
from policygen.model.machine_code import VerifySass
from policygen.model.overlays import OverlayProof, ProgramKernel
from policygen.model.plans import Action
from policygen.model.selection import Effect, InputChange
from policygen.model.trees import Cub

CUB = Cub(root="tree", version="3.6.0", dialect="selectors", found="--cub")
CODE = {
    "cub": CUB,
    "selector": "",
    "base": "HEAD",
    "toolchain": "nvcc 13.2.86",
    "archs": ("sm80", "sm90"),
    "workloads": 4,
    "identical": 0,
    "rows": (),
    "kernels": 0,
    "equal": 0,
    "renamed": 0,
}


@pytest.mark.parametrize(
    ("given", "summary"),
    [
        (
            {"untouched": 3},
            "the change touches none of 3 workloads; nothing was compiled (sm80, sm90)",
        ),
        (
            {"identical": 2, "untouched": 3},
            "2 workloads with the same source; nothing was compiled (sm80, sm90)",
        ),
        (
            {"identical": 1},
            "1 workload with the same source; nothing was compiled (sm80, sm90)",
        ),
        ({"archs": ()}, "nothing differs; nothing was compiled (no architecture)"),
        (
            {"kernels": 5, "equal": 3, "renamed": 2, "untouched": 1},
            "of 5 kernels 3 equal, 2 renamed, with equal code;"
            " 1 workload that the change cannot touch (sm80, sm90)",
        ),
    ],
)
def test_machine_code_is_summarized(given, summary):
    document = VerifySass.model_construct(**(CODE | given))
    assert document.summary == f"SASS: {summary}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([{"examples": ("a",)}], ""),
        ([{}], ", reduce::policy_selector changed, too"),
        (
            [{"leaks": ("sm100",)}, {"leaks": ("sm100", "sm120"), "selector": "hub"}],
            ", hub, reduce::policy_selector changed, too",
        ),
    ],
)
def test_an_effect_is_summarized_with_what_leaks(changes, words):
    change = {
        "header": "tuning_reduce.cuh",
        "selector": "reduce::policy_selector",
        "archs": ("sm90",),
        "conditions": (),
        "values": {"threads": "256 → 416"},
    }
    effect = Effect(
        cub=CUB,
        toolchain="nvcc 13.2.86",
        headers=("tuning_reduce.cuh",),
        archs=("sm90",),
        compared=7,
        changed=(),
        inputs=tuple(InputChange(**(change | given)) for given in changes),
    )
    count = sum("leaks" in given for given in changes)
    leaks = f"{count} leaking to other architectures, " if count else ""
    assert effect.summary == (
        f"0 workloads changed as written, {leaks}7 as before{words} (nvcc 13.2.86; sm90)"
    )
    text = "all inputs: threads 256 → 416; the results do not measure"
    assert [failure.partition(": ")[2] for failure in effect.failures] == [
        f"{text} {', '.join(given['leaks'])}" for given in changes if "leaks" in given
    ]


def proof(*outcomes):
    kernels = tuple(
        ProgramKernel(unit="a.cu", kernel=f"k{number}", outcome=outcome, threads=(256, 512))
        for number, outcome in enumerate(outcomes)
    )
    return OverlayProof.model_construct(arch="sm90", kernels=kernels)


@pytest.mark.parametrize(
    ("outcomes", "holds", "summary"),
    [
        ((), False, "the overlay touches none of 0 kernels of this program on sm90"),
        (("same",), False, "the overlay touches none of 1 kernel of this program on sm90"),
        (("changed",), True, "of 1 kernel 1 with another policy (sm90)"),
        (
            ("changed", "same", "changed", "added", "removed"),
            True,
            "of 5 kernels 2 with another policy, 1 only after, 1 only before,"
            " 1 with the same machine code (sm90)",
        ),
        (
            ("changed", "unexpected"),
            False,
            "1 of 2 kernels differ, and the overlay has nothing for them",
        ),
    ],
)
def test_what_an_overlay_changes_of_a_program_is_summarized(outcomes, holds, summary):
    document = proof(*outcomes)
    assert document.holds is holds
    assert document.summary == summary


@pytest.mark.parametrize(
    ("decision", "given", "changed", "has_already"),
    [
        ("keep", {}, False, True),
        ("keep", {"is_new": True}, False, False),
        ("keep", {"variant": None}, False, False),
        ("update", {}, False, False),
        ("update", {"diff": "+ 1"}, True, False),
        ("keep", {"diff": "+ 1"}, False, True),
    ],
)
def test_a_kernel_header_has_already_what_is_kept(decision, given, changed, has_already):
    action = Action(
        benchmark="own.blur",
        workload={},
        gpu="G",
        ctk="13.2",
        cccl="v3.6.0",
        decision=decision,
        reason="",
        variant=given.get("variant", "ipt_2"),
    )
    header = KernelHeader(
        path="blur.cuh",
        arch="sm90",
        is_new=given.get("is_new", False),
        actions=(action,),
        effect=None,
        diff=given.get("diff", ""),
        text="",
    )
    assert (header.changed, header.has_already) == (changed, has_already)
