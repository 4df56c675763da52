import io
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygen.cli.apply import coloured, print_diff
from policygen.textdiff import unified

MANY = b"".join(b"line %d\n" % n for n in range(60))
PAIRS = {
    "LF": (b"a\nb\nc\n", b"a\nB\nc\n"),
    "CRLF": (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\nd\r\n"),
    "CRLF becomes LF": (b"a\r\nb\r\n", b"a\nb\r\n"),
    "no final newline": (b"a\nb", b"a\nc"),
    "a final newline comes": (b"a\nb", b"a\nb\n"),
    "a final newline goes": (b"a\nb\n", b"a\nb"),
    "a byte order mark": (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nc\n"),
    "a byte order mark goes": (b"\xef\xbb\xbfa\nb\n", b"a\nb\n"),
    "Latin-1": (b"caf\xe9\nb\n", b"caf\xe9\nc\xe8\n"),
    "other line ends": (
        "a\x0bb\x0c\x1c\u2028\x85\n".encode(),
        "a\x0bc\x0c\x1c\u2028\x85\n".encode(),
    ),
    "carriage returns alone": (b"a\rb\rc", b"a\rB\rc"),
    "from empty": (b"", b"a\nb\n"),
    "to empty": (b"a\nb\n", b""),
    "lines like a diff's": (b"-- a\n++ b\n@@ c\n", b"-- A\n++ B\n@@ C\ndiff --git\n"),
    "two places": (MANY, MANY.replace(b"line 7\n", b"").replace(b"line 50\n", b"50\n51\n")),
}


def applied(folder, path, before, diff):
    """What `git apply` makes of it, in a folder that is no repository."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(before)
    subprocess.run(
        ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=diff.encode("utf-8", "surrogateescape"),
        check=True,
        env={"GIT_CEILING_DIRECTORIES": str(folder.parent), "PATH": "/usr/bin:/bin"},
    )
    return (folder / path).read_bytes()


@pytest.mark.parametrize("path", ["cub/tuning.cuh", "a b/tü ning.cuh"])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_git_makes_the_same_of_a_diff(tmp_path, pair, path):
    before, after = pair
    assert applied(tmp_path, path, before, unified(path, before, after)) == after
    assert applied(tmp_path, path, after, unified(path, after, before)) == before


TEXT = st.lists(st.sampled_from([b"a", b"b\r", b"\xff", b"", b"-- x", b"\xc3\xa4"]), max_size=12)


@settings(max_examples=25, deadline=None)
@given(TEXT, TEXT)
def test_git_makes_the_same_of_any_diff(tmp_path_factory, before, after):
    old, new = b"\n".join(before), b"\n".join(after)
    if old != new:
        folder = tmp_path_factory.mktemp("git")
        assert applied(folder, "x", old, unified("x", old, new)) == new


def test_several_diffs_are_one(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    diff = unified("a", b"1", b"2") + unified("b", b"3\n", b"4\n")
    assert applied(tmp_path, "b", b"3\n", diff) == b"4\n"
    assert (tmp_path / "a").read_bytes() == b"2"


def test_a_diff_is_as_people_know_it():
    assert unified("cub/a.cuh", b"one\r\ntwo", b"one\r\n2") == (
        "diff --git a/cub/a.cuh b/cub/a.cuh\n"
        "--- a/cub/a.cuh\n"
        "+++ b/cub/a.cuh\n"
        "@@ -1,2 +1,2 @@\n"
        " one\r\n"
        "-two\n"
        "\\ No newline at end of file\n"
        "+2\n"
        "\\ No newline at end of file\n"
    )
    assert unified("a", b"x", b"x") == ""


def test_colours_follow_the_place_of_a_line():
    diff = unified("a", b"-- x\nsame\n", b"++ x\nsame\n") + unified("b", b"1\n", b"")
    bold, red, green, cyan, end = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
    assert coloured(diff) == (
        f"{bold}diff --git a/a b/a{end}\n{bold}--- a/a{end}\n{bold}+++ b/a{end}\n"
        f"{cyan}@@ -1,2 +1,2 @@{end}\n{red}--- x{end}\n{green}+++ x{end}\n same\n"
        f"{bold}diff --git a/b b/b{end}\n{bold}--- a/b{end}\n{bold}+++ b/b{end}\n"
        f"{cyan}@@ -1 +0,0 @@{end}\n{red}-1{end}\n"
    )
    assert coloured("") == ""


@pytest.mark.parametrize(
    ("variable", "colour"), [("FORCE_COLOR", True), ("NO_COLOR", False), ("NONE", False)]
)
def test_bytes_reach_standard_output_as_they_are(monkeypatch, variable, colour):
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, "1")
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    print_diff(unified("a", b"\xe9\r\n", b"\xc3\xa9\r\n"))
    written = out.buffer.getvalue()
    # A reader of colours sees what a terminal would not show.
    assert (b"\x1b[31m-\\xe9\\x0d\x1b[0m\n" in written) is colour
    assert (b"\n-\xe9\r\n+\xc3\xa9\r\n" in written) is not colour


def test_lines_that_are_frequent_are_paired_too():
    """difflib alone showed 400 lines of a CUB header for the 8 that differ."""
    entry = "struct s%d\n{\n  static constexpr int threads = %d;\n  int items = 7;\n};\n\n"
    before = "".join(entry % (n, 128 * (n % 2)) for n in range(100))
    after = before.replace(entry % (20, 0), entry % (20, 64) + "// 20\n")
    after = after.replace(entry % (70, 0), "// 70\n" + entry % (70, 64))
    rows = unified("x", before.encode(), after.encode()).splitlines()
    assert len([row for row in rows[3:] if row[0] in "+-"]) == 6
