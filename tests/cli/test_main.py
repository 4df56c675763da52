import os
import re
import subprocess
import sys

import click
import pytest

from policygen import __version__, rendering
from policygen.cli import demo
from policygen.cli.groups import AUDIT, COMMANDS, DB, HEADERS
from policygen.cli.main import main


@pytest.fixture
def command(monkeypatch):
    """Makes `policygen demo` do something else."""

    def replace(action):
        monkeypatch.setattr(demo.demo, "callback", lambda **_: action())

    return replace


def fail(error):
    def action():
        raise error

    return action


def test_help_and_version_are_answered(capsys):
    assert main(["--help"]) == 0
    assert "scan" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"policygen, version {__version__}\n"


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from policygen.cli.main import main; main(['--help']);"
        "print([m for m in ('pandas', 'clang', 'rich', 'pydantic', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize(
    ("group", "name"),
    [(group, name) for group in (COMMANDS, AUDIT, DB, HEADERS) for name in group.known],
)
def test_help_has_the_first_sentence_of_a_command_that_is_not_loaded(group, name):
    context = click.Context(group)
    listed = click.Command(name, help=group.known[name]).get_short_help_str(1000)
    assert group.get_command(context, name).get_short_help_str(1000) == listed
    assert group.get_command(context, name).name == name
    assert name in group.list_commands(context)


def test_help_lists_every_command_in_one_section_whole(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert sorted(sum(COMMANDS.sections.values(), ())) == COMMANDS.list_commands(None)
    for group in ([], ["audit"], ["bench"], ["db"], ["headers"]):
        assert main([*group, "--help"]) == 0
        assert not re.search(r"^  .*\.\.\.$", capsys.readouterr().out, re.M)


def test_bad_usage_is_2(capsys):
    assert main(["scan", "--no-such"]) == 2
    assert "No such option" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["aply"], "No such command 'aply'. (Did you mean 'apply'?)"),
        (["headers", "fetsh"], "No such command 'fetsh'. (Did you mean 'fetch'?)"),
        (["bench", "lst"], "No such command or path 'lst'. (Did you mean 'list'?)"),
        (["zzzz"], "No such command 'zzzz'.\n"),
    ],
)
def test_an_unknown_command_is_2_with_the_one_that_may_be_meant(capsys, argv, told):
    assert main(argv) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (
            ["db", "choose", "--why"],
            "Error: Option '--why' requires an argument: WORKLOAD\n"
            "  Explain the choice for one workload: cub.bench.reduce.sum T=I32.\n",
        ),
        (["resolve", "-R"], "Error: Option '-R' requires an argument: REGEX\n  Only names"),
        (["db", "choose", "--prefer-simple=3"], "'--prefer-simple' does not take a value.\n"),
    ],
)
def test_an_option_without_its_argument_says_which_it_needs(capsys, argv, told):
    assert main(argv) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("outcome", [0, 1])
def test_a_command_tells_its_status(command, outcome):
    command(lambda: outcome)
    assert main(["demo"]) == outcome


def test_interruption_is_130_without_words(command, capsys):
    command(fail(KeyboardInterrupt()))
    assert main(["demo"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_bug_is_one_message_with_its_details_in_a_file(command, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path))
    command(fail(ZeroDivisionError("by zero")))
    assert main(["demo"]) == 70
    log = tmp_path / "error.log"
    assert capsys.readouterr().err == (
        "policygen: internal error: ZeroDivisionError: by zero\n"
        f"  the details are in {log}; please report them\n"
    )
    assert "Traceback" in log.read_text()
    log.unlink()
    log.mkdir()
    assert main(["demo"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_current_folder_that_is_gone_is_told(capsys, monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["scan"]) == 2
    assert "the current folder does not exist any more" in capsys.readouterr().err
    os.chdir(tmp_path)


@pytest.mark.parametrize("command", ["scan --json", "demo"])
def test_a_reader_that_has_seen_enough_is_no_failure(command):
    mini = rendering.folder("cub_headers") / "mini"
    pipe = f"{sys.executable} -m policygen {command} --cub {mini} | head -c 10"
    pipe = ["bash", "-c", f"{pipe}; echo ${{PIPESTATUS[0]}}"]
    done = subprocess.run(pipe, check=True, capture_output=True, text=True)
    assert done.stdout.endswith("0\n")
    assert done.stderr == ""
