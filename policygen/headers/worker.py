"""Reads headers in a separate process, so that a hostile header can only crash that process.

Requests and answers consist of parts, each preceded by its length in four bytes. A request is a
name, a path, the header's bytes, and pairs of a neighbor's name and bytes, ended by an empty name.
An answer starts with `+` and holds the header as JSON, with `-` and holds a refusal as JSON, or
with `!` and holds the traceback of an internal error.
"""

import json
import os
import resource
import signal
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from socket import socket

from policygen.headers.text import SECONDS

MEMORY = 1 << 30
"""Memory limit beyond the initial size of the process, in bytes."""
LENGTH = 4


def send(connection: socket, *parts: bytes) -> None:
    """Sends parts, each preceded by its length."""
    connection.sendall(b"".join(len(part).to_bytes(LENGTH, "little") + part for part in parts))


def receive(connection: socket) -> bytes | None:
    """Receives a part; None when the other side has ended."""
    head = _exactly(connection, LENGTH)
    return None if head is None else _exactly(connection, int.from_bytes(head, "little"))


def _exactly(connection: socket, size: int) -> bytes | None:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def serve(connection: socket) -> None:
    """Answers requests until the connection closes."""
    from policygen.headers import reader as header  # noqa: F401  loaded before the time limit starts

    limit_process()
    while (request := _request(connection)) is not None:
        # The default action of the signal ends the process, even in the middle of clang.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        answer = answered(*request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(connection, answer)


def _request(connection: socket) -> tuple[str, str, bytes, dict[str, bytes]] | None:
    name, path, data = receive(connection), receive(connection), receive(connection)
    neighbours: dict[str, bytes] = {}
    while neighbour := receive(connection):
        neighbours[neighbour.decode()] = receive(connection) or b""
    if name is None or path is None or data is None or neighbour is None:
        return None
    return name.decode(), path.decode("utf-8", "surrogateescape"), data, neighbours


def answered(name: str, path: str, data: bytes, neighbours: Mapping[str, bytes]) -> bytes:
    """Reads a header and encodes the answer."""
    from policygen.errors import SourceError
    from policygen.headers.parsers import NeighborHeaders as Neighbours
    from policygen.headers.reader import read_header

    try:
        header = read_header(name, data, Neighbours(neighbours), path)
    except SourceError as error:
        return refusal(
            error.line, error.column, error.message, error.text, error.width, error.remedy
        )
    except RecursionError:
        return refusal(1, 1, "it is nested too deeply to be read")
    except MemoryError:
        return refusal(1, 1, f"more than {MEMORY >> 20} MiB of memory are needed to read it")
    except Exception:  # noqa: BLE001  an internal error, which the parent raises
        return b"!" + traceback.format_exc().encode("utf-8", "backslashreplace")
    return b"+" + header.model_dump_json().encode()


def refusal(
    line: int, column: int, message: str, text: str = "", width: int = 1, remedy: str | None = None
) -> bytes:
    """Encodes why and where a header is refused."""
    return b"-" + json.dumps([line, column, message, text, width, remedy]).encode()


def limit_process() -> None:
    """Limits core dumps, files, memory and terminal output."""
    devnull = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):  # clang prints crash messages there
        os.dup2(devnull, descriptor)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    # If the process size is unknown or limits cannot be set, only the time limit applies.
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    serve(socket(fileno=0))
