"""A compiler that is pretended: it takes the entry that fits best, as C++ does, without nvcc.

What it says of a header is what nvcc says of it beside CUB's own policies: test_pretend.py asks.
"""

from dataclasses import dataclass, field

from policygen.headers.protocol import TuningTree
from policygen.headers.scan import read_header
from policygen.model.arch import arch_number
from policygen.model.plans import Options
from policygen.model.selection import Delta, DeltaRow, FamilyKey, Selected
from policygen.model.trees import Cub
from policygen.planning.plan import Planner
from tests.planning.wanted import GPUS, benchmark, made, no_common_variant, scored

VERSION = "3.0.1"
CUB = Cub(root="/made/up", version=VERSION, dialect="specializations", found="--cub")
SUM = "cub.bench.reduce.sum"
SQUARES = "cub.bench.transform_reduce.sum"
BY_KEY = "cub.bench.reduce.by_key"
PRINTED = {
    "I8": "signed char", "I16": "short", "I32": "int", "I64": "long", "I128": "__int128",
    "F32": "float", "F64": "double", "C64": "complex<float>",
}  # fmt: skip
BYTES = {"I8": 1, "I16": 2, "I32": 4, "I64": 8, "I128": 16, "F32": 4, "F64": 8, "C64": 8}
NUMBERS = {"I8", "I16", "I32", "I64", "F32", "F64"}
SPELLED = {
    "__int128": "__int128_t",
    "signed char": "int8_t",
    "long": "int64_t",
    "signed long": "int64_t",
}
ARCHS = ("sm80", "sm90", "sm100")

SUMS = """
template <class T, class OffsetT, op_type Op, offset_size O, accum_size A> struct sm100_tuning;
"""
SUM_MIN = """
template <class T, class OffsetT>
struct sm100_tuning<T, OffsetT, op_type::min_or_max, offset_size::_4, accum_size::_4>
{
  static constexpr int items              = 9;
  static constexpr int threads            = 96;
  static constexpr int items_per_vec_load = 1;
};
"""
SUM_INT = """
template <class T, class OffsetT>
struct sm100_tuning<T, OffsetT, op_type::plus, offset_size::_4, accum_size::_4>
{
  // ipt_16.tpb_512.ipv_2 1.1  1.0  1.1  1.2
  static constexpr int items              = 16;
  static constexpr int threads            = 512;
  static constexpr int items_per_vec_load = 2;
};
"""
KEYED = "".join(
    f"""
template <class KeyT, class AccumT, primitive_op Op, primitive_key K, primitive_accum A,
          key_size KS, accum_size AS>
struct sm{arch}_tuning;
"""
    for arch in (80, 90, 100)
)
KEYED_INT = """
template <class KeyT, class AccumT>
struct sm90_tuning<KeyT, AccumT, primitive_op::yes, primitive_key::yes, primitive_accum::yes, \
key_size::_4, accum_size::_4>
{
  static constexpr int threads                       = 256;
  static constexpr int items                         = 14;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT;
  using delay_constructor                            = detail::no_delay_constructor_t<580>;
};
"""
KEYED_LATER = """
template <class KeyT, class AccumT>
struct sm100_tuning<KeyT, AccumT, primitive_op::yes, primitive_key::yes, primitive_accum::yes, \
key_size::_8, accum_size::_8>
{
  static constexpr int items                         = 10;
  static constexpr int threads                       = 224;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_WARP_TRANSPOSE;
  using delay_constructor                            = detail::no_delay_constructor_t<700>;
  static constexpr CacheLoadModifier load_modifier   = LOAD_CA;
};
"""


def source(namespace, text):
    """A header that holds families of one namespace."""
    head = f"CUB_NAMESPACE_BEGIN\nnamespace detail {{ namespace {namespace} {{"
    return f"{head}{text}}}}}\nCUB_NAMESPACE_END\n".encode()


def summed(t, name=SUM, offset="I32"):
    return name, (("T", t), ("OffsetT", offset))


def keyed(key, value):
    return BY_KEY, (("KeyT", key), ("ValueT", value), ("OffsetT", "I32"))


def args_of(point):
    """A workload's key, as the compiler prints it."""
    name, values = point
    axes = dict(values)
    if name == BY_KEY:
        key, value = axes["KeyT"], axes["ValueT"]
        accum = "I32" if BYTES[value] < 4 else value
        flags = ["yes" if t in NUMBERS else "no" for t in (key, accum)]
        sizes = [f"_{BYTES[t]}" for t in (key, accum)]
        printed = {**PRINTED, "I64": "signed long"}
        return printed[key], printed[accum], "yes", *flags, *sizes
    accum = "I32" if BYTES[axes["T"]] < 4 and name == SUM else axes["T"]
    size = BYTES[axes["OffsetT"]]
    offset = "unsigned int" if size == 4 else "unsigned long long"
    return PRINTED[accum], offset, "plus", f"_{size}", f"_{BYTES[accum]}"


def sizes_of(point):
    """Of what counts of sums are scaled by; those of sums by key are not."""
    if point[0] == BY_KEY:
        return {}
    size = BYTES[dict(point[1])["T"]]
    return {"AccumT": max(4, size) if point[0] == SUM else size, "axis::T": size}


def shown(point, members):
    """What CUB's policies make of an entry's members: `MemBoundScaling` for sums."""
    if point[0] == BY_KEY:
        return members
    size, count = sizes_of(point)["AccumT"], members["items"]
    items = max(1, min(count * 4 // size, count * 2))
    fitting = (48 * 1024 // (size * items) + 31) // 32 * 32
    return {**members, "items": items, "threads": min(members["threads"], fitting)}


def fits(entry, args):
    free = 0
    for slot, arg in zip(entry.slots, args, strict=True):
        wanted = (slot or "").rpartition("::")[2] if "::" in (slot or "") else slot
        if slot is None:
            free += 1
        elif wanted not in {arg, SPELLED.get(arg)}:
            return None
    return free


def printed(member):
    """A member's value as the compiler has it: a number, or a name without its namespace."""
    value = member.value
    return value.removeprefix("detail::") if isinstance(value, str) else value


@dataclass
class Pretend:
    """Answers about one header; its `points` are all workloads that there are."""

    header: str
    data: bytes
    points: tuple
    defaults: dict
    blind: frozenset = frozenset()
    """Workloads whose policy reads no family: what is written for them is dead."""
    archs: tuple = ARCHS
    compared: list = field(default_factory=list)
    toolchain: str = "pretended"

    def families(self, data):
        found = read_header(self.header, data).families
        return sorted(found, key=lambda f: arch_number(f.arch))

    def lead(self, family, args):
        pairs = [(fits(entry, args), entry) for entry in family.specializations]
        fitting = [pair for pair in pairs if pair[0] is not None]
        if fitting:
            return min(fitting, key=lambda pair: pair[0])[1]
        return next((e for e in family.entries if e.kind == "primary" and e.body_span), None)

    def value(self, families, index, point):
        """What the newest of some families gives, or the ones before it."""
        if index < 0:
            return shown(point, self.defaults)
        family = families[index]
        entry = self.lead(family, args_of(point))
        if entry is None or not (entry.members or entry.inherits):
            return self.value(families, index - 1, point)
        if entry.inherits:
            name = entry.inherits.partition("<")[0]
            (base,) = [i for i, f in enumerate(families) if f.name == name]
            return self.value(families, base, point)
        return shown(point, {**self.defaults, **{m.name: printed(m) for m in entry.members}})

    def values(self, data, point, arch):
        families = [f for f in self.families(data) if arch_number(f.arch) <= arch_number(arch)]
        if point in self.blind:
            return shown(point, self.defaults)
        return self.value(families, len(families) - 1, point)

    def tell(self, points, arch):
        found = {}
        for point in points:
            if point not in self.points:
                continue
            keys = {}
            for family in self.families(self.data):
                entry = self.lead(family, args_of(point))
                keys[family.name] = FamilyKey(args_of(point), entry and (family, entry))
            found[point] = Selected(
                self.values(self.data, point, arch), None, keys, sizes_of(point)
            )
        return found

    def compare(self, changed):
        self.compared.append(dict(changed))
        after = changed[self.header]
        changes = []
        for point in self.points:
            for arch in self.archs:
                was, now = (self.values(d, point, arch) for d in (self.data, after))
                if was != now:
                    changes.append(DeltaRow(*point, arch, was, now))
        return Delta(self.archs, len(self.archs) * len(self.points), tuple(changes))

    def input_changes(self, changed):
        return ()

    def why_not(self, changed, point, arch):
        return f"nobody reads it on {arch}"


SUM_DEFAULTS = {
    "threads": 256, "items": 16, "items_per_vec_load": 4,
    "reduce_algorithm": "BLOCK_REDUCE_WARP_REDUCTIONS", "load_modifier": "LOAD_DEFAULT",
}  # fmt: skip
KEYED_DEFAULTS = {
    "threads": 128, "items": 6, "load_algorithm": "BLOCK_LOAD_DIRECT",
    "load_modifier": "LOAD_DEFAULT",
    "delay_constructor": "reduce_by_key_delay_constructor_t<350, 450, 500>",
}  # fmt: skip


def sums(text=SUMS, types=("I32", "F32"), names=(SUM,), offsets=("I32",), **more):
    """A tree with sums alone, and an entry that none of them has."""
    text += SUM_MIN
    points = tuple(summed(t, name, o) for name in names for t in types for o in offsets)
    return Pretend("tuning_reduce.cuh", source("reduce", text), points, SUM_DEFAULTS, **more)


def by_key(text=KEYED, pairs=(("I32", "I32"), ("I32", "F32")), **more):
    """A tree with sums by key alone."""
    points = tuple(keyed(*pair) for pair in pairs)
    data = source("reduce_by_key", text)
    return Pretend("tuning_reduce_by_key.cuh", data, points, KEYED_DEFAULTS, **more)


def want(point, variant, version=VERSION, gpu=GPUS["sm100"]):
    """A result for a workload: the variant that is chosen, or none."""
    return scored(
        benchmark(version, point[0].removeprefix("cub.bench.")),
        dict(point[1]),
        variant,
        version,
        gpu,
    )


def planner(oracle, *, together=no_common_variant, prove=True, **options):
    header = read_header(oracle.header, oracle.data)
    sources = TuningTree(CUB, {oracle.header: header}, {oracle.header: oracle.data})
    return Planner(sources, Options(**{"arch": "sm100", **options}), oracle, together, prove)


def plan(oracle, wanted, **options):
    """The plan for results by workload."""
    gpu = GPUS[options.get("arch", "sm100")]
    results = [want(point, variant, gpu=gpu) for point, variant in wanted.items()]
    return made(planner(oracle, **options), results)


def told(made):
    """Each workload's first axis values, with what happens and why."""
    return [(" ".join(a.workload.values()), a.decision, a.reason) for a in made.actions]
