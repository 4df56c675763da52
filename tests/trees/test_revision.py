# ruff: noqa: E501  a row of a table is one line
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from policygen import rendering
from policygen.errors import InputError
from policygen.trees import open_tree, tuning_headers
from policygen.trees.lookup import open_revision
from tests.trees.toys import TUNINGS, make_checkout, make_root, version_text

MINI = rendering.folder("cub_headers") / "mini"
HEADER = f"{TUNINGS}/tuning_for.cuh"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "no-config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return tmp_path / "cache"


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, message: str = "change") -> str:
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path) -> str:
    git(folder, "init", "--quiet", "--initial-branch=main")
    return commit(folder, "first")


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its content and its time, those of git too."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A CCCL checkout of two commits: CUB 3.0.1, then 3.1.4."""
    folder = make_checkout(tmp_path / "cccl")
    (folder / "thrust/thrust/version.h").write_text("// thrust of 3.0.1\n")
    (folder / "libcudacxx/include/version").write_text("// libcu++ of 3.0.1\n")
    (folder / "docs").mkdir()
    (folder / "docs/large.md").write_text("no header\n")
    repository(folder)
    git(folder, "tag", "v3.0.1")
    (folder / "cub/cub/version.cuh").write_text(version_text("3.1.4"))
    (folder / "cub" / HEADER).write_text("// of 3.1.4\n")
    commit(folder)
    return folder


def test_a_revision_is_opened_beside_the_work_tree(checkout: Path, cache: Path) -> None:
    here = open_tree(checkout)
    before = open_revision(here, "v3.0.1")
    (top,) = (cache / "revisions").iterdir()
    assert top.name.startswith(git(checkout, "rev-parse", "v3.0.1"))
    assert (here.version, before.version) == ("3.1.4", "3.0.1")
    assert before.root == str(top / "cub")
    assert before.includes == tuple(
        str(top / name) for name in ("cub", "thrust", "libcudacxx/include")
    )
    assert before.found == "revision v3.0.1"
    assert [path.name for path in tuning_headers(before)] == ["tuning_for.cuh"]
    assert (top / "thrust/thrust/version.h").read_text() == "// thrust of 3.0.1\n"
    assert not (top / "docs").exists()


@pytest.mark.parametrize(
    ("revision", "version"),
    [("HEAD", "3.1.4"), ("main", "3.1.4"), ("HEAD~1", "3.0.1"), ("@{0}", "3.1.4"), ("v3.0.1", "3.0.1")],
)  # fmt: skip
def test_a_revision_is_named_as_git_does(checkout: Path, revision: str, version: str) -> None:
    assert open_revision(open_tree(checkout), revision).version == version


def test_a_short_hash_and_an_annotated_tag_name_a_commit(checkout: Path) -> None:
    git(checkout, "tag", "--annotate", "--message", "a tag", "noted", "HEAD~1")
    for revision in ("noted", git(checkout, "rev-parse", "--short", "HEAD~1")):
        assert open_revision(open_tree(checkout), revision).version == "3.0.1"


def test_edits_of_the_work_tree_are_not_seen_and_not_touched(checkout: Path) -> None:
    (checkout / "cub" / HEADER).write_text("// staged\n")
    git(checkout, "add", "--all")
    (checkout / "cub" / HEADER).write_text("// edited\n")
    (checkout / "cub" / TUNINGS / "tuning_new.cuh").write_text("// untracked\n")
    before = state(checkout)
    found = open_revision(open_tree(checkout), "HEAD")
    assert (Path(found.root) / HEADER).read_text() == "// of 3.1.4\n"
    assert [path.name for path in tuning_headers(found)] == ["tuning_for.cuh"]
    assert state(checkout) == before
    assert git(checkout, "worktree", "list").count("\n") == 0


def test_a_revision_is_unpacked_once(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = open_tree(checkout)
    first = open_revision(here, "v3.0.1")
    monkeypatch.setattr(
        "policygen.trees.lookup._export", lambda *_: pytest.fail("it is unpacked again")
    )
    assert open_revision(here, "HEAD~1").root == first.root


@pytest.mark.parametrize(
    "place", [".", "sub", "a b/sub folder", "t\N{LATIN SMALL LETTER A WITH DIAERESIS}st/*?[x]"]
)
def test_an_include_folder_anywhere_in_a_repository(tmp_path: Path, place: str) -> None:
    top = tmp_path / "repository"
    root = make_root(top / place)
    repository(top)
    (root / "cub/version.cuh").write_text(version_text("3.2.0"))
    found = open_revision(open_tree(root), "HEAD")
    assert found.version == "3.0.1"
    assert found.root.endswith(place.removeprefix("."))
    assert len(found.includes) == 1


def test_two_trees_of_one_commit(tmp_path: Path) -> None:
    top = tmp_path / "repository"
    roots = make_root(top / "a"), make_root(top / "b", "3.1.4")
    repository(top)
    for _ in range(2):
        versions = [open_revision(open_tree(root), "HEAD").version for root in roots]
        assert versions == ["3.0.1", "3.1.4"]


def test_a_tree_around_another_one_is_unpacked_whole(tmp_path: Path) -> None:
    """What was unpacked for the inner one is a part of the outer one."""
    outer = make_root(tmp_path / "repository")
    inner = make_root(outer / "inner", "3.1.4")
    repository(outer)
    assert open_revision(open_tree(inner), "HEAD").version == "3.1.4"
    assert open_revision(open_tree(outer), "HEAD").version == "3.0.1"


def test_a_link_to_a_checkout(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("cccl")
    found = open_revision(open_tree(tmp_path / "link"), "v3.0.1")
    assert (found.version, len(found.includes)) == ("3.0.1", 3)


def test_a_folder_that_a_revision_lacks_is_left_out(checkout: Path) -> None:
    git(checkout, "rm", "--quiet", "-r", "libcudacxx")
    (checkout / "libcudacxx/include").mkdir(parents=True)
    commit(checkout)
    found = open_revision(open_tree(checkout), "HEAD")
    assert [Path(folder).name for folder in found.includes] == ["cub", "thrust"]


def test_a_revision_before_there_was_a_tree(checkout: Path, cache: Path) -> None:
    here = open_tree(checkout)
    git(checkout, "checkout", "--quiet", "--orphan", "other")
    git(checkout, "rm", "--quiet", "-r", "--force", ".")
    (checkout / "README").write_text("no tree yet\n")
    bare = commit(checkout)
    git(checkout, "checkout", "--quiet", "main")
    with pytest.raises(InputError) as raised:
        open_revision(here, "other")
    (top,) = (cache / "revisions").iterdir()
    assert top.name.startswith(bare)
    assert str(raised.value) == f"no such file or folder: {top}/cub"


@pytest.mark.parametrize(
    "revision", ["absent", "v9.9.9", "", "--all", "HEAD:cub", "HEAD^{tree}", "a b", "0" * 40]
)
def test_what_is_no_revision_is_refused(checkout: Path, revision: str) -> None:
    with pytest.raises(InputError) as raised:
        open_revision(open_tree(checkout), revision)
    first, *_ = str(raised.value).split("\n")
    assert first == (
        f"{revision!r} is neither a folder, a fetched version of CUB, nor a revision of a git"
        f" repository around {checkout}/cub"
    )


def test_a_folder_outside_of_a_repository_is_refused(tmp_path: Path) -> None:
    root = make_root(tmp_path / "inc")
    with pytest.raises(InputError) as raised:
        open_revision(open_tree(root), "HEAD")
    first, second = str(raised.value).split("\n", 1)
    assert first == (
        "'HEAD' is neither a folder, a fetched version of CUB, nor a revision of a git repository"
        f" around {root}"
    )
    assert "not in a git repository" in second


def test_a_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    root = make_root(tmp_path / "inc")
    git(root, "init", "--quiet")
    with pytest.raises(InputError, match="'HEAD' is neither a folder"):
        open_revision(open_tree(root), "HEAD")


def test_a_part_that_lies_outside_of_the_repository_is_refused(tmp_path: Path) -> None:
    """A revision says nothing about it."""
    checkout = make_checkout(tmp_path / "cccl")
    shutil.rmtree(checkout / "thrust")
    (tmp_path / "thrust").mkdir()
    (checkout / "thrust").symlink_to(tmp_path / "thrust")
    repository(checkout)
    with pytest.raises(InputError) as raised:
        open_revision(open_tree(checkout), "HEAD")
    assert str(raised.value) == (
        f"{checkout}/thrust is outside of the git repository {checkout}, so no revision contains it"
    )


@pytest.mark.parametrize("target", ["/etc/hostname", "../../../../../../outside"])
def test_a_link_that_leads_out_of_a_revision_is_refused(tmp_path: Path, target: str) -> None:
    root = make_root(tmp_path / "inc")
    (root / "cub/link.cuh").symlink_to(target)
    name = repository(root)
    with pytest.raises(InputError, match=f"cannot unpack revision {name}: .*cub/link.cuh"):
        open_revision(open_tree(root), "HEAD")


def test_links_inside_of_a_revision_stay(tmp_path: Path) -> None:
    root = make_root(tmp_path / "inc")
    (root / "cub/link.cuh").symlink_to("version.cuh")
    repository(root)
    found = Path(open_revision(open_tree(root), "HEAD").root)
    assert (found / "cub/link.cuh").readlink() == Path("version.cuh")


def test_line_endings_stay(tmp_path: Path) -> None:
    root = make_root(tmp_path / "inc")
    (root / HEADER).write_bytes(b"// one\r\n// two\n")
    repository(root)
    found = Path(open_revision(open_tree(root), "HEAD").root)
    assert (found / HEADER).read_bytes() == b"// one\r\n// two\n"


def test_a_cache_that_cannot_be_written_is_named(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError) as raised:
        open_revision(open_tree(checkout), "HEAD")
    assert str(raised.value) == (
        f"cannot write {tmp_path}/file/revisions: Not a directory\n"
        "  Set POLICYGEN_CACHE to a folder that can be written."
    )


def test_another_process_may_be_faster(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has unpacked is the same."""
    rename = Path.rename

    def second(path: Path, target: Path) -> Path:
        shutil.copytree(path, target)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", second)
    assert open_revision(open_tree(checkout), "v3.0.1").version == "3.0.1"


def test_a_revision_appears_whole_or_not_at_all(
    checkout: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(InputError, match=r"cannot write .*: No space left on device"):
        open_revision(open_tree(checkout), "v3.0.1")
    assert list((cache / "revisions").iterdir()) == []


def test_a_tree_that_names_no_include_folders_is_its_root(tmp_path: Path) -> None:
    root = make_root(tmp_path / "repository/inc")
    repository(tmp_path / "repository")
    bare = open_tree(root).model_copy(update={"includes": ()})
    assert open_revision(bare, "HEAD").version == "3.0.1"


def test_the_miniature_tree(tmp_path: Path) -> None:
    shutil.copytree(MINI, tmp_path / "mini")
    repository(tmp_path / "mini")
    here = open_tree(tmp_path / "mini")
    found = open_revision(here, "HEAD")
    assert found.version == here.version
    for one, other in zip(tuning_headers(here), tuning_headers(found), strict=True):
        assert one.read_bytes() == other.read_bytes()
