"""Which variants were asked for, or told of: none of their policies is asked for again."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from policygen.search.domain import Domain, Values


@dataclass(slots=True)
class Fresh:
    """What is left of a space."""

    domain: Domain
    seen: set[Hashable] = field(default_factory=set)

    def has(self, values: Values) -> bool:
        """Whether a variant can be, and is no policy that was asked for."""
        key = self.domain.key(values)
        return key is not None and key not in self.seen

    def take(self, values: Values) -> bool:
        """The same; from now on its policy was asked for."""
        key = self.domain.key(values)
        if key is None or key in self.seen:
            return False
        self.seen.add(key)
        return True
