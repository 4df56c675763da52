"""What a shell offers; bash itself is asked, as a person would."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from policygen.cli.completing import VARIABLE, archs, benchmarks, versions
from policygen.cli.main import main
from tests.tiers import sampled, slow

BIN = Path(sys.executable).parent
ASK = """
eval "$(policygen completion bash)"
compopt() {{ echo "compopt $*"; }}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_policygen_completion policygen
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def environment(**more):
    found = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **more}
    found.pop(VARIABLE, None)
    return found


def offered(words, folder):
    """What the script answers in a real bash, whose last word is being typed."""
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK.format(words=words)],
        cwd=folder, env=environment(), check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


LINES = (
    ("policygen verify", ["verify-effect", "verify-performance", "verify-sass"]),
    ("policygen audit ''", ["coverage", "lint", "reach"]),
    ("policygen undo --st", ["--steps", "--store"]),
    ("policygen resolve --arch sm9", ["sm90"]),
    ("policygen resolve --arch sm80,sm9", ["sm80,sm90"]),
    ("policygen resolve -R cub.bench.partition.t", ["cub.bench.partition.three_way"]),
    ("policygen scan three", ["three_way_partition"]),
    ("policygen db i", ["import", "info"]),
    ("policygen db import x", ["compopt", "-o", "default"]),
    ("policygen headers path 3.0", ["3.0.1"]),
    ("policygen review --format h", ["html"]),
    ("policygen plan --db x", ["compopt", "-o", "default"]),
    ("policygen plan --cub x", ["compopt", "-o", "default"]),
    ("policygen verify-sass --save x", ["compopt", "-o", "dirnames"]),
    ("policygen bench x", ["compopt", "-o", "default"]),
    ("policygen bench ''", ["compopt", "-o", "default", "list", "new"]),
    ("policygen bench --ch", ["--check"]),
    ("policygen bench new --js", ["--json"]),
    ("policygen completion f", ["fish"]),
    ("policygen none", []),
)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "expected"), sampled(LINES, LINES[5], LINES[15]))
def test_bash_is_told_how_a_line_goes_on(words, expected, tmp_path):
    assert offered(words, tmp_path) == expected


def typed(line, folder, until):
    """What an interactive bash shows after a line is typed that ends with a tab."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe(
            "bash", ["bash", "--norc", "--noprofile", "-i"], environment(PS1="> ", TERM="dumb")
        )
    try:
        os.write(terminal, b"bind 'set enable-bracketed-paste off'; bind 'set bell-style none'\n")
        os.write(terminal, b'eval "$(policygen completion bash)"; echo re""ady\n')
        shown = read(terminal, rb"\nready")
        assert b"ready" in shown
        os.write(terminal, line)
        return read(terminal, until).decode()
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)


def read(terminal, until):
    """What is shown, up to a text or for a minute."""
    found, end = b"", time.monotonic() + 60
    while not re.search(until, found) and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            found += os.read(terminal, 4096)
    return found


@slow
def test_a_tab_completes_a_command_in_an_interactive_bash(tmp_path):
    assert "policygen verify-sass " in typed(b"policygen verify-s\t", tmp_path, rb"verify-sass ")


def test_a_tab_completes_a_file_where_a_file_is_wanted(tmp_path):
    (tmp_path / "my run.db").touch()
    shown = typed(b"policygen plan --db my\t", tmp_path, rb"my\\ run\.db")
    assert "my\\ run.db" in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_policygen_back(capsys, shell):
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert f"{VARIABLE}={shell}_complete" in out
    if program := shutil.which(shell):
        subprocess.run([program, "-n", "-c", out], check=True)


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        ("zsh", "plain\nverify-effect\nCheck that the last apply selects what it wrote"),
        ("fish", "plain,verify-effect\tCheck that the last apply selects what it wrote"),
    ],
)
def test_other_shells_get_the_first_sentences_too(capsys, monkeypatch, shell, expected):
    monkeypatch.setenv(VARIABLE, f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "policygen verify")
    monkeypatch.setenv("COMP_CWORD", "1" if shell == "zsh" else "verify")
    assert main([]) == 0
    assert capsys.readouterr().out.replace("plain,verify\n", "").startswith(expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("policygen resolve --arch sm80,sm9", "plain,sm80,sm90\n"),
        ("policygen scan three", "plain,three_way_partition\n"),
        ("policygen plan --db x", "file,x\n"),
        ("policygen headers path 3.0", "plain,3.0.1\n"),
    ],
)
def test_what_the_script_is_told(capsys, monkeypatch, words, expected):
    monkeypatch.setenv(VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert main([]) == 0
    assert capsys.readouterr() == (expected, "")


@pytest.mark.parametrize("asked", ["bash", "tcsh_complete", "bash_else"])
def test_what_no_script_of_ours_asks_is_bad_usage(capsys, monkeypatch, asked):
    monkeypatch.setenv(VARIABLE, asked)
    assert main(["demo"]) == 2
    assert capsys.readouterr().out == ""


def test_the_script_can_be_asked_for_as_click_has_it(capsys, monkeypatch):
    main(["completion", "bash"])
    script = capsys.readouterr().out
    monkeypatch.setenv(VARIABLE, "bash_source")
    assert main([]) == 0
    assert capsys.readouterr().out == script


def test_who_completes_is_told_no_notes(tmp_path):
    """What is printed while a line is typed would stand in it."""
    (tmp_path / "policygen.toml").touch()
    assert offered("policygen plan --cub x --arch sm13 --force", tmp_path) == ["--force"]


def test_names_are_loaded_without_what_is_heavy():
    code = (
        "import os, sys; os.environ |= {'_POLICYGEN_COMPLETE': 'bash_complete',"
        " 'COMP_WORDS': 'policygen ver', 'COMP_CWORD': '1'};"
        "from policygen.cli.main import main; main([]);"
        "print([m for m in ('pandas', 'clang', 'rich', 'pydantic', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("[]\n")
    assert "sm90" in archs()
    assert "cub.bench.scan.exclusive.sum" in benchmarks()
    assert "3.0.1" in versions()
