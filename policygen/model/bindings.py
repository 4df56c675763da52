"""Maps benchmarks' workloads and parameters to CUB's tunings: `schemas/bindings/*.toml`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from policygen.model.own_workload import OwnCallBinding
from policygen.model.records import Record
from policygen.model.trees import NAMESPACES, OF_FUNCTIONS, Dialect, Library, Versioned, numbers

NOMINAL = 4
"""Element size in bytes to which scaled counts refer."""
# "7:24:1", "-16:16:4"
Range = Annotated[str, Field(pattern=r"^-?[0-9]{1,9}:-?[0-9]{1,9}:[1-9][0-9]{0,8}$")]


class AxisType(Versioned):
    """A value of a type axis: `I8`, and what it is in C++."""

    name: str
    also: tuple[str, ...] = ()
    """What other results call it."""
    cpp: str = ""
    """A type; a value that is a constant is written as it stands."""
    size: int | None = None
    """In bytes; none for a functor."""
    header: str | None = None
    guard: str | None = None
    """The preprocessor condition under which CUB writes about it: `_CCCL_HAS_INT128()`."""
    floating: bool = False
    """Whether it is a floating-point type, where something asks for that alone."""
    twin: str | None = None
    """The unsigned type that gets an entry of its own, which inherits from this one's."""


class DelayConstructor(Record):
    """One of CUB's ways to wait for a predecessor's tile."""

    id: int | None = None
    """The value of `dcid`; none for one that no benchmark tries."""
    type: str
    """`fixed_delay_constructor_t`, as families name it."""
    kind: str
    """`fixed_delay`, as policy selectors do."""
    args: tuple[str, ...]
    """`ns`, `l2w`, or a constant."""

    def spelled(self, ns: object, l2w: object) -> str:
        """Returns a spelling such as `fixed_delay_constructor_t<350, 450>`."""
        value_by_name = {"ns": str(ns), "l2w": str(l2w)}
        return f"{self.type}<{', '.join(value_by_name.get(arg, arg) for arg in self.args)}>"


class Scaling(Record):
    """How CUB makes a thread's items of a count for elements of 4 bytes."""

    name: str
    most: int
    """How many times the count they are at most."""
    bounded: bool
    """Whether threads are fewer where their tile would not fit into shared memory."""
    function: str | None = None
    """CUB's own, of policy selectors; threads and items come from one that is bounded."""

    def items(self, count: int, size: int) -> int:
        """Returns the items per thread for elements of a size, at least one."""
        return max(1, min(count * NOMINAL // size, count * self.most))


class Group(Versioned):
    """A name for a list of values, for axes that many benchmarks have."""

    name: str
    values: tuple[str, ...]


# Limits of values


class Limit(Record):
    """What a value of an entry can be, whatever was measured; a count beyond it is refused."""

    members: tuple[str, ...]
    """Members of families and fields of aggregates, by the last part of their path."""
    least: int
    most: int | None = None
    reason: str

    def allows(self, value: int) -> bool:
        """Returns whether a count is possible."""
        return value >= self.least and (self.most is None or value <= self.most)


class Types(Record):
    """`schemas/bindings/types.toml`: what axis values and delay constructors are called."""

    tested: Versioned
    """The versions of CUB whose benchmarks the bindings were compared with."""
    compiled: tuple[str, ...]
    """The versions whose headers they were compiled with: `3.2`."""
    helper_kernels: tuple[str, ...] = ()
    """Kernels that algorithms bring along and never run."""
    open_classes: tuple[str, ...] = ()
    """Enumerations whose `no` stands for every type that is no number of its size."""
    spellings: dict[str, str] = Field(default_factory=dict)
    """A type as headers have it → as the compiler prints it."""
    types: tuple[AxisType, ...]
    groups: tuple[Group, ...] = ()
    delays: tuple[DelayConstructor, ...]
    scalings: tuple[Scaling, ...]
    limits: tuple[Limit, ...] = ()


class Unit(Record):
    """What a count is counted in, when it is not used as it stands."""

    scaling: str
    """The name of one: `nominal_4b`."""
    of: str
    """The role whose size scales it: `InputT`."""


class MemberRule(Record):
    """How a member of an entry comes from a variant's parameters; one of the forms."""

    parameter: str | None = None
    """The label: `ipt`."""
    choices: tuple[str, ...] | None = None
    """The parameter's values 0, 1, … in this order."""
    power_of_two: bool = False
    unit: Unit | None = None
    """The unit in which the header has it."""
    delay: tuple[str, str, str] | None = None
    """The labels of a delay constructor's id, its delay and its write latency."""
    constant: str | None = None
    """A value that no parameter tunes."""
    shown: str | None = None
    """What the policy calls it, where that is another name."""
    times: str | int | None = None
    """What a count is multiplied with: a number, or what another parameter says."""
    plus: int = 0
    """What is added to a count."""
    bias: bool = False
    """The parameter is added to what CUB has; only a selector of a user's own can say so."""

    @property
    def parameters(self) -> frozenset[str]:
        """The labels of its parameters."""
        return frozenset(self.delay or filter(None, [self.parameter]))

    @model_validator(mode="after")
    def _check_single_form(self) -> Self:
        if sum(form is not None for form in (self.parameter, self.delay, self.constant)) != 1:
            raise ValueError("needs exactly one of parameter, delay and constant")
        of_a_parameter = (
            self.choices,
            self.power_of_two,
            self.unit,
            self.times,
            self.plus,
            self.bias,
        )
        if self.parameter is None and any(of_a_parameter):
            raise ValueError(
                "choices, power_of_two, unit, times, plus and bias belong to a parameter"
            )
        return self


class ValuesBase(Record):
    """A template that gives an entry its values: `sm90_tuning_vals<T, 128, 24, 648, 1245>`."""

    name: str
    args: tuple[str, ...]
    """`{0}` is the entry's first argument, `{items}` a member's value, `{ns}` and `{l2w}` a
    delay's."""
    needs: dict[str, str]
    """Members with the only value that it can give them; a delay by its type."""


class FamilyBinding(Versioned):
    """A family that a site's policies read, and how its entries are keyed and filled."""

    site: str
    name: str
    """`sm100_tuning`."""
    args: tuple[str, ...]
    """The key: one C++ expression per template parameter, in terms of the workload's roles."""
    members: dict[str, MemberRule]
    """In the order in which the header's entries have them."""
    optional: dict[str, MemberRule] = Field(default_factory=dict)
    """Values that only some returns say, and others leave to the policy."""
    layout: Literal["block", "line"] = "block"
    base: ValuesBase | None = None
    """What its entries inherit their values from."""
    mark: str = "items"
    """A whole number that the policy scales by a power of two at most: it can carry a mark."""


class Alias(Record):
    """What a header calls a type that is no part of CUB's API."""

    name: str
    of: str
    """The type, or the template, as the binding has it: `::cub::detail::arg_min`."""
    parameters: tuple[str, ...] = ()
    """Of a template: `typename T`."""

    @property
    def arguments(self) -> str:
        """The template arguments: `<T, IndexT>`."""
        names = ", ".join(parameter.split()[-1] for parameter in self.parameters)
        return f"<{names}>" if names else ""


class SelectorBinding(Versioned):
    """A policy selector of a user's own, as `policygen emit` writes it for a site."""

    site: str
    name: str
    """What the selector is called; several of a name are one, for benchmarks that differ."""
    policy: str
    """The public aggregate that it returns, in namespace `cub`."""
    header: str
    """What a call of the algorithm includes."""
    benchmarks: tuple[str, ...] = ()
    """Those that it serves; all of the site where it names none."""
    default: str | None = None
    """CUB's own selector in terms of roles, where the site's hub is more than that."""
    selects: str | None = None
    """The aggregate that CUB's own selector returns, where it is another one."""
    members: dict[str, MemberRule] = Field(default_factory=dict)
    """Field → what fills it, besides what the site's newest family says; a delay by its policy."""
    inherits: bool = True
    """Whether the site's newest family says what parameters mean."""
    sized: tuple[str, ...] = ()
    """Roles of which CUB looks at the size alone."""
    copies: dict[str, str] = Field(default_factory=dict)
    """Field → the field whose values it takes."""
    takes: str
    """The parameters of an example, in terms of roles: `const AccumT* in, AccumT* out, int n`."""
    call: str
    """The call of the algorithm in it, with the environment `env`."""
    calls: dict[str, str] = Field(default_factory=dict)
    """Value of an axis → the call in its place: maxima are found by another function."""
    aliases: tuple[Alias, ...] = ()


# Conditions of a header


class Opening(Record):
    """What a header asks for, and holds nothing without; a question says that it is so."""

    macro: str
    """Without its parentheses: `_CCCL_CUB_HAS_TILE_TRANSFORM`."""
    header: str
    """The one that defines it."""


class Site(Versioned):
    """A place where CUB selects a policy, in one dialect."""

    name: str
    dialect: Dialect
    header: str
    namespace: str
    """Without `cub::`."""
    includes: tuple[str, ...] = ()
    opened: Opening | None = None
    """Where the header holds nothing unless a macro says so."""
    hub: str
    """The policy hub, or the policy selector, with the roles of the workload."""
    max_policy: str = "MaxPolicy"
    """What the hub calls the policy of its newest architecture."""
    policy: str = ""
    """The member of the active policy, or of the selected one, that holds the values."""
    support: tuple[str, ...] = ()
    """C++ templates before the workloads."""
    setup: tuple[str, ...] = ()
    """C++ declarations between the policy and its values."""
    values: dict[str, str]
    """Value → C++ constant in terms of `policy`."""
    types: dict[str, str] = Field(default_factory=dict)
    """Value → C++ type in terms of `policy`."""
    used_by: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Where the policy names an `algorithm`: which values that one alone uses."""
    delay: tuple[str, str, str] | None = None
    """Of a policy selector: the algorithm, the delay and the write latency of a delay policy."""
    arguments: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Of a policy selector: value → what functions that make a policy call it."""
    configs: tuple[str, ...] = ()
    """Of rocPRIM's: the templates that a config may be, or the struct that a picker returns."""
    targets: str = ""
    """The list of the targets that pickers are for; none where a config is a template."""
    table: bool = False
    """Of rocPRIM's: whether the hub is a table by hand, which knows architectures by numbers."""
    untuned: str | None = None
    """Of a policy selector: one of the same sizes that no tuning was made for."""
    marked: str = "items"
    """The value in which a mark of an entry shows."""

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
        return f"{NAMESPACES.get(self.dialect, 'cub')}::{self.namespace}"


class Call(Versioned):
    """What instantiates an algorithm: axes with their values, and the roles that they fill."""

    site: str
    axes: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """Compile-time axis → the values, or the name of a group of them."""
    roles: dict[str, str] = Field(default_factory=dict)
    """Role → the C++ type that fills it, in terms of earlier ones and of `axis::T`."""
    constants: dict[str, str] = Field(default_factory=dict)
    """Role → the C++ constant that fills it."""
    includes: tuple[str, ...] = ()
    """Headers that those need besides; one that lies beside the binding is found there."""


class FirstReturnBinding(Record):
    """Where a return goes that comes before what is computed, and what it asks for."""

    function: str = "operator()"
    """Of the policy selector."""
    part: str = ""
    """Where that which it returns is in what is selected: `lookahead`."""
    asks: tuple[str, ...]
    """Members of the policy selector that tell workloads apart."""


class BenchmarkBinding(Call):
    """One benchmark, in a range of CUB versions."""

    name: str
    like: str | None = None
    """Of one's own: the benchmark of CUB's whose policy selectors serve it, too."""
    parameters: dict[str, Range]
    """Label → `start:end:step`, in the order of variant labels."""
    units: dict[str, Unit] = Field(default_factory=dict)
    """Label → the unit in which the benchmark counts; plain where it is silent."""
    fixed: dict[str, int] = Field(default_factory=dict)
    """Label → the only value that an entry or a return can stand for, as it has no place there."""
    always: dict[str, int | str] = Field(default_factory=dict)
    """Value → what it is in every variant: what the benchmark fixes, and its policy has to have."""
    returns: dict[str, MemberRule] = Field(default_factory=dict)
    """Value → what fills it in a guarded return, where that is not as the newest family has it."""
    first: FirstReturnBinding | None = None
    """Where the values are computed: how a return comes before that."""
    renamed: dict[str, str] = Field(default_factory=dict)
    """Axis → what earlier versions of the same axis are called in databases."""
    needs: tuple[str, ...] = ()
    """Benchmarks without whose results it is not decided: an algorithm has the kernels of both."""
    called: dict[str, str] = Field(default_factory=dict)
    """Parameter → what another tuner than the library's benchmarks calls it."""
    ignored: tuple[str, ...] = ()
    """Axes that no key depends on."""
    algorithm_call: str | None = None
    """The device API call that instantiates the algorithm."""
    call_header: str | None = None
    least_arch: str | None = None
    """The first architecture that has what it runs; earlier ones get no values of it."""
    writable: bool = True
    edit: str | None = None
    """What would have to be edited where no entry can take a variant's values."""
    unmeasured: str | None = None
    """Why it has no run."""
    note: str | None = None

    def values(self, label: str) -> range:
        """Returns the search range of a parameter, including its end."""
        start, end, step = (int(part) for part in self.parameters[label].split(":"))
        return range(start, end + 1, step)

    @model_validator(mode="after")
    def _check_edit(self) -> Self:
        if not self.writable and not self.edit:
            raise ValueError("a benchmark that is not writable says what would have to be edited")
        return self


# Passing of a policy to CUB 2.8 to 3.4: the `[[hub]]` tables of bindings


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
        """Returns whether it runs a workload of a benchmark."""
        return benchmark in self.benchmarks and all(
            values.get(axis) in accepted for axis, accepted in self.workload.items()
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


# Runs of benchmarks on a GPU: the `[[run]]` tables of bindings


class BufferBinding(Record):
    """Memory of the GPU that a run reads or writes."""

    type: str
    """Of its elements, in C++ in terms of roles and of `axis::T`."""
    count: str
    """How many, in C++ in terms of runtime axes and of sizes."""
    fill: str | None = None
    """A call that makes its contents as the benchmark has them; none for what is only written."""
    exact: str | None = None
    """One that makes contents with which results are equal bit for bit, where `fill`'s are not."""
    result: Literal["equal", "close", "set"] | None = None
    """How it is compared with what base makes of it: `set` in any order."""
    tolerance: float = Field(default=0, ge=0, le=1)
    """How far from base's a result may be, as a share of it."""
    same: str | None = None
    """A functor of two elements that says whether they are equal, in place of their bytes."""
    group: str | None = None
    """How many elements that stand together are a set; all without it."""
    beside: str | None = None
    """The buffer whose elements belong to those of a set, one to each."""
    modified: bool = False
    """Whether a run changes what it reads: its contents are made anew before each."""

    @model_validator(mode="after")
    def _check_result_kind(self) -> Self:
        if (self.result == "close") != (self.tolerance > 0):
            raise ValueError("a tolerance belongs to a result that is close")
        if (self.group or self.beside) and self.result != "set":
            raise ValueError("group and beside belong to a result that is a set")
        return self


Form = Literal["environment", "storage", "stream"]
"""What a call takes besides its arguments."""


class RunBinding(Versioned):
    """How benchmarks run on a GPU: their buffers, sizes and the call."""

    benchmarks: tuple[str, ...]
    subbench: str = "base"
    subbenches: tuple[str, ...] = ()
    """Several that run so, in its place."""
    variations: dict[str, str] = Field(default_factory=dict)
    """Sub-benchmark → what it has in front of `support`; they are all then."""
    workload: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Values of compile-time axes that it holds for; all without it."""
    words: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Runtime axis → its words, which units take as 0, 1, …"""
    sizes: dict[str, str] = Field(default_factory=dict)
    """Whole number → C++ in terms of runtime axes and of earlier ones."""
    axes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Runtime axis → its values, where they are not declared for the benchmark by `axes.toml`."""
    weights: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """Of those values, where they are not as CCCL weighs them."""
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
    """Between the temporary storage, or before the environment: `in, out, num_items`."""
    form: Form = "environment"
    """An environment behind the arguments, a stream, or a stream and the storage before them."""
    storage_below: str | None = None
    """Versions before this one take storage and a stream, and the same arguments otherwise."""
    stream_below: str | None = None
    """Versions before this one take a stream alone, and the same arguments otherwise."""
    environment: str = "env"
    """The environment that is given, in terms of `env`; else the stream, in terms of `stream`."""

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


class Binding(Record):
    """One file of `schemas/bindings/`: an algorithm."""

    algorithm: str
    library: Library = "cub"
    sites: tuple[Site, ...] = Field(alias="site", default=())
    families: tuple[FamilyBinding, ...] = Field(alias="family", default=())
    benchmarks: tuple[BenchmarkBinding, ...] = Field(alias="benchmark", default=())
    selectors: tuple[SelectorBinding, ...] = Field(alias="selector", default=())
    hubs: tuple[HubBinding, ...] = Field(alias="hub", default=())
    """How benchmarks give policies to CUB 2.8 to 3.4."""
    calls: tuple[Call, ...] = Field(alias="call", default=())
    """Workloads beyond those of benchmarks, for `audit reach`."""
    runs: tuple[RunBinding, ...] = Field(alias="run", default=())
    """What `policygen measure` runs."""
    own: tuple[OwnCallBinding, ...] = Field(alias="workload", default=())
    """What workloads of one's own can be of."""
    types: tuple[AxisType, ...] = ()
    """Values of axes besides those of `types.toml`."""


# `schemas/bindings/LIBRARY/types.toml`: axis types of a library other than CUB


class LibraryTypes(Record):
    """`schemas/bindings/LIBRARY/types.toml`: what the axes of another library than CUB have."""

    types: tuple[AxisType, ...]
    groups: tuple[Group, ...] = ()
    tested: Versioned = Versioned()
    """The versions whose benchmarks the bindings were compared with; all where it says none."""
    compiled: tuple[str, ...]
    """The versions whose headers the bindings were compiled with."""
