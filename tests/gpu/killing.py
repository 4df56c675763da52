"""Kills what measures at a moment: moments are counted, so that each is hit on any machine."""

import itertools
import os
import signal
from contextlib import contextmanager

from policygen.gpu.database_writer import DatabaseWriter
from policygen.gpu.device import WorkerLine
from tests.store.killing import was_killed

KILLED = -signal.SIGKILL


class Moments:
    """Each line to or from a worker is one, and so is the time before, in and after each write."""

    def __init__(self, kill_at, kill):
        self._counter = itertools.count(1)
        self._kill_at, self._kill = kill_at, kill
        self.count = 0

    def pass_one(self, line=None):
        self.count = next(self._counter)
        if self.count == self._kill_at:
            self._kill(line)

    @contextmanager
    def counted(self):
        """Counts in this process for a block."""
        receive, send, writing = WorkerLine.receive, WorkerLine.send, DatabaseWriter.writing
        moments = self

        def counted_receive(line, limit):
            moments.pass_one(line)
            return receive(line, limit)

        def counted_send(line, request):
            moments.pass_one(line)
            return send(line, request)

        @contextmanager
        def counted_writing(writer):
            moments.pass_one()
            with writing(writer) as connection:
                yield connection
                moments.pass_one()
            moments.pass_one()

        WorkerLine.receive, WorkerLine.send = counted_receive, counted_send
        DatabaseWriter.writing = counted_writing
        try:
            yield self
        finally:
            WorkerLine.receive, WorkerLine.send = receive, send
            DatabaseWriter.writing = writing


def kill_this(_):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_worker(line):
    """The worker that is asked; between lines to it there is nothing to be seen of it."""
    if line is not None:
        os.kill(line._child.process.pid, signal.SIGKILL)


def killed_at(moment, action):
    """Does something in another process, and kills that at a moment; whether it was killed."""

    def counted():
        with Moments(moment, kill_this).counted():
            action()

    return was_killed(counted, KILLED)
