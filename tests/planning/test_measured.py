"""Which results can be planned with."""

import dataclasses

import pytest

from policygen.errors import InputError
from policygen.model.plans import NextBest
from policygen.model.results import RejectedVariant
from policygen.model.trees import BoundVersion
from policygen.planning.measured import check_gpus, measurements, rejected_variants
from tests.planning.pretend import BY_KEY, SUM, summed, want
from tests.planning.wanted import GPUS

I32 = summed("I32")
LABEL = "ipt_20.tpb_256.ipv_2"
TREE = BoundVersion("3.0.1")
H200, B200 = GPUS["sm90"], GPUS["sm100"]
H100, GB200 = "NVIDIA H100 80GB HBM3 (5120, 132, eccon)", "GB200 (8192, 148, eccon)"
ODD = "Pretend GPU 1 (5120, 80, eccon)"
SAY = "If Pretend GPU 1 is sm100, add --gpu-arch 'Pretend GPU 1=sm100'"


def result(point=I32, label=LABEL, **more):
    workload = more.pop("workload", None)
    found = want(point, label).model_copy(update=more)
    return found.model_copy(update={"workload": workload}) if workload else found


def asked(results, arch="sm90", *, force=False, version="3.0.1"):
    """What is kept, by GPU and version, and the reasons of the rest in the order of the results."""
    if not force:
        check_gpus(results, [arch])
    known, refused = measurements(results, BoundVersion(version), arch, force=force)
    order = [id(one) for one in results]
    told = {order.index(id(one)): action.reason for one, action in refused}
    return [order.index(id(one.scored)) for one in known], told


def reason(result, version="3.0.1"):
    """Why one result is refused."""
    kept, told = asked([result], "sm100", version=version)
    assert kept == []
    return told[0]


@pytest.mark.parametrize(
    ("gpu", "arch"), [(H200, "sm90"), (H100, "sm90"), (B200, "sm100"), (GB200, "sm100")]
)
def test_a_gpu_that_fits_the_architecture_counts(gpu, arch):
    assert asked([result(gpu=gpu)], arch) == ([0], {})


@pytest.mark.parametrize(
    ("gpus", "told", "remedy"),
    [
        ([H200], "H200 (sm90)", "Name the architecture that was measured, or add --any-gpu."),
        ([ODD], "Pretend GPU 1 (not known)", SAY),
        ([ODD, H200], "H200 (sm90), Pretend GPU 1 (not known)", SAY),
    ],
)
def test_results_of_other_architectures_alone_are_an_error(gpus, told, remedy):
    with pytest.raises(InputError) as caught:
        asked([result(gpu=gpu) for gpu in gpus], "sm100")
    assert str(caught.value) == (f"the results are from {told}, but --arch is sm100\n  {remedy}")


@pytest.mark.parametrize(
    ("gpu", "reason"),
    [
        (H200, "measured on H200, which is sm90"),
        (ODD, f"measured on Pretend GPU 1, an unknown GPU. {SAY}"),
    ],
)
def test_beside_a_gpu_that_fits_the_others_are_rejected(gpu, reason):
    assert asked([result(gpu=gpu), result(gpu=B200)], "sm100") == ([1], {0: reason})


@pytest.mark.parametrize(("gpu", "arch"), [(ODD, "sm100"), (H200, "sm110")])
def test_what_is_said_of_a_gpu_counts_more_than_its_name(gpu, arch):
    told = result(gpu=gpu).model_copy(update={"arch": arch})
    assert asked([told], arch) == ([0], {})
    with pytest.raises(InputError, match=rf"\({arch}\), but --arch is sm90"):
        asked([told], "sm90")


def test_force_takes_any_gpu():
    assert asked([result(gpu=ODD)], "sm100", force=True) == ([0], {})


def test_what_is_forced_does_not_count_more_than_a_gpu_that_fits():
    results = [result(gpu=H200, cccl="v3.2.0"), result(gpu=B200, cccl="v3.0.0")]
    why = "measured again with v3.0.0, CUDA 13.0.88, B200; that result counts"
    assert asked(results, "sm100", force=True) == ([1], {0: why})


def test_no_results_are_no_error():
    assert asked([]) == ([], {})


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"cccl": "v3.0.1"}, {"cccl": "v3.0.3"}),
        ({"cccl": "v3.0.3"}, {"cccl": "v3.0.10"}),
        ({"cccl": "v3.0.3-rc1"}, {"cccl": "v3.0.3"}),
        ({"cccl": "v3.0.3-rc1"}, {"cccl": "v3.0.3-rc2"}),
        ({"cccl": "v3.0.3.dev-204-g571f2fc3bc"}, {"cccl": "v3.0.3-rc1"}),
        ({"cccl": "v3.0.3.dev-9-g571f2fc3bc"}, {"cccl": "v3.0.3.dev-204-g171f2fc3bc"}),
        ({"cccl": "v3.0.3"}, {"cccl": "v3.0.3-2-g171f2fc3bc"}),
        ({"ctk": "12.9.41"}, {"ctk": "13.0.88"}),
        ({"cccl": "v3.0.1", "ctk": "13.0"}, {"cccl": "v3.0.2", "ctk": "12.9"}),
        ({"ctk": "?"}, {"ctk": "12.9"}),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_of_two_measurements_the_newer_one_counts(older, newer, first):
    results = [result(**{"ctk": "13.0", **x}) for x in (older, newer)]
    counts = results[1]
    why = f"measured again with {counts.cccl}, CUDA {counts.ctk}, B200; that result counts"
    order = results if first else results[::-1]
    assert asked(order, "sm100") == ([order.index(counts)], {1 - order.index(counts): why})


@pytest.mark.parametrize(
    ("near", "far"),
    [("v3.0.3", "v3.1.4"), ("v3.0.3", "v3.6.0.dev-204-g571f2fc3bc"), ("v3.1.0", "v2.8.2")],
)
def test_of_two_versions_the_one_that_is_nearer_to_the_tree_counts(near, far):
    kept, refused = asked([result(cccl=far), result(cccl=near)], "sm100")
    assert (kept, list(refused)) == ([1], [0])


def test_of_two_like_measurements_the_first_counts_and_its_database_is_named():
    results = [result(databases=("one.db", "two.db")), result(databases=("more.db",))]
    why = "measured again in one.db + two.db; that result counts"
    assert asked(results, "sm100") == ([0], {1: why})


@pytest.mark.parametrize(
    ("workload", "told"),
    [
        (
            {"T{ct}": "I32", "Else{ct}": "1"},
            "cub.bench.reduce.sum of CUB 3.0.1 has no axis Else. Its compile-time axes: T, OffsetT",
        ),
        (
            {"T{ct}": "I32"},
            "cub.bench.reduce.sum of CUB 3.0.1 has the axis OffsetT, but the database does not."
            " It is one of I32, I64.",
        ),
        (
            {},
            "cub.bench.reduce.sum of CUB 3.0.1 has the axis T, but the database does not. It is"
            " one of I8, I16, I32, I64, I128, F32, F64, C64.",
        ),
        (
            {"T{ct}": "Q7", "OffsetT{ct}": "I32"},
            "CUB 3.0.1 has no type named 'Q7'",
        ),
        (
            {"T{ct}": "U8", "OffsetT{ct}": "I32"},
            "T of cub.bench.reduce.sum has no value U8 in CUB 3.0.1."
            " It has: I8, I16, I32, I64, I128, F32, F64, C64",
        ),
    ],
)
def test_a_workload_that_the_tree_does_not_have_is_rejected(workload, told):
    scored = want(I32, LABEL).model_copy(update={"workload": workload})
    assert reason(scored) == told


def test_a_benchmark_that_is_not_bound_is_rejected():
    assert reason(result(algorithm="cub.bench.sleep")) == (
        "cub.bench.sleep is not bound for CUB 3.0.1"
    )


def test_what_is_no_version_is_rejected():
    told = "'tip of main' is not a CCCL version. Write it like v3.0.3."
    assert reason(result(cccl="tip of main")) == told


def test_results_without_a_choice_are_rejected():
    assert reason(result(choice=None)) == (
        "no variant was chosen, because its samples were not examined"
    )


@pytest.mark.parametrize(
    ("then", "now", "workload"),
    [("v3.0.1", "3.2.0", ("C64", "C32")), ("v3.2.0", "3.0.1", ("C32", "C64"))],
)
def test_a_type_has_its_name_of_the_tree(then, now, workload):
    before, after = workload
    scored = result(cccl=then, workload={"T{ct}": before, "OffsetT{ct}": "I32"})
    (known,), refused = measurements([scored], BoundVersion(now), "sm100", force=False)
    assert (known.workload, refused) == ({"T": after, "OffsetT": "I32"}, [])
    assert known.name == f"cub.bench.reduce.sum T={after} OffsetT=I32"
    assert known.point == (SUM, (("T", after), ("OffsetT", "I32")))


def test_another_type_of_the_same_name_is_not_taken_for_it():
    """C64 is complex<double> since CUB 3.2, and was complex<float> before."""
    scored = result(cccl="v3.2.0", workload={"T{ct}": "C64", "OffsetT{ct}": "I32"})
    assert reason(scored).startswith("T of cub.bench.reduce.sum has no value C64 in CUB 3.0.1")


def test_an_axis_with_one_value_need_not_be_in_the_database():
    workload = {"KeyT{ct}": "I8", "ValueT{ct}": "F32"}
    (known,), _ = measurements(
        [result(algorithm=BY_KEY, workload=workload)], TREE, "sm100", force=False
    )
    assert known.workload == {"KeyT": "I8", "ValueT": "F32", "OffsetT": "I32"}


def test_a_rejected_workload_tells_its_variant_in_plain_names():
    scored = result(gpu=H200)
    _, refused = measurements([scored, result(gpu=B200)], TREE, "sm100", force=False)
    ((one, action),) = refused
    assert one is scored
    assert action.model_dump(exclude_none=True) == {
        "benchmark": SUM,
        "workload": {"T": "I32", "OffsetT": "I32"},
        "gpu": H200,
        "ctk": "13.0.88",
        "cccl": "v3.0.1",
        "decision": "reject",
        "reason": "measured on H200, which is sm90",
        "variant": LABEL,
        "scores": (1.2, 1.0, 1.1, 1.3),
        "databases": ("made-up.db",),
        "legacy": False,
    }


def test_a_rejected_workload_without_a_variant_has_no_scores():
    base = result(label=None, gpu=H200)
    _, refused = measurements([base, result(gpu=B200)], TREE, "sm100", force=False)
    assert (refused[0][1].variant, refused[0][1].scores) == (None, None)


def test_the_variants_that_were_not_taken_are_told_with_the_best_one_alone_first():
    ((one,), _) = measurements(
        [want(summed("I32"), "ipt_20.tpb_256.ipv_2")], TREE, "sm100", force=True
    )
    refused = RejectedVariant(variant="ipt_9.tpb_256.ipv_2", score=1.01, reason="score is lower")
    later = RejectedVariant(variant="ipt_8.tpb_256.ipv_2", score=1.005, reason="score is lower")
    choice = one.choice.model_copy(update={"rejected": (refused, later)})
    scored = one.scored.model_copy(update={"choice": choice})
    one = dataclasses.replace(one, scored=scored)
    assert rejected_variants(one, "ipt_20.tpb_256.ipv_2") == (refused, later)
    first, second = rejected_variants(one, refused.variant)
    assert second == later
    assert (first.variant, first.reason) == (
        "ipt_20.tpb_256.ipv_2", "best for this workload alone",
    )  # fmt: skip
    instead = NextBest(variant=refused.variant, scores=(1.01,), best=first.variant, best_score=1.2)
    first, _ = rejected_variants(one, refused.variant, instead)
    assert first.reason == "the entry cannot express it"
