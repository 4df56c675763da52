"""`policygen bench new`: the source, what is read of it, its binding, and what is refused."""

import json
import re
import shutil
import tomllib
from dataclasses import replace

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from policygen import settings as settings_module
from policygen.app import benchmarks
from policygen.app.benchmarks import binding_of
from policygen.bindings import load, own_workloads
from policygen.model.bindings import Binding
from policygen.model.trees import BoundVersion
from tests.cli.tuned import run
from tests.own.checkouts import REDUCE, make_benchmarks, place_in
from tests.own.written import EXAMPLE, write_particles
from tests.tiers import sampled

pytestmark = [pytest.mark.trees]
SIZES = "[[size]]\nelements = 65536\n[[size]]\nelements = 1048576\n"
SUM = f'algorithm = "DeviceScan::ExclusiveScan"\n[types]\nT = "I32"\nOffsetT = "I32"\n{SIZES}'
CALLS = [call for algorithm in load.bound(BoundVersion("3.6.0")) for call in algorithm.own]
# Each has something that no other one has: an operator, halves, a flag, types, segments.
SAMPLED = {
    "DeviceFind::FindIf",
    "DeviceHistogram::HistogramEven",
    "DeviceMemcpy::Batched",
    "DevicePartition::If",
    "DeviceRadixSort::SortPairs",
    "DeviceReduce::Reduce",
    "DeviceSegmentedReduce::Reduce",
    "DeviceTransform::Transform",
}
SAMPLE = [call for call in CALLS if call.algorithm in SAMPLED]
# The halves that are merged, which no generator of CCCL's makes.
UNMADE = {
    "DeviceMerge::MergeKeys": "first: sorted_half",
    "DeviceMemcpy::Batched": "bytes: uniform_bytes",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return make_benchmarks(tmp_path_factory.mktemp("cccl"))


@pytest.fixture
def unknown(monkeypatch):
    """Bindings are read once a process; those of a test are its own."""
    for kept in (load.bindings, load.bound):
        kept.cache_clear()
    yield monkeypatch
    settings_module.choose(None)  # what a command was given counts for the process
    for kept in (load.bindings, load.bound):
        kept.cache_clear()


def written(folder, text, name="mine.toml"):
    path = folder / name
    path.write_text(text)
    return path


def new(capsys, workload, source, *arguments):
    return run(capsys, "bench", "new", workload, "-o", source, *arguments)


def made(capsys, checkout, folder, text, name):
    """The source and the binding of a workload."""
    source = place_in(checkout, name)
    status, _, err = new(capsys, written(folder, text), source, "--force")
    assert status == 0, err
    return source.read_text(), tomllib.loads(binding_of(source).read_text())


def test_what_is_read_back_is_what_went_in(capsys, checkout, tmp_path):
    source = place_in(checkout, "read/particles.cu")
    status, out, err = new(capsys, write_particles(tmp_path), source, "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    (one,) = document["benchmarks"]
    assert one["name"] == "cub.bench.read.particles"
    assert [tuple(each.values()) for each in one["parameters"]] == [
        ("TUNE_ITEMS_PER_THREAD", "ipt", 7, 24, 1),
        ("TUNE_THREADS_PER_BLOCK", "tpb", 128, 1024, 32),
        ("TUNE_ITEMS_PER_VEC_LOAD_POW2", "ipv", 1, 2, 1),
    ]
    assert one["ct_axes"] == {"T{ct}": ["sim_Particle"], "OffsetT{ct}": ["I64"]}
    assert one["rt_axes"] == {"Elements{io}": ["1000000", "20000000"]}
    assert [sub["name"] for sub in one["subbenches"]] == ["base"]
    assert all(axis["complete"] for axis in one["subbenches"][0]["axes"])
    _, again, _ = run(capsys, "bench", source, "--json")
    assert json.loads(again) == document
    assert (source.parent / "particle.cuh").read_text() == (EXAMPLE / "particle.cuh").read_text()


def test_the_source_is_what_one_would_write(capsys, checkout, tmp_path):
    source, _ = made(capsys, checkout, tmp_path, SUM, "mine/sum.cu")
    for part in (
        "#include <cub/device/device_scan.cuh>\n",
        "#include <nvbench_helper.cuh>\n",
        "// %RANGE% TUNE_DCID dcid 0:7:1\n",
        "using op_t = ::cuda::std::plus<>;\n\n#if !TUNE_BASE\n",
        "-> cub::ScanPolicy\n",
        "scaled = cub::detail::scale_mem_bound(TUNE_TPB, TUNE_IPT, int{sizeof(AccumT)});\n",
        "    policy.lookback.items_per_thread = scaled.items_per_thread;\n",
        ".lookback_delay.kind = static_cast<cub::LookbackDelayAlgorithm>(TUNE_DCID);\n",
        "    policy.algorithm = cub::ScanAlgorithm::lookback;\n    return policy;\n",
        "  if (sizeof(offset_t) == 4 && elements > 4294967295)\n",
        "  thrust::device_vector<T> in = generate(elements);\n",
        '  state.add_global_memory_reads<T>(elements, "Size");\n',
        "  state.add_global_memory_writes<T>(elements);\n",
        "policy_selector<T, T, accum_t, offset_t, op_t>{}",
        "#ifdef TUNE_T\nusing value_axis = nvbench::type_list<TUNE_T>;\n",
        "using offset_axis = nvbench::type_list<int32_t>;\n",
        '  .set_type_axes_names({"T{ct}", "OffsetT{ct}"})\n',
        '  .add_int64_power_of_two_axis("Elements{io}", {16, 20});\n',
    ):
        assert part in source
    assert max(map(len, source.splitlines())) <= 120


def test_names_of_ones_own_reach_the_source_as_names(capsys, checkout, tmp_path):
    shutil.copy(EXAMPLE / "particle.cuh", tmp_path)
    text = (EXAMPLE / "particles.toml").read_text()
    text = text.replace('"sim::Particle"', '"sim::Pair<float, sim::Particle>"')
    source, binding = made(capsys, checkout, tmp_path, text, "mine/pairs.cu")
    name = "sim_Pair_float_sim_Particle"
    assert f"using {name} = ::sim::Pair<float, sim::Particle>;\n" in source
    assert f'NVBENCH_DECLARE_TYPE_STRINGS({name}, "{name}", "{name}");\n' in source
    assert f"nvbench::type_list<{name}>" in source
    assert binding["types"] == [{"name": name, "cpp": "::sim::Pair<float, sim::Particle>"}]
    assert "made_t<decltype(::sim::any_particle{})>" in source
    assert '#include "particle.cuh"\n' in source


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("", 'how = "entropy"\nentropy = "0.544"', "generate(elements, bit_entropy::_0_544);"),
        ("", 'how = "sorted"', "thrust::sort(in.begin(), in.end());"),
        ("", 'how = "constant"', "in(elements, T{});"),
        ("", "least = 0\nmost = 9", "_1_000, static_cast<T>(0.0), static_cast<T>(9.0));"),
        ("", 'how = "bytes"', "in_bytes = generate(in.size() * sizeof(T));"),
        (
            '[types]\nT = "I32"',
            '[input]\nhow = "bytes"\n[types]\nT = "unsigned long"',
            "nvbench::type_list<uint64_t>",
        ),
        ('T = "I32"\nOff', 'T = "bool"\nOff', 'TYPE_STRINGS(bool, "bool", "bool");'),
        ("1048576", "1000", '.add_int64_axis("Elements{io}", {65536, 1000});'),
    ],
)
def test_inputs_types_and_sizes_are_as_the_file_says(capsys, checkout, tmp_path, old, new, part):
    text = SUM.replace(old, new) if old else f"{SUM}[input]\n{new}\n"
    assert part in made(capsys, checkout, tmp_path, text, "mine/other.cu")[0]


def test_a_run_that_changes_what_it_reads_gets_it_anew(capsys, checkout, tmp_path):
    text = f'algorithm = "DeviceSelect::Flagged"\n[types]\nT = "I8"\nInPlace = "true"\n{SIZES}'
    source, binding = made(capsys, checkout, tmp_path, text, "mine/flags.cu")
    assert "const auto fresh_in = in;" in source
    assert "launch, auto& timer) {" in source
    assert "timer.start();" in source
    assert "thrust::device_vector<bool> flags = generate(elements, entropy);" in source
    assert "policy_selector<T, flag_t, InPlace::value>" in source
    assert '.add_string_axis("Entropy", {"1.000"})' in source
    assert binding["benchmark"][0]["axes"] == {"T": ["I8"], "InPlace": ["true"]}


def workload_of(call):
    lines = [f'algorithm = "{call.algorithm}"']
    if call.operator:
        lines.append('operator = "::cuda::std::plus<>"')
    types = [f'{axis} = "{call.defaults.get(axis, "F32")}"' for axis in call.types]
    return "\n".join([*lines, "[types]", *types, SIZES])


@pytest.mark.parametrize("call", sampled(CALLS, *SAMPLE), ids=[call.algorithm for call in CALLS])
def test_every_algorithm_is_written_with_a_binding_that_is_one(capsys, checkout, tmp_path, call):
    source = place_in(checkout, f"every/{re.sub(r'[^a-z]+', '_', call.algorithm.lower())}.cu")
    status, _, err = new(capsys, written(tmp_path, workload_of(call)), source, "-q")
    if call.algorithm in UNMADE:
        assert status == 2
        assert f"a benchmark source cannot generate the contents of {UNMADE[call.algorithm]}" in err
        assert not source.exists()
        return
    assert (status, err) == (0, "")
    binding = Binding.model_validate(tomllib.loads(binding_of(source).read_text()))
    (one,) = binding.benchmarks
    assert one.like == call.like
    text = source.read_text()
    assert "axis::" not in text
    assert "axis::Op" not in binding_of(source).read_text()
    macros = {f"TUNE_{label.upper()}" for label in one.parameters}
    if call.like != "cub.bench.reduce.sum":
        assert macros == {*re.findall(r"%RANGE% (\w+)", text)}
    # What a search varies is in the policy.
    policy = text.partition("#if !TUNE_BASE")[2].partition("#endif")[0]
    assert {*re.findall(r"%RANGE% (\w+)", text)} == {*re.findall(r"\bTUNE_\w+", policy)}


@pytest.mark.slow
def test_an_older_tree_with_selectors_serves_too(capsys, tmp_path):
    tree = make_benchmarks(tmp_path, "3.5.0")
    source, binding = made(capsys, tree, tmp_path, SUM, "mine/sum.cu")
    assert "-> cub::ScanPolicy" in source
    one = binding["benchmark"][0]
    assert (one["since"], one["below"]) == ("3.5", "3.6")


@pytest.mark.slow
@pytest.mark.nvcc
def test_commands_know_it_by_its_binding(capsys, checkout, tmp_path, unknown):
    source = place_in(checkout, "known/heaviest.cu")
    assert new(capsys, write_particles(tmp_path), source)[0] == 0
    settings = tmp_path / "settings.toml"
    name = "cub.bench.known.heaviest"
    given = ("--config", settings, "--cub", checkout, "-R", name, "--arch", "sm90")
    for place in (binding_of(source), source.parent):
        settings.write_text(f"bindings = {json.dumps(str(place))}\n")
        load.bindings.cache_clear()
        load.bound.cache_clear()
        status, out, err = run(capsys, "resolve", *given, "--json")
        assert status == 0, err
        (row,) = json.loads(out)["rows"]
        assert (row["benchmark"], row["status"]) == (name, "default")
        assert row["workload"] == {"T": "sim_Particle", "OffsetT": "I64"}
        assert row["values"]["items"] == 2
    status, out, err = run(capsys, "audit", "coverage", *given)
    assert status == 0, err
    assert "sm90: 0 of 1 workload tuned" in out
    status, out, err = run(capsys, "bench", "--check", "--config", settings, source)
    assert status == 0, err
    assert "1 benchmark compared: 1 match their binding" in out
    data = tmp_path / "run.db"
    point = ("sim_Particle", "I64")
    benchmark_database(data, name, "3.6.0", GPUS["sm90"], {point: "ipt_9.tpb_256.ipv_1"})
    status, out, err = run(capsys, "plan", *given, "--db", data, "--json", "--no-prove")
    assert status in {0, 1}, err
    (action,) = json.loads(out)["actions"]
    assert (action["benchmark"], action["variant"]) == (name, "ipt_9.tpb_256.ipv_1")


def test_what_stands_there_is_not_replaced_unasked(capsys, checkout, tmp_path):
    source = place_in(checkout, "kept/sum.cu")
    workload = written(tmp_path, SUM)
    assert new(capsys, workload, source)[0] == 0
    before = source.read_bytes()
    status, _, err = new(capsys, written(tmp_path, SUM.replace("I32", "F32"), "other.toml"), source)
    assert status == 2
    assert "kept/sum.cu: exists already" in err
    assert "--force" in err
    assert source.read_bytes() == before
    source.unlink()
    status, _, err = new(capsys, workload, source)
    assert status == 2
    assert "kept/sum.binding.toml: exists already" in err
    assert not source.exists()
    assert new(capsys, workload, source, "--force")[0] == 0
    assert source.read_bytes() == before


def test_another_header_of_that_name_stays(capsys, checkout, tmp_path):
    source = place_in(checkout, "header/heaviest.cu")
    source.parent.mkdir()
    (source.parent / "particle.cuh").write_text("// another one\n")
    status, _, err = new(capsys, write_particles(tmp_path), source)
    assert status == 2
    assert "header/particle.cuh: exists already" in err
    assert not source.exists()


def test_a_header_that_lies_there_already_is_the_one(capsys, checkout):
    folder = place_in(checkout, "beside")
    folder.mkdir()
    workload = write_particles(folder)
    before = {*folder.iterdir()}
    assert new(capsys, workload, folder / "heaviest.cu")[0] == 0
    after = {one.name for one in {*folder.iterdir()} - before}
    assert after == {"heaviest.cu", "heaviest.binding.toml"}


def test_an_algorithm_without_parameters_is_refused(capsys, checkout, tmp_path, monkeypatch):
    def untunable(version):
        own = own_workloads.own_binding(version)
        return replace(own, like=own.like.model_copy(update={"parameters": {}}))

    monkeypatch.setattr(benchmarks, "own_binding", untunable)
    source = place_in(checkout, "refused/sum.cu")
    status, _, err = new(capsys, written(tmp_path, SUM), source)
    assert status == 2
    assert "DeviceScan::ExclusiveScan has no tuning parameters" in err


def test_what_is_no_command_of_bench_is_a_path(capsys, checkout, tmp_path, monkeypatch):
    """A folder that is called as a command is named with its place."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "new/sum.cu"
    place.parent.mkdir()
    place.write_text(REDUCE + "NVBENCH_BENCH(f);")
    for words in (("./new",), ("list", "new"), ("new/sum.cu",), ("-q", "new")):
        status, out, _ = run(capsys, "bench", *words)
        assert (status, "bench.sum" in out) == (0, True), words
    status, out, _ = run(capsys, "bench", "--help")
    assert status == 0
    assert "Write a benchmark for a workload of your own." in out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sum.cu", "CCCL does not build benchmarks in this folder"),
        ("mine/sum.cuh", "CCCL does not build benchmarks in this folder"),
        ("mine/my sum.cu", "CCCL does not build benchmarks in this folder"),
        ("../sum.cu", "CCCL does not build benchmarks in this folder"),
        ("mine/..cu", "CCCL does not build benchmarks in this folder"),
        ("scan/exclusive/sum.cu", "cub.bench.scan.exclusive.sum is already a benchmark of CUB"),
    ],
)
def test_a_place_where_none_can_stand_is_refused(capsys, checkout, tmp_path, name, words):
    source = place_in(checkout, name)
    status, _, err = new(capsys, written(tmp_path, SUM), source, "--force")
    assert status == 2
    assert words in err
    assert "\n  " in err


@pytest.mark.parametrize(
    ("old", "new_text", "words"),
    [
        ('"I32"\nOff', '"int; system"\nOff', "types.T: 'int; system' is not the name of a"),
        (
            'T = "I32"\nOff',
            'T = "I32"\nU = "I32"\nOff',
            "types: DeviceScan::ExclusiveScan has no U",
        ),
        ("ExclusiveScan", "Exclusive", "a workload of your own cannot use DeviceScan::Exclusive"),
        ("[types]", 'header = "gone.cuh"\n[types]', "there is no header gone.cuh next to it"),
        (
            "[types]",
            "[input]\nhow = 'file'\nfile = 'mine.toml'\n[types]",
            "generate the contents of in",
        ),
    ],
)
def test_a_file_that_says_no_workload_is_refused(capsys, checkout, tmp_path, old, new_text, words):
    source = place_in(checkout, "refused/sum.cu")
    status, _, err = new(capsys, written(tmp_path, SUM.replace(old, new_text)), source)
    assert status == 2
    assert words in err
    assert not source.exists()


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ('Entropy = ["1.000", "0.5"]', "axes: Entropy has no value '0.5'"),
        ('Bins = ["16); abort("]', "axes: Bins has no value '16); abort('"),
    ],
)
def test_values_of_axes_are_values(capsys, checkout, tmp_path, axes, words):
    text = 'algorithm = "DeviceHistogram::HistogramEven"\n[types]\nSampleT = "I32"\n'
    source = place_in(checkout, "refused/bins.cu")
    status, _, err = new(capsys, written(tmp_path, f"{text}{SIZES}[axes]\n{axes}\n"), source)
    assert status == 2
    assert words in err


def test_a_checkout_without_the_benchmark_that_it_is_like_is_refused(capsys, tmp_path):
    tree = make_benchmarks(tmp_path)
    like = place_in(tree, "scan/exclusive/sum.cu")
    workload, source = written(tmp_path, SUM), place_in(tree, "mine/sum.cu")
    like.write_text(REDUCE)
    status, _, err = new(capsys, workload, source)
    assert status == 2
    assert "its parameters are ipt, ipv, tpb, but those of its binding are dcid, ipt," in err
    like.write_text("// %RANGE% TUNE_IPT ipt 7:24\n")
    assert new(capsys, workload, source)[0] == 2
    like.unlink()
    status, _, err = new(capsys, workload, source)
    assert status == 2
    assert (
        "has no cub.bench.scan.exclusive.sum, which defines the parameters of a benchmark of" in err
    )
    status, _, err = new(capsys, workload, tmp_path / "elsewhere/mine/sum.cu")
    assert status == 2
    assert "no benchmarks found" in err
