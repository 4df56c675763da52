import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policygen.errors import InputError
from policygen.proof.sass.bounds import max_threads
from tests.proof.sass.dumps import FOLDER, SUM_FLOAT, SUM_INT
from tests.toolchain import compiled

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def cubin(tmp_path_factory):
    made = tmp_path_factory.mktemp("bounds") / "kernels.cubin"
    return compiled(FOLDER / "kernels.cu", made, "-cubin", "-arch=sm_90").read_bytes()


def test_launch_bounds_are_read_from_a_cubin(cubin):
    assert max_threads(cubin, "kernels") == {SUM_INT: 128, SUM_FLOAT: 128}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: b"", "it is no ELF file of 64 bits"),
        (lambda b: b"#!/bin/sh\n", "it is no ELF file of 64 bits"),
        (lambda b: b[:100], "unpack"),
        (lambda b: b[:0x28] + struct.pack("<Q", 1 << 40) + b[0x30:], "unpack"),
    ],
)
def test_a_cubin_that_is_not_whole_is_an_error(cubin, damage, message):
    with pytest.raises(InputError, match=message) as caught:
        max_threads(damage(cubin), "kernels")
    assert str(caught.value).startswith("kernels is no whole cubin: ")


@given(data=st.data())
def test_any_damage_is_read_or_refused(cubin, data):
    place = data.draw(st.integers(0, len(cubin) - 1))
    byte = data.draw(st.integers(0, 255))
    with suppress(InputError):
        found = max_threads(cubin[:place] + bytes([byte]) + cubin[place + 1 :], "damaged")
        assert all(isinstance(threads, int) for threads in found.values())
