"""A disk that fails once, at each step of the store's own files: `unlink` of libc says EIO."""

import os
import subprocess
import sys

import pytest

from tests.store.trees import Tree

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int unlink(const char *path)
{
  static int calls = 0;
  size_t length = strlen(path);
  if (length > 8 && !strcmp(path + length - 8, "-journal") && ++calls == atoi(getenv("FAIL_AT"))) {
    errno = EIO;
    return -1;
  }
  return ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    made = folder / "shim.so"
    command = ["gcc", "-shared", "-fPIC", "-o", made, folder / "shim.c", "-ldl"]
    subprocess.run(command, check=True)
    return made


def policygen(folder, shim, number, *words):
    return subprocess.run(
        [sys.executable, "-m", "policygen", *words],
        cwd=folder,
        env={**os.environ, "LD_PRELOAD": str(shim), "FAIL_AT": str(number)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_an_undo_that_was_done_is_no_failure_whichever_journal_cannot_be_removed(tmp_path, shim):
    """The store's transactions end by the removal of their journals; a single one fails."""
    ends = []
    for number in range(1, 8):
        tree = Tree(tmp_path / str(number))
        tree.apply()
        done = policygen(tree.store.parent, shim, number, "undo", "-q")
        ends.append((done.returncode, tree.now == tree.old))
        assert "Traceback" not in done.stderr
        assert tree.now in (tree.old, tree.new)
        assert done.returncode in {0, 2}
        assert (done.returncode == 0) == (tree.now == tree.old), done.stderr
        again = policygen(tree.store.parent, shim, 0, "undo", "-q")
        assert (again.returncode == 0) == (done.returncode == 2)
        assert tree.now == tree.old
        assert tree.others() == []
    # Once all files are unchanged, nothing makes a failure of it.
    assert ends[-1] == (0, True)
    failed = [code for code, _ in ends if code]
    assert failed == [2, 2], "before the first file is replaced nothing is done, and that is told"
