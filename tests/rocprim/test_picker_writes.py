"""Results written into pickers: what changes, what is added for a target, and what is refused."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from policygen.bindings.load import bound
from policygen.cli.main import main
from policygen.errors import InputError
from policygen.headers.protocol import EntryWrite, TuningTree
from policygen.headers.scan import read_header
from policygen.headers.spelling import replaced
from policygen.headers.text import Text
from policygen.model.records import Span
from policygen.model.selection import Selected
from policygen.model.trees import Cub
from policygen.model.tuning import Content
from policygen.rocprim import dialect, host
from policygen.rocprim.dialect import Configs, write_configs
from policygen.rocprim.pickers import laid_out, with_values
from policygen.rocprim.placement import TableSpot
from tests.results.rocprim_files import text_of
from tests.rocprim.places import resolved
from tests.rocprim.toy_pickers import (
    COMP,
    HELPER,
    KNOWN,
    OTHER,
    PICKERS,
    REDUCE,
    SMALL,
    TYPES,
    WORDS,
    branch,
    header,
    make_toy,
    picker,
)
from tests.rocprim.tuned import applied, measured
from tests.tiers import sampled

pytestmark = pytest.mark.usefixtures("wide")


@pytest.fixture
def toy(tmp_path):
    return make_toy(tmp_path / "toy")


def values(capsys, root, arch, name):
    """What a type has: threads, items, method."""
    document, _ = resolved(capsys, root, "--arch", arch, "-a", f"key_type={name}")
    (row,) = document["rows"]
    return tuple(row["values"][one] for one in NAMES)


NAMES = ("kernel_config.block_size", "kernel_config.items_per_thread", "block_reduce_method")


def tried(capsys, root, arch, changes, gain=1.2):
    """Imports results that are better by a gain, each of a type with some other values."""
    runs = []
    for name, changed in changes.items():
        threads, items, method = values(capsys, root, arch, name)
        has = {"bs": threads, "ipt": items, "method": method}
        where = ("rocprim.device_reduce", {"key_type": name})
        runs += [(*where, has, 2.0), (*where, {**has, **changed}, 2.0 / gain)]
    Path("r.json").write_text(text_of(measured(runs, arch.partition(":")[0])))
    given = ["--cub", str(root), "--arch", arch, "--force"]
    assert main(["db", "import", "r.json", "-o", "run.db", *given]) == 0
    capsys.readouterr()


def written(capsys, root, arch, changes, **gain):
    """What `apply` says, and the lines that are gone and new."""
    path = root / REDUCE
    old = path.read_text()
    tried(capsys, root, arch, changes, **gain)
    told = applied(capsys, root, arch=arch)
    new = path.read_text()
    return told, [line for line in old.split("\n") if line not in new.split("\n")], new


def everything(capsys, root):
    """What all workloads have on all targets, and on the devices that the toy knows."""
    known = [":".join(one) for one in KNOWN]
    asked = ",".join([*known, "unknown", "gfx906", "gfx942", "gfx1101", "gfx1100"])
    document, _ = resolved(capsys, root, "--arch", asked)
    return {(row["arch"], row["workload"]["key_type"]): row["values"] for row in document["rows"]}


def changed(before, after):
    return {key: after[key] for key in before if before[key] != after[key]}


@pytest.mark.slow
def test_other_values_are_written_with_their_comment(capsys, toy):
    before, text = everything(capsys, toy), (toy / REDUCE).read_text()
    told, gone, new = written(capsys, toy, "gfx942:mi300x", {"int": {"bs": 256, "ipt": 2}})
    assert re.findall(r"^update (\S+ \S+):", told, re.M) == ["rocprim.device_reduce key_type=int"]
    assert gone == [
        "    // CONFIG: {'key_type': 'int', 'block_size_x': 128, 'ipt': 4}",
        "            {128, 4},",
    ]
    assert "    // CONFIG: {'key_type': 'int', 'block_size_x': 256, 'ipt': 2}\n" in new
    after = everything(capsys, toy)
    assert changed(before, after).keys() == {("gfx942:mi300x", "int"), ("gfx942", "int")}
    assert "devices without a target of their own also get it:" in told
    assert "rocprim.device_reduce key_type=int on gfx942\n" in told
    assert main(["verify-effect", "--cub", str(toy), "--store", "store.db"]) == 0
    assert main(["undo", "--cub", str(toy), "--store", "store.db"]) == 0
    assert (toy / REDUCE).read_text() == text


@pytest.mark.slow
def test_a_comment_that_calls_values_otherwise_is_right_afterwards(capsys, toy):
    """Its number tells which value is meant, where its name says another one."""
    _, gone, new = written(capsys, toy, "gfx908:mi100", {"int": {"bs": 512, "ipt": 8}})
    assert "    // CONFIG: {'key_type': 'int', 'ipt': 512, 'block_size_x': 8}\n" in new
    assert "            {512, 8}\n" in new
    assert len(gone) == 2


@pytest.mark.slow
def test_a_value_that_a_return_leaves_out_is_said(capsys, toy):
    _, gone, new = written(capsys, toy, "gfx908:mi100", {"int": {"method": "raking_reduce"}})
    assert gone == ["            {256, 16}"]
    assert "            {256, 16}, block_reduce_algorithm::raking_reduce\n" in new
    assert values(capsys, toy, "gfx908:mi100", "int") == (256, 16, "raking_reduce")


@pytest.mark.slow
def test_an_enumerator_keeps_what_qualifies_it(capsys, toy):
    other = {"method": "raking_reduce_commutative_only"}
    _, _, new = written(capsys, toy, "gfx942:mi300x", {"double": other})
    assert "            ::rocprim::block_reduce_algorithm::raking_reduce_commutative_only\n" in new


@pytest.mark.slow
def test_what_is_worse_or_within_the_noise_stays(capsys, toy):
    for gain in (0.8, 1.0005):
        told, gone, _ = written(capsys, toy, "gfx942:mi300x", {"int": {"ipt": 2}}, gain=gain)
        assert "nothing to write" in told
        assert gone == []


@pytest.mark.slow
def test_a_return_is_added_for_a_type_before_what_is_for_all_others(capsys, toy):
    before = everything(capsys, toy)
    told, gone, new = written(capsys, toy, "gfx942:mi300x", {"short": {"bs": 128, "ipt": 32}})
    assert "add rocprim.device_reduce key_type=short" in told
    assert gone == []
    own = branch(SMALL, "{128, 32}")
    assert f"{own}{OTHER}" in new
    after = everything(capsys, toy)
    # A condition is for a size: int8_t gets it, too.
    assert {arch for arch, _ in changed(before, after)} == {"gfx942:mi300x", "gfx942"}
    assert values(capsys, toy, "gfx942:mi300x", "short")[:2] == (128, 32)


@pytest.mark.slow
def test_a_target_is_added_with_its_comments_and_its_place_in_the_list(capsys, toy):
    before = everything(capsys, toy)
    everything_there = everything_on(capsys, toy, "gfx942:mi308x")
    told, gone, new = written(
        capsys, toy, "gfx942:mi308x", {"int": {"bs": 64}, "double": {"ipt": 3}}
    )
    assert len(re.findall(r"^add ", told, re.M)) == 2
    assert [line for line in gone if "comp_targets" not in line] == []
    others = (
        "    // What no condition above takes\n    return reduce_config_picker<\n"
        f"        {COMP.format('cdna3', 'gfx942', 'mi300x')},\n        key_type>();\n"
    )
    made = "".join(branches_of(PICKERS[0])).replace("{256, 8}", "{256, 3}")
    made = made.replace("'ipt': 8}", "'ipt': 3}").replace("{128, 4}", "{64, 4}")
    made = made.replace("'block_size_x': 128", "'block_size_x': 64")
    assert picker("gfx942", "mi308x", made, other=others) in new
    one, other = (COMP.format("cdna3", "gfx942", gpu) for gpu in ("mi308x", "mi300x"))
    assert f"comp_targets<{one},\n                   {other},\n" in new
    assert changed(before, everything(capsys, toy)) == {}
    now = everything_on(capsys, toy, "gfx942:mi308x")
    assert {name for _, name in changed(everything_there, now)} == {"int", "double"}


def everything_on(capsys, root, arch):
    document, _ = resolved(capsys, root, "--arch", arch)
    return {(arch, row["workload"]["key_type"]): row["values"] for row in document["rows"]}


def branches_of(text):
    """The returns of a picker, with their comments."""
    return re.findall(r"    // .*\n    if constexpr.*\n    \{\n(?:.*\n)*?    \}\n", text)


def test_a_target_of_a_further_generation_leaves_the_rest_to_what_its_devices_had(capsys, toy):
    before = everything(capsys, toy)
    told, _, new = written(capsys, toy, "gfx906:mi50", {"int": {"bs": 64}})
    assert "add rocprim.device_reduce key_type=int" in told
    mine = COMP.format("gcn5", "gfx906", "mi50")
    last = COMP.format("rdna3", "gfx1100", "rx7900")
    assert (
        f"{last},\n                   {mine},\n                   comp_target<gen::unknown" in new
    )
    assert changed(before, everything(capsys, toy)).keys() == {("gfx906", "int")}


@pytest.mark.slow
def test_a_target_of_any_gpu_stands_before_all_others(capsys, toy):
    before = everything(capsys, toy)
    _, _, new = written(capsys, toy, "gfx1101", {"short": {"bs": 64}})
    assert f"comp_targets<{COMP.format('rdna3', 'gfx1101', 'generic')},\n" in new
    assert {key[0] for key in changed(before, everything(capsys, toy))} == {"gfx1101"}


@pytest.mark.slow
def test_a_target_that_other_devices_would_take_is_rejected(capsys, toy):
    path = toy / "rocprim/device/config_types.hpp"
    text = path.read_text()
    asked = "device.s && Known::s != gpu::generic"
    path.write_text(text.replace(asked, "device.s && Known::i != target_arch::unknown"))
    told, gone, _ = written(capsys, toy, "gfx1101", {"short": {"bs": 32}})
    assert gone == []
    words = " ".join(told.split())
    assert (
        "reject rocprim.device_reduce key_type=short: would change rocprim.device_reduce" in words
    )
    assert re.search(r"would change \S+ \S+ on (unknown|gfx906|gfx908|gfx942|gfx1100):", words)


NAMED = PICKERS[0].replace("key_type", "T").replace("'T'", "'key_type'")
NOTHING = OTHER.replace("    return", "    if constexpr(true)\n        return")


REJECTED = [
    ("float", PICKERS[0], "no architecture has a config for float"),
    ("short", NAMED, "names its types differently"),
    ("short", PICKERS[0].replace(OTHER, NOTHING), "has no place for kernel_config.block_size"),
]


@pytest.mark.parametrize(("name", "first", "reason"), sampled(REJECTED, REJECTED[0]))
def test_what_cannot_be_added_is_rejected_with_its_reason(capsys, tmp_path, name, first, reason):
    root = make_toy(tmp_path / "toy", header(first, *PICKERS[1:]))
    told, gone, _ = written(capsys, root, "gfx942:mi300x", {name: {"bs": 64}})
    assert gone == []
    assert f"reject rocprim.device_reduce key_type={name}: " in told
    assert reason in " ".join(told.split())


def test_what_no_target_is_for_gets_nothing_of_its_own():
    spot, _ = spot_of(header(), "gfx908:mi100", arch="unknown")
    assert (
        spot.too_broad
        == "devices without a target use the config of another target; tune that target"
    )


@pytest.mark.slow
def test_an_architecture_whose_targets_are_of_gpus_is_not_one_of_them(capsys, toy):
    told, gone, _ = written(capsys, toy, "gfx942", {"int": {"bs": 64}})
    assert gone == []
    assert "its targets are GPUs; name the measured one: --arch gfx942:mi300x" in told


def refused(text, target, arch):
    """Why nothing can be added for `arch`, where a workload has what a target's first entry is."""
    found = read_toy_header(text)
    spot, _ = spot_of(text, target, arch=arch, found=found)
    writes = [EntryWrite((spot,), Content("values", {}), "why")]
    with pytest.raises(InputError) as raised:
        write_configs(found, text.encode(), writes, arch)
    return raised.value.message


def test_a_header_without_a_list_of_targets_gets_none():
    text = header().replace("using reduce_targets", "using listed")
    found = refused(text, "gfx942:mi300x", "gfx942:mi308x")
    assert found == "device_reduce.hpp: there is no list reduce_targets"


def test_a_picker_that_returns_nothing_for_other_types_gets_no_more():
    text = header(PICKERS[0].replace(OTHER, ""), *PICKERS[1:])
    found = refused(text, "gfx908:mi100", "gfx942:mi300x")
    assert found == "device_reduce.hpp:9 has no return for other types"


def test_an_architecture_of_no_known_generation_gets_no_target():
    found = refused(header(), "gfx942:mi300x", "gfx1036")
    assert found == "the generation of gfx1036 is unknown"


def test_a_condition_keeps_within_the_columns_however_long_its_names_are():
    other = "-> enabled<Target, comp_target<a, b>>"
    assert laid_out(other) == other
    long = f"    std::is_same<Target, comp_target<{'a' * 60}>>::value,"
    assert max(map(len, laid_out(long).split("\n"))) <= 100


@pytest.mark.slow
def test_lines_end_as_those_of_the_header(capsys, tmp_path):
    root = make_toy(tmp_path / "toy")
    path = root / REDUCE
    path.write_bytes(header().replace("\n", "\r\n").encode())
    tried(capsys, root, "gfx942:mi308x", {"int": {"bs": 64}})
    applied(capsys, root, arch="gfx942:mi308x")
    data = path.read_bytes()
    assert b"mi308x" in data
    assert data.count(b"\n") == data.count(b"\r\n")


def read_toy_header(text):
    beside = {"config_types.hpp": TYPES.encode(), "device_config_helper.hpp": HELPER.encode()}
    return read_header("device_reduce.hpp", text.encode(), beside)


def spot_of(text, target, told=None, arch=None, found=None):
    """Where values go of what the first entry of a target decides."""
    found = found or read_toy_header(text)
    cub = Cub(root=".", version="4.3.0", dialect="configs", found="--cub")
    tree = TuningTree(cub, {found.name: found}, {found.name: text.encode()})
    every = (one for algorithm in bound(cub.bindings) for one in algorithm.benchmarks)
    benchmark = next(one for one in every if one.name == "rocprim.device_reduce")
    family = next(one for one in found.families if one.arch == target)
    entry = family.entries[0]
    selected = Selected(told or {}, (family, entry))
    point = benchmark.name, ()
    return Configs(tree, arch or target).place(benchmark, selected, point), entry


def test_values_of_a_part_are_said_behind_the_last_of_that_part():
    text = header()
    spot, entry = spot_of(text, "gfx908:mi100", {"kernel_config.size_limit": 4096})
    changes = with_values(Text("", text.encode()), entry, {"kernel_config.size_limit": "77"}, spot)
    assert "{256, 16, 77}" in replaced(text.encode(), changes).decode()


def test_a_value_that_has_no_place_is_refused():
    text = header()
    spot, entry = spot_of(text, "gfx908:mi100")
    with pytest.raises(InputError, match=r"device_reduce.hpp:.* has no place for unheard_of"):
        with_values(Text("", text.encode()), entry, {"unheard_of": "7"}, spot)


def test_values_between_those_that_are_said_are_what_the_workload_has():
    text = header(PICKERS[0], picker("gfx908", "mi100", branch(WORDS, "{256}")), PICKERS[2])
    told = {"kernel_config.items_per_thread": 5, "kernel_config.size_limit": 9}
    spot, entry = spot_of(text, "gfx908:mi100", told)
    changes = with_values(Text("", text.encode()), entry, {"kernel_config.size_limit": "77"}, spot)
    assert "{256, 5, 77}" in replaced(text.encode(), changes).decode()


def test_configs_that_cannot_be_copied_are_named():
    text = Text("device_reduce.hpp", b"struct a : reduce_config<256, 4> {};")
    entry = SimpleNamespace(
        line=7,
        inherits_span=Span(11, 32),
        span=Span(0, len(text.data)),
        comment_span=None,
        template_parameters=("class T",),
    )
    spot = SimpleNamespace(header="device_reduce.hpp", parameters={}, copy_name="reduce_config_900")
    copy = SimpleNamespace(entry=entry, spot=spot)
    with pytest.raises(InputError, match=r"device_reduce\.hpp:7 has no place for bs"):
        dialect._unsaid(text, entry, {"bs": "64"}, spot)
    with pytest.raises(InputError, match=r"device_reduce\.hpp:7 does not name an architecture"):
        dialect._similar_config(text, copy, "gfx942")
    picker = SimpleNamespace(parameters=Span(0, 8), name_span=Span(7, 8))
    with pytest.raises(InputError, match=r"device_reduce\.hpp:1 names its types differently"):
        dialect._check_parameters(text, picker, [copy])
    with pytest.raises(InputError, match=r"reduce\.hpp: the config Scan would have to be written"):
        TableSpot.argument(spot, "class", None, "Scan")


def test_a_variant_that_a_config_has_no_place_for_is_refused():
    spot, _ = spot_of(header(), "gfx908:mi100")
    measured = SimpleNamespace(fixed={})
    with pytest.raises(InputError, match=r"device_reduce\.hpp has no place for unheard_of"):
        spot.members(measured, {"unheard_of": 7})


def test_configs_that_libclang_reads_differently_are_named(monkeypatch):
    query = SimpleNamespace(site=SimpleNamespace(configs=("a", "b"), header="h.hpp"), aggregates={})
    with pytest.raises(InputError, match=r"h\.hpp: a or b is not declared\n  The bindings name"):
        host._declared(query)
    shape = SimpleNamespace(name="params", paths=("bs", "ipt"))
    monkeypatch.setattr(host, "shapes_of", lambda _: [shape])
    with pytest.raises(InputError, match="params was read as bs, ipt, but libclang reports bs\n"):
        host._check_fields([query], {"fields_0": ["bs"]})
