import pytest

from policygen.errors import InputError
from policygen.proof.kernel_comparison import diff, summary, verdict
from policygen.rocprim.hipcc import read_assembly, sealed
from tests.proof.sass.dumps import FOLDER

TEXT = (FOLDER / "gfx90a.s").read_text()
FLOAT = "_ZN3lib3sumIfLi128EEEvPKT_PS1_i"
INT = "_ZN3lib3sumIiLi64EEEvPKT_PS1_i"
NOTHING = "_ZN3lib7nothingEv"


def kernels(text=TEXT):
    return {kernel.name: kernel for kernel in read_assembly(text, "it")}


def changed(old, new, times=1):
    """The assembly with something else in it."""
    assert TEXT.count(old) >= times, old
    return TEXT.replace(old, new, times)


def within(name, old, new):
    """Something else in the code of one kernel."""
    start = TEXT.index(f"\n{name}:")
    end = TEXT.index(f"\t.size\t{name}, ")
    assert old in TEXT[start:end], old
    return TEXT[:start] + TEXT[start:end].replace(old, new, 1) + TEXT[end:]


def test_kernels_are_read_with_what_they_need():
    found = kernels()
    assert list(found) == [FLOAT, INT]
    assert found[FLOAT].resources == {"REG": 7, "SGPR": 39, "AGPR": 0, "SHARED": 512, "STACK": 0}
    assert (found[FLOAT].max_threads, found[INT].max_threads) == (128, 64)
    assert found[FLOAT].code[0] == "s_add_u32 flat_scratch_lo, s6, s9"
    assert "s_cbranch_execnz -0x9" in found[FLOAT].code
    assert not any(".LBB" in row or ";" in row for one in found.values() for row in one.code)


def test_a_kernel_that_does_nothing_is_none():
    assert NOTHING in TEXT
    assert NOTHING not in kernels()


def test_what_a_label_is_called_and_what_a_comment_says_does_not_matter():
    assert kernels(TEXT.replace(".LBB0_", ".LBB7_9")) == kernels()
    assert kernels(TEXT.replace("; ", "; of another release ")) == kernels()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (within(FLOAT, "v_fmac_f32_e32", "v_fmaak_f32"), FLOAT),
        (within(FLOAT, "s_barrier", "s_nop 0"), FLOAT),
        (within(INT, ".amdhsa_next_free_vgpr ", ".amdhsa_next_free_vgpr 1"), INT),
        (within(INT, ".amdhsa_ieee_mode 1", ".amdhsa_ieee_mode 0"), INT),
        (changed(".max_flat_workgroup_size: 64", ".max_flat_workgroup_size: 128"), INT),
        (changed(".kernarg_segment_size: 20", ".kernarg_segment_size: 24"), INT),
    ],
)
def test_any_difference_of_a_kernel_is_its_own(text, name):
    before, after = kernels(), kernels(text)
    assert before.keys() == after.keys()
    assert [one for one in before if verdict(before[one], after[one]) != "equal"] == [name]
    assert diff(before[name], after[name])
    assert sealed(before[name]) != sealed(after[name])


def test_what_a_kernel_calls_and_reads_is_a_part_of_it():
    before = kernels()
    for text in (
        changed("v_add_f32_e32 v0, v0, v0", "v_sub_f32_e32 v0, v0, v0"),
        changed("0x3fc00000", "0x3fc00001"),
    ):
        after = kernels(text)
        assert all(verdict(before[one], after[one]) == "different" for one in before)


def test_other_registers_or_another_order_are_moved():
    before = kernels()[FLOAT]
    code = tuple(row.replace("v3", "v6") for row in before.code)
    assert code != before.code
    assert verdict(before, before.model_copy(update={"code": code})) == "moved"


def test_a_summary_counts_instructions_alone():
    before = kernels()[FLOAT]
    after = kernels(within(FLOAT, "\ts_barrier", "\ts_nop 1\n\ts_barrier"))[FLOAT]
    count = sum(not row.startswith(".") for row in before.code)
    told = summary(before, after)
    assert f"instructions {count} → {count + 1}" in told
    assert "+1 s_nop" in told


def test_a_kernel_of_another_name_is_renamed():
    after = kernels(TEXT.replace(INT, "_ZN3lib5otherEv"))["_ZN3lib5otherEv"]
    assert verdict(kernels()[INT], after) == "renamed"


@pytest.mark.parametrize(
    "row",
    [".macro s_barrier", ".if 0", ".pushsection .rodata", ".previous", '.include "x"', ".org 0"],
)
def test_assembly_of_a_header_that_gives_lines_another_meaning_is_refused(row):
    with pytest.raises(InputError) as caught:
        read_assembly(within(FLOAT, "\ts_barrier", f"\t{row}\n\ts_barrier"), "it")
    assert f"{row!r} is not clang output" in str(caught.value)


def test_what_assembly_of_a_header_hides_is_compared():
    before = kernels(within(FLOAT, "\ts_barrier", "\t.section\t.rodata\n\t.text\n\ts_barrier"))
    after = kernels(within(FLOAT, "\ts_barrier", "\t.section\t.rodata\n\t.text\n\ts_nop 0"))
    assert verdict(before[FLOAT], after[FLOAT]) == "different"
    ended = within(FLOAT, "\ts_barrier", f"\t.size\t{FLOAT}, 4\n\ts_barrier")
    with pytest.raises(InputError, match="has no unique end"):
        read_assembly(ended, "it")


def cut(mark):
    return TEXT[: TEXT.index(mark)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it: it has no metadata: the listing is truncated"),
        (cut("\t.end_amdgpu_metadata"), "it: it has no metadata: the listing is truncated"),
        (changed("amdhsa.kernels:", "amdhsa.others:"), "it: it contains no recognizable kernel"),
        (changed("\t.end_amdhsa_kernel", ""), "is incomplete: the listing is truncated"),
        (changed("\t.end_amdhsa_kernel", "", 3), "is incomplete: the listing is truncated"),
        (
            TEXT.replace(f"\t.size\t{INT}, ", "\t.other\t"),
            f"it: {INT} has no unique end: the listing is truncated",
        ),
        (TEXT.replace(f"\n{INT}:", "\nelse:"), f"it: {INT} has no code"),
        (changed(f".name:           {INT}", ".nome: 1"), "a kernel's metadata has no name"),
        (changed(f".amdhsa_kernel {INT}", ".amdhsa_kernel other"), f"{INT} has no code"),
        (changed(f".amdhsa_kernel {INT}", ".other"), f"{INT} has no code"),
        (TEXT.replace(f".name:           {INT}", ".name: x"), f"{INT} has no metadata"),
    ],
)
def test_an_assembly_that_is_not_whole_is_no_answer(text, message):
    with pytest.raises(InputError) as caught:
        read_assembly(text, "it")
    assert message in str(caught.value)
    assert str(caught.value).endswith("It is not used for comparisons.")


def test_kernels_that_all_do_nothing_are_no_answer():
    text = TEXT
    for name in (FLOAT, INT):
        start = text.index(f"\n{name}:")
        start = text.index("\n", start + 1)
        text = text[:start] + "\n\ts_endpgm" + text[text.index("\n\t.section", start) :]
    with pytest.raises(InputError, match="all of its kernels are empty"):
        read_assembly(text, "it")


def test_a_function_without_code_is_no_answer():
    start = TEXT.index(f"\n{INT}:")
    start = TEXT.index("\n", start + 1)
    text = TEXT[:start] + TEXT[TEXT.index("\n\t.section", start) :]
    with pytest.raises(InputError, match=f"{INT} has no code"):
        read_assembly(text, "it")


def test_tables_debuggers_and_quotes_are_no_instructions():
    more = '\t.loc 1 2 3\n\t.ascii "a;b"\n\t.ascii "open\n'
    found = kernels(within(FLOAT, "\ts_barrier", f"{more}\ts_barrier"))[FLOAT].code
    assert '.ascii "a;b"' in found
    assert '.ascii "open' in found
    assert not any(row.startswith(".loc") for row in found)
