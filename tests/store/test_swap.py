"""Two files change places, in one step or in several; whatever is killed can be ended."""

import errno
import os

import pytest

from policygen.errors import InputError
from policygen.store import files
from policygen.store.replacement import keep, mend, swap


@pytest.fixture
def pair(tmp_path):
    waiting, target = tmp_path / ".f.cuh.0.policygen", tmp_path / "f.cuh"
    waiting.write_bytes(b"new")
    target.write_bytes(b"old")
    return waiting, target


def refuse(monkeypatch, operation, code):
    def refused(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, operation, refused)


def holds(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("exchanges", [True, False])
def test_they_change_places(pair, monkeypatch, exchanges, links):
    waiting, target = pair
    if not exchanges:
        refuse(monkeypatch, "exchange", errno.EINVAL)
    if not links:
        refuse(monkeypatch, "link", errno.EPERM)
    swap(waiting, target)
    assert holds(target.parent) == {waiting.name: b"old", target.name: b"new"}


def test_a_libc_that_knows_no_exchange_does_it_in_steps(pair, monkeypatch):
    waiting, target = pair
    monkeypatch.setattr(files, "_renameat2", lambda: None)
    with pytest.raises(OSError, match="Function not implemented"):
        files.exchange(waiting, target)
    swap(waiting, target)
    assert target.read_bytes() == b"new"


def test_what_is_not_there_cannot_change_places(pair):
    waiting, target = pair
    target.unlink()
    with pytest.raises(InputError) as caught:
        swap(waiting, target)
    assert str(caught.value) == f"cannot write {target}: No such file or directory"
    assert waiting.read_bytes() == b"new"


def test_a_file_that_somebody_makes_in_between_stays_and_so_does_the_old_one(pair, monkeypatch):
    waiting, target = pair
    refuse(monkeypatch, "exchange", errno.ENOSYS)
    link = files.link

    def made_first(source, name):
        if name == target:
            target.write_bytes(b"theirs")
        link(source, name)

    monkeypatch.setattr(files, "link", made_first)
    with pytest.raises(InputError) as caught:
        swap(waiting, target)
    assert str(caught.value) == (
        f"cannot write {target}: somebody made it while it was being replaced; what stood there is"
        f" {target}.kept-1"
    )
    assert holds(target.parent) == {
        waiting.name: b"new",
        "f.cuh": b"theirs",
        "f.cuh.kept-1": b"old",
    }


OUT = ".f.cuh.0.out.policygen"


def linked(folder, source, name):
    os.link(folder / source, folder / name)


@pytest.mark.parametrize(
    ("killed", "after"),
    [
        # the old one is out, and nothing is in its place
        (
            lambda f: (f / "f.cuh").rename(f / OUT),
            {".f.cuh.0.policygen": b"new", "f.cuh": b"old"},
        ),
        # it is on its way back
        (
            lambda f: linked(f, "f.cuh", OUT),
            {".f.cuh.0.policygen": b"new", "f.cuh": b"old"},
        ),
        # the new one has two names
        (
            lambda f: ((f / "f.cuh").rename(f / OUT), linked(f, ".f.cuh.0.policygen", "f.cuh")),
            {".f.cuh.0.policygen": b"old", "f.cuh": b"new"},
        ),
        # it has one
        (
            lambda f: (
                (f / "f.cuh").rename(f / OUT),
                (f / ".f.cuh.0.policygen").rename(f / "f.cuh"),
            ),
            {".f.cuh.0.policygen": b"old", "f.cuh": b"new"},
        ),
        # somebody made one of his own
        (
            lambda f: ((f / "f.cuh").rename(f / OUT), (f / "f.cuh").write_bytes(b"theirs")),
            {".f.cuh.0.policygen": b"new", "f.cuh": b"theirs", "f.cuh.kept-1": b"old"},
        ),
        # there was no swap in steps
        (lambda _: None, {".f.cuh.0.policygen": b"new", "f.cuh": b"old"}),
    ],
)
def test_each_step_that_was_killed_is_ended(pair, killed, after):
    waiting, target = pair
    killed(target.parent)
    mend(waiting, target)
    assert holds(target.parent) == after


def test_what_is_kept_takes_no_name_that_there_is(pair):
    waiting, target = pair
    (target.parent / "f.cuh.kept-1").write_bytes(b"of before")
    assert keep(waiting, target) == target.parent / "f.cuh.kept-2"
    assert holds(target.parent) == {
        "f.cuh": b"old",
        "f.cuh.kept-1": b"of before",
        "f.cuh.kept-2": b"new",
    }
