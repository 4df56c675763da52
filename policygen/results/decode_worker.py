"""Decodes samples in a process of its own: on damaged blobs, fpzip crashes.

Reads blobs from standard input and writes answers to standard output, each behind its length in
four bytes. An answer begins with `+` and has the samples as doubles, or with `-` and the reason.
"""

import sys
from typing import IO

from policygen.results.samples import BadSamplesError, decode

LENGTH = 4


def read_part(source: IO[bytes]) -> bytes | None:
    """One part; none when there is no more, or half of it."""
    head = source.read(LENGTH)
    size = int.from_bytes(head, "little")
    part = source.read(size) if len(head) == LENGTH else b""
    return part if len(head) == LENGTH and len(part) == size else None


def framed(part: bytes) -> bytes:
    """A part as it is written."""
    return len(part).to_bytes(LENGTH, "little") + part


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Answers until there are no more questions."""
    while (blob := read_part(source)) is not None:
        try:
            answer = b"+" + decode(blob).tobytes()
        except BadSamplesError as error:
            answer = b"-" + str(error).encode()
        sink.write(framed(answer))
        sink.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
