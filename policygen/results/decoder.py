"""The near side of the process that decodes samples; one that dies is replaced."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

import numpy as np

from policygen.errors import MissingToolError
from policygen.installation import pip
from policygen.process import PIPE, Child, module
from policygen.results import decode_worker
from policygen.results.decode_worker import LENGTH, framed, read_part
from policygen.results.samples import BadSamplesError, Samples

WORKER = module(decode_worker.__name__)
AT_ONCE = 32 << 10
"""Bytes of blobs; a pipe holds 64 KiB."""
LIMIT = 10.0
"""Seconds for one batch; whole ones take milliseconds, damaged ones can take for ever."""
WHOLE = bytes.fromhex("66707929870ef0ff0001fe000000ff000000ff000000ff00f33bd3dc6b08260000000000")
"""Two samples of 1 and 2 seconds."""


class Decoder:
    """Starts its process when it is told to, or when the first samples are asked for."""

    def __init__(self) -> None:
        self._worker: Child | None = None
        self._checked = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def start(self) -> None:
        """Starts the process early, so that it is ready when it is needed."""
        self._worker = self._worker or _start()

    def close(self) -> None:
        """Ends the process."""
        if self._worker is not None:
            _stop(self._worker)
            self._worker = None

    def decode(self, blobs: Sequence[object]) -> list[Samples | BadSamplesError]:
        """The samples of some rows, sorted; a blob that kills the decoder is a bad one."""
        found: list[Samples | BadSamplesError] = []
        if blobs:
            self._check()
        while len(found) < len(blobs):
            if not isinstance(blobs[len(found)], bytes):
                found.append(BadSamplesError("they are no blob"))
                continue
            batch = _batch(blobs[len(found) :])
            answers = self._ask(batch)
            found += [_read(answer) for answer in answers]
            if len(answers) < len(batch):
                self.close()
                found.append(BadSamplesError("fpzip crashes on them"))
        return found

    def _check(self) -> None:
        """Once: an fpzip that cannot decode what is whole says nothing of a database."""
        if self._checked:
            return
        self._checked = True
        answers = self._ask([WHOLE])
        if answers != [b"+" + np.array([1.0, 2.0]).tobytes()]:
            self.close()
            raise MissingToolError(
                "an fpzip that works", f"{pip()} install --force-reinstall fpzip"
            )

    def _ask(self, batch: Sequence[bytes]) -> list[bytes]:
        """Answers, up to the blob that was too much."""
        self.start()
        assert self._worker is not None
        source, sink = self._worker.process.stdout, self._worker.process.stdin
        assert source is not None
        assert sink is not None
        answers: list[bytes] = []
        watch = threading.Timer(LIMIT, self._worker.kill)
        watch.start()
        try:
            sink.write(b"".join(map(framed, batch)))
            sink.flush()
            while len(answers) < len(batch) and (answer := read_part(source)):
                answers.append(answer)
        except BrokenPipeError:
            pass  # it died before it had read all
        finally:
            watch.cancel()
        return answers


def _batch(blobs: Sequence[object]) -> list[bytes]:
    """As many as a pipe holds, so that neither side waits for the other; at least one."""
    batch: list[bytes] = []
    size = 0
    for blob in blobs:
        if not isinstance(blob, bytes) or (batch and size + len(blob) > AT_ONCE):
            break
        batch.append(blob)
        size += len(blob) + LENGTH
    return batch


def _read(answer: bytes) -> Samples | BadSamplesError:
    if answer[:1] == b"-":
        return BadSamplesError(answer[1:].decode())
    return np.frombuffer(answer, np.float64, offset=1)


def _start() -> Child:
    return Child(WORKER, install="Install Python again.", stdin=PIPE, stdout=PIPE)


def _stop(worker: Child) -> None:
    worker.kill()  # it has nothing to end with, and would take its time
    for end in (worker.process.stdin, worker.process.stdout):
        if end is not None:
            with suppress(BrokenPipeError):
                end.close()
