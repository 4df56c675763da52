"""Asks git about a repository, which may be a stranger's, too.

It is the one whose `.git` stands around a folder, never one that the folder itself holds. None of
its settings, hooks, filters, attributes, replacements and remotes is used.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError, PolicygenError, ProcessError
from policygen.process import output

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


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
