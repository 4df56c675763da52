import subprocess

import pytest

from policygen.store.targets import uncommitted


def git(folder, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repo"
    (folder / "a b").mkdir(parents=True)
    for name in ("one.cuh", "a b/two.cuh", "a b/ünï*.cuh", "staged.cuh"):
        (folder / name).write_text("old\n")
    (folder / ".gitignore").write_text("ignored.cuh\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def test_files_that_git_would_lose_are_told(repository):
    names = ("one.cuh", "a b/two.cuh", "a b/ünï*.cuh", "staged.cuh", "new.cuh", "ignored.cuh")
    paths = [repository / name for name in names]
    assert uncommitted(paths) == ()
    for path in paths[1:]:
        path.write_text("changed\n")
    git(repository, "add", "staged.cuh")
    (repository / "unasked.cuh").write_text("changed\n")
    assert uncommitted(paths) == (paths[1], paths[2], paths[3], paths[4])
    assert uncommitted(paths[:1]) == ()


def test_a_link_is_its_target(repository, tmp_path):
    (tmp_path / "link").symlink_to(repository / "a b")
    path = tmp_path / "link/two.cuh"
    assert uncommitted([path]) == ()
    path.write_text("changed\n")
    assert uncommitted([path]) == (path,)


def test_there_may_be_no_repository_and_no_git(repository, tmp_path, monkeypatch):
    alone = tmp_path / "alone.cuh"
    alone.write_text("x")
    assert uncommitted([alone]) == ()
    (repository / "one.cuh").write_text("changed\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert uncommitted([repository / "one.cuh"]) == ()
