"""What is told while a command works: on a terminal, piped, and when it is interrupted."""

import io
import re
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import click
import pytest

from policygen.app import apply
from policygen.app.apply import UNTOUCHED
from policygen.cli import demo, progress
from policygen.cli.groups import COMMANDS
from policygen.cli.main import main
from policygen.cli.progress import EVERY, ProgressReporter, spelled
from policygen.model.searches import SearchEvent
from policygen.process import Stopped, interrupt_messages, stopping
from policygen.report.console import shown
from policygen.report.progress import SearchProgress
from policygen.steps import HowFar, counted, follow, whole
from policygen.store.replacement import Change
from policygen.trees import fetched

ASK, BUILD = "asking the compiler", "compiling kernels"
START = "\r\x1b[K"


class Clock:
    """A clock that is set."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return Clock()


def teller(clock, *, live):
    return ProgressReporter(io.StringIO(), live, clock)


def test_a_terminal_has_one_line_with_what_runs_and_how_long_it_takes(clock):
    tell = teller(clock, live=True)
    tell(HowFar(BUILD, 0, 40, ("scan",), is_whole=True))
    clock.now += 10
    tell(HowFar(BUILD, 20, 40, ("reduce", "topk", "find"), is_whole=True))
    assert tell.stream.getvalue().split(START) == [
        "",
        f"·········· 0/40 {BUILD}: scan",
        f"█████····· 20/40 {BUILD}, 2.0/s, 0:10 left: reduce +2",
    ]
    tell(HowFar(BUILD, 40, 40, is_whole=True))
    assert tell.stream.getvalue().endswith(START)
    assert "\n" not in tell.stream.getvalue()


def test_a_terminal_is_not_drawn_on_for_each_of_thousands(clock):
    tell = teller(clock, live=True)
    for done in range(1, 1001):
        clock.now += 0.001
        tell(HowFar(ASK, done, 1001, ("scan",)))
    assert tell.stream.getvalue().count(START) <= 11


def test_the_rate_is_that_of_the_last_minute(clock):
    """What was in the cache is done at once, and says nothing of what is to come."""
    tell = teller(clock, live=True)
    tell(HowFar(BUILD, 0, 300, is_whole=True))
    tell(HowFar(BUILD, 200, 300, is_whole=True))
    for done in range(201, 231):
        clock.now += 4
        tell(HowFar(BUILD, done, 300, is_whole=True))
    last = tell.stream.getvalue().split(START)[-1]
    assert last == f"███████··· 230/300 {BUILD}, 4.0 s each, 4:40 left"


def test_what_is_asked_one_after_the_other_is_one_phase(clock):
    tell = teller(clock, live=True)
    for _ in range(11):
        clock.now += 1
        tell(HowFar(ASK, 0, 1, ("radix_sort",)))
        tell(HowFar(ASK, 1, 1))
    clock.now += 1
    tell(HowFar(ASK, 0, 1, ("radix_sort",)))
    last = tell.stream.getvalue().split(START)[-1]
    assert last == "asking the compiler, 11 done, 1.0/s: radix_sort"
    tell(HowFar("compiling kernels", 0, 7))
    clock.now += 1
    tell(HowFar("compiling kernels", 0, 7))
    assert tell.stream.getvalue().endswith("·········· 0/7 compiling kernels, 0:01 so far")


@pytest.mark.parametrize("live", [True, False])
def test_a_total_does_not_grow_and_nothing_is_estimated_from_it(clock, live):
    """`1/2`, `2/3`, `3/4`, each with a time left, was the total of the calls until then."""
    tell = teller(clock, live=live)
    for total in (2, 1, 1, 3):
        for done in range(total):
            tell(HowFar(ASK, done, total, ("scan",)))
            clock.now += 10
        tell(HowFar(ASK, total, total))
    rows = [row for row in re.split(r"\r\x1b\[K|\n", tell.stream.getvalue()) if row]
    assert {*re.findall(r"\d+/(\d+) ", tell.stream.getvalue())} == {"2"}
    assert rows[-1] == f"{ASK}, 6 done, 10.0 s each: scan"
    # The first part of a phase does not know how many follow, either.
    assert [row for row in rows if " left" in row] == []


def test_a_line_is_no_longer_than_the_terminal_and_names_are_shown(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    tell = teller(clock, live=True)
    tell(HowFar(ASK, 0, 9, ("a\x1b[2J" + "b" * 90,)))
    (line,) = tell.stream.getvalue().split(START)[1:]
    assert line == f"·········· 0/9 {ASK}: a\\x1"[:39]
    assert len(line) == 39


def test_no_color_is_no_escape(clock, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    tell = teller(clock, live=True)
    tell(HowFar(ASK, 1, 2))
    tell(HowFar(ASK, 2, 2))
    assert "\x1b" not in tell.stream.getvalue()
    assert tell.stream.getvalue().endswith("\r")


def test_piped_there_is_a_line_every_few_seconds_and_none_for_what_is_done_sooner(clock):
    tell = teller(clock, live=False)
    for number in range(11):
        tell(HowFar(ASK, 0, 1, ("radix_sort",)))
        clock.now += 0.4
        tell(HowFar(ASK, 1, 1))
        assert tell.stream.getvalue() == "", number
    for done in range(600):
        clock.now += 0.1
        tell(HowFar(BUILD, done, 1000, ("scan",), is_whole=True))
    rows = tell.stream.getvalue().splitlines()
    assert len(rows) <= 64 / EVERY
    assert rows[0] == "5/1000 compiling kernels: scan"
    assert re.fullmatch(r"\d+/1000 compiling kernels, 10.0/s, \d:\d\d left: scan", rows[-1])
    assert "\r" not in tell.stream.getvalue()


def test_hours_have_dozens_of_lines_and_no_hundreds(clock):
    tell = teller(clock, live=False)
    for _ in range(4 * 3600):
        clock.now += 1
        tell(HowFar("compiling kernels", 1, 2, ("scan",)))
    assert 50 < len(tell.stream.getvalue().splitlines()) < 100


def test_a_download_is_said_on_a_line_of_its_own_where_nobody_looks(clock):
    piped, live = (teller(clock, live=one) for one in (False, True))
    for tell in (piped, live):
        tell.say("toy==1.0: downloading")
        tell.say("toy==1.0: unpacking")
        tell.clear()
    assert piped.stream.getvalue() == "toy==1.0: downloading\ntoy==1.0: unpacking\n"
    assert live.stream.getvalue() == (
        f"{START}toy==1.0: downloading{START}toy==1.0: unpacking{START}"
    )


def test_a_warning_has_a_line_of_its_own(clock, monkeypatch):
    tell = teller(clock, live=True)
    monkeypatch.setattr(progress, "_teller", tell)
    monkeypatch.setattr("sys.stderr", tell.stream)
    tell(HowFar(ASK, 1, 2))
    with shown():
        progress.warn("so it is")
    assert tell.stream.getvalue().endswith(f"{START}policygen: warning: so it is\n")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0:00"), (7, "0:07"), (725, "12:05"), (3760, "1:02:40")]
)
def test_times_are_told_as_a_clock_has_them(seconds, text):
    assert spelled(seconds) == text


def futures(done, left):
    made = {}
    for number in range(done + left):
        future = Future()
        if number < done:
            future.set_result(number)
        made[future] = f"unit {number}"
    return made


def test_who_waits_is_told_when_a_phase_begins_and_ends():
    told = []
    with ThreadPoolExecutor(2) as pool:
        follow({pool.submit(int): str(n) for n in range(5)}, ASK, told.append)
    assert (told[0].done, told[-1]) == (0, HowFar(ASK, 5, 5))
    assert {step.total for step in told} == {5}


def test_what_is_whole_says_so():
    told = []
    with ThreadPoolExecutor(2) as pool:
        follow({pool.submit(int): "0"}, BUILD, whole(told.append))
    assert [*counted("ab", BUILD, whole(told.append))] == ["a", "b"]
    assert {step.is_whole for step in told} == {True}
    assert whole(None) is None


def test_the_first_failure_ends_it():
    failed = Future()
    failed.set_exception(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        follow({failed: "one", **futures(0, 3)}, ASK, None)


def stop_at_once(_step):
    raise KeyboardInterrupt


def test_an_interrupt_says_what_is_done_and_kept():
    def stop(step):
        if step.done:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as caught:
        follow(futures(3, 4), "compiling kernels", stop)
    assert interrupt_messages(caught.value) == (
        "3 of 7 are done and kept (compiling kernels); the same command resumes there.",
    )
    with pytest.raises(Stopped) as caught:
        follow(futures(0, 2), "x", stop_at_once)
    assert interrupt_messages(caught.value) == (
        "Nothing is done yet (x); run the same command again.",
    )
    with pytest.raises(Stopped) as caught:
        follow(futures(1, 2), "x", stop)
    assert interrupt_messages(caught.value)[0].startswith("1 of 3 is done and kept (x); ")


def test_who_is_interrupted_inside_is_heard_first():
    def work():
        with stopping(lambda: "outer"), stopping(lambda: ""), stopping(lambda: "inner"):
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as caught:
        work()
    assert interrupt_messages(caught.value) == ("inner", "outer")
    abort = click.Abort()
    abort.__cause__ = caught.value
    assert interrupt_messages(abort) == ("inner", "outer")
    assert interrupt_messages(KeyboardInterrupt()) == ()


def test_what_an_interrupted_apply_leaves_is_looked_at(tmp_path):
    changes = [Change(tmp_path / name, b"old", b"new") for name in ("a", "b")]
    for now, words in (
        ("old old", UNTOUCHED),
        ("new new", "The headers are written; policygen undo restores them."),
        (
            "new old",
            "1 of 2 headers are written; policygen undo restores them, policygen apply --finish"
            " completes the apply.",
        ),
    ):
        for change, text in zip(changes, now.split(), strict=True):
            change.path.write_text(text)
        assert apply._interrupted_state(changes) == words


def test_trees_that_were_fetched_before_an_interrupt_are_counted(tmp_path, monkeypatch):
    def fetch(version, *_, **__):
        if version == "2":
            raise KeyboardInterrupt
        return version

    monkeypatch.setattr(fetched, "fetch", fetch)
    words = "1 of 3 trees were fetched and are kept; the same command fetches the rest."
    for versions, told in (
        ("123", words),
        ("2", "Nothing was fetched yet; run the same command again."),
    ):
        with pytest.raises(Stopped) as caught:
            fetched.fetch_all(versions, tmp_path, print)
        assert interrupt_messages(caught.value) == (told,)


@pytest.fixture
def interrupted(monkeypatch):
    """A command that is interrupted; `words` are what it says."""

    def make(*words):
        @click.command("stop")
        def stop():
            raise Stopped(*words) if words else KeyboardInterrupt

        monkeypatch.setitem(COMMANDS.commands, "stop", stop)

    return make


def test_ctrl_c_tells_how_to_go_on_and_has_its_status(interrupted, capsys):
    interrupted("3 of 7 are done, and are kept.", "No header is written.")
    assert main(["stop"]) == 130
    assert capsys.readouterr() == (
        "",
        "\npolicygen: interrupted\n  3 of 7 are done, and are kept.\n  No header is written.\n",
    )
    interrupted()
    assert main(["stop"]) == 130
    assert (
        capsys.readouterr().err
        == "\npolicygen: interrupted\n  Run the same command again to start over.\n"
    )


def test_a_demo_that_is_interrupted_tells_what_takes_it_back(interrupted, capsys, monkeypatch):
    interrupted("inside")
    folder = Path("a demo")
    monkeypatch.setattr(demo, "demo_steps", lambda *_: iter([("Stop", ["stop"])]))
    assert main(["demo", "--folder", str(folder)]) == 130
    assert capsys.readouterr().err.splitlines()[-3:] == [
        "policygen: interrupted",
        "  inside",
        "  The demo's files are in a demo. To start over: policygen demo",
    ]
    assert demo._undo_hint(["plan"], folder) == ()
    assert demo._undo_hint(["verify-sass", "-q"], folder) == (
        "To take back what it wrote: policygen undo --store 'a demo/policygen.db'",
    )


def test_a_search_tells_of_its_batches_unless_it_shall_be_quiet():
    counts = {"tried": 3, "distinct": 4, "failed": 1, "wrong": 0}
    event = SearchEvent(
        event="batch",
        at=65,
        benchmark="cub.bench.a",
        workload={"T": "I8"},
        rung="sharper",
        strategy="local",
        left=9,
        **counts,
    )
    streams = {quiet: io.StringIO() for quiet in (False, True)}
    for quiet, stream in streams.items():
        SearchProgress(stream, json=False, quiet=quiet)(event)
    assert streams[True].getvalue() == ""
    words = "2 sharper, batch: 3 of 4 tried, 1 failed, 0 wrong; 0:09 left"
    assert streams[False].getvalue() == f"1:05 cub.bench.a T=I8 {words}\n"
