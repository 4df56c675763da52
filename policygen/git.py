"""Asks git about a repository, which may be a stranger's, too.

It is the one whose `.git` stands around a folder, never one that the folder itself holds. None of
its settings, hooks, filters, attributes, replacements and remotes is used.
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
from typing import IO, Self

from policygen.errors import InputError, PolicygenError, ProcessError
from policygen.process import PIPE, Child, output

INSTALL = "Install git: apt-get install git"
LIMIT = 60.0
"""Seconds for one answer; a pipe in place of a file would be waited for."""
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
    "GIT_ALLOW_PROTOCOL": "none",  # wins over what a repository allows
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree with the `.git` that stands in it."""

    top: Path

    def commit(self, revision: str) -> str:
        """The id of a commit, as git finds it; of `main...`, where the work tree left `main`."""
        name = revision.removesuffix("...")
        words = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        found = self._ask("rev-parse", *words).decode().strip()
        if name != revision:
            found = self._ask("merge-base", found, "HEAD").decode().strip()
        return found

    def ignored(self, paths: Sequence[str]) -> set[str]:
        """Those that git is told not to look at."""
        # A name that begins with a colon would be more than a name.
        given = os.fsencode("".join(f"./{path}\0" for path in paths))
        try:
            found = self._ask("check-ignore", "--no-index", "-z", "--stdin", given=given)
        except ProcessError as error:
            if error.status == 1:  # none of them
                return set()
            raise
        return {path.removeprefix("./") for path in os.fsdecode(found).split("\0")[:-1]}

    def command(self, *words: str) -> list[str]:
        """Git with its repository named, so that it does not look for one."""
        return [
            "git",
            *_OPTIONS,
            f"--git-dir={self.top / '.git'}",
            f"--work-tree={self.top}",
            *words,
        ]

    def _ask(self, *words: str, given: bytes = b"") -> bytes:
        command = self.command(*words)
        return output(command, given=given, more=ENVIRONMENT, limit=LIMIT, install=INSTALL)


def find_repository(folder: Path) -> Repository | None:
    """The nearest one around a folder: a commit can hold a `config`, but no `.git`."""
    folder = folder.resolve()
    for place in (folder, *folder.parents):
        try:
            owner = (place / ".git").stat().st_uid
        except OSError:
            continue
        # Git looks at that, too, where it is not told which one it is: all can write to `/tmp`.
        if owner not in (os.geteuid(), folder.stat().st_uid):
            raise InputError(
                f"{place / '.git'} belongs to another user than {folder}",
                "policygen reads no such repository: compare with a folder.",
            )
        return Repository(place)
    return None


def find_commit(folder: Path, revision: str) -> tuple[Repository, str]:
    """A repository around a folder, and the id of a commit in it."""
    repository = find_repository(folder)
    if repository is None:
        raise _unknown(revision, folder, "it is not a git repository, and none is above it")
    try:
        return repository, repository.commit(revision)
    except ProcessError as error:
        raise _unknown(revision, folder, error.stderr.strip() or None) from error


def _unknown(revision: str, folder: Path, reason: str | None) -> InputError:
    return InputError(
        f"{revision!r} is no folder, no fetched version of CUB, and no revision of a git"
        f" repository around {folder}",
        reason,
    )


def main(folder: str, revision: str) -> int:
    """`python -m policygen.git FOLDER REVISION` prints the id; action.yml asks no git itself."""
    try:
        _, commit = find_commit(Path(folder), revision)
    except PolicygenError as error:
        sys.stderr.write(f"policygen: error: {error}\n")
        return error.exit_code
    sys.stdout.write(f"{commit}\n")
    return 0


MOST_FILES = 100_000
MOST_BYTES = 1 << 30
"""Of all that is read. A tree that holds another one ten times, ten levels deep, is small."""
_AT_ONCE = 500
"""Ids that are asked for; a pipe holds 64 KiB."""
_TREE, _LINK, _MODULE = 0o40000, 0o120000, 0o160000
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# 93a2b1… blob 4711
_ANSWER = re.compile(rb"(?P<id>[0-9a-f]+) (?P<kind>\w+) (?P<size>\d+)\n")
# 100644 name\0, and an id of 20 or 32 bytes
_HEAD = re.compile(rb"(?P<mode>[0-7]{5,6}) (?P<name>[^/\0]+)\0")


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """What a commit has at a path."""

    mode: int
    id: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link, whose content is where it leads to."""
        return self.mode == _LINK


class Objects:
    """The objects of a repository, through one git that runs as long as the block."""

    def __init__(self, repository: Repository) -> None:
        self._top = repository.top
        self._known: dict[str, bytes] = {}
        """Commits and trees: all paths begin with the same ones."""
        self._left = MOST_BYTES
        command = repository.command("cat-file", "--batch")
        self._git = Child(command, install=INSTALL, more=ENVIRONMENT, stdin=PIPE, stdout=PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        for end in (self._sink, self._source):
            with suppress(BrokenPipeError):
                end.close()
        self._git.kill()

    def files(self, commit: str, paths: Sequence[str]) -> dict[str, TreeEntry]:
        """The files and links of a commit that are these or lie below; submodules are none."""
        found: dict[str, TreeEntry] = {}
        trees: list[tuple[str, str]] = []
        for path in paths:
            entry = self.entry(commit, path)
            if entry and entry.mode == _TREE:
                trees.append((f"{path}/" if path != "." else "", entry.id))
            elif entry:
                found[path] = entry
        while trees:
            contents = self._read({tree for _, tree in trees}, "tree")
            inner = []
            for at, tree in trees:
                for name, entry in self._entries(contents[tree], tree).items():
                    if entry.mode == _TREE:
                        inner.append((f"{at}{name}/", entry.id))
                    elif entry.mode != _MODULE:
                        found[f"{at}{name}"] = entry
                if len(found) + len(inner) > MOST_FILES:
                    raise InputError(f"{self._top}: commit {commit} has over {MOST_FILES:,} files")
            trees = inner
        return found

    def entry(self, commit: str, path: str) -> TreeEntry | None:
        """What a commit has at a path from the top; `.` is the top itself."""
        head = self._read({commit}, "commit")[commit]
        # tree 93a2b1… and a line for each parent, author, committer
        tree = head.split(b"\n", 1)[0].removeprefix(b"tree ").decode(errors="replace")
        if not _ID.fullmatch(tree):
            raise self._damaged("commit", commit)
        entry = TreeEntry(_TREE, tree)
        for part in PurePosixPath(path).parts:
            if entry.mode != _TREE:
                return None
            data = self._read({entry.id}, "tree")[entry.id]
            if (inner := self._entries(data, entry.id).get(part)) is None:
                return None
            entry = inner
        return entry

    def contents(self, entries: Collection[TreeEntry]) -> Mapping[str, bytes]:
        """What files hold, by the ids of their content."""
        return self._read_all({entry.id for entry in entries}, "blob")

    def _read(self, ids: Collection[str], kind: str) -> Mapping[str, bytes]:
        self._known.update(self._read_all(ids - self._known.keys(), kind))
        return self._known

    def _read_all(self, ids: Collection[str], kind: str) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        wanted = sorted(ids)
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            watch = threading.Timer(LIMIT, self._git.kill)
            watch.start()
            try:
                self._sink.write("".join(f"{one}\n" for one in some).encode())
                self._sink.flush()
                found.update((one, self._answer(one, kind)) for one in some)
            except BrokenPipeError as error:
                raise self._damaged(kind, some[0]) from error
            finally:
                watch.cancel()
        return found

    def _answer(self, name: str, kind: str) -> bytes:
        head = _ANSWER.fullmatch(self._source.readline())
        if head is None or head["kind"].decode() != kind:
            raise self._damaged(kind, name)
        size = int(head["size"])
        self._left -= size
        if self._left < 0:
            raise InputError(f"{self._top}: a commit of over {MOST_BYTES:,} bytes is not read")
        data = self._source.read(size + 1)[:-1]
        if object_id(data, name, kind) != name:
            raise self._damaged(kind, name)
        return data

    def _entries(self, data: bytes, tree: str) -> dict[str, TreeEntry]:
        size, at, found = len(tree) // 2, 0, {}
        while at < len(data):
            head = _HEAD.match(data, at)
            if head is None or len(data) < head.end() + size:
                raise self._damaged("tree", tree)
            at = head.end() + size
            name = os.fsdecode(head["name"])
            if name in found or name.lower() in (".", "..", ".git"):
                raise InputError(f"{self._top}: tree {tree} of git has a bad name: {name!r}")
            found[name] = TreeEntry(int(head["mode"], 8), data[head.end() : at].hex())
        return found

    def _damaged(self, kind: str, name: str) -> InputError:
        return InputError(
            f"{self._top}: git does not have {kind} {name}, or not whole",
            "git fsck tells more; git fetch --refetch gets what was not fetched.",
        )

    @property
    def _sink(self) -> IO[bytes]:
        assert self._git.process.stdin is not None
        return self._git.process.stdin

    @property
    def _source(self) -> IO[bytes]:
        assert self._git.process.stdout is not None
        return self._git.process.stdout


# What the commits of a git repository hold, each object checked against its name.
#
# Blobs are read as they are: attributes would convert, leave out or replace parts of them.


def object_id(data: bytes, like: str, kind: str = "blob") -> str:
    """The name that git gives to a content; `like` is one of the repository."""
    algorithm = "sha1" if len(like) == 40 else "sha256"
    digest = hashlib.new(algorithm, b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def is_at(path: Path, entry: TreeEntry) -> bool:
    """Whether a file or link is the one of a commit."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) != entry.is_link or not (stat.S_ISLNK(mode) or stat.S_ISREG(mode)):
        return False
    data = os.fsencode(path.readlink()) if entry.is_link else path.read_bytes()
    return object_id(data, entry.id) == entry.id


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
