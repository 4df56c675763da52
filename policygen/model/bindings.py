"""Maps benchmarks' workloads and parameters to CUB's tunings: `schemas/bindings/*.toml`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from policygen.model.expression import ExpressionText
from policygen.model.records import Record
from policygen.model.trees import (
    OF_FUNCTIONS,
    OTHERS,
    Dialect,
    GainedMember,
    Library,
    Versioned,
    numbers,
)

NOMINAL = 4
"""Element size in bytes to which scaled counts refer."""
# "7:24:1", "-16:16:4"
Range = Annotated[str, Field(pattern=r"^-?[0-9]{1,9}:-?[0-9]{1,9}:[1-9][0-9]{0,8}$")]


class AxisType(Versioned):
    """A value of a type axis, `I8`, and its C++ type."""

    name: str
    also: tuple[str, ...] = ()
    """Its name in results of other tuners."""
    cpp: str = ""
    """The C++ type; constants are written unchanged."""
    size: int | None = None
    """Size in bytes; none for a functor."""
    header: str | None = None
    guard: str | None = None
    """The preprocessor condition under which CUB supports it: `_CCCL_HAS_INT128()`."""
    floating: bool = False
    """Whether it is a floating-point type, for conditions that test only that."""
    twin: str | None = None
    """The unsigned type that gets its own entry, inheriting from this type's."""


class DelayConstructor(Record):
    """One of CUB's ways to wait for a predecessor's tile."""

    id: int | None = None
    """The value of `dcid`; none if no benchmark tries it."""
    type: str
    """`fixed_delay_constructor_t`, as families name it."""
    kind: str
    """`fixed_delay`, as policy selectors name it."""
    args: tuple[str, ...]
    """`ns`, `l2w`, or a constant."""

    def spelled(self, ns: object, l2w: object) -> str:
        """Returns a spelling such as `fixed_delay_constructor_t<350, 450>`."""
        value_by_name = {"ns": str(ns), "l2w": str(l2w)}
        return f"{self.type}<{', '.join(value_by_name.get(arg, arg) for arg in self.args)}>"


class Scaling(Record):
    """How CUB scales an item count for 4-byte elements to the actual element size."""

    name: str
    most: int
    """Upper limit of the result, as a multiple of the count."""
    bounded: bool
    """Whether the thread count is reduced if the tile would not fit into shared memory."""
    function: str | None = None
    """CUB's function, used by policy selectors; threads and items come from a bounded one."""

    def items(self, count: int, size: int) -> int:
        """Returns the items per thread for elements of a size, at least one."""
        return max(1, min(count * NOMINAL // size, count * self.most))


class Group(Versioned):
    """A named list of axis values that many benchmarks share."""

    name: str
    values: tuple[str, ...]


class Limit(Record):
    """Limits of an entry's value, regardless of measurements; a count outside is rejected."""

    members: tuple[str, ...]
    """Members of families and fields of aggregates, by the last part of their path."""
    least: int
    most: int | None = None
    reason: str

    def allows(self, value: int) -> bool:
        """Returns whether a count is possible."""
        return value >= self.least and (self.most is None or value <= self.most)


class Types(Record):
    """`schemas/bindings/types.toml`: the names of axis values and delay constructors."""

    tested: Versioned
    """The versions of the CUB benchmarks that the bindings were compared with."""
    compiled: tuple[str, ...]
    """The versions of the headers that the bindings were compiled with: `3.2`."""
    helper_kernels: tuple[str, ...] = ()
    """Helper kernels that are compiled with algorithms but never launched."""
    open_classes: tuple[str, ...] = ()
    """Enumerations in which `no` stands for every non-arithmetic type of the size."""
    spellings: dict[str, str] = Field(default_factory=dict)
    """Spelling of a type in headers → spelling by the compiler."""
    types: tuple[AxisType, ...]
    groups: tuple[Group, ...] = ()
    delays: tuple[DelayConstructor, ...]
    scalings: tuple[Scaling, ...]
    limits: tuple[Limit, ...] = ()


class Unit(Record):
    """The unit of a count that is not used directly."""

    scaling: str
    """The name of a scaling: `nominal_4b`."""
    of: str
    """The role whose size scales it: `InputT`."""


class MemberRule(Record):
    """How a member of an entry is computed from a variant's parameters, in one of several forms."""

    parameter: str | None = None
    """The label: `ipt`."""
    choices: tuple[str, ...] | None = None
    """What the parameter's values 0, 1, … mean, in this order."""
    power_of_two: bool = False
    unit: Unit | None = None
    """The unit used in the header."""
    delay: tuple[str, str, str] | None = None
    """The labels of a delay constructor's id, its delay and its write latency."""
    constant: str | None = None
    """A constant that no parameter tunes."""
    shown: str | None = None
    """Its name in the policy, if different."""
    times: str | int | None = None
    """The factor of a count: a number, or the value of another parameter."""
    plus: int = 0
    """The offset added to a count."""
    bias: bool = False
    """The parameter is added to CUB's value; only a user's own selector can express that."""

    @property
    def parameters(self) -> frozenset[str]:
        """The labels of its parameters."""
        return frozenset(self.delay or filter(None, [self.parameter]))

    @model_validator(mode="after")
    def _check_single_form(self) -> Self:
        if sum(form is not None for form in (self.parameter, self.delay, self.constant)) != 1:
            raise ValueError("needs exactly one of parameter, delay and constant")
        extras = (self.choices, self.power_of_two, self.unit, self.times, self.plus, self.bias)
        if self.parameter is None and any(extras):
            raise ValueError(
                "choices, power_of_two, unit, times, plus and bias belong to a parameter"
            )
        return self


class ValuesBase(Record):
    """A template that supplies an entry's values: `sm90_tuning_vals<T, 128, 24, 648, 1245>`."""

    name: str
    args: tuple[str, ...]
    """`{0}`: the entry's first argument; `{items}`: a member's value; `{ns}`, `{l2w}`: delay."""
    needs: dict[str, str]
    """Members for which it supports a single value; delays are named by type."""


class FamilyBinding(Versioned):
    """A family that a site's policies read, with the keys and values of its entries."""

    site: str
    name: str
    """`sm100_tuning`."""
    args: tuple[str, ...]
    """The key: one C++ expression per template parameter, in terms of the workload's roles."""
    members: dict[str, MemberRule]
    """In the order of the header's entries."""
    optional: dict[str, MemberRule] = Field(default_factory=dict)
    """Values that only some returns set; the others leave them to the policy."""
    layout: Literal["block", "line"] = "block"
    base: ValuesBase | None = None
    """The template that its entries inherit values from."""
    mark: str = "items"
    """An integer that the policy scales by at most a power of two, so that it can carry a mark."""


class Alias(Record):
    """A header's name for a type outside of CUB's API."""

    name: str
    of: str
    """The type or template as spelled in the binding: `::cub::detail::arg_min`."""
    parameters: tuple[str, ...] = ()
    """The parameters of a template: `typename T`."""

    @property
    def arguments(self) -> str:
        """The template arguments: `<T, IndexT>`."""
        names = ", ".join(parameter.split()[-1] for parameter in self.parameters)
        return f"<{names}>" if names else ""


class SelectorBinding(Versioned):
    """A user's policy selector that `policygen emit` writes for a site."""

    site: str
    name: str
    """The name of the selector; selectors with the same name are merged."""
    policy: str
    """The public aggregate that it returns, in namespace `cub`."""
    header: str
    """The header that declares the algorithm."""
    benchmarks: tuple[str, ...] = ()
    """The benchmarks that it serves; if empty, all benchmarks of the site."""
    default: str | None = None
    """CUB's own selector in terms of roles, if the site's hub contains more."""
    selects: str | None = None
    """The aggregate that CUB's own selector returns, if different."""
    members: dict[str, MemberRule] = Field(default_factory=dict)
    """Field → its source, in addition to the newest family; a delay is named by its policy."""
    inherits: bool = True
    """Whether the site's newest family defines the meaning of parameters."""
    sized: tuple[str, ...] = ()
    """Roles of which CUB uses only the size."""
    copies: dict[str, str] = Field(default_factory=dict)
    """Field → the field that it copies."""
    takes: str
    """The parameters of an example, in terms of roles: `const AccumT* in, AccumT* out, int n`."""
    call: str
    """The call of the algorithm in it, with the environment `env`."""
    calls: dict[str, str] = Field(default_factory=dict)
    """Value of an axis → the call to use instead, for example another function for maxima."""
    aliases: tuple[Alias, ...] = ()


class Opening(Record):
    """A condition without which a header is empty; compiler queries define it."""

    macro: str
    """The macro without parentheses: `_CCCL_CUB_HAS_TILE_TRANSFORM`."""
    header: str
    """The header that defines it."""


class Site(Versioned):
    """A place where CUB selects a policy, in one dialect."""

    name: str
    dialect: Dialect
    header: str
    namespace: str
    """The namespace without `cub::`."""
    includes: tuple[str, ...] = ()
    opened: Opening | None = None
    """Set if the header is empty unless a macro is defined."""
    hub: str
    """The policy hub, or the policy selector, with the roles of the workload."""
    max_policy: str = "MaxPolicy"
    """The hub's name for the policy of its newest architecture."""
    policy: str = ""
    """The member of the active or selected policy that contains the values."""
    support: tuple[str, ...] = ()
    """C++ templates before the workloads."""
    setup: tuple[str, ...] = ()
    """C++ declarations between the policy and its values."""
    values: dict[str, str]
    """Value → C++ constant in terms of `policy`."""
    types: dict[str, str] = Field(default_factory=dict)
    """Value → C++ type in terms of `policy`."""
    used_by: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """If the policy names an `algorithm`: the values that only this algorithm uses."""
    delay: tuple[str, str, str] | None = None
    """For policy selectors: algorithm, delay and write latency of a delay policy."""
    arguments: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """For policy selectors: value → its parameter name in functions that make a policy."""
    configs: tuple[str, ...] = ()
    """For rocPRIM: the config templates, or the struct that a picker returns."""
    targets: str = ""
    """The list of targets of the pickers; none if configs are templates."""
    table: bool = False
    """For rocPRIM: whether the hub is a hand-written table with numeric architectures."""
    untuned: str | None = None
    """For policy selectors: a type of the same size without tunings."""
    gains: dict[str, GainedMember] = Field(default_factory=dict)
    """For policy selectors: members that new returns test, also where a selector lacks them."""
    marked: str = "items"
    """The value that carries the mark of an entry."""

    @property
    def is_selector(self) -> bool:
        """Whether its hub is a policy selector."""
        return self.dialect in OF_FUNCTIONS

    @property
    def inherits(self) -> bool:
        """Whether an architecture without its own values gets those of an earlier one."""
        return self.dialect != "configs"

    @property
    def scope(self) -> str:
        """The fully qualified namespace: `cub::detail::scan`."""
        return f"{OTHERS.get(self.dialect, 'cub')}::{self.namespace}"


class Call(Versioned):
    """What instantiates an algorithm: axes with values, and the roles that they fill."""

    site: str
    axes: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """Compile-time axis → values, or the name of a group of values."""
    roles: dict[str, str] = Field(default_factory=dict)
    """Role → the C++ type that fills it, in terms of earlier ones and of `axis::T`."""
    constants: dict[str, str] = Field(default_factory=dict)
    """Role → the C++ constant that fills it."""
    includes: tuple[str, ...] = ()
    """Additional headers; a header next to the binding is found there."""


class FirstReturnBinding(Record):
    """The place and conditions of a return inserted before a computed policy."""

    function: str = "operator()"
    """A member function of the policy selector."""
    part: str = ""
    """The path of its result in the selected policy: `lookahead`."""
    asks: tuple[str, ...]
    """Members of the policy selector that distinguish workloads."""


class BenchmarkBinding(Call):
    """One benchmark, in a range of CUB versions."""

    name: str
    like: str | None = None
    """For your own benchmark: the CUB benchmark with the policy selectors to use."""
    parameters: dict[str, Range]
    """Label → `start:end:step`, in the order of variant labels."""
    units: dict[str, Unit] = Field(default_factory=dict)
    """Label → the benchmark's unit; plain if not given."""
    fixed: dict[str, int] = Field(default_factory=dict)
    """Label → the only supported value of a parameter that entries and returns cannot express."""
    constraints: tuple[ExpressionText, ...] = ()
    """Conditions on parameters, and on sizes of roles, without which a variant does not compile."""
    always: dict[str, int | str] = Field(default_factory=dict)
    """Value → its fixed value in every variant, set by the benchmark and required of the policy."""
    returns: dict[str, MemberRule] = Field(default_factory=dict)
    """Value → its source in a guarded return, if it differs from the newest family."""
    first: FirstReturnBinding | None = None
    """For computed values: how a return is inserted before the computation."""
    renamed: dict[str, str] = Field(default_factory=dict)
    """Axis → names of earlier versions of the same axis in databases."""
    needs: tuple[str, ...] = ()
    """Benchmarks that a decision also needs, because an algorithm uses the kernels of both."""
    called: dict[str, str] = Field(default_factory=dict)
    """Parameter → its name in other tuners."""
    ignored: tuple[str, ...] = ()
    """Axes that no key uses."""
    algorithm_call: str | None = None
    """The device API call that instantiates the algorithm."""
    call_header: str | None = None
    least_arch: str | None = None
    """The first architecture that supports it; earlier ones get no values."""
    writable: bool = True
    edit: str | None = None
    """What would need editing if no entry can express a variant's values."""
    unmeasured: str | None = None
    """Why it cannot be measured."""
    note: str | None = None

    def values(self, label: str) -> range:
        """Returns the search range of a parameter, including its end."""
        start, end, step = (int(part) for part in self.parameters[label].split(":"))
        return range(start, end + 1, step)

    @model_validator(mode="after")
    def _check_edit(self) -> Self:
        if not self.writable and not self.edit:
            raise ValueError(
                "a benchmark that is not writable must say what would have to be edited"
            )
        return self


# Passing of a policy to CUB 2.8 to 3.4: the `[[hub]]` tables of bindings


class DispatchBinding(Versioned):
    """A CUB class that runs an algorithm with a given policy hub."""

    benchmarks: tuple[str, ...]
    workload: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The values of compile-time axes that it applies to; all if empty."""
    name: str
    """`cub::DispatchScan`."""
    takes: tuple[str, ...]
    """Its template arguments before the hub, in terms of roles and of `axis::T`."""
    default: str | None = None
    """CUB's own hub, if the class has a different default or none."""
    setup: tuple[str, ...] = ()
    """C++ statements before the call."""
    call: str
    """A member's call, in terms of `storage`, `bytes` and `stream`: `Dispatch(storage, …)`."""

    def serves(self, benchmark: str, values: dict[str, str]) -> bool:
        """Returns whether it runs a workload of a benchmark."""
        return benchmark in self.benchmarks and all(
            values.get(axis) in accepted for axis, accepted in self.workload.items()
        )


class HubBinding(Versioned):
    """The contents of a custom policy hub, as C++ in terms of roles; `{ipt}` is a macro."""

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


class BufferBinding(Record):
    """Memory of the GPU that a run reads or writes."""

    type: str
    """The element type, as C++ in terms of roles and `axis::T`."""
    count: str
    """The number of elements, as C++ in terms of runtime axes and sizes."""
    fill: str | None = None
    """A call that generates the benchmark's contents; none for buffers that are only written."""
    exact: str | None = None
    """A call that generates contents for bitwise equal results, if those of `fill` are not."""
    result: Literal["equal", "close", "set"] | None = None
    """How the result is compared with base's: `set` means in any order."""
    tolerance: float = Field(default=0, ge=0, le=1)
    """Allowed relative difference from base's result."""
    same: str | None = None
    """A functor that compares two elements, instead of a byte comparison."""
    group: str | None = None
    """The number of adjacent elements that form a set; all if empty."""
    beside: str | None = None
    """The buffer with one element for each element of a set."""
    modified: bool = False
    """Whether a run modifies its inputs, so that they are restored before each run."""

    @model_validator(mode="after")
    def _check_result_kind(self) -> Self:
        if (self.result == "close") != (self.tolerance > 0):
            raise ValueError("a tolerance belongs to a result that is close")
        if (self.group or self.beside) and self.result != "set":
            raise ValueError("group and beside belong to a result that is a set")
        return self


Form = Literal["environment", "storage", "stream"]
"""The additional arguments of a call: storage, stream, or environment."""


class RunBinding(Versioned):
    """How benchmarks run on a GPU: their buffers, sizes and the call."""

    benchmarks: tuple[str, ...]
    subbench: str = "base"
    subbenches: tuple[str, ...] = ()
    """Several benchmarks that run in the same way, instead of `name`."""
    variations: dict[str, str] = Field(default_factory=dict)
    """Sub-benchmark → its prefix before `support`; then these are all sub-benchmarks."""
    workload: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The values of compile-time axes that it applies to; all if empty."""
    words: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Runtime axis → its words, passed to units as 0, 1, …"""
    sizes: dict[str, str] = Field(default_factory=dict)
    """Integer → C++ in terms of runtime axes and earlier integers."""
    axes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Runtime axis → its values, if `axes.toml` does not declare them for the benchmark."""
    weights: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """The weights of those values, if they differ from CCCL's."""
    skip: str | None = None
    """When the benchmark skips a runtime workload."""
    buffers: dict[str, BufferBinding]
    includes: tuple[str, ...] = ()
    support: str = ""
    """C++ declarations before the calls: operators."""
    setup: str = ""
    """C++ statements before the call."""
    function: str
    """`cub::DeviceScan::ExclusiveSum`."""
    arguments: str
    """The arguments after the temporary storage or before the environment: `in, out, num_items`."""
    form: Form = "environment"
    """An environment after the arguments, a stream, or a stream and preceding storage."""
    storage_below: str | None = None
    """Earlier versions take storage and a stream, and otherwise the same arguments."""
    stream_below: str | None = None
    """Earlier versions take only a stream, and otherwise the same arguments."""
    environment: str = "env"
    """The environment argument in terms of `env`, or the stream argument in terms of `stream`."""

    def form_in(self, version: str) -> Form:
        """Returns what a version's call takes besides its arguments."""
        if self.storage_below and numbers(version) < numbers(self.storage_below):
            return "storage"
        if self.stream_below and numbers(version) < numbers(self.stream_below):
            return "stream"
        return self.form

    @property
    def every_subbench(self) -> tuple[str, ...]:
        """The sub-benchmarks with this run."""
        return tuple(self.variations) or self.subbenches or (self.subbench,)

    def of(self, subbench: str) -> Self:
        """Returns the run of one of its sub-benchmarks."""
        own_support = self.variations.get(subbench, "")
        support = "\n".join(filter(None, [own_support.strip(), self.support.strip()]))
        single_subbench = {"subbench": subbench, "subbenches": (), "variations": {}}
        return self.model_copy(update={**single_subbench, "support": support})


class OwnCallBinding(Versioned):
    """How your own workload changes a benchmark: a `[[workload]]` table of bindings."""

    algorithm: str
    """Its name in workload files: `DeviceReduce::Reduce`."""
    like: str
    """The benchmark that provides policies, search space and buffers."""
    about: str
    """Its description in a template of such a file."""
    types: dict[str, str]
    """Axis → its description in a template; axes are types or constants."""
    defaults: dict[str, str] = Field(default_factory=dict)
    """Axis → its default value; axes without one must be given."""
    operator: str | None = None
    """The purpose of the functor, in a template; none if it takes no functor."""
    role: str | None = None
    """The role that the functor fills."""
    plain: str | None = None
    """The default functor."""
    numbers: tuple[str, ...] = ()
    """Axes that must be numeric types, not user types."""
    inputs: tuple[str, ...] = ("in",)
    """The buffers filled as the file describes."""
    arguments: str | None = None
    """The arguments of the call, instead of the benchmark's; the functor is `axis::Op`."""
    roles: dict[str, str] = Field(default_factory=dict)
    """Roles that differ from the benchmark's."""
    fills: dict[str, str] = Field(default_factory=dict)
    """Buffer → the call that generates its contents, instead of the benchmark's."""
    sizes: dict[str, str] | None = None
    """Integers, instead of the benchmark's."""
    axes: dict[str, str] = Field(default_factory=dict)
    """Runtime axis → its default value."""


class Binding(Record):
    """One file of `schemas/bindings/`: an algorithm."""

    algorithm: str
    library: Library = "cub"
    sites: tuple[Site, ...] = Field(alias="site", default=())
    families: tuple[FamilyBinding, ...] = Field(alias="family", default=())
    benchmarks: tuple[BenchmarkBinding, ...] = Field(alias="benchmark", default=())
    selectors: tuple[SelectorBinding, ...] = Field(alias="selector", default=())
    hubs: tuple[HubBinding, ...] = Field(alias="hub", default=())
    """How benchmarks pass policies to CUB 2.8 to 3.4."""
    calls: tuple[Call, ...] = Field(alias="call", default=())
    """Workloads beyond those of benchmarks, for `audit reach`."""
    runs: tuple[RunBinding, ...] = Field(alias="run", default=())
    """What `policygen measure` runs."""
    own: tuple[OwnCallBinding, ...] = Field(alias="workload", default=())
    """The algorithms that your own workloads can use."""
    types: tuple[AxisType, ...] = ()
    """Axis values in addition to those of `types.toml`."""


class LibraryTypes(Record):
    """`schemas/bindings/LIBRARY/types.toml`: axis values of a library other than CUB."""

    types: tuple[AxisType, ...]
    groups: tuple[Group, ...] = ()
    tested: Versioned = Versioned()
    """The versions of the benchmarks that the bindings were compared with; all if empty."""
    compiled: tuple[str, ...]
    """The versions of the headers that the bindings were compiled with."""
