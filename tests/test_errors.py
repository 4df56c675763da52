import pytest

from policygen.errors import (
    EditedError,
    EffectError,
    InputError,
    MissingToolError,
    Problems,
    ProcessError,
    SourceError,
)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("no such thing"), "no such thing"),
        (InputError("no such thing", "Make one."), "no such thing\n  Make one."),
        (SourceError("a.cuh", 3, 7, "odd"), "a.cuh:3:7: odd"),
        (
            SourceError("a.cuh", 3, 5, "odd", "int x = 1;", 3, "Do not."),
            "a.cuh:3:5: odd\n  int x = 1;\n      ^^^\n  Do not.",
        ),
        (SourceError("a.cuh", 1, 3, "odd", "\t\tx", 0), "a.cuh:1:3: odd\n  \t\tx\n  \t\t^"),
        (
            SourceError("a.cuh", 1, 3, "odd", "\x1bxy\u202ez", 2),
            "a.cuh:1:3: odd\n  \\x1bxy\\u202ez\n       ^^^^^^^",
        ),
        (
            SourceError("a.cuh", 1, 2, "odd", "a\rb", 1, "Do\nnot."),
            "a.cuh:1:2: odd\n  a\\x0db\n   ^^^^\n  Do\n  not.",
        ),
        (InputError("a\nb.db: odd", "one\ntwo"), "a\n  b.db: odd\n  one\n  two"),
        (InputError("rows:\n    a\n\nb"), "rows:\n    a\n\n  b"),
        (
            ProcessError(["a\nb"], 1, "one\x85two\u2028\n\nthree"),
            "command failed with status 1: a\n  b\n  one\x85two\u2028\n  \n  three",
        ),
        (
            EffectError(["a\nb"]),
            "the effect of the change differs from the plan; nothing was written\n  a\n  b",
        ),
        (MissingToolError("nvcc", "Install it."), "nvcc is missing\n  Install it."),
        (
            ProcessError(["pip", "x"], 4, "one\ntwo\n"),
            "command failed with status 4: pip x\n  one\n  two",
        ),
        (
            ProcessError(["pip", "x"], 4, "", "Try again."),
            "command failed with status 4: pip x\n  Try again.",
        ),
        (
            EditedError("a.cuh", "edited since", b"x\n", b"y\n", "Stop."),
            "a.cuh: edited since\n  @@ -1 +1 @@\n  -x\n  +y\n  Stop.",
        ),
        (
            EditedError("a.cuh", "edited since", b"", b"y\n" * 100),
            "a.cuh: edited since\n  @@ -0,0 +1,100 @@\n"
            + "  +y\n" * 39
            + "  ... and 61 more lines",
        ),
        (Problems([InputError("a"), InputError("b")]), "a\nb"),
    ],
)
def test_an_error_says_what_is_wrong_where_and_what_to_do(error, text):
    assert str(error) == text


def test_exit_status_tells_bad_input_from_a_missing_tool():
    assert InputError("x").exit_code == 2
    assert MissingToolError("x", "y").exit_code == 3
