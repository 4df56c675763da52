# ruff: noqa: E501  a row of a table is one line
from pathlib import Path

import pytest

from policygen.headers.benchmark_sources import read_benchmarks
from policygen.headers.search_space import META_FORM as FORM
from policygen.headers.search_space import is_meta
from tests.headers.benchmarks.places import FIXTURES, failures, write


def test_a_search_space_is_read_with_the_versions_that_it_is_of() -> None:
    document, errors = read_benchmarks([FIXTURES / "meta.csv"])
    assert errors == ()
    assert (document.ctk, document.cccl) == ("13.0.88", "v3.0.3")
    names, sums = document.benchmarks
    assert (names.name, names.parameters, names.variants) == ("cub.bench.odd.names", (), 0)
    assert (sums.name, sums.variants) == ("cub.bench.sum.plain", 3 * 5)
    assert [list(p.values) for p in sums.parameters] == [[8, 16, 24], [-4, -2, 0, 2, 4]]


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"ctk_version,13.0\n", True),
        (b"\xef\xbb\xbfcccl_revision,v3\r\n", True),
        (b"cub.bench.a.b,TUNE_X|x=1:2:1\n", True),
        (b"cub.bench.a.b\n", True),
        (b"// %RANGE% TUNE_X x 1:2:1\n", False),
        (b"", False),
    ],
)
def test_a_search_space_is_known_by_its_content(data: bytes, answer: bool) -> None:
    assert is_meta(data) is answer


def test_files_of_different_versions_have_no_version_in_common(tmp_path: Path) -> None:
    one = write(tmp_path, "ctk_version,13.0\ncccl_revision,v3\ncub.bench.a.b\n", "one.txt")
    two = write(tmp_path, "ctk_version,12.9\r\ncccl_revision,v3\r\ncub.bench.a.b\r\n", "two")
    document, errors = read_benchmarks([one, two])
    assert (document.ctk, document.cccl, errors) == (None, "v3", ())
    assert [b.source for b in document.benchmarks] == [one.as_posix(), two.as_posix()]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("cub.bench.a.b,X|x=1:2:0", "1:19: the step 0 is not positive\n  {}\n  " + " " * 18 + "^^^^^"),
        ("cub.bench.a.b,X|x=1:2", f"1:19: '1:2' is not three numbers\n  {{}}\n  {' ' * 18}^^^\n  // FORM"),
        ("cub.bench.a.b,X|x=1:2:1,Y|x=1:2:1", "1:27: the label 'x' is used twice\n  {}\n  " + " " * 26 + "^"),
        ("cub.bench.a.b,X=1:2:1", f"1:15: 'X=1:2:1' is not a parameter\n  {{}}\n  {' ' * 14}^^^^^^^\n  {FORM}"),
        ("what is this?", f"1:1: 'what is this?' is not a benchmark name\n  {{}}\n  {'^' * 13}\n  {FORM}"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_refused_with_its_place(tmp_path: Path, row: str, message: str) -> None:
    path = write(tmp_path, f"{row}\ncub.bench.good.one\n\n", "meta.csv")
    path.write_bytes(b"ctk_version,1\n" + path.read_bytes())
    form = "the form is: // %RANGE% MACRO label start:end:step"
    expected = message.format(row).replace("// FORM", form).replace("1:", "2:", 1)
    assert failures(path) == [f"meta.csv:{expected}"]
    document, _ = read_benchmarks([path])
    assert [one.name for one in document.benchmarks] == ["cub.bench.good.one"]


def test_a_benchmark_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "cub.bench.a.b\ncub.bench.a.b\n", "meta.csv")
    assert failures(path) == [
        "meta.csv:2:1: cub.bench.a.b appears twice\n  cub.bench.a.b\n  " + "^" * 13
    ]
