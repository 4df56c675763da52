"""One grammar of options: what it is called, it is called everywhere, and means the same."""

import json
import os
import pty
import sys
from pathlib import Path

import click
import pytest

from policygen.cli import progress
from policygen.cli.apply import print_diff
from policygen.cli.groups import COMMANDS
from policygen.cli.output import Out
from policygen.demo.database import demo_database
from policygen.report.blocks import Note, Table, Words
from policygen.report.terminal import Terminal
from policygen.steps import HowFar
from tests.cli.tuned import run
from tests.real_trees import tree

MINI = Path(__file__).parent.parent.parent / "cub_headers" / "mini"
EVERYWHERE = {"--json", "-o", "-q", "-v"}
TREE, FILTER, ARCH, FORCE = {"--cub"}, {"-R", "-a"}, {"--arch"}, {"--force"}
# What the design's table says of each command, beside what all of them have.
TABLE = {
    "apply": {
        *TREE,
        *FILTER,
        *ARCH,
        *FORCE,
        "--db",
        "--plan",
        "--diff",
        "--check",
        "--patch",
        "--next-best",
    },
    "audit coverage": {*TREE, *FILTER, *ARCH, *FORCE, "--db"},
    "audit lint": {*TREE, *FILTER, *ARCH, *FORCE},
    "audit reach": {*TREE, *FILTER, *ARCH, *FORCE},
    "bench list": {*TREE, *FILTER, *FORCE},
    "bench new": {*TREE, *FORCE},
    "calls": {*TREE, *ARCH, *FORCE},
    "campaign": {*TREE, *FILTER, *FORCE, "--db", "--budget"},
    "completion": set(),
    "db choose": {*FILTER, *FORCE},
    "db compare": {*FILTER, *FORCE},
    "db coverage": {*FILTER, *FORCE},
    "db export": FORCE,
    "db import": {*FORCE, *ARCH, "--base"},
    "db info": {*FILTER, *FORCE},
    "db matrix": {*FORCE, "-R"},
    "db merge": FORCE,
    "db plot": {*FILTER, *FORCE},
    "db report": {*FILTER, *FORCE, "--format"},
    "db top": {*FILTER, *FORCE},
    "demo": TREE,
    "doctor": {*TREE, *FORCE},
    "emit": {*TREE, *FILTER, *ARCH, *FORCE, "--db"},
    "headers fetch": FORCE,
    "headers list": {*TREE, *FORCE},
    "headers path": {*TREE, *FORCE},
    "measure": {*TREE, *FILTER, *FORCE, "--db", "--arch", "--bench"},
    "overlay": {*TREE, *FILTER, *ARCH, *FORCE, "--db", "--plan", "--next-best", "--base"},
    "plan": {*TREE, *FILTER, *ARCH, *FORCE, "--db", "--next-best"},
    "resolve": {*TREE, *FILTER, *ARCH, *FORCE},
    "review": {*TREE, *FORCE, "--base", "--format"},
    "scan": {*TREE, *FILTER, *ARCH, *FORCE},
    "search": {*TREE, *FILTER, *FORCE, "--db", "--bench", "--budget", "--replay"},
    "status": {*TREE, *FORCE},
    "tune": {*TREE, *FILTER, *FORCE, "--db", "--budget"},
    "undo": {*TREE, *FORCE},
    "verify-effect": {*TREE, *ARCH, *FORCE},
    "verify-performance": {*TREE, *FILTER, *FORCE, "--base", "--db", "--budget"},
    "verify-sass": {*TREE, *FILTER, *ARCH, *FORCE, "--base"},
}
# What a command has not, and why.
WITHOUT = {
    "completion": EVERYWHERE,  # a script is its only output
    "demo": EVERYWHERE,  # it types other commands
    "review": {"-v"},  # it shows everything
}
# What each option is called besides, whether it takes a value, and whether more than one.
MEANS = {
    "--json": ({"--json"}, "flag"),
    "-o": ({"-o", "--out"}, "FILE"),
    "-q": ({"-q", "--quiet"}, "flag"),
    "-v": ({"-v", "--verbose"}, "flag"),
    "--cub": ({"--cub"}, "PATH"),
    "-R": ({"-R"}, "REGEX"),
    "-a": ({"-a", "--args"}, "AXIS=VALUE, again"),
    "--arch": ({"--arch"}, "ARCH, again"),
    "--db": ({"--db"}, "DB, again"),
    "--base": ({"--base"}, "one"),
    "--force": ({"--force"}, "flag"),
    "--next-best": ({"--next-best"}, "flag"),
}


def commands(group=COMMANDS, path=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def options(command):
    return [one for one in command.params if isinstance(one, click.Option)]


# What is written by a search is one file, and read by others as one of many.
WRITERS = ("campaign", "measure", "search", "tune", "verify-performance")
WRITES = {(name, "--db"): "FILE" for name in WRITERS}
WRITES["overlay", "-o"] = "FOLDER"


def means(option):
    if option.is_flag:
        return "flag"
    return f"{option.metavar}{', again' if option.multiple else ''}"


def test_every_command_is_in_the_table():
    assert [name for name, _ in commands()] == sorted(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_a_command_has_the_options_of_the_table(name):
    command = dict(commands())[name]
    known = [spelled for one in options(command) for spelled in one.opts]
    assert len(known) == len(set(known)), "an option twice"
    assert (TABLE[name] | EVERYWHERE) - WITHOUT.get(name, set()) <= set(known)
    assert not WITHOUT.get(name, set()) & set(known)


@pytest.mark.parametrize("name", TABLE)
def test_an_option_means_the_same_everywhere(name):
    for option in options(dict(commands())[name]):
        for short, (called, what) in MEANS.items():
            if short in option.opts:
                assert set(option.opts) == called, f"{name} {short}"
                meant = WRITES.get((name, short), what)
                assert meant in {"one", means(option)}, f"{name} {short}: {means(option)}"
            else:
                assert not called & set(option.opts), f"{name}: {option.opts}"


@pytest.mark.parametrize("name", [name for name, known in TABLE.items() if "--force" in known])
def test_force_is_about_files_alone(name):
    (option,) = [one for one in options(dict(commands())[name]) if "--force" in one.opts]
    assert option.help == "Overwrite a file that policygen did not write."


@pytest.mark.trees
@pytest.mark.slow
@pytest.mark.parametrize("axes", ["T=I8", "T{ct}=I8", "T=[I8]", "T{ct}=[I8]"])
def test_an_axis_is_named_with_its_flags_or_without(capsys, tmp_path, monkeypatch, axes):
    monkeypatch.chdir(tmp_path)
    demo_database(tmp_path / "demo.db")
    for command in (("db", "top"), ("db", "choose"), ("db", "coverage")):
        status, out, _ = run(capsys, *command, "demo.db", "-a", axes, "--json")
        found = {one["workload"]["T{ct}"] for one in json.loads(out)["workloads"]}
        assert (status, found) == (0, {"I8"})
    assert run(capsys, "db", "plot", "demo.db", "-a", axes, "-q", "-o", "a.svg")[0] == 0
    given = ("--db", "demo.db", "--arch", "sm90", "--no-prove", "--cub", tree("3.0.1"), "--json")
    status, out, _ = run(capsys, "plan", *given, "-a", axes)
    assert (status, [one["workload"]["T"] for one in json.loads(out)["actions"]]) == (0, ["I8"])


def test_an_axis_of_a_part_of_a_run_is_known_without_flags_too(capsys, tmp_path, monkeypatch):
    """Nothing is chosen by a part of what is known, whatever the axis is called."""
    monkeypatch.chdir(tmp_path)
    demo_database(tmp_path / "demo.db")
    for axis in ("Elements{io}[pow2]=24", "Elements=24"):
        _, out, _ = run(capsys, "db", "choose", "demo.db", "-a", axis, "--json")
        assert {one["choice"] is None for one in json.loads(out)["workloads"]} == {True}


@pytest.mark.parametrize(
    "archs", [("--arch", "sm80,90"), ("--arch", "sm_80", "--arch", "9.0"), ("--arch", "80,9.0,80")]
)
def test_architectures_are_given_at_once_or_one_by_one(capsys, archs):
    _, out, _ = run(capsys, "scan", "--cub", MINI, "--json", *archs)
    assert {one["arch"] for one in json.loads(out)["families"]} == {"sm80", "sm90"}


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_what_is_printed_goes_to_a_file(capsys, tmp_path, how):
    command = ("scan", "--cub", MINI, *how)
    _, out, err = run(capsys, *command)
    path = tmp_path / "out"
    assert run(capsys, *command, "-o", path) == (0, "", err)
    assert path.read_text() == out
    assert run(capsys, *command, "-o", path)[0] == 0  # it is ours
    assert run(capsys, *command, "-R", "none", "-o", tmp_path / "none")[0] == 2
    assert not (tmp_path / "none").exists()


def test_a_diff_goes_to_a_file_byte_for_byte(tmp_path):
    """With what is no text in it."""
    path = tmp_path / "diff"
    with Out(path).printed():
        print_diff("-a\r\n+\udcff\n")
    assert path.read_bytes() == b"-a\r\n+\xff\n"


def on_a_terminal(monkeypatch, work):
    """What a terminal gets."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        work(stream)
        stream.flush()
        got = os.read(ours, 1 << 16)
    os.close(ours)
    return got


def show_all(stream):
    blocks = [
        Words("words", "bold"),
        Note((("bold", "bold"), (" red", "red"))),
        Table(["one"], [["cell"]]),
    ]
    Terminal(stream).write(blocks)
    tell = progress.teller(stream)
    tell(HowFar("asking the compiler", 1, 2, ("scan",)))
    tell(HowFar("asking the compiler", 2, 2))


@pytest.mark.parametrize("force", [False, True])
def test_no_color_is_no_escape_at_all(monkeypatch, force):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert b"\x1b" in on_a_terminal(monkeypatch, show_all)
    monkeypatch.setenv("NO_COLOR", "1")
    if force:
        monkeypatch.setenv("FORCE_COLOR", "1")
    got = on_a_terminal(monkeypatch, show_all)
    assert b"words" in got
    assert b"\x1b" not in got
