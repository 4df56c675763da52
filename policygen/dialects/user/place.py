"""What a selector of a user's own returns for a workload."""

from collections.abc import Mapping
from dataclasses import dataclass

from policygen.dialects.protocol import Spot
from policygen.dialects.selectors.aggregates import Field
from policygen.dialects.user.arguments import Arguments
from policygen.dialects.user.overlay import overlay
from policygen.dialects.user.public import PublicSelector
from policygen.model.bindings import BenchmarkBinding
from policygen.model.plan import Target
from policygen.model.policies import Whole
from policygen.model.tuning import Entry, Value


@dataclass(frozen=True, slots=True)
class UserReturn(Spot):
    """One that is for the template arguments of a workload; its values are CUB's own so far."""

    selector: PublicSelector
    fields: tuple[Field, ...]
    """Of the policy that is returned."""
    base: Whole
    arguments: Arguments

    @property
    def header(self) -> str:
        """The header that declares the policy."""
        return self.selector.selector.header

    @property
    def entry(self) -> Entry | None:
        """None: the user's header is written anew."""
        return None

    @property
    def target(self) -> Target:
        """The selector, and the arguments for which it returns."""
        name, args = self.selector.selector.name, self.arguments.spelled
        return Target(header=self.header, namespace="", family=name, args=args)

    @property
    def place(self) -> object:
        """What is the same for all workloads that the selector cannot tell apart."""
        return self.selector.selector.name, self.arguments.key

    @property
    def alone(self) -> bool:
        """Whether a reason needs no names of the others."""
        return True

    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """The whole policy that a variant is."""
        return overlay(self.selector, self.fields, self.base, measured, variant)

    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """The same: a policy is returned as it is."""
        return dict(members)
