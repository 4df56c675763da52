"""What `db import` says of files that tests write."""

from pathlib import Path

from tests.cli.tuned import run


def imported(capsys, *given, out="run.db"):
    status, printed, err = run(capsys, "db", "import", *given, "-o", out, "--force")
    assert (status, err) == (0, ""), err
    return printed


def refused(capsys, *given):
    status, out, err = run(capsys, "db", "import", *given, "-o", "run.db", "--force")
    assert (status, out) == (2, "")
    assert not Path("run.db").exists()
    return err.removeprefix("policygen: error: ")
