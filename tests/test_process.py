"""Programs that are started end with what started them, and are told little."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread

import pytest

from policygen import process
from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.process import ending, output, run, threads, workers_of

ROOT = Path(process.__file__).parent
SLEEP = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"]
DEAF = (
    "import os, pathlib, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\n"
    "time.sleep(60)\n"
)
"""Does not end when it is asked to; writes who it is."""
LEAVING = (
    "import subprocess, sys, pathlib, time\n"
    "child = subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1]])\n"
    "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)\n"
    "print('done')\n"
)
"""Ends at once, and leaves one behind that holds its output open."""


@pytest.fixture(autouse=True)
def grace(monkeypatch):
    monkeypatch.setattr(process, "GRACE", 0.3)


def wait_for(path):
    began = time.monotonic()
    while not (path.exists() and path.read_text()):
        assert time.monotonic() - began < 30
        time.sleep(0.01)
    return int(path.read_text())


def gone(pid):
    """A zombie whose parent is gone is taken away by init, some time later."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def soon(condition):
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > 10:
            return False
        time.sleep(0.01)
    return True


def in_thread(work):
    caught = []

    def body():
        try:
            work()
        except ProcessError as error:
            caught.append(error)

    thread = Thread(target=body)
    thread.start()
    return thread, caught


@pytest.mark.parametrize("deaf", [False, True])
def test_what_another_thread_runs_is_ended(tmp_path, deaf):
    pid = tmp_path / "pid"
    code = DEAF if deaf else DEAF.replace("SIG_IGN", "SIG_DFL")
    thread, caught = in_thread(lambda: run([sys.executable, "-c", code, str(pid)], install=""))
    started = wait_for(pid)
    began = time.monotonic()
    with ending():
        thread.join(30)
    assert time.monotonic() - began < 30
    (error,) = caught
    assert error.status == (-signal.SIGKILL if deaf else -signal.SIGTERM)
    assert gone(started)


def leads_deaf_one(pid):
    """The command of a program that ends when it is asked to, and whose own child does not."""
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1]])\n"
        "time.sleep(60)\n"
    )
    return [sys.executable, "-c", code, str(pid), DEAF]


def test_what_a_program_started_is_killed_with_it_when_only_that_is_deaf(tmp_path):
    pid = tmp_path / "pid"
    thread, caught = in_thread(lambda: run(leads_deaf_one(pid), install=""))
    started = wait_for(pid)
    began = time.monotonic()
    with ending():
        thread.join(30)
    assert time.monotonic() - began < 30
    assert [error.status for error in caught] == [-signal.SIGTERM]
    assert soon(lambda: gone(started))


@pytest.mark.slow
def test_a_deaf_program_has_no_longer_than_the_limit_and_the_grace(tmp_path):
    pid = tmp_path / "pid"
    began = time.monotonic()
    for command in ([sys.executable, "-c", DEAF, str(pid)], leads_deaf_one(pid)):
        with pytest.raises(ProcessError, match="it did not finish within 2 seconds"):
            run(command, install="", limit=2)
        assert soon(lambda: gone(wait_for(pid)))
    assert time.monotonic() - began < 45


def test_no_program_is_waited_for_without_an_end(monkeypatch):
    """Where nobody says how long it may take."""
    assert process.LIMIT <= 600
    monkeypatch.setitem(process.output.__kwdefaults__, "limit", 0.5)
    with pytest.raises(ProcessError, match=r"it did not finish within 0\.5 seconds"):
        run(["sleep", "60"], install="")


def test_nothing_starts_while_all_is_ended():
    with ending(), pytest.raises(ProcessError) as caught:
        run(["true"], install="")
    assert str(caught.value).endswith("true\n  policygen is ending")
    assert run(["true"], install="") == ""


def test_a_program_that_ends_takes_what_it_left_behind_with_it(tmp_path):
    """What holds the output open was waited for, for as long as it ran."""
    pid = tmp_path / "pid"
    began = time.monotonic()
    assert run([sys.executable, "-c", LEAVING, str(pid), DEAF], install="") == "done\n"
    assert time.monotonic() - began < 45
    assert soon(lambda: gone(wait_for(pid)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_program_that_does_not_want_to_end(tmp_path, number):
    pids = [tmp_path / name for name in ("one", "other")]
    code = (
        "import signal, sys; from policygen import process\n"
        "signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
        "process.GRACE = 0.3\n"
        "process.run([sys.executable, '-c', *sys.argv[1:]], install='')"
    )
    both = (
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {DEAF!r}, sys.argv[2]])\n"
    )
    command = [sys.executable, "-c", code, both + DEAF, *map(str, pids)]
    policygen = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    started = [wait_for(path) for path in pids]
    began = time.monotonic()
    policygen.send_signal(number)
    assert policygen.wait(10) != 0
    assert time.monotonic() - began < 30
    assert soon(lambda: all(map(gone, started)))


def test_a_program_ends_when_what_waits_for_it_fails(tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    pid = tmp_path / "pid"
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        Thread(target=lambda: (wait_for(pid), os.kill(os.getpid(), signal.SIGALRM))).start()
        with pytest.raises(KeyboardInterrupt):
            run([sys.executable, "-c", DEAF, str(pid)], install="")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert gone(wait_for(pid))


def test_threads_that_fail_leave_nothing(tmp_path):
    pid = tmp_path / "pid"
    command = [sys.executable, "-c", DEAF, str(pid)]
    jobs = []

    def work():
        with threads(1) as pool:
            jobs.extend(pool.submit(run, command, install="") for _ in range(2))
            wait_for(pid)
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - began < 45
    first, second = jobs
    assert first.exception().status == -signal.SIGKILL
    assert second.cancelled()
    assert soon(lambda: gone(wait_for(pid)))


@pytest.mark.parametrize(
    ("allowed", "quota", "expected"),
    [(16, None, 16), (16, "max 100000", 16), (16, "250000 100000", 3), (2, "800000 100000", 2)],
)
def test_only_cores_that_this_process_may_use_count(
    monkeypatch, tmp_path, allowed, quota, expected
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(allowed))
    monkeypatch.setattr(process, "QUOTA", tmp_path / "cpu.max")
    if quota:
        process.QUOTA.write_text(f"{quota}\n")
    assert process.cores() == expected


@pytest.mark.parametrize(
    ("given", "cores", "memory", "expected"),
    [
        (None, 8, 100 << 30, 8),
        (None, 8, 3 << 30, 3),
        (None, 8, 100 << 20, 1),
        (5, 2, 1, 5),
    ],
)
def test_as_many_compile_at_once_as_cores_and_memory_allow(
    monkeypatch, given, cores, memory, expected
):
    monkeypatch.setattr(process, "cores", lambda: cores)
    monkeypatch.setattr(process, "_available_memory", lambda: memory)
    with threads(workers_of(given)) as pool:
        assert pool._max_workers == expected


def test_memory_is_what_the_system_tells(monkeypatch, tmp_path):
    known = process._available_memory()
    assert known > 1 << 26
    monkeypatch.setattr(process, "MEMINFO", tmp_path / "absent")
    assert process._available_memory() > 1 << 26


def test_a_program_has_as_long_as_it_is_given():
    with pytest.raises(ProcessError) as caught:
        output(SLEEP, limit=0.2, install="", remedy="Do not.")
    assert caught.value.status == -signal.SIGTERM
    assert str(caught.value).endswith("\n  it did not finish within 0.2 seconds\n  Do not.")


def test_a_program_that_is_absent_is_named():
    with pytest.raises(MissingToolError, match="no-such-program"):
        run(["no-such-program"], install="Install it.")


def test_a_program_that_is_none_is_named(tmp_path):
    (tmp_path / "empty").write_text("no program\n")
    with pytest.raises(MissingToolError) as caught:
        run([str(tmp_path / "empty")], install="Install it.")
    assert str(caught.value) == f"{tmp_path}/empty is missing\n  Install it."


def test_a_program_works_in_a_folder_of_its_own_that_goes_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "import os; open('left', 'w'); print(os.getcwd()); print(os.environ['TMPDIR'])"
    own, temporary = run([sys.executable, "-c", code], install="").splitlines()
    assert own == temporary
    assert not Path(own).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_program_may_work_in_a_folder_that_is_given(tmp_path):
    code = "import os; open('made', 'w'); print(os.environ['TMPDIR'])"
    assert run([sys.executable, "-c", code], folder=tmp_path, install="") == f"{tmp_path}\n"
    assert (tmp_path / "made").exists()


def test_where_no_folder_can_be_made_is_told(monkeypatch):
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/dev/null"])
    for work in (lambda: run(["true"], install=""), lambda: process.Child(["true"], install="")):
        monkeypatch.setattr(tempfile, "tempdir", None)
        with pytest.raises(InputError) as caught:
            work()
        assert str(caught.value) == (
            "cannot create a folder for other programs: No usable temporary directory found in"
            " ['/dev/null']\n"
            "  Set TMPDIR to a folder that can be written."
        )


STARTING = re.compile(
    r"\b(?:import|from) (?:subprocess|multiprocessing|pty)\b|\bProcessPoolExecutor\b"
    r"|\bos\.(?:system|popen|fork\w*|exec[lv]\w*|spawn\w*|posix_spawn\w*|startfile)\b"
    r"|\basyncio\.(?:create_)?subprocess|\bcreate_subprocess_\w+"
)


def test_programs_are_started_in_one_place():
    found = {
        path.relative_to(ROOT).as_posix(): words
        for path in sorted(ROOT.rglob("*.py"))
        if (words := STARTING.findall(path.read_text("utf-8")))
    }
    assert found == {"process.py": ["import subprocess"]}
