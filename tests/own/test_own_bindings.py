"""What a workload's file makes of a benchmark: types, functor, sizes, contents, results."""

import pytest

from policygen.app.own_workloads import read_workload
from policygen.bindings import load
from policygen.bindings.load import axis_type, bound, units_of
from policygen.bindings.own_workloads import call_named, own_binding
from policygen.errors import InputError
from policygen.model.trees import BoundVersion
from tests.own.written import write_particles

VERSION = "3.6.0"
CALLS = [call for binding in load.bindings() for call in binding.own]
SIZES = "[[size]]\nelements = 1000\n"


def write(folder, text):
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def made(folder, text):
    return own_binding(BoundVersion(VERSION, read_workload(write(folder, text))))


def refused(folder, text):
    with pytest.raises(InputError) as raised:
        made(folder, text)
    return str(raised.value)


def test_it_is_a_benchmark_of_the_version_that_has_it(tmp_path):
    before = bound(BoundVersion(VERSION))
    maker = read_workload(write_particles(tmp_path))
    version = BoundVersion(VERSION, maker)
    (algorithm,) = (one for one in bound(version) if one.algorithm == "reduce")
    own = algorithm.benchmarks[-1]
    assert maker.name == own.name == "own.particles"
    assert own.like == "cub.bench.reduce.sum"
    assert own.roles["OpT"] == "axis::Op"
    (run,) = (one for one in algorithm.runs if own.name in one.benchmarks)
    assert run.axes == {"Elements": ("1000000", "20000000")}
    assert run.weights == {"Elements": (1, 2)}
    assert run.buffers["in"].fill == "made(to, count, ::sim::any_particle{})"
    assert run.buffers["in"].exact is None
    assert "particle.cuh" in run.includes
    found = axis_type("sim::Particle", version)
    assert (found.cpp, found.header) == ("::sim::Particle", "particle.cuh")
    assert units_of(own) == units_of(algorithm.benchmarks[0])
    assert bound(BoundVersion(VERSION)) == before
    with pytest.raises(InputError):
        axis_type("sim::Particle", BoundVersion(VERSION))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("float", "F32"),
        ("F32", "F32"),
        ("int", "I32"),
        ("std::int64_t", "I64"),
        ("::cuda::std::uint8_t", "U8"),
        ("cuda::std::complex<float>", "C32"),
        ("unsigned  __int128", "U128"),
    ],
)
def test_types_of_benchmarks_have_their_names(tmp_path, text, name):
    text = f'algorithm = "DeviceReduce::Reduce"\ntypes = {{ T = "{text}" }}\n{SIZES}'
    own = made(tmp_path, text)
    assert own.benchmark.axes["T"] == (name,)
    assert own.benchmark.axes["Op"] == ("plus",)
    assert own.types == ()
    assert own.run.buffers["in"].exact == "terms(to, count)"


def test_a_built_in_type_of_no_benchmark_is_what_it_is(tmp_path):
    text = 'algorithm = "DeviceReduce::Reduce"\ntypes = { T = "unsigned long long" }\n'
    (found,) = made(tmp_path, f'{text}{SIZES}[input]\nhow = "bytes"\n').types
    assert found.cpp == "unsigned long long"


@pytest.mark.parametrize(
    ("how", "fill"),
    [
        ('how = "random"', "uniform(to, count, Entropy)"),
        ('how = "entropy"\nentropy = "0.544"', "uniform(to, count, Entropy)"),
        ("least = -1\nmost = 0.5", "ranged(to, count, -1.0, 0.5)"),
        ('how = "sorted"', "rising(to, count)"),
        ('how = "constant"', "constant(to, count, KeyT{})"),
        ('how = "bytes"', "random_bytes(to, count)"),
        ('how = "generator"\ngenerator = "mine::make"', "made(to, count, ::mine::make{})"),
    ],
)
def test_inputs_are_as_the_file_says(tmp_path, how, fill):
    text = f'algorithm = "cub::DeviceRadixSort::SortKeys"\ntypes = {{ T = "float" }}\n{SIZES}'
    run = made(tmp_path, f"{text}[input]\n{how}\n").run
    assert run.buffers["in"].fill == fill
    entropy = "0.544" if "0.544" in how else "1.000"
    assert run.axes == {"Elements": ("1000",), "Entropy": (entropy,)}


def test_entropy_of_what_has_no_such_axis_is_said_to_what_fills_it(tmp_path):
    text = f'algorithm = "DeviceReduce::Reduce"\ntypes = {{ T = "int" }}\n{SIZES}'
    own = made(tmp_path, f'{text}[input]\nhow = "entropy"\nentropy = "0.201"\n')
    assert own.run.buffers["in"].fill == "uniform(to, count, 201)"


def test_a_file_is_named_where_it_stands(tmp_path):
    (tmp_path / "elements.bin").write_bytes(b"12345678")
    text = f'algorithm = "DeviceReduce::Reduce"\ntypes = {{ T = "int" }}\n{SIZES}'
    own = made(tmp_path, f'{text}[input]\nhow = "file"\nfile = "elements.bin"\n')
    assert own.run.buffers["in"].fill == f'bytes_of(to, count, "{tmp_path}/elements.bin")'
    told = refused(tmp_path, f'{text}[input]\nhow = "file"\nfile = "none.bin"\n')
    assert "there is no file none.bin" in told
    strange = tmp_path / 'a"b'
    strange.mkdir()
    (strange / "elements.bin").write_bytes(b"1")
    told = refused(strange, f'{text}[input]\nhow = "file"\nfile = "elements.bin"\n')
    assert "characters that a compiler or make treats specially" in told


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("tolerance = 0.01", ("close", 0.01, None)),
        ('same = "mine::same"', ("equal", 0, "::mine::same")),
        ("", ("equal", 0, None)),
    ],
)
def test_results_are_compared_as_the_file_says(tmp_path, result, shown):
    text = f'algorithm = "DeviceReduce::Reduce"\ntypes = {{ T = "float" }}\n{SIZES}'
    run = made(tmp_path, f"{text}[result]\n{result}\n").run
    out = run.buffers["out"]
    assert (out.result, out.tolerance, out.same) == shown


def test_what_is_counted_is_the_same_whatever_elements_are(tmp_path):
    text = f'algorithm = "DeviceReduce::ReduceByKey"\ntypes = {{ ValueT = "float" }}\n{SIZES}'
    run = made(tmp_path, f"{text}[result]\ntolerance = 0.01\n").run
    shown = {name: one.tolerance for name, one in run.buffers.items() if one.result}
    assert shown == {"unique": 0, "out": 0.01, "num_runs": 0}


REDUCE = 'algorithm = "DeviceReduce::Reduce"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'algorithm = "DeviceReduse"\n{SIZES}', "a workload of your own cannot use DeviceReduse"),
        (f"{REDUCE}{SIZES}", "types: T is missing: an element"),
        (f'{REDUCE}types = {{ Key = "int" }}\n{SIZES}', "DeviceReduce::Reduce has no Key"),
        (
            f'{REDUCE}types = {{ T = "int" }}\naxes = {{ Bins = ["3"] }}\n{SIZES}',
            "axes: DeviceReduce::Reduce has no Bins",
        ),
        (
            f'{REDUCE}types = {{ T = "mine::T" }}\n{SIZES}',
            'how = "random" generates numbers, but an element is mine::T',
        ),
        (
            f'algorithm = "DeviceRadixSort::SortKeys"\ntypes = {{ T = "mine::T" }}\n{SIZES}',
            "T of DeviceRadixSort::SortKeys must be a numeric type, not mine::T",
        ),
        (
            'algorithm = "DeviceRadixSort::SortKeys"\noperator = "mine::less"\n'
            f'types = {{ T = "int" }}\n{SIZES}',
            "DeviceRadixSort::SortKeys takes no operator",
        ),
        (
            f'algorithm = "DeviceSelect::If"\ntypes = {{ T = "int" }}\n{SIZES}',
            "operator is missing: says whether an element is taken",
        ),
    ],
)
def test_what_does_not_fit_an_algorithm_is_told_with_the_file(tmp_path, text, told):
    found = refused(tmp_path, text)
    assert told in found
    assert "mine.toml" in found or "Available: " in found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('types = { T = "int; int x" }', "types.T: 'int; int x' is not the name of a type"),
        ('types = { T = "f()" }', "is not the name of a type"),
        ('operator = "a\\nb"', "is not the name of a type"),
        ('header = "../other.cuh"', "header: it is not a path below"),
        ('header = "/etc/passwd"', "header: it is not a path below"),
        ('header = "a\\"b"', "header: it should match pattern"),
        ('name = "a b"', "name: it should match pattern"),
        ('[input]\nhow = "generator"', 'generator belongs to how = "generator"'),
        ('[input]\nfile = "x"', 'file belongs to how = "file"'),
        ('[result]\ntolerance = 0.1\nsame = "x"', "tolerance and same exclude each other"),
        ("[[size]]\nelements = 1000", "the same number of elements appears twice"),
        ("[[size]]\nelements = 0", "elements: it should be greater than or equal to 1"),
        ("[[size]]\nelements = 5\nweight = inf", "weight"),
        ('script = "x"', "unknown key script"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_key(tmp_path, text, told):
    top, rest = (text, "") if not text.startswith("[") else ("", text)
    found = refused(tmp_path, f"{REDUCE}{top}\n{SIZES}{rest}\n")
    assert told in found


def test_every_algorithm_is_like_a_benchmark_that_runs(tmp_path):
    for version in ("3.5.0", "3.6.0"):
        for algorithm in bound(BoundVersion(version)):
            known = {one.name: one for one in algorithm.benchmarks}
            for call in algorithm.own:
                like = known[call.like]
                runs = [one for one in algorithm.runs if like.name in one.benchmarks]
                assert runs, call.algorithm
                assert {*call.inputs, *call.fills} <= runs[0].buffers.keys(), call.algorithm
                assert {*call.types} - {"OffsetT"} <= {*like.axes}, call.algorithm
                assert call.role is None or call.role in like.roles, call.algorithm
    assert len({call.algorithm for call in CALLS}) == len(CALLS)
    scan = call_named("::cub::DeviceScan::ExclusiveScan", CALLS)
    assert scan.like == "cub.bench.scan.exclusive.sum"


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ("least = 1", "least and most must be given together"),
        ("least = 1\nmost = 1", "least must be less than most"),
        ('how = "sorted"\nleast = 1\nmost = 2', 'least and most belong to how = "random"'),
        ("least = nan\nmost = 2", "finite"),
    ],
)
def test_ends_of_random_numbers_are_checked(tmp_path, ends, told):
    text = f'{REDUCE}types = {{ T = "float" }}\n{SIZES}[input]\n{ends}\n'
    assert told in refused(tmp_path, text)


def test_an_algorithm_of_a_later_version_names_that_version():
    later = CALLS[0].model_copy(update={"since": "3.6"})
    with pytest.raises(InputError) as caught:
        call_named(later.algorithm, (), [later], "3.0.1")
    assert str(caught.value) == (
        f"CUB 3.0.1 does not accept a policy for {later.algorithm}\n"
        "  CUB 3.6 and later do: name such a tree with --cub."
    )
