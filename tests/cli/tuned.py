"""What tests of `plan`, `apply` and `verify-effect` share: a tree to write to, and databases."""

import re
import shutil
import subprocess
from pathlib import Path

from fixtures.databases.every import GPUS, benchmark_database
from policygen.cli.main import main
from tests.probing import TUNINGS, changed_tree, header, root

HEADER = "tuning_three_way_partition.cuh"
THREE = "cub.bench.partition.three_way"
LABEL = "trp_1.ipt_10.tpb_512.ns_404.dcid_1.l2w_710"
OTHER = "trp_0.ipt_14.tpb_256.ns_800.dcid_2.l2w_900"


def writable_tree(folder: Path) -> Path:
    """A tree of links to CUB 3.0.1; the header that is tuned is a file of its own."""
    return changed_tree(folder, "3.0.1", {HEADER: header("3.0.1", HEADER)})


def tuned(tree: Path) -> Path:
    """The header that is written."""
    return tree / TUNINGS / HEADER


def database(path: Path, winners=None, arch: str = "sm90", name: str = THREE) -> Path:
    """One workload that a variant wins, and one that it does not."""
    won = winners or {("I32", "I32"): LABEL, ("I8", "I32"): None}
    benchmark_database(path, name, "3.0.1", GPUS[arch], won)
    return path


def committed_tree(folder: Path) -> Path:
    """CUB 3.0.1 as a repository with one commit."""
    shutil.copytree(root("3.0.1"), folder)
    git = ("git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b")
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "as it was")):
        subprocess.run([*git, *command], check=True)
    return folder


def run(capsys, *arguments):
    """The exit status of a command, and what it printed."""
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


# 3/9 asking the compiler, 1.2/s, 0:05 left: scan +1
PROGRESS = re.compile(r"(?:\d+/\d+ )?(asking the|reading headers|compiling|disassem)")


def others(err):
    """Lines that tell not how far it is; on a slow machine there are such, too."""
    return [line for line in err.splitlines() if not PROGRESS.match(line)]
