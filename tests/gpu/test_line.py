"""A line to a process, which may tell nonsense, or nothing."""

import pytest

from policygen.errors import MissingToolError
from policygen.gpu.device import GoneError, WorkerLine
from policygen.process import python


def line(program, **more):
    return WorkerLine(python("-c", program), more)


def test_lines_come_one_by_one_however_they_are_cut():
    program = (
        "import sys, time\n"
        "sys.stdin.readline()\n"
        "for part in ('{\"a\": 1}\\n{\"b', '\": 2}\\n', '{\"c\": 3}\\n'):\n"
        "    sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.05)\n"
        "sys.stdin.readline()"
    )
    one = line(program)
    one.send({"do": "facts"})
    assert [one.receive(300.0) for _ in range(3)] == [{"a": 1}, {"b": 2}, {"c": 3}]
    one.close()


def test_what_is_no_answer_ends_it():
    one = line("print('Hello')")
    with pytest.raises(GoneError, match="its output cannot be parsed"):
        one.receive(300.0)
    one.close()


def test_the_last_words_are_told():
    one = line("import sys; sys.exit('first\\nno \\x1b[2J GPU')")
    with pytest.raises(GoneError) as caught:
        one.receive(300.0)
    assert caught.value.words == "it ended with 1: no \\x1b[2J GPU"
    assert (caught.value.kind, caught.value.outside) == ("crash", False)
    one.send({"do": "facts"})  # nobody listens
    one.close()
    one.close()


def test_who_hangs_is_killed():
    one = line("import time; time.sleep(3600)")
    with pytest.raises(GoneError) as caught:
        one.receive(0.1)
    assert (caught.value.kind, caught.value.words) == (
        "hang",
        "it did not finish within 0.1 seconds",
    )
    one.close()


def test_it_is_told_more_of_the_environment():
    program = "import os; print('\"' + os.environ.get('CUDA_VISIBLE_DEVICES', 'none') + '\"')"
    for more, found in (({}, "none"), ({"CUDA_VISIBLE_DEVICES": "1"}, "1")):
        one = line(program, **more)
        assert one.receive(300.0) == found
        one.close()


def test_a_program_that_is_not_there_is_named(tmp_path):
    with pytest.raises(MissingToolError, match="no-such-python"):
        WorkerLine([str(tmp_path / "no-such-python")], {})
