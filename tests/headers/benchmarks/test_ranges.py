# ruff: noqa: E501  a row of a table is one line
from pathlib import Path

import pytest

from policygen.headers.search_space import FORM
from policygen.model.workload import MOST
from tests.headers.benchmarks.places import failures, read, write


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("// %RANGE% TUNE_ITEMS ipt 7:24:1", [("TUNE_ITEMS", "ipt", 7, 24, 1)]),
        ("//   %RANGE%   TUNE_T   tpb   128:1024:32  ", [("TUNE_T", "tpb", 128, 1024, 32)]),
        ("// %RANGE% TUNE_BIAS bif -16:16:4\r", [("TUNE_BIAS", "bif", -16, 16, 4)]),
        ("// %RANGE% TUNE_BIAS bif -16:-8:4", [("TUNE_BIAS", "bif", -16, -8, 4)]),
        ("int x; /// %RANGE% TUNE_X x 1:1:1", [("TUNE_X", "x", 1, 1, 1)]),
        ("#if 0\n/* // %RANGE% TUNE_X x 0:7:8 */".replace(" */", "\n*/\n#endif"),
         [("TUNE_X", "x", 0, 7, 8)]),
        ("// %RANGE% TUNE_A a 1:2:1\n// %RANGE% TUNE_B b 3 : 4 : 1",
         [("TUNE_A", "a", 1, 2, 1), ("TUNE_B", "b", 3, 4, 1)]),
        ("// %//RANGE//% TUNE_X x 8:9:1", []),
        ("//%RANGE% TUNE_X x 8:9:1", []),
        ("//\t%RANGE% TUNE_X x 8:9:1", []),
        ("// the `%RANGE%` lines", []),
        ("#include \"other.cuh\"", []),
    ],
)  # fmt: skip
def test_range_lines_are_read_as_cmake_reads_them(
    tmp_path: Path, line: str, found: list[tuple[object, ...]]
) -> None:
    write(tmp_path, "// %RANGE% TUNE_OTHER other 1:2:1\n", "bench/other.cuh")
    one = read(tmp_path, f"{line}\n")
    assert [(p.macro, p.label, p.start, p.end, p.step) for p in one.parameters] == found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("// %RANGE% TUNE_X x 8:9:0", "1:21: the step 0 is not positive\n  {}\n  " + " " * 20 + "^^^^^"),
        ("// %RANGE% TUNE_X x 8:9:-1", "1:21: the step -1 is not positive\n  {}\n  " + " " * 20 + "^" * 6),
        ("// %RANGE% TUNE_X x 9:8:1", "1:21: the end 8 is before the start 9\n  {}\n  " + " " * 20 + "^^^^^"),
        ("// %RANGE% TUNE_X x 8:9", f"1:21: '8:9' is not three numbers\n  {{}}\n  {' ' * 20}^^^\n  {FORM}"),
        ("// %RANGE% TUNE_X x 8:a:1", f"1:21: 'a' is not an integer that fits a macro\n  {{}}\n  {' ' * 20}^^^^^\n  {FORM}"),
        ("// %RANGE% TUNE_X x 0:9999999999:1", f"1:21: '9999999999' is not an integer that fits a macro\n  {{}}\n  {' ' * 20}{'^' * 14}\n  {FORM}"),
        ("// %RANGE% TUNE_X x", f"1:1: incomplete %RANGE%\n  {{}}\n  {'^' * 19}\n  {FORM}"),
        ("// %RANGE% 1X x 8:9:1", f"1:17: '1X' is not a macro name\n  {{}}\n  {' ' * 16}^^^^^\n  {FORM}"),
        ("// %RANGE% TUNE_X x-y 8:9:1", f"1:23: 'x-y' is not a label\n  {{}}\n  {' ' * 22}^^^^^\n  {FORM}"),
        ("// %RANGE% TUNE_X x.y 8:9:1", f"1:23: 'x.y' is not a label\n  {{}}\n  {' ' * 22}^^^^^\n  {FORM}"),
    ],
)  # fmt: skip
def test_a_wrong_range_is_refused_with_its_place(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, line + "\n")
    assert failures(path) == [f"one.cu:{message.format(line)}"]


def test_a_label_or_macro_of_two_ranges_is_refused_and_all_errors_of_a_file_are_told(
    tmp_path: Path,
) -> None:
    path = write(
        tmp_path,
        "// %RANGE% TUNE_A a 1:2:1\n// %RANGE% TUNE_B a 1:2:1\n// %RANGE% TUNE_A b 1:2:1\n",
    )
    assert [error.splitlines()[0] for error in failures(path)] == [
        "one.cu:2:19: the label 'a' is used twice",
        "one.cu:3:19: the macro TUNE_A is used twice",
    ]


def test_a_search_space_with_too_many_parameters_is_refused(tmp_path: Path) -> None:
    lines = [f"// %RANGE% TUNE_{i} p{i} 1:2:1\n" for i in range(MOST + 1)]
    path = write(tmp_path, "".join(lines))
    assert failures(path)[0].startswith("one.cu:65:20: more than 64 parameters")


def test_variants_are_the_product_of_the_ranges_and_none_without_ranges(tmp_path: Path) -> None:
    text = "// %RANGE% TUNE_A a 7:24:1\n// %RANGE% TUNE_B b 128:1024:100\n"
    assert read(tmp_path, text).variants == 18 * 9
    assert read(tmp_path, "").variants == 0
