"""How a benchmark gives a policy to CUB 2.8 to 3.4: the tables `[[hub]]` of bindings."""

from pydantic import Field

from policygen.model.versions import Versioned


class DispatchBinding(Versioned):
    """A class of CUB's that runs an algorithm with a policy hub that it is given."""

    benchmarks: tuple[str, ...]
    workload: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Values of compile-time axes that it holds for; all without it."""
    name: str
    """`cub::DispatchScan`."""
    takes: tuple[str, ...]
    """Its template arguments before the hub, in terms of roles and of `axis::T`."""
    default: str | None = None
    """CUB's own hub, where the class has another one, or none, by default."""
    setup: tuple[str, ...] = ()
    """C++ statements before the call."""
    call: str
    """A member's call, in terms of `storage`, `bytes` and `stream`: `Dispatch(storage, …)`."""

    def serves(self, benchmark: str, values: dict[str, str]) -> bool:
        """Whether it runs a workload of a benchmark."""
        return benchmark in self.benchmarks and all(
            values.get(axis) in known for axis, known in self.workload.items()
        )


class HubBinding(Versioned):
    """What a policy hub of one's own holds, in C++ in terms of roles; `{ipt}` is a macro."""

    site: str
    includes: tuple[str, ...] = ()
    """Further headers."""
    constants: dict[str, str] = Field(default_factory=dict)
    """Member of the policy → its value."""
    delays: dict[str, tuple[str, str, str]] = Field(default_factory=dict)
    """Delay constructor → the labels of its id, its delay and its write latency."""
    policies: dict[str, str]
    """Member of the policy → the type."""
    dispatches: tuple[DispatchBinding, ...] = Field(alias="dispatch")
