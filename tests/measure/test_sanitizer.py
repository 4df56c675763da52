"""Variants under compute-sanitizer, with a tool that only pretends to be it."""

import sys
from textwrap import dedent

import pytest

from policygen.errors import MissingToolError
from policygen.measure import sanitizer
from policygen.measure.sanitizer import SanitizedWorkload, find_sanitizer, sanitize
from policygen.model.labels import BASE
from policygen.proof.toolchain import Toolchain
from tests.app.searched import own_locks
from tests.measure.simulated import BASE as OWN
from tests.measure.simulated import Plan, case, variants

INVALID = """\
========= Invalid __global__ read of size 4 bytes
=========     at saxpy(const float *, float *)+0x90 in saxpy.cu:9
=========     by thread (255,0,0) in block (3,0,0)
"""


@pytest.fixture
def tool(tmp_path):
    """It starts the program, and says of each check of some variants what is wrong."""
    path = tmp_path / "compute-sanitizer"
    path.write_text(
        dedent(f"""\
        #!{sys.executable}
        import json, os, subprocess, sys
        at = sys.argv.index("--log-file")
        log, command = sys.argv[at + 1].replace("%p", str(os.getpid())), sys.argv[at + 2:]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE)
        for line in sys.stdin.buffer:
            asked = json.loads(line)
            names = [one[0] for one in asked.get("functions", ())]
            if asked["do"] in ("check", "reference") and set(names) & set({{bad}}):
                with open(log, "a") as file:
                    file.write({INVALID!r})
            worker.stdin.write(line)
            worker.stdin.flush()
        worker.stdin.close()
        sys.exit(worker.wait())
        """)
    )
    path.chmod(0o755)

    def bad(*labels):
        path.write_text(path.read_text().replace("{bad}", repr(labels)))
        return path

    return bad


def run(tmp_path, monkeypatch, tool, labels, **plan):
    own_locks(tmp_path, monkeypatch)
    told = []
    asked = SanitizedWorkload(case(16), OWN, variants(*labels))
    command = Plan(str(tmp_path), **plan).command()
    return sanitize(tool, command, [asked], progress=told.append), told


def test_what_reads_where_it_must_not_is_named(tmp_path, monkeypatch, tool):
    labels = ["ipt_1", "ipt_2", "ipt_3"]
    (found,), told = run(tmp_path, monkeypatch, tool("ipt_2"), labels)
    assert found == {
        "ipt_2": "compute-sanitizer: Invalid __global__ read of size 4 bytes"
        " at saxpy(const float *, float *)+0x90 in saxpy.cu:9"
    }
    assert [one.running for one in told][:2] == [("base",), ("ipt_1",)]


def test_base_that_does_so_ends_the_workload(tmp_path, monkeypatch, tool):
    (found,), _ = run(tmp_path, monkeypatch, tool(BASE), ["ipt_1"])
    assert list(found) == [BASE]


def test_the_tool_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("policygen.proof.toolchain.which", lambda _: None)
    toolchain = Toolchain(tmp_path / "nvcc", "13.2.86", ("sm90",))
    with pytest.raises(MissingToolError, match="compute-sanitizer"):
        find_sanitizer(toolchain)
    (tmp_path / sanitizer.TOOL).touch()
    assert find_sanitizer(toolchain) == tmp_path / sanitizer.TOOL
