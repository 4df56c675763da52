"""Programs that are started end with what started them."""

import subprocess
import sys
import time
from threading import Thread

import pytest

from policygen.errors import MissingToolError, ProcessError
from policygen.process import end_all, run

SLEEP = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"]


def test_what_another_thread_runs_is_ended():
    failed = []

    def work():
        with pytest.raises(ProcessError) as caught:
            run(SLEEP, install="")
        failed.append(caught.value)

    thread = Thread(target=work)
    thread.start()
    began = time.monotonic()
    while thread.is_alive() and time.monotonic() - began < 30:
        end_all()  # from before it starts until it ended
        thread.join(0.05)
    assert not thread.is_alive()
    assert len(failed) == 1


def test_an_interrupt_ends_the_program(monkeypatch):
    started = []
    real = subprocess.Popen.communicate

    def interrupted(self, given=None):
        if self not in started:
            started.append(self)
            raise KeyboardInterrupt
        return real(self, given)

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(SLEEP, install="")
    assert started[0].returncode == -15


def test_a_program_that_is_absent_is_named():
    with pytest.raises(MissingToolError, match="no-such-program"):
        run(["no-such-program"], install="Install it.")
