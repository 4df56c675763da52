"""Which GPU is of which architecture."""

import pytest

from policygen.bindings.words import archs, gpu_arch, gpu_archs, ladder
from policygen.model.arch import arch_number


@pytest.mark.parametrize(
    ("gpu", "arch"),
    [
        ("H200 (6144, 132, eccon)", "sm90"),
        ("NVIDIA H100 80GB HBM3 (5120, 132, eccon)", "sm90"),
        ("GH200 480GB (6144, 132, eccon)", "sm90"),
        ("B200 (8192, 148, eccon)", "sm100"),
        ("NVIDIA GB200 (8192, 148, eccon)", "sm100"),
        ("B300 (8192, 148, eccon)", "sm103"),
        ("NVIDIA GB300 (8192, 148, eccon)", "sm103"),
        ("NVIDIA R200 (8192, 224, eccon)", "sm107"),
        ("NVIDIA Thor (256, 20, eccoff)", "sm110"),
        ("NVIDIA L4 (192, 58, eccon)", "sm89"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition (512, 188, eccon)", "sm120"),
        ("NVIDIA A100-SXM4-80GB (5120, 108, eccon)", "sm80"),
        ("NVIDIA L40S (384, 142, eccon)", "sm89"),
        ("NVIDIA L40 (384, 142, eccon)", "sm89"),
        ("NVIDIA RTX 6000 Ada Generation (384, 142, eccon)", "sm89"),
        ("NVIDIA RTX A6000 (384, 84, eccon)", "sm86"),
        ("NVIDIA GeForce RTX 5090 (512, 170, eccoff)", "sm120"),
        ("nvidia h200 (6144, 132, eccon)", "sm90"),
        ("Demo H200 (6144, 132, eccon)", "sm90"),
        ("Tesla V100-SXM2-16GB (4096, 80, eccon)", "sm70"),
        ("H2000 (1, 2, eccon)", None),
        ("XB200 (1, 2, eccon)", None),
        ("Pretend GPU 1 (5120, 80, H200)", None),
        ("", None),
    ],
)
def test_a_gpu_is_known_by_a_word_of_its_name(gpu, arch):
    assert gpu_arch(gpu) == arch


def test_a_longer_name_is_looked_for_first():
    names = list(gpu_archs())
    assert names == sorted(names, key=lambda name: (-len(name), name))


def test_architectures_stand_in_their_order_with_more_memory_on_request_than_declared():
    found = list(archs().values())
    assert [one.name for one in found] == sorted((one.name for one in found), key=arch_number)
    assert all(one.static == 48 * 1024 for one in found)
    assert all(one.opt_in is None or one.opt_in >= one.static for one in found)


def test_no_gpu_is_of_two_architectures():
    names = [gpu for one in archs().values() for gpu in one.gpus]
    assert len(names) == len(set(names)) == len(gpu_archs())


def test_the_ladder_rises_from_the_oldest_architecture_that_is_known():
    assert list(ladder()) == sorted(set(ladder()), key=arch_number)
    assert ladder()[0] == next(iter(archs()))
