"""Reads git repositories, including untrusted ones.

A folder's repository is the one whose `.git` is in the folder or above it, never a bare one. Its
settings, hooks, filters, attributes, replacements and remotes are ignored.
"""

import hashlib
import os
import re
import stat
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from policygen.errors import InputError, PolicygenError, ProcessError
from policygen.process import PIPE, Child, output

INSTALL = "Install git: apt-get install git"
LIMIT = 60.0
"""Seconds to wait for an answer; a pipe in place of a file would block forever."""
_OPTIONS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null"),
    *("-c", "core.commitGraph=false", "-c", "core.sshCommand=false", "-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit", "-c", "core.pager=cat", "-c", "gc.auto=0"),
)
ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # takes precedence over the repository
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree that contains its `.git`."""

    top: Path

    def commit(self, revision: str) -> str:
        """Returns a commit's id; for `main...`, the merge base of `main` and the work tree."""
        name = revision.removesuffix("...")
        arguments = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        commit_id = self._ask("rev-parse", *arguments).decode().strip()
        if name != revision:
            commit_id = self._ask("merge-base", commit_id, "HEAD").decode().strip()
        return commit_id

    def ignored(self, paths: Sequence[str]) -> set[str]:
        """Returns the paths that git ignores."""
        # The prefix keeps a leading colon from being read as a pathspec.
        stdin = os.fsencode("".join(f"./{path}\0" for path in paths))
        try:
            ignored_paths = self._ask("check-ignore", "--no-index", "-z", "--stdin", stdin=stdin)
        except ProcessError as error:
            if error.status == 1:  # none of them
                return set()
            raise
        return {path.removeprefix("./") for path in os.fsdecode(ignored_paths).split("\0")[:-1]}

    def command(self, *words: str) -> list[str]:
        """Returns a git command that names its repository, so that git does not search for it."""
        return [
            "git",
            *_OPTIONS,
            f"--git-dir={self.top / '.git'}",
            f"--work-tree={self.top}",
            *words,
        ]

    def _ask(self, *words: str, stdin: bytes = b"") -> bytes:
        command = self.command(*words)
        return output(command, given=stdin, more=ENVIRONMENT, limit=LIMIT, install=INSTALL)


def find_repository(folder: Path) -> Repository | None:
    """Returns the nearest repository around a folder; no commit can contain a `.git`."""
    folder = folder.resolve()
    for candidate in (folder, *folder.parents):
        try:
            owner = (candidate / ".git").stat().st_uid
        except OSError:
            continue
        # Git checks the owner only when it searches for a repository; anybody can write to `/tmp`.
        if owner not in (os.geteuid(), folder.stat().st_uid):
            raise InputError(
                f"{candidate / '.git'} belongs to another user than {folder}",
                "policygen does not read repositories of other users; compare with a folder"
                " (--base FOLDER).",
            )
        return Repository(candidate)
    return None


def find_commit(folder: Path, revision: str) -> tuple[Repository, str]:
    """Returns the repository around a folder and the id of a commit in it."""
    repository = find_repository(folder)
    if repository is None:
        raise _unknown(revision, folder, "it is not in a git repository")
    try:
        return repository, repository.commit(revision)
    except ProcessError as error:
        raise _unknown(revision, folder, error.stderr.strip() or None) from error


def _unknown(revision: str, folder: Path, reason: str | None) -> InputError:
    return InputError(
        f"{revision!r} is neither a folder, a fetched version of CUB, nor a revision of a git"
        f" repository around {folder}",
        reason,
    )


def main(folder: str, revision: str) -> int:
    """`python -m policygen.git FOLDER REVISION` prints a commit's id for action.yml."""
    try:
        _, commit = find_commit(Path(folder), revision)
    except PolicygenError as error:
        sys.stderr.write(f"policygen: error: {error}\n")
        return error.exit_code
    sys.stdout.write(f"{commit}\n")
    return 0


MOST_FILES = 100_000
MOST_BYTES = 1 << 30
"""Maximum bytes to read in total; nested trees with shared parts can be small but expand hugely."""
_BATCH = 500
"""Ids per request; a pipe holds 64 KiB."""
_TREE, _LINK, _MODULE = 0o40000, 0o120000, 0o160000
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# 93a2b1… blob 4711
_BATCH_HEADER = re.compile(rb"(?P<id>[0-9a-f]+) (?P<kind>\w+) (?P<size>\d+)\n")
# 100644 name\0, followed by an id of 20 or 32 bytes
_TREE_ENTRY = re.compile(rb"(?P<mode>[0-7]{5,6}) (?P<name>[^/\0]+)\0")


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file, link or folder at a path of a commit."""

    mode: int
    id: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link; its contents are the link's target."""
        return self.mode == _LINK


class Objects:
    """The objects of a repository, read through one git process for the duration of the block."""

    def __init__(self, repository: Repository) -> None:
        self._top = repository.top
        self._cached_objects: dict[str, bytes] = {}
        """Commits and trees by id, since all paths share them."""
        self._bytes_left = MOST_BYTES
        command = repository.command("cat-file", "--batch")
        self._git = Child(command, install=INSTALL, more=ENVIRONMENT, stdin=PIPE, stdout=PIPE)
        sink, source = self._git.process.stdin, self._git.process.stdout
        assert sink is not None
        assert source is not None
        self._sink, self._source = sink, source

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        for pipe in (self._sink, self._source):
            with suppress(BrokenPipeError):
                pipe.close()
        self._git.kill()

    def files(self, commit: str, paths: Sequence[str]) -> dict[str, TreeEntry]:
        """Returns a commit's files and links at or below the paths, without submodules."""
        entries: dict[str, TreeEntry] = {}
        trees: list[tuple[str, str]] = []
        for path in paths:
            entry = self.entry(commit, path)
            if entry and entry.mode == _TREE:
                trees.append((f"{path}/" if path != "." else "", entry.id))
            elif entry:
                entries[path] = entry
        while trees:
            contents = self._read({tree for _, tree in trees}, "tree")
            subtrees = []
            for prefix, tree in trees:
                for name, entry in self._entries(contents[tree], tree).items():
                    if entry.mode == _TREE:
                        subtrees.append((f"{prefix}{name}/", entry.id))
                    elif entry.mode != _MODULE:
                        entries[f"{prefix}{name}"] = entry
                if len(entries) + len(subtrees) > MOST_FILES:
                    raise InputError(f"{self._top}: commit {commit} has over {MOST_FILES:,} files")
            trees = subtrees
        return entries

    def entry(self, commit: str, path: str) -> TreeEntry | None:
        """Returns a commit's entry at a path from the top; `.` is the top itself."""
        commit_data = self._read({commit}, "commit")[commit]
        # tree 93a2b1… and a line for each parent, author, committer
        tree = commit_data.split(b"\n", 1)[0].removeprefix(b"tree ").decode(errors="replace")
        if not _ID.fullmatch(tree):
            raise self._damaged("commit", commit)
        entry = TreeEntry(_TREE, tree)
        for part in PurePosixPath(path).parts:
            if entry.mode != _TREE:
                return None
            data = self._read({entry.id}, "tree")[entry.id]
            if (child := self._entries(data, entry.id).get(part)) is None:
                return None
            entry = child
        return entry

    def contents(self, entries: Collection[TreeEntry]) -> Mapping[str, bytes]:
        """Returns the contents of files by object id."""
        return self._read_all({entry.id for entry in entries}, "blob")

    def _read(self, ids: Collection[str], kind: str) -> Mapping[str, bytes]:
        self._cached_objects.update(self._read_all(ids - self._cached_objects.keys(), kind))
        return self._cached_objects

    def _read_all(self, ids: Collection[str], kind: str) -> dict[str, bytes]:
        contents: dict[str, bytes] = {}
        pending = sorted(ids)
        for start in range(0, len(pending), _BATCH):
            batch = pending[start : start + _BATCH]
            timer = threading.Timer(LIMIT, self._git.kill)
            timer.start()
            try:
                self._sink.write("".join(f"{object_name}\n" for object_name in batch).encode())
                self._sink.flush()
                contents.update(
                    (object_name, self._answer(object_name, kind)) for object_name in batch
                )
            except BrokenPipeError as error:
                raise self._damaged(kind, batch[0]) from error
            finally:
                timer.cancel()
        return contents

    def _answer(self, name: str, kind: str) -> bytes:
        header = _BATCH_HEADER.fullmatch(self._source.readline())
        if header is None or header["kind"].decode() != kind:
            raise self._damaged(kind, name)
        size = int(header["size"])
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise InputError(f"{self._top}: a commit of over {MOST_BYTES:,} bytes is not read")
        data = self._source.read(size + 1)[:-1]
        if object_id(data, name, kind) != name:
            raise self._damaged(kind, name)
        return data

    def _entries(self, data: bytes, tree: str) -> dict[str, TreeEntry]:
        size, offset, entries = len(tree) // 2, 0, {}
        while offset < len(data):
            header = _TREE_ENTRY.match(data, offset)
            if header is None or len(data) < header.end() + size:
                raise self._damaged("tree", tree)
            offset = header.end() + size
            name = os.fsdecode(header["name"])
            if name in entries or name.lower() in (".", "..", ".git"):
                raise InputError(f"{self._top}: tree {tree} of git has a bad name: {name!r}")
            entries[name] = TreeEntry(int(header["mode"], 8), data[header.end() : offset].hex())
        return entries

    def _damaged(self, kind: str, name: str) -> InputError:
        return InputError(
            f"{self._top}: git lacks {kind} {name}, or it is damaged",
            "Run git fsck, or git fetch --refetch.",
        )


# Objects, each verified against its id
#
# Blobs are read raw: attributes would convert, omit or replace parts of them.


def object_id(data: bytes, known_id: str, kind: str = "blob") -> str:
    """Returns git's id for contents, with the hash algorithm of another id of the repository."""
    algorithm = "sha1" if len(known_id) == 40 else "sha256"
    digest = hashlib.new(algorithm, b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def is_at(path: Path, entry: TreeEntry) -> bool:
    """Returns whether a file or link matches a commit's entry."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) != entry.is_link or not (stat.S_ISLNK(mode) or stat.S_ISREG(mode)):
        return False
    data = os.fsencode(path.readlink()) if entry.is_link else path.read_bytes()
    return object_id(data, entry.id) == entry.id


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
