"""What a person wrote is not replaced by what policygen writes."""

import os
import stat
from threading import Thread

import pytest

from policygen import json_schemas
from policygen.cli.main import main
from policygen.demo.database import demo_database
from policygen.errors import InputError
from policygen.model.records import Document
from policygen.outputs import _ends, check_free, is_ours, write_output

OURS = (
    b'{\n "format": "policygen/plan/2",\n "cub"',
    b'{"format":"policygen/sass-dump/1","benchmark"',
    b"// Made by policygen 1.0; make it again rather than edit it.\n",
    b"# 2 tuning entries in 1 header\n\ntree: CUB 3.0.1 (specializations), here; compared with: a;"
    b" compiler: nvcc 13.2\n",
    b"# cub.bench.scan T=I8 on sm90: DeviceScanKernel\n# 12 instructions differ\n-a\n",
    b'<?xml version="1.0"?>\n<svg ><cc:Agent><dc:title>policygen</dc:title></cc:Agent></svg>',
    b"benchmark,workload,arch,status,since,header,line,reason,score,variant\n",
    b"",
)
STRANGE = (
    b'{"results": []}',
    b'{"format": "something/plan/2"}',
    b'["policygen/plan/2", {"format": "policygen/plan/2"}]',
    b"// A header of mine, which policygen did not make.\n// Made by policygen 1.0\n",
    b"# Notes\n\ntree: mine\n",
    b"<!doctype html><title>policygen</title>",
    b'<?xml version="1.0"?>\n<svg><title>policygen</title></svg>',
    b"\x89PNG\r\n\x1a\n...",
    b"benchmark,workload\n",
    pytest.param(
        b'%-70000b<meta name="generator" content="policygen">%70000b' % (b"<!doctype html>", b""),
        id="in the middle of a long page",
    ),
)


@pytest.mark.parametrize("data", OURS)
def test_what_policygen_made_is_replaced(data, tmp_path):
    path = tmp_path / "out"
    path.write_bytes(data)
    assert is_ours(path)
    write_output(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("data", STRANGE)
def test_what_others_made_stays(data, tmp_path):
    path = tmp_path / "out"
    path.write_bytes(data)
    with pytest.raises(InputError) as error:
        write_output(path, b"new")
    assert str(error.value) == (
        f"{path}: exists already and was not written by policygen\n"
        "  Choose another name, or use --force."
    )
    assert path.read_bytes() == data
    write_output(path, data)  # nothing is lost
    write_output(path, b"new", force=True)
    assert path.read_bytes() == b"new"


def test_a_database_is_replaced_by_force_only(tmp_path):
    """It cannot be made again."""
    path = tmp_path / "a.db"
    path.touch()
    with pytest.raises(InputError, match=r"a\.db: exists already\n  Choose another name, or use"):
        check_free(path, ours=False)
    check_free(path, ours=False, force=True)


def test_a_folder_is_never_replaced(tmp_path):
    with pytest.raises(InputError, match="this is a folder"):
        write_output(tmp_path, b"new", force=True)


@pytest.mark.parametrize(
    "argv",
    [
        ("bench", "x.cu", "-o"),
        ("db", "merge", "a.db", "-o"),
        ("db", "export", "a.db", "-o"),
        ("apply", "--patch"),
    ],
)
def test_a_missing_folder_is_told_and_not_made(tmp_path, monkeypatch, capsys, argv):
    monkeypatch.chdir(tmp_path)
    demo_database(tmp_path / "a.db")
    assert main([*argv, "no pe/x.csv"]) == 2
    folder = tmp_path / "no pe"
    assert f"there is no folder {folder}\n  Make it first: mkdir -p '{folder}'" in (
        capsys.readouterr().err
    )
    assert not folder.exists()


def test_a_pipe_is_written_to_and_stays(tmp_path):
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write_output(path, b"new")
    reader.join()
    assert found == [b"new"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_every_document_begins_with_what_it_is():
    """By that it is known again when it stands in a file."""
    kinds = json_schemas.DOCUMENTS
    assert len(kinds) > 15
    for kind in kinds:
        assert issubclass(kind, Document)
        assert next(iter(kind.model_fields)) == "format"


@pytest.mark.parametrize("force", [True, False])
def test_a_database_is_never_replaced_by_what_is_printed(tmp_path, capsys, force):
    """`db top run.db -o run.db --force` lost what hours had measured."""
    path = tmp_path / "demo.db"
    demo_database(path)
    before = path.read_bytes()
    forced = ["--force"] if force else []
    assert main(["db", "top", str(path), "-o", str(path), *forced]) == 2
    told = (
        f"policygen: error: {path}: is a database and is not overwritten with text\n "
        f" Name another file.\n"
    )
    assert capsys.readouterr().err == told
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_read_is_not_replaced(tmp_path):
    with pytest.raises(InputError, match=r"none: cannot be read: No such file or directory"):
        _ends(tmp_path / "none")
