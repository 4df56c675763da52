"""How many threads a block has."""

from collections.abc import Iterator

from policygen.bindings.words import words
from policygen.model.base import Span
from policygen.proof.lint.bases import forwarded
from policygen.proof.lint.subject import Remark, Subject

WARP = 32
MOST = 1024


def warp_multiple(subject: Subject) -> Iterator[Remark]:
    """CUB's BLOCK_LOAD_WARP_TRANSPOSE refuses blocks of part warps, its BlockScan falls back."""
    for threads, span in thread_counts(subject):
        if threads % WARP:
            yield Remark(span, f"{threads} threads are no multiple of a warp's {WARP}")


def limit(subject: Subject) -> Iterator[Remark]:
    """No GPU of any architecture launches a block of more than 1024 threads."""
    for threads, span in thread_counts(subject):
        if threads > MOST:
            yield Remark(span, f"{threads} threads: a block can have {MOST} at most")
        elif threads < WARP:
            yield Remark(span, f"{threads} threads: a block needs at least a warp, {WARP}")


def thread_counts(subject: Subject) -> Iterator[tuple[int, Span]]:
    """The threads of an entry, or those that it hands to its base, with their place."""
    for name in words().members.threads:
        members = subject.called(name)
        yield from ((m.value, m.value_span) for m in members if type(m.value) is int)
        if (
            not members
            and subject.entry.kind != "branch"
            and subject.entry.inherits_span is not None
        ):
            given = forwarded(subject).get(name)
            if type(given) is int:
                yield given, subject.entry.inherits_span
