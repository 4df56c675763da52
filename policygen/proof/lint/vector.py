"""Whether a thread's items can be loaded as vectors."""

from collections.abc import Iterator

from policygen.bindings.words import words
from policygen.proof.lint.subject import Remark, Subject
from policygen.proof.lint.units import role_sizes, scale_items


def divisible(subject: Subject) -> Iterator[Remark]:
    """CUB loads vectors only when they divide a thread's items, else silently single items.

    NVIDIA/cccl#10752 had 17 items and vectors of 2.
    """
    if _has_pixels(subject):
        return
    members = words().members
    vector, items = subject.first(members.vectors), subject.first(members.items)
    if vector is None or items is None:
        return
    length, count = vector.value, items.value
    if type(length) is not int or type(count) is not int or length < 2 or count < 1:
        return
    scaled = _scaled(subject, items.name, count)
    # A vector that is longer than all items is cut down to them.
    if scaled is not None and scaled % min(length, scaled):
        counted = (
            f"{count} items"
            if scaled == count
            else f"{count} items, of which large elements leave {scaled},"
        )
        yield Remark(
            items.value_span,
            f"{counted} cannot be loaded as vectors of {length}: vectorization is off",
        )


def _has_pixels(subject: Subject) -> bool:
    """Samples of several channels are loaded by pixels, whatever the vector length says."""
    names = [parameter.name for parameter in subject.family.parameters]
    channels = words().tiles.channels
    if channels not in names or len(names) != len(subject.entry.args):
        return False
    return subject.entry.args[names.index(channels)] != "1"


def _scaled(subject: Subject, name: str, count: int) -> int | None:
    """A thread's items, where the bindings and the arguments tell them."""
    found = set()
    for binding in subject.bindings:
        if (rule := binding.members.get(name)) is None:
            return None
        found.add(scale_items(rule.unit, count, role_sizes(binding, subject.entry)))
    return found.pop() if len(found) == 1 else None
