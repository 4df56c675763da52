"""What libclang says that tables by hand give, computed a second time from their text."""

import re
from collections import Counter
from functools import cache

import pytest

from tests.real_trees import rocprim_tree
from tests.rocprim.places import resolved
from tests.rocprim.test_selected import SIZES

pytestmark = pytest.mark.trees

KERNEL = ("BlockSize", "ItemsPerThread", "SizeLimit")
SCAN = (
    "BlockSize", "ItemsPerThread", "UseLookback", "BlockLoadMethod", "BlockStoreMethod",
    "BlockScanMethod",
)  # fmt: skip
NAMES = {
    "kernel_config": KERNEL,
    "merge_config": KERNEL,
    "transform_config": KERNEL,
    "adjacent_difference_config": KERNEL,
    "reduce_config": ("BlockSize", "ItemsPerThread", "BlockReduceMethod"),
    "scan_config": SCAN,
    "select_config": (
        "BlockSize", "ItemsPerThread", "KeyBlockLoadMethod", "ValueBlockLoadMethod",
        "FlagBlockLoadMethod", "BlockScanMethod",
    ),
    "histogram_config": ("HistogramConfig", "MaxGridSize", "SharedImplMaxBins"),
    "reduce_by_key_config": ("ScanConfig", "ReduceConfig"),
    "radix_sort_config": (
        "LongRadixBits", "ShortRadixBits", "ScanConfig", "SortConfig", "SortSingleConfig",
        "SortMergeConfig", "MergeSizeLimitBlocks",
    ),
    "segmented_radix_sort_config": (
        "LongRadixBits", "ShortRadixBits", "SortConfig", "WarpSortConfig",
    ),
    "WarpSortConfig": (
        "LogicalWarpSizeSmall", "ItemsPerThreadSmall", "BlockSizeSmall", "PartitioningThreshold",
        "EnableUnpartitionedWarpSort", "LogicalWarpSizeMedium", "ItemsPerThreadMedium",
        "BlockSizeMedium",
    ),
    "merge_sort_config": (
        "MergeImpl1BlockSize", "SortBlockSize", "SortItemsPerThread",
        "MergeImplMPPartitionBlockSize", "MergeImplMPBlockSize", "MergeImplMPItemsPerThread",
        "MinInputSizeMergepath",
    ),
}  # fmt: skip
"""What the parameters of configs are called, as their documentation says."""
NUMBERS = {"gfx90a": ("ROCPRIM_ARCH_90a",)}
BY_HAND = {
    "5.3.3": (
        "adjacent_difference", "histogram", "merge", "merge_sort", "radix_sort", "reduce",
        "reduce_by_key", "scan", "scan_by_key", "segmented_radix_sort", "select", "transform",
    ),
    "5.7.1": ("adjacent_difference", "merge", "segmented_radix_sort", "select", "transform"),
}  # fmt: skip
COUNTS = {
    "5.3.3": {"tuned": 910, "inherited": 293, "default": 2185},
    "5.7.1": {"tuned": 285, "inherited": 16, "default": 497},
}


def listed(text):
    """The parts of a list between commas, whatever brackets hold; shifts and `<=` are none."""
    parts, depth, at = [], 0, 0
    for place, sign in enumerate(
        re.sub(r"<=|>=| < (?=\d)| > (?=\d)", "##", text.replace("->", "##"))
    ):
        depth += (sign in "<({") - (sign in ">)}")
        if sign == "," and not depth:
            parts.append(text[at:place].strip())
            at = place + 1
    return [*parts, text[at:].strip()]


def taken_apart(text):
    """A template and its arguments; no arguments where it is none."""
    text = text.strip().removeprefix("typename ").removeprefix("detail::")
    name, _, rest = text.partition("<")
    if not rest or not text.endswith(">"):
        return text, None
    return name.strip(), listed(rest[:-1].strip())


@cache
def structs(release, algorithm):
    """The structs of a header: name, parameters, arguments, and all that is behind these."""
    path = rocprim_tree(release) / f"rocprim/device/device_{algorithm}_config.hpp"
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.S)
    found = []
    for chunk in re.split(r"^template\b\s*(?=<)", text, flags=re.M)[1:]:
        flat = " ".join(chunk.split())
        if match := re.match(r"<(.*?)>\s*struct (\w+)(?:<([^{:]*(?:::[^{:]*)*?)>)? (?=[{:])", flat):
            body = flat[match.end() :]
            parameters = [
                one.partition("=")[0].split()[-1]
                for one in listed(match[1].replace("::value", ""))
                if one and len(one.partition("=")[0].split()) > 1
            ]
            args = None if match[3] is None else listed(match[3])
            found.append((match[2], parameters, args, body))
    return found


def is_scalar(name):
    return name != "rocprim::int128_t"  # what the standard's traits do not know


def struct_for(release, algorithm, name, types):
    """The specialization that names most of the types, with what its parameters are."""
    best = None
    for called, parameters, args, body in structs(release, algorithm):
        if called != name:
            continue
        own = args or parameters
        given = [*types, str(is_scalar(types[0])).lower()]
        pairs = list(zip(own, given, strict=False))
        if any(mine not in parameters and short(mine) != short(one) for mine, one in pairs):
            continue
        named = sum(mine not in parameters for mine, _ in pairs) if args else -1
        if best is None or named > best[0]:
            bound = {mine: one for mine, one in pairs if mine in parameters}
            best = named, bound, body
    return best


def short(name):
    return name.rpartition("::")[2]


def limit(most, memory, least):
    while most * memory > 1 << 15:
        most = (1 << (most - 1).bit_length()) // 2
        assert most >= least
    return most


def value(text, bound, scope):
    """A constant, by Python's own arithmetic; an enumerator by its last name."""
    text = re.sub(r"sizeof\(([\w:]+)\)", lambda m: str(size(m[1], bound)), text)
    text = re.sub(r"limit_block_size<(.*)>::value", r"limit(\1)", text)
    text = re.sub(r"(?:\w*::)*ceiling_div(?:<[\w ]+>)?", "ceiling", text)
    text = re.sub(r"\b(\d+)[uU]\b", r"\1", text).replace("ROCPRIM_WARP_SIZE_", "")
    text = text.replace("::rocprim::max", "max").replace("&&", " and ").replace("/", "//")
    if re.fullmatch(r"(?:::)?(?:\w+::)+\w+", text):
        return short(text)
    known = {**scope, **{name: int(one) for name, one in bound.items() if one.isdigit()}}
    tools = {"limit": limit, "ceiling": lambda a, b: -(-a // b), "max": max}
    return eval(text, tools, known)


def size(name, bound):
    return {**SIZES, "int": 4, "unsigned int": 4}[bound.get(name, name)]


def scope_of(body, bound):
    """What a struct computes, and what it calls the configs that it uses."""
    scope = {}
    for name, text in re.findall(r"static constexpr unsigned int (\w+) = ([^;]*);", body):
        scope[name] = value(text, bound, scope)
    return scope, dict(re.findall(r"using (\w+) = ([^;]*);", body))


def chosen(text, bound, scope):
    """The config of the first case that holds, and whether that asks for something."""
    name, args = taken_apart(text)
    if name != "select_type":
        return text, False
    for one in args:
        case, parts = taken_apart(one)
        if case != "select_type_case":
            return one, False
        if value(parts[0], bound, scope):
            return parts[1], True
    raise AssertionError(text)


def said(text, bound, scope, configs):
    """All that a config says, by the names of its parameters."""
    name, args = taken_apart(configs.get(text, text))
    found = {}
    for called, arg in zip(NAMES[name], args, strict=False):
        inner, parts = taken_apart(configs.get(arg, arg))
        if inner == "select_warp_sort_config_t":
            found |= {f"{called}.{k}": v for k, v in warps(parts, bound).items()} or {
                called: "rocprim::DisabledWarpSortConfig"
            }
        elif inner in NAMES:
            more = said(arg, bound, scope, configs)
            found |= {f"{called}.{name}": one for name, one in more.items()}
        elif arg != "ROCPRIM_DETAIL_USE_LOOKBACK_SCAN":
            found[called] = value(arg, bound, scope)
    return merge_defaults(found) if name == "merge_sort_config" else found


def warps(parts, bound):
    width = size(parts[0], bound)
    medium = 64 if parts[1:] else 32
    return dict(zip(NAMES["WarpSortConfig"], (32, 4, 256, 3000, width > 2, medium, 4, 256),
                    strict=True)) if width > 1 else {}  # fmt: skip


def merge_defaults(found):
    """What a config of merge sort has where it says less."""
    threads = found.setdefault("SortBlockSize", found["MergeImpl1BlockSize"])
    items = found.setdefault("SortItemsPerThread", 1)
    found.setdefault("MergeImplMPPartitionBlockSize", 128)
    merging = found.setdefault("MergeImplMPBlockSize", min(threads, 128))
    found.setdefault("MergeImplMPItemsPerThread", threads * items // merging)
    found.setdefault("MinInputSizeMergepath", 200000)
    return found


def row_of_table(release, algorithm, arch):
    """What the table gives an architecture, and whether it has a row of its own."""
    body = next(
        b for n, _, _, b in structs(release, algorithm) if n == f"default_{algorithm}_config"
    )
    _, (_, *rows) = taken_apart(body.lstrip(": ").partition("{")[0].strip())
    for row in rows:
        name, args = taken_apart(row)
        if name == "select_arch_case" and args[0] in {arch[3:], *NUMBERS.get(arch, ())}:
            return taken_apart(args[1]), True
    return taken_apart(rows[-1]), False


def expected(release, algorithm, arch, types):
    """What a workload gets, and whose that is."""
    (name, args), own = row_of_table(release, algorithm, arch)
    named, bound, body = struct_for(release, algorithm, name, types[: len(args)])
    scope, configs = scope_of(body, bound)
    text = configs.get("type") or body.lstrip(": ").partition("{")[0].strip()
    config, asks = chosen(text, bound, scope)
    whose = "tuned" if own or arch == "unknown" else "inherited"
    return said(config, bound, scope, configs), whose if asks or named > 0 else "default"


@pytest.mark.slow
@pytest.mark.parametrize("release", BY_HAND)
def test_libclang_and_python_agree_on_every_row_of_every_table(capsys, release):
    asked = f"rocprim.device_({'|'.join(BY_HAND[release])})$"
    document, err = resolved(capsys, rocprim_tree(release), "-R", asked)
    assert err == ""
    seen, algorithms = Counter(), set()
    for row in document["rows"]:
        algorithm = row["benchmark"].removeprefix("rocprim.device_")
        types = [value for axis, value in row["workload"].items() if axis != "exclusive"]
        mine, status = expected(release, algorithm, row["arch"], types)
        assert mine.items() <= row["values"].items(), row
        left = row["values"].keys() - mine.keys()
        assert all(one.endswith("SizeLimit") or one in DEFAULTS for one in left), left
        assert row["entry"]["header"] == f"device_{algorithm}_config.hpp"
        assert row["status"] == status, row
        seen[status] += 1
        algorithms.add(algorithm)
    assert algorithms == {*BY_HAND[release]}
    assert seen == COUNTS[release]


DEFAULTS = {
    "UseLookback", "LoadMethod", "StoreMethod", "MaxGridSize", "SharedImplMaxBins",
    "SortMergeConfig.BlockSize", "SortMergeConfig.ItemsPerThread", "MergeSizeLimitBlocks",
    "ForceSingleKernelConfig",
}  # fmt: skip
"""What no config by hand says."""


def test_a_config_for_all_architectures_has_no_entries(capsys):
    asked = ("-R", "rocprim.device_reduce_by_key$", "--arch", "unknown,gfx90a")
    document, err = resolved(capsys, rocprim_tree("5.7.1"), *asked)
    assert (err, len(document["rows"])) == ("", 2 * 8 * 8)
    for row in document["rows"]:
        tiles = 1 if SIZES[row["workload"]["value_type"]] < 16 else 2
        assert row["values"] | {"BlockSize": 256, "ItemsPerThread": 15} == row["values"]
        assert (row["values"]["TilesPerBlock"], row["status"], row["entry"]) == (
            tiles,
            "default",
            None,
        )
