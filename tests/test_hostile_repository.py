"""A repository is a stranger's: nothing in it is run, and it does not lie about a base."""

import os
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from policygen import git
from policygen.errors import InputError
from policygen.git import Objects, Repository, find_repository
from policygen.store.targets import uncommitted
from policygen.trees import open_tree, tuning_headers
from policygen.trees.lookup import open_revision, paths_in_repository
from tests.trees.test_revision import cache, commit, repository  # noqa: F401  a fixture for all
from tests.trees.test_revision import git as run
from tests.trees.toys import TUNINGS, make_root, version_text

HEADER = f"{TUNINGS}/tuning_for.cuh"


@pytest.fixture
def canary(tmp_path):
    """What a program of a repository would make; the program."""
    made, program = tmp_path / "canary", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{made}'\ncat\n")
    program.chmod(0o755)
    return made


@pytest.fixture
def tree(tmp_path):
    """A tree in a repository, with an honest first commit that is tagged."""
    root = make_root(tmp_path / "outer/inc")
    repository(tmp_path / "outer")
    run(tmp_path / "outer", "tag", "honest")
    return root


def settings(program):
    """What makes git run a program, each in a way of its own."""
    hook = program.with_name("hooks")
    hook.mkdir()
    for name in (
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
    ):
        (hook / name).symlink_to(program)
    return (
        f'[core]\n\tfsmonitor = "{program}"\n\thooksPath = "{hook}"\n\tsshCommand = "{program}"\n'
        f'\tpager = "{program}"\n\teditor = "{program}"\n\taskPass = "{program}"\n'
        f'\tgitProxy = "{program}"\n\talternateRefsCommand = "{program}"\n\tuntrackedCache = true\n'
        f'[filter "x"]\n\tclean = "{program}"\n\tsmudge = "{program}"\n\trequired = true\n'
        f'[filter "y"]\n\tprocess = "{program}"\n'
        f'[tar "tar.gz"]\n\tcommand = "{program}"\n[diff]\n\texternal = "{program}"\n'
        f'[diff "x"]\n\ttextconv = "{program}"\n\tcommand = "{program}"\n'
        f'[pager]\n\trev-parse = "{program}"\n\tcat-file = "{program}"\n\tstatus = "{program}"\n'
        f'[credential]\n\thelper = "{program}"\n'
        f'[alias]\n\trev-parse = "!{program}"\n\tcat-file = "!{program}"\n'
        f'[protocol]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n'
        f'[remote "origin"]\n\turl = "ext::{program} %S"\n\tpromisor = true\n'
        f'\tpartialclonefilter = blob:none\n\tuploadpack = "{program}"\n'
    )


def add_settings(directory, text):
    with (directory / "config").open("a") as file:
        file.write(text)


def look(root, revision="honest"):
    """All that policygen asks of a repository."""
    header = root / HEADER
    open_revision(open_tree(root), revision)
    header.write_text("// changed\n")
    assert uncommitted([header, root / "cub/untracked.cuh"])
    assert paths_in_repository([header], root) == (f"inc/{HEADER}",)


def test_git_would_run_them(tree, canary):
    """Else the tests below would hold for nothing."""
    (tree / ".gitattributes").write_text("*.cuh filter=x diff=x\n")
    add_settings(tree.parent / ".git", settings(canary.with_name("program")))
    (tree / HEADER).write_text("// changed\n")
    subprocess.run(["git", "-C", tree, "status"], check=False, capture_output=True)
    assert canary.exists()


@pytest.mark.parametrize("attributes", ["*.cuh filter=x diff=x\n", "*.cuh filter=y\n"])
def test_the_settings_of_a_repository_run_nothing(tree, canary, attributes):
    """As of a checkout that somebody has unpacked."""
    (tree / ".gitattributes").write_text(attributes)
    (tree.parent / ".git/info/attributes").write_text(attributes)
    add_settings(tree.parent / ".git", settings(canary.with_name("program")))
    look(tree)
    assert not canary.exists()


@pytest.mark.parametrize("how", ["include", "config.worktree"])
def test_nor_do_settings_that_are_included(tree, canary, how):
    directory = tree.parent / ".git"
    text = settings(canary.with_name("program"))
    if how == "include":
        (directory / "more").write_text(text)
        add_settings(directory, "[include]\n\tpath = more\n")
    else:
        (directory / "config.worktree").write_text(text)
        add_settings(directory, "[extensions]\n\tworktreeConfig = true\n")
    look(tree)
    assert not canary.exists()


@pytest.mark.parametrize(
    "variable", ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_EXTERNAL_DIFF"]
)
def test_nor_do_variables(tree, canary, tmp_path, monkeypatch, variable):
    (tmp_path / "settings").write_text(settings(canary.with_name("program")))
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "settings"))
    (tree / ".gitattributes").write_text("*.cuh filter=x diff=x\n")
    look(tree)
    assert not canary.exists()


@pytest.mark.parametrize("worktree", [None, ".", "../.."])
def test_a_repository_that_is_committed_in_the_tree_is_not_asked(tmp_path, canary, worktree):
    """`HEAD`, `config` and `objects/` are names like others; git takes a folder of them for one."""
    root = make_root(tmp_path / "outer/inc")
    inner = tmp_path / "inner"
    make_root(inner / "inc", "9.9.9")
    repository(inner)
    run(inner, "tag", "honest")
    for name in ("HEAD", "config", "objects", "refs"):
        (inner / ".git" / name).rename(root / name)
    text = (root / "config").read_text().replace("bare = false", "")
    named = f"[core]\n\tworktree = {worktree}\n" if worktree else "[core]\n\tbare = true\n"
    (root / "config").write_text(text + settings(canary.with_name("program")) + named)
    (root / ".gitattributes").write_text("*.cuh filter=x\n")
    assert run(root, "rev-parse", "--git-dir") in {".", str(root)}
    canary.unlink(missing_ok=True)
    name = repository(tmp_path / "outer")
    run(tmp_path / "outer", "tag", "honest")
    assert find_repository(root) == Repository(tmp_path / "outer")
    assert open_revision(open_tree(root), "HEAD").version == "3.0.1"
    assert find_repository(root).commit("honest") == name
    look(root)
    assert not canary.exists()


def test_an_object_that_is_missing_is_not_fetched(tree, canary):
    """A remote can be a program."""
    blob = run(tree, "rev-parse", f"honest:inc/{HEADER}")
    (tree.parent / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    add_settings(
        tree.parent / ".git",
        "[extensions]\n\tpartialClone = origin\n" + settings(canary.with_name("program")),
    )
    with pytest.raises(InputError) as raised:
        open_revision(open_tree(tree), "honest")
    assert str(raised.value) == (
        f"{tree.parent}: git lacks blob {blob}, or it is damaged\n"
        "  Run git fsck, or git fetch --refetch."
    )
    assert not canary.exists()


def test_a_replacement_does_not_forge_a_base(tree):
    honest = run(tree, "rev-parse", "honest")
    (tree / "cub/version.cuh").write_text(version_text("3.1.4"))
    forged = commit(tree.parent)
    run(tree, "replace", honest, forged)
    assert run(tree, "show", "honest:inc/cub/version.cuh") == version_text("3.1.4").strip()
    assert open_revision(open_tree(tree), "honest").version == "3.0.1"


def test_grafts_do_not_forge_a_parent(tree):
    honest = run(tree, "rev-parse", "honest")
    (tree / "cub/version.cuh").write_text(version_text("3.1.4"))
    second = commit(tree.parent)
    run(tree, "checkout", "--quiet", "--orphan", "other")
    (tree / "cub/version.cuh").write_text(version_text("3.2.0"))
    other = commit(tree.parent)
    run(tree, "checkout", "--quiet", "main")
    (tree.parent / ".git/info/grafts").write_text(f"{second} {other}\n")
    assert run(tree, "rev-parse", "HEAD~1") == other
    assert find_repository(tree).commit("HEAD~1") == honest


def test_attributes_change_nothing_of_a_base(tree):
    (tree / HEADER).write_text("// $Format:%H$ $Id$\n")
    (tree / ".gitattributes").write_text(
        "*.cuh export-subst ident text eol=crlf working-tree-encoding=UTF-16\n"
        "version.cuh export-ignore\n"
    )
    run(tree, "-c", "core.attributesFile=/dev/null", "config", "core.autocrlf", "false")
    blob = run(tree, "hash-object", "-w", "--no-filters", f"inc/{HEADER}".removeprefix("inc/"))
    run(tree, "update-index", "--cacheinfo", f"100644,{blob},inc/{HEADER}")
    run(tree, "update-index", "--add", ".gitattributes")
    run(tree, "commit", "--quiet", "--message", "attributes")
    found = Path(open_revision(open_tree(tree), "HEAD").root)
    assert (found / HEADER).read_text() == "// $Format:%H$ $Id$\n"
    assert (found / "cub/version.cuh").exists()


def _change(folder):
    (folder / HEADER).write_text("// changed\n")


def _add(folder):
    (folder / "cub/cuda_runtime.h").write_text("// another one\n")


def _remove(folder):
    (folder / HEADER).unlink()


def _link(folder):
    shutil.copy(folder / HEADER, folder.parent / "same")
    (folder / HEADER).unlink()
    (folder / HEADER).symlink_to(folder.parent / "same")


def _folder(folder):
    shutil.move(folder / TUNINGS, folder.parent / "elsewhere")
    (folder / TUNINGS).symlink_to(folder.parent / "elsewhere")


def _pipe(folder):
    (folder / HEADER).unlink()
    os.mkfifo(folder / HEADER)


@pytest.mark.parametrize("poison", [_change, _add, _remove, _link, _folder, _pipe])
def test_a_poisoned_base_in_the_cache_is_made_anew(tree, poison):
    found = Path(open_revision(open_tree(tree), "honest").root)
    poison(found)
    again = Path(open_revision(open_tree(tree), "honest").root)
    assert again == found
    assert sorted(p.relative_to(found).as_posix() for p in found.rglob("*") if not p.is_dir()) == [
        HEADER,
        "cub/version.cuh",
    ]
    assert not (found / HEADER).is_symlink()
    assert (found / HEADER).read_bytes() == (tree / HEADER).read_bytes()
    assert [path.name for path in found.parents[1].iterdir()] == [found.parent.name]


def test_two_repositories_share_no_base(tree, tmp_path):
    shutil.copytree(tree.parent, tmp_path / "copy")
    roots = {open_revision(open_tree(r), "honest").root for r in (tree, tmp_path / "copy/inc")}
    assert len(roots) == 2


def loose(folder, name, kind, data, size=None):
    """An object as git keeps it, whatever it is called."""
    path = folder / f".git/objects/{name[:2]}/{name[2:]}"
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    head = f"{kind} {len(data) if size is None else size}\0".encode()
    path.write_bytes(zlib.compress(head + data))


@pytest.mark.parametrize(
    ("kind", "what"),
    [("blob", f"honest:inc/{HEADER}"), ("tree", "honest:inc/cub"), ("commit", "honest^{commit}")],
)
@pytest.mark.parametrize("data", [b"// forged\n", b"", b"tree x\n"])
def test_an_object_under_the_name_of_another_is_refused(tree, kind, what, data):
    name = run(tree, "rev-parse", what)
    loose(tree.parent, name, kind, data)
    with pytest.raises(InputError, match=f"git lacks {kind} {name}|is neither a folder"):
        open_revision(open_tree(tree), "honest")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (b"100644 ..\0", "has a bad name: '..'"),
        (b"100644 .GIT\0", "has a bad name: '.GIT'"),
        (b"100644 a\0%b100644 a\0", "has a bad name: 'a'"),
        (b"100644 a/b\0", "or it is damaged"),
        (b"100644 \0", "or it is damaged"),
        (b"x a\0", "or it is damaged"),
        (b"100644 a", "or it is damaged"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(tree, entries, message):
    blob = bytes.fromhex(run(tree, "rev-parse", f"honest:inc/{HEADER}"))
    data = entries.replace(b"%b", blob) + (blob if entries.endswith(b"\0") else b"")
    name = git.object_id(data, "0" * 40, "tree")
    loose(tree.parent, name, "tree", data)
    head = _commit_of(tree.parent, name)
    with Objects(Repository(tree.parent)) as objects, pytest.raises(InputError, match=message):
        objects.files(head, ["."])


def _commit_of(folder, tree):
    text = f"tree {tree}\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\n\nx\n".encode()
    name = git.object_id(text, tree, "commit")
    loose(folder, name, "commit", text)
    return name


def test_a_commit_without_a_tree_is_refused(tree):
    data = b"tree HEAD\nauthor A <a@b> 0 +0000\n\n"
    name = git.object_id(data, "0" * 40, "commit")
    loose(tree.parent, name, "commit", data)
    with Objects(Repository(tree.parent)) as objects, pytest.raises(InputError) as raised:
        objects.files(name, ["."])
    assert str(raised.value).startswith(f"{tree.parent}: git lacks commit {name}")


def test_a_tree_that_holds_itself_too_often_is_refused(tree):
    """Ten folders of ten folders, ten deep, are ten objects."""
    child = run(tree, "rev-parse", "honest:inc")
    for names in (*[range(10)] * 10, ["inc"]):
        data = b"".join(f"40000 {name}\0".encode() + bytes.fromhex(child) for name in names)
        child = git.object_id(data, child, "tree")
        loose(tree.parent, child, "tree", data)
    head = _commit_of(tree.parent, child)
    with pytest.raises(InputError) as raised:
        open_revision(open_tree(tree), head)
    assert str(raised.value) == f"{tree.parent}: commit {head} has over 100,000 files"


def test_a_commit_that_is_too_large_is_refused(tree, monkeypatch):
    monkeypatch.setattr(git, "MOST_BYTES", 600)
    (tree / HEADER).write_bytes(bytes(1000))
    commit(tree.parent)
    with pytest.raises(InputError) as raised:
        open_revision(open_tree(tree), "HEAD")
    assert str(raised.value) == f"{tree.parent}: a commit of over 600 bytes is not read"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HEAD", "config", "packed-refs"])
def test_a_pipe_in_a_repository_is_not_waited_for_for_ever(tree, monkeypatch, name):
    monkeypatch.setattr(git, "LIMIT", 0.5)
    (tree.parent / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(tree.parent / ".git" / name)
    with pytest.raises(InputError, match="'x' is neither a folder"):
        open_revision(open_tree(tree), "x")
    assert uncommitted([tree / HEADER]) in {(), (tree / HEADER,)}


def test_a_git_that_does_not_answer_is_ended(tree, monkeypatch):
    monkeypatch.setattr(git, "LIMIT", 0.5)
    commit_id = run(tree, "rev-parse", "honest")
    path = tree.parent / f".git/objects/{commit_id[:2]}/{commit_id[2:]}"
    path.unlink()
    os.mkfifo(path)
    with Objects(Repository(tree.parent)) as objects, pytest.raises(InputError) as raised:
        objects.files(commit_id, ["."])
    assert str(raised.value).startswith(f"{tree.parent}: git lacks commit {commit_id}")


def test_a_git_that_died_is_told(tree):
    name = run(tree, "rev-parse", "honest")
    with Objects(Repository(tree.parent)) as objects:
        objects._git.kill()
        with pytest.raises(InputError, match=f"git lacks commit {name}, or it is damaged"):
            objects.files(name, ["."])


def test_a_repository_of_another_user_is_not_asked(tree, monkeypatch):
    """Anybody can make one in `/tmp`; in a container, tree and repository are both another's."""
    owner = os.stat
    stranger = tree.parent / ".git"

    def stat(path, **options):
        found = owner(path, **options)
        if Path(path) != stranger:
            return found
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:]))

    monkeypatch.setattr(os, "geteuid", lambda: tree.stat().st_uid + 2)
    assert find_repository(tree) == Repository(tree.parent)
    monkeypatch.setattr(os, "stat", stat)
    with pytest.raises(InputError) as raised:
        open_revision(open_tree(tree), "honest")
    assert str(raised.value) == (
        f"{stranger} belongs to another user than {tree}"
        "\n  policygen does not read repositories of other users; compare with a folder (--base"
        " FOLDER)."
    )
    assert uncommitted([tree / HEADER]) == ()
    assert paths_in_repository([tree / HEADER], tree) == (HEADER,)


def test_a_linked_work_tree_a_submodule_and_a_shared_clone_have_their_revisions(tree, tmp_path):
    """Honest ones, whose objects lie elsewhere."""
    outer = tree.parent
    run(outer, "worktree", "add", "--quiet", str(tmp_path / "linked"), "honest")
    run(tmp_path, "clone", "--quiet", "--shared", str(outer), str(tmp_path / "shared"))
    (tmp_path / "super").mkdir()
    run(tmp_path / "super", "init", "--quiet")
    allowed = ("-c", "protocol.file.allow=always")
    run(tmp_path / "super", *allowed, "submodule", "--quiet", "add", str(outer), "sub")
    commit(tmp_path / "super")
    for place in ("linked", "shared", "super/sub"):
        root = tmp_path / place / "inc"
        assert open_revision(open_tree(root), "HEAD").version == "3.0.1"
        assert uncommitted([root / HEADER]) == ()
        (root / HEADER).write_text("// changed\n")
        assert uncommitted([root / HEADER]) == (root / HEADER,)
    # From the outside, a submodule is not a file.
    with Objects(Repository(tmp_path / "super")) as objects:
        head = find_repository(tmp_path / "super").commit("HEAD")
        assert list(objects.files(head, ["."])) == [".gitmodules"]


def test_a_repository_with_longer_names_is_read(tmp_path):
    root = make_root(tmp_path / "inc")
    run(root, "init", "--quiet", "--object-format=sha256")
    assert len(commit(root)) == 64
    found = open_revision(open_tree(root), "HEAD")
    assert [path.name for path in tuning_headers(found)] == ["tuning_for.cuh"]


@pytest.mark.parametrize(
    "links",
    [
        {"cub/out": "/etc/hostname"},
        {"cub/out": "../../x"},
        {"cub/out": "../../inc/../.."},
        {"cub/device/up": "../..", "out": "cub/device/up/../x"},
    ],
)
def test_a_link_that_leads_out_of_a_base_is_refused(tmp_path, links):
    root = make_root(tmp_path / "inc")
    for path, target in links.items():
        (root / path).symlink_to(target)
    name = repository(root)
    with pytest.raises(InputError) as raised:
        open_revision(open_tree(root), "HEAD")
    out = next(path for path in links if path.endswith("out"))
    assert (
        str(raised.value)
        == f"cannot unpack revision {name}: {out} is a link that points outside of it"
    )


def test_line_endings_are_no_change(tree):
    (tree / HEADER).write_bytes((tree / HEADER).read_bytes().replace(b"\n", b"\r\n"))
    assert uncommitted([tree / HEADER]) == ()


def test_a_file_that_is_gone_or_no_file_is_a_change(tree):
    (tree / HEADER).unlink()
    assert uncommitted([tree / HEADER]) == (tree / HEADER,)
    os.mkfifo(tree / HEADER)
    assert uncommitted([tree / HEADER]) == (tree / HEADER,)


def test_before_the_first_commit_everything_is_a_change(tmp_path):
    root = make_root(tmp_path / "inc")
    run(root, "init", "--quiet")
    assert uncommitted([root / HEADER]) == (root / HEADER,)


def test_what_a_path_of_a_commit_is(tree):
    name = run(tree, "rev-parse", "honest")
    with Objects(Repository(tree.parent)) as objects:
        assert objects.entry(name, "inc/absent") is None
        assert objects.entry(name, f"inc/{HEADER}/below") is None
        assert list(objects.files(name, [f"inc/{HEADER}", "absent"])) == [f"inc/{HEADER}"]
