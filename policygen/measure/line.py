"""The line to a worker: one process, what it is asked, what it tells, and how it ends."""

import json
import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Any

from policygen.measure.outcomes import Kind
from policygen.process import GRACE, PIPE, Child
from policygen.untrusted import visible

_INSTALL = "Install Python again."
_WORDS = 2_000
"""Bytes of what a worker said at last that are looked at."""
_AT_ONCE = 1 << 16
_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
"""What no variant ends its process with: somebody does, or the system that lacks memory."""
Told = Mapping[str, Any]


class GoneError(Exception):
    """A worker of no more use: it has ended, or was killed as it hung."""

    def __init__(self, words: str, kind: Kind = "crash", *, outside: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.kind = kind
        self.outside = outside
        """Whether somebody else has ended it."""


class WorkerLine:
    """A worker that runs; each side of it speaks lines of JSON."""

    def __init__(self, command: Sequence[str], more: Mapping[str, str]) -> None:
        self._words = TemporaryFile()  # noqa: SIM115  it is closed with the line
        try:
            self._child = Child(
                command,
                install=_INSTALL,
                more=more,
                stdin=PIPE,
                stdout=PIPE,
                stderr=self._words,
            )
        except BaseException:
            self._words.close()
            raise
        source, sink = self._child.process.stdout, self._child.process.stdin
        assert source is not None
        assert sink is not None
        self._source, self._sink = source.fileno(), sink.fileno()
        self._pending = b""
        self._lines: list[bytes] = []

    def send(self, request: Mapping[str, object]) -> None:
        """Asks for something."""
        data = json.dumps(request).encode() + b"\n"
        with suppress(BrokenPipeError):  # that it has ended is seen when it does not answer
            while data:
                data = data[os.write(self._sink, data) :]

    def receive(self, limit: float) -> Told:
        """The next line; one that does not come within so many seconds never does."""
        end = time.monotonic() + limit
        while not self._lines:
            # What is there already counts, however late we look.
            if not select.select([self._source], [], [], max(0.0, end - time.monotonic()))[0]:
                self._child.kill()
                raise GoneError(f"it did not end within {limit:.3g} seconds", "hang")
            if not (data := os.read(self._source, _AT_ONCE)):
                raise self._ended()
            *whole, self._pending = (self._pending + data).split(b"\n")
            self._lines = whole[::-1]
        try:
            told: Told = json.loads(self._lines.pop())
        except ValueError as error:
            self._child.kill()
            raise GoneError("it told what is no answer") from error
        return told

    def close(self) -> None:
        """Ends the worker, which holds nothing that must be put away."""
        process = self._child.process
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
        self._child.wait(GRACE)
        self._child.kill()
        self._words.close()

    def _ended(self) -> GoneError:
        """How it ended, and the last line of what it said."""
        self._child.wait(GRACE)
        self._child.kill()
        status = self._child.process.returncode
        how = f"it was ended by signal {-status}" if status < 0 else f"it ended with {status}"
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - _WORDS))
        said = self._words.read().decode(errors="replace").strip().rpartition("\n")[2]
        words = f"{how}: {visible(said)}" if said else how
        return GoneError(words, outside=-status in _OUTSIDE)
