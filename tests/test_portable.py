"""What files are called for others: near, far away, in sentences."""

from pathlib import Path

import pytest
from pydantic import Field

from policygen.model.records import Record
from policygen.model.trees import Cub
from policygen.portable import nearby, portable, portable_name


class Told(Record):
    """What has files and sentences."""

    cub: Cub | None = None
    databases: tuple[str, ...] = ()
    remark: str = ""
    text: str = ""
    pairs: dict[str, str] = Field(default_factory=dict)


HERE = Path("/work/tuning/here")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("run.db", "run.db"),
        ("../x/run.db", "../x/run.db"),
        ("/work/tuning/here/a/run.db", "a/run.db"),
        ("/work/tuning/here", "."),
        ("/work/tuning/data/run.db", "../data/run.db"),
        ("/work/other/run.db", "run.db"),
        ("/data/run.db", "run.db"),
    ],
)
def test_a_file_is_named_as_it_is_seen_from_here_where_it_is_near(path, name):
    assert portable_name(path, HERE) == name


def test_a_home_is_no_nearness(monkeypatch):
    monkeypatch.setenv("HOME", "/work/tuning")
    assert portable_name("/work/tuning/data/run.db", HERE) == "run.db"
    assert portable_name("/work/tuning/here/run.db", Path("/work/tuning")) == "here/run.db"


def test_files_that_are_far_away_are_told_apart():
    given = Told(databases=("/a/one/run.db", "/b/two/run.db", "/c/else.db"))
    assert portable(given, HERE).databases == ("one/run.db", "two/run.db", "else.db")


def test_a_checkout_that_is_far_away_is_named_as_its_folder():
    includes = ("/src/cccl/cub", "/src/cccl/thrust")
    cub = Cub(
        root=includes[0], version="3.6.0", dialect="selectors", found="--cub", includes=includes
    )
    made = portable(Told(cub=cub, remark="see /src/cccl/cub/cub/x.cuh, line 1"), HERE)
    assert (made.cub.root, made.cub.includes) == ("cccl/cub", ("cccl/cub", "cccl/thrust"))
    assert made.remark == "see cccl/cub/cub/x.cuh, line 1"


def test_files_in_a_sentence_are_named_where_they_are_files(tmp_path):
    (tmp_path / "run.db").touch()
    here = tmp_path / "here"
    told = portable(
        Told(
            remark=f"not read: {tmp_path}/run.db, {tmp_path}/gone.db; a // b /c/d and 1/2",
            pairs={"why": f"'{here}/x.db'"},
        ),
        here,
    )
    assert told.remark == "not read: ../run.db, ../gone.db; a // b /c/d and 1/2"
    assert told.pairs == {"why": "'x.db'"}


def test_code_stays_as_it_is():
    given = Told(text="// /work/tuning/here/x.cuh", remark="nothing")
    assert portable(given, HERE) is given


def test_a_path_below_the_current_folder_is_written_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert nearby(tmp_path / "a/b") == "a/b"
    assert nearby(Path("/elsewhere/a")) == "/elsewhere/a"
