"""Headers are parsed in processes of their own: what ends or stops one of them is refused."""

import os
import signal
import socket
import threading
import time

import pytest

from policygen.errors import SourceError
from policygen.headers import worker, workers
from policygen.headers.scan import read_changed, scan_headers
from policygen.headers.text import SECONDS, too_long
from policygen.headers.workers import Request, Worker, read_all
from policygen.model.tuning import TuningHeader
from tests.headers.headers import MINI, wrap

FINE = wrap("template <> struct sm90_tuning<int, 4> { static constexpr int items = 7; };")
# Other tests leave threads behind.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
REMEDY = "\n  No header of CUB is like this."


ALONE = workers._is_single_threaded


@pytest.fixture(autouse=True)
def copies(monkeypatch):
    """Workers that are copies of this process, with what a test has set in it."""
    monkeypatch.setattr(workers, "_is_single_threaded", lambda: True)
    workers.close_all()
    yield
    workers.close_all()


def request(data, name="tuning_x.cuh"):
    return Request(name, f"tree/{name}", data, {})


def told(data):
    (found,) = read_all([request(data)])
    return found if isinstance(found, TuningHeader) else str(found).partition("\n")[0]


def entries(header):
    return [entry.values for family in header.families for entry in family.entries]


def test_a_header_is_read_as_in_this_process():
    found = told(FINE)
    assert entries(found) == [{}, {"items": 7}]


MACROS = b"#define X0 1 +\n" + b"".join(
    b"#define X%d X%d X%d\n" % (i, i - 1, i - 1) for i in range(1, 40)
)
HANGS = {
    "words without a sign, which clang tries in cubic time": (
        b"template <> struct " + b"A B " * 20_000 + b"{};",
        "tree/tuning_x.cuh:4:13: more than 100 words without a sign between",
    ),
    "conditions within each other": (
        b"#if 1\n" * 4_000 + b"#endif\n" * 4_000,
        "tree/tuning_x.cuh:104:1: more than 100 #if within each other",
    ),
    "branches of one condition": (
        b"#if 1\n" + b"#elif 1\n" * 4_000 + b"#endif\n",
        "tree/tuning_x.cuh:105:1: more than 100 branches of one #if",
    ),
    "brackets within each other": (
        b"template <> struct sm90_tuning<" + b"(" * 9_000 + b")" * 9_000 + b"> {};",
        "tree/tuning_x.cuh:4:61: more than 200 brackets within each other",
    ),
    "a macro that doubles": (
        MACROS + b"X39",
        "tree/tuning_x.cuh:44:1: X39 is a macro of line 43: cannot read what it expands to",
    ),
    "a macro that doubles in a condition": (MACROS + b"#if X39\n#endif", None),
    "a function that takes for ever": (
        b"constexpr int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
        b"template <> struct sm90_tuning<int, 1> { static constexpr int a = f(70) + 1; };",
        None,
    ),
    "an include that clang follows": (
        b'#import "/dev/zero"\n',
        "tree/tuning_x.cuh:4:1: cannot tell what this includes",
    ),
    "an include in two lines": (
        b'#inc\\\nlude_next "/dev/zero"\n',
        "tree/tuning_x.cuh:4:1: cannot tell what this includes",
    ),
    "forty thousand entries": (
        b"".join(
            b"template <> struct sm90_tuning<T%d, 1> { static constexpr int a = 1; };\n" % i
            for i in range(40_000)
        ),
        None,
    ),
}


@pytest.mark.parametrize("name", HANGS)
def test_what_would_take_minutes_is_refused_in_seconds(name, monkeypatch):
    """By what is seen before clang reads it, or by the clock: of that half a second is enough.

    Where the place is known no clock is asked: a copy of these tests is slow on a busy machine.
    """
    data, message = HANGS[name]
    monkeypatch.setattr(worker, "SECONDS", 60.0 if message else 0.5)
    found = told(wrap("@").replace(b"@", data))
    assert isinstance(found, str)
    assert found == (message or f"tree/tuning_x.cuh:1:1: {too_long(SECONDS)}")
    monkeypatch.setattr(worker, "SECONDS", 60.0)
    workers.close_all()  # the next worker has the new limit, and is fine
    assert entries(told(FINE)) == [{}, {"items": 7}]


@pytest.mark.parametrize(
    "directive",
    [
        '#line 271 "{}"',
        '# 271 "{}" 1',
        '#pragma GCC dependency "{}"',
        '#if __has_include("{}")\n#endif',
        '#pragma GCC \\\n dependency "{}"',
    ],
)
def test_a_directive_opens_no_file(tmp_path, directive):
    """`/dev/zero` never ends, and a pipe never begins."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", tmp_path / "pipe"):
        data = f"{directive.format(name)}\n".encode() + FINE
        assert entries(told(data)) == [{}, {"items": 7}]


def test_a_worker_that_takes_too_much_of_the_processor_is_ended(monkeypatch):
    monkeypatch.setattr(worker, "SECONDS", 0.2)
    monkeypatch.setattr(workers, "SECONDS", 0.2)
    data, _ = HANGS["forty thousand entries"]
    assert told(wrap("@").replace(b"@", data)) == (
        "tree/tuning_x.cuh:1:1: it takes more than 0.2 seconds of processor time to read"
    )


def test_a_worker_that_takes_too_much_memory_is_ended(monkeypatch):
    monkeypatch.setattr(worker, "MEMORY", 300 << 20)
    assert entries(told(FINE)) == [{}, {"items": 7}]
    data, _ = HANGS["a macro that doubles in a condition"]
    found = told(wrap("@").replace(b"@", data))
    assert found.startswith("tree/tuning_x.cuh:1:1: libclang ")


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (RecursionError, "it is nested too deeply to be read"),
        (MemoryError, "more than 1024 MiB of memory are needed to read it"),
    ],
)
def test_what_python_cannot_take_is_refused(monkeypatch, failure, message):
    monkeypatch.setattr("policygen.headers.reader.read_header", raising(failure()))
    answer = worker.answered("tuning_x.cuh", "tree/tuning_x.cuh", FINE, {})
    parsed = workers._parse_answer("tree/tuning_x.cuh", answer)
    assert str(parsed) == f"tree/tuning_x.cuh:1:1: {message}"
    assert told(FINE) == f"tree/tuning_x.cuh:1:1: {message}"


def test_a_mistake_of_ours_is_none_of_the_header(monkeypatch):
    monkeypatch.setattr("policygen.headers.reader.read_header", raising(ZeroDivisionError("ours")))
    answer = worker.answered("tuning_x.cuh", "tree/tuning_x.cuh", FINE, {})
    for ask in (lambda: workers._parse_answer("tree/tuning_x.cuh", answer), lambda: told(FINE)):
        with pytest.raises(RuntimeError, match=r"tree/tuning_x.cuh: Traceback[\s\S]*ours"):
            ask()


def raising(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_crash_is_a_refusal_and_the_worker_is_replaced(monkeypatch, how):
    monkeypatch.setattr(workers, "_is_single_threaded", lambda: how == "fork")
    one = Worker()
    workers._idle.append(one)
    assert entries(told(FINE)) == [{}, {"items": 7}]
    pid = one._pid
    os.kill(pid, signal.SIGSEGV)
    assert told(FINE) == "tree/tuning_x.cuh:1:1: libclang ends on it with status -11"
    assert entries(told(FINE)) == [{}, {"items": 7}]
    assert workers._idle[0]._pid != pid


def test_a_worker_that_only_waits_is_too_slow(monkeypatch):
    monkeypatch.setattr(workers, "WALL", 0.2)
    one = Worker()
    workers._idle.append(one)
    os.kill(one._pid, signal.SIGSTOP)
    assert str(read_all([request(FINE)]).__next__()) == (
        "tree/tuning_x.cuh:1:1: it takes more than 0.2 seconds to read" + REMEDY
    )
    assert workers._idle == []


def test_beside_other_threads_a_worker_is_a_program_of_its_own(monkeypatch):
    monkeypatch.setattr(workers, "_is_single_threaded", ALONE)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not workers._is_single_threaded()
        assert entries(told(FINE)) == [{}, {"items": 7}]
    finally:
        done.set()
        thread.join()


def test_where_threads_cannot_be_counted_a_worker_is_a_program(monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "TASKS", tmp_path / "none")
    assert not ALONE()


def test_a_worker_runs_nothing_of_the_current_folder(monkeypatch, tmp_path):
    for name in ("policygen", "socket", "json", "clang"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(workers, "_is_single_threaded", lambda: False)
    assert entries(told(FINE)) == [{}, {"items": 7}]
    assert not (tmp_path / "ran").exists()


def test_workers_are_used_again_and_answers_keep_their_order(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    names = [f"tuning_{i}.cuh" for i in range(9)]
    found = list(read_all([request(FINE, name) for name in names]))
    assert [header.name for header in found] == names
    known = {one._pid for one in workers._idle}
    assert len(known) == 3
    list(read_all([request(FINE)]))
    assert {one._pid for one in workers._idle} == known
    assert list(read_all([])) == []


def test_a_process_ends_with_the_line_to_it():
    one = Worker()
    one._line.close()
    assert os.waitpid(one._pid, 0)[1] == 0
    one._pid = 0
    assert one.close() == 0


def test_one_that_was_waited_for_is_closed_all_the_same():
    one = Worker()
    os.kill(one._pid, signal.SIGKILL)
    os.waitpid(one._pid, 0)
    assert one.close() == 0


def test_a_header_with_other_content_is_read_or_raises(tmp_path):
    path = MINI / "tuning_sift.cuh"
    assert read_changed(path, path.read_bytes()).name == path.name
    with pytest.raises(SourceError, match="never closed"):
        read_changed(path, b"namespace {")


def test_a_pipe_in_the_place_of_a_header_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "tuning_pipe.cuh")
    scanned = scan_headers([tmp_path / "tuning_pipe.cuh"])
    assert [str(error) for error in scanned.errors] == [
        f"{tmp_path}/tuning_pipe.cuh:1:1: not a regular file"
    ]


def test_the_far_side_answers_until_the_line_ends(monkeypatch):
    """What the process does, where it can be watched."""
    monkeypatch.setattr(worker, "limit_process", lambda: None)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        worker.send(
            ours, b"n.cuh", b"p", FINE, b"", b"n.cuh", b"p", b"namespace {", b"x", b"y", b""
        )
        worker.send(ours, b"n.cuh", b"p")  # and no more
        ours.shutdown(socket.SHUT_WR)
        worker.serve(theirs)
        assert (worker.receive(ours) or b"").startswith(b'+{"name":"n.cuh"')
        assert worker.receive(ours) == (
            b'-[1, 11, "\'{\' is never closed", "namespace {", 1, null]'
        )


def test_the_processes_make_no_files_and_no_core_dumps():
    pid = os.fork()
    if not pid:
        try:
            worker.limit_process()
            limits = [
                worker.resource.getrlimit(which)[0]
                for which in (worker.resource.RLIMIT_CORE, worker.resource.RLIMIT_FSIZE)
            ]
            os._exit(0 if limits == [0, 0] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_program_of_its_own_imports_nothing_of_the_current_folder(tmp_path, monkeypatch):
    canary = tmp_path / "ran"
    for name in ("pydantic", "policygen", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(canary)!r}, 'w')\nraise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(workers, "_is_single_threaded", lambda: False)
    assert entries(told(FINE)) == [{}, {"items": 7}]
    assert not canary.exists()


def test_one_that_falls_silent_and_does_not_end_is_killed(monkeypatch):
    def silent(line):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        line.close()
        time.sleep(60)

    monkeypatch.setattr(workers, "serve", silent)
    monkeypatch.setattr(workers, "_is_single_threaded", lambda: True)
    monkeypatch.setattr(workers, "GRACE", 0.2)
    one = Worker()
    began = time.monotonic()
    with pytest.raises(workers.EndedError, match="libclang ends on it with status -9"):
        one.ask(request(FINE))
    assert time.monotonic() - began < 30
    assert one.close() == 0
