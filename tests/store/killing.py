"""Ends a process at any operation of a write, as a power cut would: nothing is cleaned up."""

import itertools
import os
import traceback
from contextlib import contextmanager

from policygen import store_schema
from policygen.store import replacement

KILLED = 99
OPERATIONS = ("write_file", "rename", "unlink", "sync_folder")


def killed_at(number, action, torn=False):
    """Does something in another process, and kills it at one operation; false: it was done before.

    A torn write has half of its bytes on the disk.
    """

    def armed():
        _arm(number, torn)
        action()

    return was_killed(armed, KILLED)


def was_killed(action, killed):
    """Does something in another process; whether that ended with the status of one killed."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:  # noqa: BLE001  the other process ends here
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in {0, killed}, "see the traceback"
    return status == killed


def kills(prepare, action, torn=False):
    """One situation for each operation, where the process was killed before it."""
    for number in itertools.count(1):
        made = prepare(number)
        if not killed_at(number, lambda made=made: action(made), torn):
            assert number > 5
            return
        yield made


def _arm(number, torn):
    counter = itertools.count(1)

    def step(before_death=lambda: None):
        if next(counter) == number:
            before_death()
            os._exit(KILLED)

    def counted(name, original):
        def operation(*args):
            def half():
                if torn and name == "write_file":
                    path, data, *rest = args
                    original(path, data[: len(data) // 2], *rest)

            step(half)
            return original(*args)

        return operation

    for name in OPERATIONS:
        setattr(replacement, name, counted(name, getattr(replacement, name)))
    store_schema.transaction = _counted_transaction(store_schema.transaction, step)


def _counted_transaction(original, step):
    @contextmanager
    def transaction(connection, begin):
        writes = begin == "BEGIN IMMEDIATE"
        with original(connection, begin) as opened:
            yield opened
            if writes:
                step()
        if writes:
            step()

    return transaction
