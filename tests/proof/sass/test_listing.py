import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygen.errors import InputError
from policygen.proof.kernel_code import read_listing
from tests.proof.sass.dumps import EMPTY, SUM_FLOAT, SUM_INT, kernels, text


@pytest.mark.parametrize(
    ("arch", "registers", "instructions"), [("sm75", 10, 35), ("sm90", 10, 40), ("sm120", 10, 38)]
)
def test_kernels_are_read_with_their_resources(arch, registers, instructions):
    found = read_listing(text(arch), arch)
    assert [kernel.name for kernel in found] == sorted([EMPTY, SUM_FLOAT, SUM_INT])
    (kernel,) = (kernel for kernel in found if kernel.name == SUM_INT)
    assert (kernel.registers, len(kernel.code)) == (registers, instructions)


def test_what_is_no_code_is_gone_and_branches_have_distances():
    code = kernels()[SUM_INT].code
    assert code[0] == "LDC R1, c[0x0][0x28]"
    assert code[4] == "BSSY B0, +0x120"  # 0x160 from 0x40
    assert code[7] == "@P0 BRA +0xe0"  # 0x150 from 0x70
    assert code[20] == "@!P0 BRA -0x70"  # 0xd0 from 0x140
    assert code[-1] == "BRA +0x0"
    assert not [line for line in code if "/*" in line or line == "NOP"]
    assert kernels()[SUM_INT].resources["SHARED"] == 1536


def test_where_code_stands_does_not_matter():
    """The same instructions further down: an instruction before them, and all addresses change."""
    word = "/* 0x0000000000000000 */\n"

    def listing(lines):
        rows = "".join(
            f"        /*{16 * i:04x}*/     {line} ;   {word}     {word}"
            for i, line in enumerate(lines)
        )
        return (
            "\nResource usage:\n Function k:\n  REG:4 STACK:0\n\n"
            f'\t\tFunction : k\n\t.headerflags\t@"EF"\n{rows}\t\t..........\n'
        )

    near = read_listing(listing(["BRA 0x10", "EXIT"]), "near")[0].code
    far = read_listing(listing(["MOV R0, R1", "BRA 0x20", "EXIT"]), "far")[0].code
    assert far[1:] == near == ("BRA +0x10", "EXIT")


def test_two_instructions_that_are_swapped_are_another_code():
    rows = text("sm90").splitlines(keepends=True)
    at = next(i for i, row in enumerate(rows) if "/*0010*/" in row)
    other = at + 2
    assert "/*0020*/" in rows[other]
    body = [rows[at][16:], rows[other][16:]]
    rows[at], rows[other] = rows[at][:16] + body[1], rows[other][:16] + body[0]
    swapped = {k.name: k for k in read_listing("".join(rows), "swapped")}
    assert sorted(swapped[SUM_INT].code) == sorted(kernels()[SUM_INT].code)
    assert swapped[SUM_INT].code != kernels()[SUM_INT].code


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda t: "", "it contains no recognizable kernel"),
        (lambda t: "cuobjdump info: nothing to show\n", "it contains no recognizable kernel"),
        (lambda t: t[: t.index("\tcode for")], "it contains no recognizable kernel"),
        (lambda t: t[: t.index("/*0100*/")], "the listing is truncated"),
        (lambda t: t[: t.rindex("\t\t....")], "is incomplete: the listing is truncated"),
        (lambda t: t[: t.rindex("\t\tFunction")], "has no code: the listing is truncated"),
        (
            lambda t: re.sub(r" Function \S+EmptyKernelEv:\n.*\n", "", t),
            "has no resource usage: the listing is truncated",
        ),
        (lambda t: t.replace("/*0010*/", "/*0011*/", 1), "an instruction is missing before 0011"),
        (
            lambda t: re.sub(r".*/\*0010\*/.*\n.*\n", "", t, count=1),
            "an instruction is missing before 0020",
        ),
        (lambda t: t.replace("LDC R1", "LDC\nR1", 1), "an instruction is missing before 0010"),
        (
            lambda t: t.replace('SM90)"\n', 'SM90)"\n  what is this\n', 1),
            "has lines that are not instructions",
        ),
    ],
)
def test_a_listing_that_is_not_whole_is_an_error(damage, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_listing(damage(text("sm90")), "some.sass")
    assert str(caught.value).startswith("some.sass: ")


@settings(deadline=None)
@given(st.integers(0, len(text("sm90")) - 1), st.integers(1, 400))
def test_a_listing_with_a_hole_is_read_alike_or_refused(start, length):
    """Silence must not read as equal: what is lost is noticed, or was no code."""
    whole = text("sm90")
    try:
        found = read_listing(whole[:start] + whole[start + length :], "hole")
    except InputError:
        return
    lost = whole[start : start + length]
    was = {kernel.name: kernel for kernel in read_listing(whole, "whole")}
    # A hole within a line can leave another name, number or instruction: that is a difference.
    differs = [k for k in found if was.get(k.name) != k] or len(found) != len(was)
    assert differs or not re.search(r"^        /\*[0-9a-f]{4}\*/ +(?!NOP)\S.*\n.*\n", lost, re.M)
