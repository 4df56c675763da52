"""Changes to a header: what stands where now, and what shall stand there."""

from policygen.model.base import Record, Span


class Edit(Record):
    """One splice. `old` is what the place must hold, so that a changed file is noticed."""

    span: Span
    old: str
    new: str
    reason: str
