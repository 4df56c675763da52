"""What values of an entry can be, whatever was measured."""

from policygen.model.base import Record


class Limit(Record):
    """What a value of an entry can be, whatever was measured; a count beyond it is refused."""

    members: tuple[str, ...]
    """Members of families and fields of aggregates, by the last part of their path."""
    least: int
    most: int | None = None
    reason: str

    def allows(self, value: int) -> bool:
        """Whether a count is possible."""
        return value >= self.least and (self.most is None or value <= self.most)
