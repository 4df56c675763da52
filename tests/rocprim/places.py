"""Trees of rocPRIM with other headers in some places, and what is asked of them."""

import json
import os
import shutil
from pathlib import Path

from policygen.cli.main import main
from tests.real_trees import rocprim_tree

CONFIGS = Path("rocprim/device/detail/config")
REDUCE = "device_reduce.hpp"
RELEASE = "5.7.1"


def changed_tree(folder, headers=None, release=RELEASE):
    """A tree that shares its files with a real one, with others in place of some headers."""
    made = folder / "tree"
    shutil.copytree(rocprim_tree(release), made, copy_function=os.link)
    for name, text in (headers or {}).items():
        path = made / CONFIGS / name
        path.unlink(missing_ok=True)
        path.write_text(text)
    return made


def own_tree(folder, release=RELEASE):
    """A tree whose headers of configs are files of its own, so that they can be written."""
    return changed_tree(folder, {path.name: path.read_text() for path in headers(release)}, release)


def by_hand_tree(folder, release):
    """A tree whose headers of tables by hand are files of its own."""
    made = changed_tree(folder, release=release)
    for path in (made / "rocprim/device").glob("device_*_config.hpp"):
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    return made


def headers(release=RELEASE):
    """The headers of generated configs."""
    return sorted((rocprim_tree(release) / CONFIGS).glob("*.hpp"))


def text_of(name, release=RELEASE):
    """A header as the release has it."""
    return (rocprim_tree(release) / CONFIGS / name).read_text()


def resolved(capsys, tree, *options, status=0):
    """What `resolve --json` says, and what it complains of."""
    assert main(["resolve", "--cub", str(tree), "--json", "-q", *options]) == status
    told = capsys.readouterr()
    return json.loads(told.out), told.err


def rows_of(document):
    """Values and place by benchmark, types and architecture."""
    return {
        (row["benchmark"], *row["workload"].values(), row["arch"]): (
            row["values"],
            row["status"],
            row["entry"] and (row["entry"]["header"], row["entry"]["line"]),
        )
        for row in document["rows"]
    }
