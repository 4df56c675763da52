"""What reaches a terminal: our own colours, and no other escape sequence."""

import io
import sys

import click
import pytest
from rich.table import Table
from rich.text import Text

from policygen.cli.apply import print_diff
from policygen.cli.main import main
from policygen.report import console
from policygen.report.blocks import Note
from policygen.report.console import ShownStream, raw, shown
from policygen.report.terminal import Terminal

HOSTILE = "a\x1b[8mb\x07\x9b2J\u202ec\u2028[red]d[/red]"
SEEN = "a\\x1b[8mb\\x07\\x9b2J\\u202ec\\u2028[red]d[/red]"


class Teletype(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def teletype(monkeypatch):
    """A terminal with colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    return Teletype()


def test_text_and_cells_are_shown_and_styles_are_ours(teletype):
    out = Terminal(teletype)
    out.print(HOSTILE, style="red")
    assert teletype.getvalue() == f"\x1b[31m{SEEN}\x1b[0m\n"


def test_one_text_is_one_line(teletype):
    Terminal(teletype).print("H200\npolicygen: all is fine", style="red")
    assert teletype.getvalue() == "\x1b[31mH200\\x0apolicygen: all is fine\x1b[0m\n"


def test_cells_of_a_table_are_shown(teletype):
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(HOSTILE, "x\ny")
    Terminal(teletype).print(table)
    assert teletype.getvalue().split() == [SEEN, "x\\x0ay"]


def test_a_text_that_was_made_elsewhere_is_shown_too(teletype):
    out = Terminal(teletype)
    out.print(Text("a\x1b[2J\nb\x9b"))
    out.write([Note("c\rd\x0b", "bold")])
    assert teletype.getvalue() == "a\\x1b[2J\nb\\x9b\n\x1b[1mc\\x0dd\\x0b\x1b[0m\n"


def test_whoever_writes_to_the_streams_shows_text(capsys):
    before = sys.stdout, sys.stderr
    with shown():
        click.echo(HOSTILE, color=True)
        sys.stdout.write("half \ud800\n")
        sys.stderr.write(f"{HOSTILE}\n")
        click.echo("lines\n\tstay", err=True)
        assert not sys.stdout.isatty()
        assert not hasattr(sys.stdout, "buffer")
        assert sys.stdout.encoding == before[0].encoding
        with shown():
            assert raw(sys.stdout) is before[0]
    assert (sys.stdout, sys.stderr) == before
    captured = capsys.readouterr()
    assert captured.out == f"{SEEN}\nhalf \\ud800\n"
    assert captured.err == f"{SEEN}\nlines\n\tstay\n"


def test_a_stream_that_was_replaced_meanwhile_is_left_alone(monkeypatch):
    other = io.StringIO()
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    with shown():
        sys.stdout = other
    assert sys.stdout is other


def test_a_stream_that_cannot_tell_letters_from_bytes_is_no_way_around(monkeypatch):
    """click would write bytes to the buffer of a stream whose encoding is ASCII."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", ShownStream(stream))
    click.echo("\x1b[2J", color=True)
    assert stream.buffer.getvalue() == b"\\x1b[2J\n"


def test_consoles_write_behind_the_streams_that_show(monkeypatch, teletype):
    monkeypatch.setattr(sys, "stdout", ShownStream(teletype))
    monkeypatch.setattr(sys, "stderr", ShownStream(teletype))
    console.results().print("a\x1b", style="red")
    console.messages().print("b\x1b", style="red")
    assert teletype.getvalue() == "\x1b[31ma\\x1b\x1b[0m\n\x1b[31mb\\x1b\x1b[0m\n"


def test_a_diff_is_shown_on_a_terminal_and_is_bytes_elsewhere(monkeypatch, teletype):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    diff = "@@ -1 +1 @@\n-\x1b[2J\n"
    teletype.buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", ShownStream(teletype))
    print_diff(diff)
    assert teletype.buffer.getvalue() == (b"\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-\\x1b[2J\x1b[0m\n")
    file = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", ShownStream(file))
    print_diff(diff)
    assert file.buffer.getvalue() == diff.encode()


def test_an_error_shows_the_name_of_a_file_and_begins_no_line_with_it(capsys, tmp_path):
    path = tmp_path / "a\x1bc\npolicygen: all is fine\u202e.db"
    assert main(["db", "top", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"policygen: error: {tmp_path}/a\\x1bc\n"
        "  policygen: all is fine\\u202e.db: cannot be read: No such file or directory\n"
    )
