"""Sample blobs: fpzip-compressed float32 arrays of seconds, sorted."""

import math
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import IO, Any

import numpy as np

from policygen.errors import MissingToolError
from policygen.installation import pip
from policygen.process import PIPE, Child, module

Samples = np.ndarray[Any, np.dtype[np.float64]]


class BadSamplesError(ValueError):
    """A blob that cannot be decoded, with the reason."""


def decode(blob: object) -> Samples:
    """Decodes the samples of one row, sorted. A damaged blob can crash it: see `Decoder`."""
    import fpzip

    try:
        count_samples(blob)
    except ValueError as error:
        raise BadSamplesError(str(error)) from error
    try:
        values = np.asarray(fpzip.decompress(blob), dtype=np.float64).reshape(-1)
    except Exception as error:
        # fpzip raises its own exceptions as well as built-in ones.
        raise BadSamplesError(f"fpzip refuses them: {error}") from error
    if not values.size or not np.all(np.isfinite(values)) or values.min() <= 0:
        raise BadSamplesError("they are not positive and finite")
    return np.sort(values)


def middle(values: Samples) -> float:
    """Returns the median of sorted samples."""
    below, above = values[(values.size - 1) // 2], values[values.size // 2]
    return float(below + above) / 2


def encode(values: Samples) -> bytes:
    """Encodes samples into a blob as CCCL's search does."""
    import fpzip

    return bytes(fpzip.compress(np.sort(np.asarray(values, dtype=np.float32))))


MOST = 1 << 24
"""Upper limit of samples per row, above any search's."""
DENSEST = 4_000
"""Maximum samples per byte of a blob; equal samples reached 3,600."""
_TOP = (1 << 32) - 1


class _Decoder:
    """fpzip's range decoder, for raw bits only."""

    def __init__(self, blob: bytes) -> None:
        self._rest = iter(blob)
        self._low, self._range = 0, _TOP
        self._code = 0
        self._shift(4)

    def bits(self, count: int) -> int:
        """Returns the next bits; of 32 bits the lower half comes first."""
        if count > 16:
            return self.bits(16) | self.bits(count - 16) << 16
        self._range >>= count
        value = ((self._code - self._low) & _TOP) // self._range
        self._low = (self._low + self._range * value) & _TOP
        while not (self._low ^ (self._low + self._range)) >> 24 & 0xFF:
            self._shift(1)
            self._range = self._range << 8 & _TOP
        if not self._range >> 16:
            self._shift(2)
            self._range = -self._low & _TOP
        return value

    def _shift(self, count: int) -> None:
        for _ in range(count):
            self._code = (self._code << 8 | next(self._rest, 0)) & _TOP
            self._low = self._low << 8 & _TOP


# Reading the number of values in an fpzip blob without decoding it. fpzip trusts its header: a
# damaged one makes it allocate gigabytes of memory, or crash. The header is range-coded: `fpz`, the
# version in 16 and 8 bits, the type in 1, the precision in 7, and four dimensions in 32 bits each.


def count_samples(blob: object) -> int:
    """Returns the number of samples; refuses anything but a blob of plausible size."""
    if not isinstance(blob, bytes) or not blob:
        raise ValueError("no samples")
    decoder = _Decoder(blob)
    magic = bytes(decoder.bits(8) & 0xFF for _ in range(4))
    if magic != b"fpz\0":
        raise ValueError("not an fpzip blob")
    for width in (16, 8, 1, 7):
        decoder.bits(width)
    count = math.prod(decoder.bits(32) for _ in range(4))
    if count > min(MOST, DENSEST * len(blob)):
        raise ValueError(f"they claim to be {count:,} in {len(blob):,} bytes")
    return count


WORKER = module(__name__)
AT_ONCE = 32 << 10
"""Bytes of blobs per batch; a pipe holds 64 KiB."""
LIMIT = 10.0
"""Timeout in seconds for one batch; valid ones take milliseconds, damaged ones may never end."""
WHOLE = bytes.fromhex("66707929870ef0ff0001fe000000ff000000ff000000ff00f33bd3dc6b08260000000000")
"""A valid blob of two samples, 1 and 2 seconds."""


class Decoder(AbstractContextManager["Decoder"]):
    """Decodes samples in a worker process, started by `start` or on first use."""

    def __init__(self) -> None:
        self._worker: Child | None = None
        self._checked = False

    def __exit__(self, *details: object) -> None:
        self.close()

    def start(self) -> None:
        """Starts the process early, so that it is ready on first use."""
        self._worker = self._worker or _start()

    def close(self) -> None:
        """Ends the process."""
        if self._worker is not None:
            _stop(self._worker)
            self._worker = None

    def decode(self, blobs: Sequence[object]) -> list[Samples | BadSamplesError]:
        """Decodes the samples of rows, sorted; a blob that crashes the decoder is damaged."""
        decoded: list[Samples | BadSamplesError] = []
        if blobs:
            self._check()
        while len(decoded) < len(blobs):
            if not isinstance(blobs[len(decoded)], bytes):
                decoded.append(BadSamplesError("they are not a blob"))
                continue
            batch = _batch(blobs[len(decoded) :])
            answers = self._ask(batch)
            decoded += [
                BadSamplesError(answer[1:].decode())
                if answer[:1] == b"-"
                else np.frombuffer(answer, np.float64, offset=1)
                for answer in answers
            ]
            if len(answers) < len(batch):
                self.close()
                decoded.append(BadSamplesError("fpzip crashes on them"))
        return decoded

    def _check(self) -> None:
        """Checks once that fpzip decodes a valid blob, to blame failures on the database."""
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
        """Returns the answers, up to the blob that failed."""
        self.start()
        assert self._worker is not None
        source, sink = self._worker.process.stdout, self._worker.process.stdin
        assert source is not None
        assert sink is not None
        answers: list[bytes] = []
        watchdog = threading.Timer(LIMIT, self._worker.kill)
        watchdog.start()
        try:
            sink.write(b"".join(map(framed, batch)))
            sink.flush()
            while len(answers) < len(batch) and (answer := read_part(source)):
                answers.append(answer)
        except BrokenPipeError:
            pass  # the worker died before it had read everything
        finally:
            watchdog.cancel()
        return answers


# The parent's side of the decoding process; a process that dies is replaced.


def _batch(blobs: Sequence[object]) -> list[bytes]:
    """Returns as many blobs as a pipe holds, to avoid deadlock; at least one."""
    batch: list[bytes] = []
    size = 0
    for blob in blobs:
        if not isinstance(blob, bytes) or (batch and size + len(blob) > AT_ONCE):
            break
        batch.append(blob)
        size += len(blob) + LENGTH
    return batch


def _start() -> Child:
    return Child(WORKER, install="Install Python again.", stdin=PIPE, stdout=PIPE)


def _stop(worker: Child) -> None:
    worker.kill()  # it has no state to save, and ending normally takes longer
    for pipe_end in (worker.process.stdin, worker.process.stdout):
        if pipe_end is not None:
            with suppress(BrokenPipeError):
                pipe_end.close()


LENGTH = 4


# Decodes samples in a separate process: on damaged blobs, fpzip crashes. Reads blobs from standard
# input and writes answers to standard output, each prefixed by its length in four bytes. An answer
# is `+` with the samples as doubles, or `-` with the reason.


def read_part(source: IO[bytes]) -> bytes | None:
    """Reads one part; None at the end of input, or if it is truncated."""
    head = source.read(LENGTH)
    size = int.from_bytes(head, "little")
    part = source.read(size) if len(head) == LENGTH else b""
    return part if len(head) == LENGTH and len(part) == size else None


def framed(part: bytes) -> bytes:
    """Prefixes a part with its length."""
    return len(part).to_bytes(LENGTH, "little") + part


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Answers until the input ends."""
    while (blob := read_part(source)) is not None:
        try:
            answer = b"+" + decode(blob).tobytes()
        except BadSamplesError as error:
            answer = b"-" + str(error).encode()
        sink.write(framed(answer))
        sink.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
