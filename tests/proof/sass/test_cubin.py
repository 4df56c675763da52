import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policygen.errors import InputError
from policygen.proof.kernel_code import read_cubin
from tests.proof.sass.dumps import EMPTY, FOLDER, SUM_FLOAT, SUM_INT
from tests.toolchain import compiled

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def cubin(tmp_path_factory):
    made = tmp_path_factory.mktemp("bounds") / "kernels.cubin"
    return compiled(FOLDER / "kernels.cu", made, "-cubin", "-arch=sm_90").read_bytes()


def test_launch_bounds_are_read_from_a_cubin(cubin):
    found = read_cubin(cubin, "kernels")
    assert {n: k.max_threads for n, k in found.items()} == {
        SUM_INT: 128,
        SUM_FLOAT: 128,
        EMPTY: None,
    }


def test_digests_tell_whether_code_is_the_same(cubin, tmp_path):
    text = (FOLDER / "kernels.cu").read_text()
    (tmp_path / "other.cu").write_text(text.replace("Policy900", "Policy1200"))
    (tmp_path / "third.cu").write_text(text.replace("int i = 1;", "int i = 2;"))
    one, other, third = (
        {kernel.code for kernel in read_cubin(data, "kernels").values()}
        for data in (
            cubin,
            *(
                compiled(path, path.with_suffix(".cubin"), "-cubin", "-arch=sm_90").read_bytes()
                for path in (tmp_path / "other.cu", tmp_path / "third.cu")
            ),
        )
    )
    assert one == other
    assert len(one & third) == 1  # the empty one
    assert len(one) == len(third) == 3


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: b"", "not a 64-bit ELF file"),
        (lambda b: b"#!/bin/sh\n", "not a 64-bit ELF file"),
        (lambda b: b[:100], "unpack"),
        (lambda b: b.replace(b".text.", b".Text."), "it contains no recognizable kernel"),
        (lambda b: b[:0x28] + struct.pack("<Q", 1 << 40) + b[0x30:], "unpack"),
    ],
)
def test_a_cubin_that_is_not_whole_is_an_error(cubin, damage, message):
    with pytest.raises(InputError, match=message) as caught:
        read_cubin(damage(cubin), "kernels")
    assert str(caught.value).startswith("kernels")


@given(number=st.integers(0, 1 << 32), byte=st.integers(0, 255))
def test_any_damage_is_read_or_refused(cubin, number, byte):
    place = number % len(cubin)
    with suppress(InputError):
        assert read_cubin(cubin[:place] + bytes([byte]) + cubin[place + 1 :], "damaged")
