import pytest

from policygen.model.machine_code import Kernel
from policygen.proof.kernel_comparison import diff, summary
from tests.proof.sass.dumps import SUM_INT, kernels, renamed

SUM = kernels()[SUM_INT]


def test_a_summary_names_usage_and_opcodes():
    code = ("NEW.X R1", "ODD", *SUM.code[2:20], "@P0 NEW R1, R2", *SUM.code[20:])
    after = renamed(
        SUM,
        code=code,
        resources={**SUM.resources, "REG": 40, "SHARED": 2048, "BARRIER": 1},
        max_threads=256,
    )
    assert summary(renamed(SUM, max_threads=128), after) == (
        "BARRIER 0 → 1; registers 10 → 40; bytes of shared memory 1,536 → 2,048; launch bound 128"
        " → 256; resident threads 2,048 → 1,536; instructions 40 → 41; +2 NEW, -1 LDC, +1 ODD, -1"
        " S2R; first difference at instruction 0"
    )
    assert summary(SUM, renamed(SUM, max_threads=64)) == "launch bound none → 64"


def test_a_long_list_of_opcodes_is_cut_and_says_so():
    after = renamed(SUM, code=tuple(f"OP{i}" for i in range(9)))
    assert ", 26 more opcodes; first" in summary(SUM, after)


def test_other_registers_are_no_other_opcodes():
    after = renamed(SUM, code=tuple(line.replace("R5", "R9") for line in SUM.code))
    assert summary(SUM, after) == "first difference at instruction 5"


def test_code_that_ends_earlier_differs_at_its_end():
    assert summary(SUM, renamed(SUM, code=SUM.code[:-1])).endswith("at instruction 39")


def test_a_diff_is_one_of_instructions():
    after = renamed(SUM, code=(*SUM.code[:3], "NEW", *SUM.code[4:]))
    assert diff(SUM, after)[2:] == (
        "@@ -1,7 +1,7 @@",
        *(f" {line}" for line in SUM.code[:3]),
        f"-{SUM.code[3]}",
        "+NEW",
        *(f" {line}" for line in SUM.code[4:7]),
    )


@pytest.mark.parametrize(
    ("registers", "threads", "resident"),
    [(80, 384, 768), (86, 512, 512), (64, 512, 1024), (10, 128, 2048), (64, None, None)],
)
def test_registers_limit_the_threads_of_a_multiprocessor(registers, threads, resident):
    kernel = Kernel(name="k", code=(), resources={"REG": registers}, max_threads=threads)
    assert kernel.resident == resident
