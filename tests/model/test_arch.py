import pytest

from policygen.model.arch import (
    arch_and_gpu,
    arch_number,
    capability_number,
    parse_arch,
    ptx_version_to_arch,
)


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        ("sm90", "sm90"),
        ("sm_90", "sm90"),
        ("SM_103", "sm103"),
        ("compute_80", "sm80"),
        ("90", "sm90"),
        ("9.0", "sm90"),
        ("12.1", "sm121"),
        ("sm_90a", "sm90"),
        (" sm107 ", "sm107"),
        ("gfx942", "gfx942"),
        ("GFX90A", "gfx90a"),
        ("unknown", "unknown"),
    ],
)
def test_an_arch_has_one_spelling(text, arch):
    assert parse_arch(text) == arch


@pytest.mark.parametrize(
    "text", ["", "sm", "9", "sm9000", "hopper", "9.0.0", "gfx", "gfx94x", "gfx942:", "gfx942:1x"]
)
def test_what_is_no_arch_is_refused(text):
    with pytest.raises(ValueError, match="is not a GPU architecture"):
        parse_arch(text)


@pytest.mark.parametrize(
    ("major", "minor", "number"),
    [("9", "0", 90), ("10", "3", 103), ("10", "39", 139), ("123", "4", 998)],
)
def test_a_compute_capability_is_a_number(major, minor, number):
    assert capability_number(major, minor) == number


def test_archs_sort_by_number():
    assert sorted(["sm100", "sm90", "sm120"], key=arch_number) == ["sm90", "sm100", "sm120"]
    amd = ["gfx1030", "gfx942", "unknown", "gfx90a", "gfx908"]
    assert sorted(amd, key=arch_number) == ["unknown", "gfx908", "gfx90a", "gfx942", "gfx1030"]
    assert ptx_version_to_arch(1000) == "sm100"


def test_a_gpu_of_an_architecture_sorts_behind_it():
    assert parse_arch("GFX942:MI300X") == "gfx942:mi300x"
    assert arch_and_gpu("gfx942:mi300x") == ("gfx942", "mi300x")
    assert arch_and_gpu("sm90") == ("sm90", "")
    known = ["gfx950", "gfx942:mi308x", "gfx942:mi300x", "gfx942"]
    assert sorted(known, key=arch_number) == [*reversed(known[1:]), "gfx950"]
