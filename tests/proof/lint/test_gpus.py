import pytest

from policygen.bindings.words import archs, gpu_archs
from tests.proof.lint.toys import entry, find

RULE = "score-of-other-gpu"


def on(arch, comment):
    # The declared primary of sm90 comes with every toy header.
    declared = f"template <class T, int Size> struct {arch}_tuning;\n" if arch != "sm90" else ""
    body = entry(["items = 4"], comment=comment)
    return declared + body.replace("sm90_tuning", f"{arch}_tuning")


@pytest.mark.parametrize(
    ("arch", "comment", "gpu", "of"),
    [
        ("sm120", "B200: ipt_4.tpb_512", "B200", "sm100"),  # NVIDIA/cccl#8611
        ("sm120", "tuned on B200, CTK 12.8", "B200", "sm100"),
        ("sm100", "scores from an NVIDIA H200", "H200", "sm90"),
        ("sm90", "measured on the b200", "B200", "sm100"),
        ("sm90", "ipt_4.tpb_512 1.0 (A100)", "A100", "sm80"),
        ("sm80", "results of RTX 4090", "RTX 4090", "sm89"),
        ("sm103", "B200", "B200", "sm100"),
        ("sm100", "scores are from SM_90", "SM_90", "sm90"),
    ],
)
def test_finds_comments_that_name_another_gpu(arch, comment, gpu, of):
    body = "template <class T, int Size> struct sm89_tuning;\n" * (gpu == "RTX 4090")
    body += "template <class T, int Size> struct sm100_tuning;\n" * (arch == "sm90" and of > "sm1")
    ((word, message),) = find(RULE, body + on(arch, comment))
    assert word.upper() == gpu
    named = f"{gpu}, an {of} GPU" if gpu.upper()[:2] != "SM" else of
    assert message == f"the comment names {named}, which never selects {arch}_tuning"


@pytest.mark.parametrize(
    ("arch", "comment"),
    [
        ("sm100", "tuned on B200"),
        ("sm100", "tuned on GB200"),
        ("sm90", "GH200, CTK 12.8"),
        ("sm100", "B300"),  # no newer family is there for it
        ("sm80", "measured on RTX 3090"),
        ("sm100", "falls back to H100, which is as fast"),
        ("sm100", "todo: tuned on H100, run again"),
        ("sm100", "same as H200"),
        ("sm100", "H100 regresses with this"),
        ("sm100", "not tuned on H100"),
        ("sm100", "This regressed, so we fall back to the SM90 tuning"),
        ("sm100", "the H100 has less of it"),
        ("sm100", "tuned on B2000"),
        ("sm100", "sm90 default"),
        ("sm100", "tuned on sm100"),
    ],
)
def test_leaves_comments_alone_that_name_the_gpu_or_another_on_purpose(arch, comment):
    assert find(RULE, on(arch, comment)) == []


def test_a_comment_above_an_entry_counts_too():
    body = "// tuned on B200\n" + entry(["items = 4"])
    body = body.replace("sm90_tuning", "sm120_tuning")
    body = "template <class T, int Size> struct sm120_tuning;\n\n" + body
    assert len(find(RULE, body)) == 1


def test_every_arch_has_the_shared_memory_that_all_have():
    assert {arch.static for arch in archs().values()} == {48 * 1024}
    assert all(arch.static <= (arch.opt_in or arch.static) for arch in archs().values())


def test_every_gpu_is_named_once_and_longer_names_come_first():
    names = list(gpu_archs())
    assert len(names) == sum(len(arch.gpus) for arch in archs().values())
    assert names.index("RTX A6000") < names.index("A6000")
    assert names.index("L40S") < names.index("L40")
