"""What other tuners write: each file is read, or refused with its place and a remedy."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from policygen.app import db_import
from policygen.app.db_import import read_tuned
from policygen.errors import InputError, PolicygenError
from policygen.results.tuners import formats
from policygen.results.tuners.formats import TunedFailure, TunedTimes, size_of
from policygen.results.tuners.kernels import ImportedAs, gather
from policygen.results.tuners.points import number_space, parse_base
from tests.results.tuner_files import (
    BASE,
    EXAMPLES,
    UPDATE,
    document,
    example,
    failed,
    t4_document,
    text_of,
)

SMALL = {"block_size_x": [64, 128]}


def written(path, made):
    path.write_text(made if isinstance(made, str) else text_of(made))
    return path


def read(path, made):
    (found,) = read_tuned([written(path, made)])
    return found


def refused(path, made):
    with pytest.raises(PolicygenError) as error:
        read(path, made)
    told = str(error.value)
    assert told.startswith(f"{path}: ")
    return told.removeprefix(f"{path}: ")


def gathered(tmp_path, *made, **facts):
    paths = [written(tmp_path / f"{number}.json", one) for number, one in enumerate(made)]
    return gather(read_tuned(paths), ImportedAs(**{"base": BASE, **facts}))


def unsaid(tmp_path, *made, **facts):
    with pytest.raises(PolicygenError) as error:
        gathered(tmp_path, *made, **facts)
    return str(error.value).replace(f"{tmp_path}/", "")


def point(kernel, label, size="1000000"):
    (found,) = [one for one in kernel.points if (one.label, one.size) == (label, size)]
    return found


def test_a_cache_says_its_kernel_its_gpu_and_its_size(tmp_path):
    found = read(tmp_path / "a.json", document())
    assert (found.program, found.kernel, found.device) == (
        "Kernel Tuner",
        "vector_add",
        "NVIDIA H200",
    )
    assert (found.size, len(found.entries), found.notes) == ("1000000", 9, ())
    first = found.entries[0]
    assert first.values == {"block_size_x": 64, "tile": 1}
    assert len(first.outcome.samples) == 32
    assert first.outcome.mean == pytest.approx(sum(first.outcome.samples) / 32)
    assert (first.compiling, first.running) == (0.4, 0.012)


@pytest.mark.parametrize(
    ("found", "size"),
    [
        (7, "7"),
        ([1000, 1], "1000"),
        ([1, 1, 1], "1"),
        ([4, 5, 6], "4x5x6"),
        ([1, 5], "1x5"),
        ("callable", None),
        ("n * 2", None),
        (None, None),
        ([], None),
        ([1, 2, 3, 4], None),
        ([1.5], None),
        (True, None),
        (0, None),
        (-4, None),
        (1 << 70, None),
        ([[3]], None),
    ],
)
def test_a_size_is_told_where_it_is_one(found, size):
    assert size_of(found) == size


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda text: text, ()),
        (lambda text: text.removesuffix("}\n}"), "it is not closed"),
        (lambda text: text.removesuffix("}\n}") + ",", "it is not closed"),
        (lambda text: text.removesuffix("}\n}") + ",\n", "it is not closed"),
        (lambda text: text.removesuffix("\n}"), "it is not closed"),
        (lambda text: text[:-20], "its last entry is truncated"),
        (lambda text: "\ufeff" + text, ()),
    ],
    ids=["closed", "no comma", "comma", "a line", "half closed", "cut", "bom"],
)
def test_a_run_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path, spoil, told):
    found = read(tmp_path / "a.json", spoil(text_of(document())))
    cut = told == "its last entry is truncated"
    assert len(found.entries) == (8 if cut else 9)
    assert "".join(found.notes).startswith(told or "")
    assert bool(found.notes) == bool(told)


def test_a_cache_of_which_nothing_is_there_says_so(tmp_path):
    made = {**document(), "cache": {}}
    told = "the cache has no configuration\n  Nothing was measured yet."
    assert refused(tmp_path / "a.json", text_of(made, closed=False)) == told
    assert refused(tmp_path / "a.json", text_of(made)) == told
    assert refused(tmp_path / "a.json", text_of(document())[:200]).startswith("not JSON: line ")


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("InvalidConfig", "invalid"),
        ("CompilationFailedConfig", "compile"),
        ("RuntimeFailedConfig", "error"),
        ("ErrorConfig", "error"),
    ],
)
def test_a_failure_has_its_reason(tmp_path, error, kind, old):
    made = document(space=SMALL)
    made["cache"]["64"] = failed({"block_size_x": 64}, error, old=old)
    outcome = read(tmp_path / "a.json", made).entries[0].outcome
    assert isinstance(outcome, TunedFailure)
    assert (outcome.kind, outcome.reason.partition(":")[0]) == (kind, "Kernel Tuner")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"time": 0}, "its time, 0, is not a plausible kernel time"),
        ({"time": -1.5}, "its time, -1.5, is not a plausible kernel time"),
        ({"time": math.nan}, "its time, NaN, is not a plausible kernel time"),
        ({"time": math.inf}, "its time, Infinity, is not a plausible kernel time"),
        ({"time": 1e20}, "its time, 1e+20, is not a plausible kernel time"),
        ({"time": 1 << 70}, "its time, a number of more than 63 bits, is not a plausible kernel"),
        ({"time": True}, "its time, true, is not a plausible kernel time"),
        ({"time": "fast"}, "its time, 'fast', is not a plausible kernel time"),
        ({"time": {}}, "its time, an object, is not a plausible kernel time"),
        ({}, "it has no time"),
        ({"time": 1.0, "times": [1.0, 0.0]}, "0.0 among its times is not a plausible kernel time"),
        ({"time": 1.0, "times": [1.0, None]}, "null among its times is not a plausible kernel"),
        ({"__error__": "Odd\x1b[2J"}, "Kernel Tuner: Odd\\x1b[2J"),
        ({"__error__": ["x"]}, "Kernel Tuner: ['x']"),
    ],
)
def test_what_is_no_time_is_no_measurement(tmp_path, cells, reason):
    made = document(space=SMALL)
    made["cache"]["64"] = {"block_size_x": 64, **cells}
    outcome = read(tmp_path / "a.json", made).entries[0].outcome
    assert isinstance(outcome, TunedFailure)
    assert outcome.reason.startswith(reason)


def test_samples_count_where_the_mean_is_none(tmp_path):
    made = document(space=SMALL)
    made["cache"]["64"] = {"block_size_x": 64, "time": math.nan, "times": [2.0, 4.0]}
    outcome = read(tmp_path / "a.json", made).entries[0].outcome
    assert outcome == TunedTimes(None, (0.002, 0.004))


def changed(**more):
    return {**document(space=SMALL), **more}


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (changed(kernel_name=7), "kernel_name is a number, not a string"),
        (changed(kernel_name="a\x1bb"), "kernel_name is not a name of at most 200 visible"),
        (changed(device_name="x" * 201), "device_name is not a name of at most 200 visible"),
        (changed(device_name="\ud800"), "device_name is not a name of at most 200 visible"),
        (changed(tune_params_keys=None), "tune_params_keys is nothing, not a list"),
        (changed(tune_params_keys=[]), "0 parameters, but only 1 to 64 are possible"),
        (changed(tune_params_keys=["a", "a"]), "tune_params_keys has 'a' twice, or without a name"),
        (changed(tune_params_keys=[[]]), "tune_params_keys has a list twice, or without a name"),
        (
            changed(tune_params_keys=[f"p{n}" for n in range(65)]),
            "65 parameters, but only 1 to 64 are possible",
        ),
        (changed(tune_params=[]), "tune_params is a list, not an object"),
        (
            changed(tune_params={"block_size_x": 3}),
            "tune_params of 'block_size_x' is a number, not a list",
        ),
        (
            changed(tune_params={"block_size_x": [{}]}),
            "tune_params of 'block_size_x': an object cannot be a parameter's value",
        ),
        (
            changed(tune_params={"block_size_x": ["x" * 201]}),
            "tune_params of 'block_size_x': a string of more than 200 characters",
        ),
        (changed(cache=[]), "cache is a list, not an object"),
        (changed(cache={"64": 3}), "cache '64' is a number, not an object"),
        (changed(cache={"64": {"time": 1}}), "cache '64' has no value of 'block_size_x'"),
        (
            changed(cache={"64": {"block_size_x": None}}),
            "cache '64': 'block_size_x': nothing cannot be a parameter's value",
        ),
        (
            changed(cache={"64": {"block_size_x": 64, "times": 3}}),
            "cache '64' times is a number, not a list",
        ),
        (changed(schema_version="2.0.0"), "a cache of schema '2.0.0'; policygen supports 1.x"),
        (changed(schema_version=3), "a cache of schema '3'; policygen supports 1.x"),
    ],
)
def test_what_is_no_cache_is_refused_with_its_place(tmp_path, made, told):
    assert refused(tmp_path / "a.json", json.dumps(made)).startswith(told)


TEXT = json.dumps(document(space=SMALL))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not results of a tuner that policygen can import\n"),
        ("[]", "not results of a tuner that policygen can import\n"),
        ('{"kernel_name": 1, "tune_params_keys"', "not JSON: line 1, column "),
        (TEXT.replace('"objective"', '"kernel_name": "x", "objective"'), "the document has 'ke"),
        (
            TEXT.replace('"compile_time"', '"time": 3, "compile_time"'),
            "cache '64' has 'time' twice",
        ),
        (TEXT.replace("1000000", "9" * 5000), "a number has too many digits\n"),
        (TEXT.replace("1000000", "[" * 200_000), "nested more deeply than the limit of 64 levels"),
        (TEXT.replace("NVIDIA", "\udcff"), "not JSON: byte "),
        ('{"ConfigurationSpace": {}, "KernelSpecification": {}}', "describes a kernel (T1) and"),
        ('{"tune_params_keys": [], "kernel_name": 1} x', "not JSON: line 1, column 44\n"),
    ],
    ids=range(10),
)
def test_damaged_json_has_one_message(tmp_path, text, told):
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(PolicygenError) as error:
        read_tuned([path])
    assert str(error.value).startswith(f"{path}: {told}")
    assert len(str(error.value)) < 600


def test_the_same_configuration_may_stand_twice_in_a_cache(tmp_path):
    """Two runs that were put together by hand."""
    again = json.dumps({"block_size_x": 64, "times": [9.0], "time": 9.0})
    found = read(tmp_path / "a.json", TEXT.replace('"cache": {', f'"cache": {{"64": {again}, '))
    assert [one.values["block_size_x"] for one in found.entries] == [64, 64, 128]


def test_a_file_is_bounded(tmp_path, monkeypatch):
    path = written(tmp_path / "a.json", document())
    monkeypatch.setattr(db_import, "LARGEST", 100)
    with pytest.raises(InputError, match="larger than the limit of 100 bytes"):
        read_tuned([path])
    with pytest.raises(InputError, match=r"cannot read .*none\.json: No such file"):
        read_tuned([tmp_path / "none.json"])
    monkeypatch.undo()
    monkeypatch.setattr("policygen.results.tuners.formats.MOST_ENTRIES", 8)
    assert refused(path, document()) == "more than 8 configurations"
    assert refused(path, json.dumps(t4_document())) == "more than 8 configurations"
    monkeypatch.setattr(formats, "MOST_SAMPLES", 3)
    assert refused(path, document()) == "cache '64,1': 32 times, but at most 3 are read"


def test_all_files_that_are_wrong_are_told(tmp_path):
    paths = [written(tmp_path / name, "{}") for name in ("a.json", "b.json")]
    with pytest.raises(PolicygenError) as error:
        read_tuned(paths)
    assert str(error.value).count("not results of a tuner") == 2


def space_of(tmp_path, *values, more=()):
    made = document(space={"p": list(values)})
    for value in more:
        made["cache"][f"more {value}"] = {"p": value, "time": 1.0}
    return number_space([read(tmp_path / "a.json", made)])


@pytest.mark.parametrize(
    ("values", "more", "numbers", "plain"),
    [
        ([1, 2, -3], (), {"1": 1, "2": 2, "-3": -3}, True),
        ([1.0, 2], (4.0,), {"1": 1, "2": 2, "4": 4}, True),
        ([True, False], (), {"false": 0, "true": 1}, False),
        ([True], (), {"true": 1}, False),
        (["b", "a"], ("c",), {'"b"': 0, '"a"': 1, '"c"': 2}, False),
        ([1, 0.5], (), {"1": 0, "0.5": 1}, False),
        ([1, True], (), {"1": 0, "true": 1}, False),
        ([1 << 31], (), {"2147483648": 0}, False),
        ([math.nan, math.inf], (), {"NaN": 0, "Infinity": 1}, False),
        ([1e300], (), {str(int(1e300)): 0}, False),
    ],
)
def test_a_value_that_is_no_int_has_a_number(tmp_path, values, more, numbers, plain):
    (one,) = space_of(tmp_path, *values, more=more).parameters
    assert (dict(one.numbers), one.plain) == (numbers, plain)


@pytest.mark.parametrize("name", ["a b", "1a", "", "a-b", "x" * 64, "é"])
def test_a_name_that_no_label_can_hold_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="cannot be a parameter's name in a label"):
        number_space([read(tmp_path / "a.json", document(space={name: [1]}))])


MIXED = {"tile": [1, 2], "how": ["a", "b,tile=9", "c"], "fast": [True, False], "one": [0.5]}


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("tile=1,how=a,fast=true", "tile_1.how_0.fast_1.one_0"),
        ("tile=2.0, how=c , fast=False,one=0.5", "tile_2.how_2.fast_0.one_0"),
        ('fast=1,how="a",tile=1', "tile_1.how_0.fast_1.one_0"),
        ("tile_2.how_1.fast_0.one_0", "tile_2.how_1.fast_0.one_0"),
        ("one_0.fast_0.tile_2.how_1", "tile_2.how_1.fast_0.one_0"),
    ],
)
def test_base_is_said_as_a_person_would(tmp_path, text, label):
    space = number_space([read(tmp_path / "a.json", document(space=MIXED))])
    assert parse_base(text, space) == label


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tile=1", "--base 'tile=1' does not set how, fast\n  Available: how=a|b,tile=9|c, "),
        (
            "128",
            "--base '128' does not name a configuration\n  Name values by parameter, for example"
            " tile=VAL",
        ),
        ("x=1,tile=1", "--base 'x=1,tile=1' does not name a configuration"),
        ("tile=1,tile=2", "--base gives tile twice"),
        ("tile=3,how=a,fast=true", "--base: tile has no value '3' in what was tuned\n  It has: 1"),
        ("tile_1.how_7.fast_0.one_0", "--base: how has no value '7' in what was tuned"),
        ("tile=1\x1b", "--base: tile has no value '1\\x1b' in what was tuned"),
    ],
)
def test_a_base_that_is_none_is_refused(tmp_path, text, told):
    space = number_space([read(tmp_path / "a.json", document(space=MIXED))])
    with pytest.raises(InputError) as error:
        parse_base(text, space)
    assert str(error.value).startswith(told)


def test_a_label_is_told_as_values(tmp_path):
    space = number_space([read(tmp_path / "a.json", document(space=MIXED))])
    assert space.spelled("tile_2.how_1.fast_0.one_0") == {
        "tile": "2",
        "how": '"b,tile=9"',
        "fast": "false",
        "one": "0.5",
    }


def test_what_was_measured_again_is_joined_and_a_copy_is_not(tmp_path):
    first, second = document(seed=1), document(seed=2)
    kernel = gathered(tmp_path, first, second, first)
    assert kernel.copies == 9
    joined = point(kernel, "base")
    assert (joined.repeats, len(joined.samples)) == (2, 62)
    assert joined.center == float(np.median(joined.samples.astype(np.float32)))
    assert joined.compiling == pytest.approx(0.8)


def test_a_measurement_outweighs_a_failure_and_samples_a_mean(tmp_path):
    first, second, third = document(seed=1), document(seed=2), document(seed=3)
    first["cache"]["64,1"] = failed({"block_size_x": 64, "tile": 1}, "RuntimeFailedConfig")
    second["cache"]["64,2"] = {"block_size_x": 64, "tile": 2, "time": 0.5}
    for number, made in enumerate((first, second, third)):
        made["cache"]["64,4"] = {"block_size_x": 64, "tile": 4, "time": 1.0 + number}
    kernel = gathered(tmp_path, first, second, third)
    assert point(kernel, "block_size_x_64.tile_1").failure is None
    assert len(point(kernel, "block_size_x_64.tile_2").samples) == 62
    last = point(kernel, "block_size_x_64.tile_4")
    assert (last.center, last.samples) == (0.003, None)


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    told = unsaid(tmp_path, document(), document(kernel="other"))
    assert told.startswith("1.json: is of the kernel 'other', but 0.json of 'vector_add'\n  Import")
    told = unsaid(tmp_path, document(), document(device="NVIDIA A100"))
    assert told.startswith("1.json: was measured on 'NVIDIA A100', but 0.json on 'NVIDIA H200'\n")
    told = unsaid(tmp_path, document(), document(space=SMALL))
    assert told.startswith("1.json: has the parameters 'block_size_x', not 'block_size_x', 'ti")
    made = t4_document()
    made["results"][2]["configuration"] = {"other": 1}
    told = unsaid(tmp_path, json.dumps(made), name="k", size="1")
    assert told.startswith("0.json: has the parameters 'other', not")


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (
            {"name": "a b"},
            "--name 'a b' is not a valid name for results\n  Use letters, digits and underscores",
        ),
        ({"name": "../x"}, "--name '../x' is not a valid name for results"),
        ({"name": "copy_2"}, "--name 'copy_2' is not a valid name for results"),
        ({"name": "mine.base"}, "--name 'mine.base' is not a valid name for results"),
        ({"name": "cub.bench.scan"}, "--name 'cub.bench.scan' is not a valid name for results"),
        ({"gpu": "a\nb"}, "--gpu 'a\\x0ab' is not a GPU's name"),
        ({"size": "many"}, "--size 'many' is not a size\n  For example 1000000, or 4096x4096"),
        ({"size": "1x2x3x4"}, "--size '1x2x3x4' is not a size"),
    ],
)
def test_what_the_user_says_is_checked(tmp_path, facts, told):
    assert unsaid(tmp_path, document("callable"), **{"size": "7", **facts}).startswith(told)


@pytest.mark.parametrize(
    "types", [("T",), ("T=",), ("=F32",), ("T=F32", "T=F64"), ("T{ct}=F32",), ("T=a\nb",)]
)
def test_a_type_is_an_axis_with_a_value(tmp_path, types):
    assert unsaid(tmp_path, document(), types=types).startswith("--type ")


def test_a_kernel_that_bindings_know_has_its_name_and_its_workload(tmp_path):
    kernel = gathered(tmp_path, document(), name="mine.blend", types=("T=F32", "O=ns::V<int, 3>"))
    assert kernel.algorithm == "mine.blend"
    assert kernel.workload == {"T{ct}": "F32", "O{ct}": "ns::V<int, 3>"}
    assert "is not a valid name for results" in unsaid(tmp_path, document(kernel="stage_2"))
    assert "is not a valid name for results" in unsaid(tmp_path, document(kernel="mine.blend"))


def test_t4_results_name_no_kernel(tmp_path):
    told = unsaid(tmp_path, json.dumps(t4_document()), size="9")
    assert told.startswith("0.json: the kernel has no name\n  Name it")
    assert (
        gathered(tmp_path, json.dumps(t4_document()), size="9", name="own.x").algorithm == "own.x"
    )
    mixed = (document(), json.dumps(t4_document()))
    assert unsaid(tmp_path, *mixed).startswith("1.json: is of the kernel no name, but 0.json of 'v")


def test_base_is_measured_on_every_size(tmp_path):
    first, second = document(), document(2_000)
    del second["cache"]["256,1"]
    told = unsaid(tmp_path, first, second)
    assert told.splitlines() == [
        "base, block_size_x=256,tile=1, was not measured on the size 2000",
        "  Include its values in the tuning run, or name another base: --base. Measured were, for"
        " example, block_size_x=64,tile=1 and block_size_x=64,tile=2 and block_size_x=64,tile=4.",
    ]
    second["cache"] = {"256,1": failed({"block_size_x": 256, "tile": 1}, "InvalidConfig")}
    told = unsaid(tmp_path, first, second)
    assert told.splitlines() == [
        "base, block_size_x=256,tile=1, was not measured on the size 2000: Kernel Tuner: the"
        " configuration is not valid",
        "  Include its values in the tuning run, or name another base: --base.",
    ]


def test_a_cache_without_any_time_says_why(tmp_path):
    made = document(space=SMALL)
    made["cache"] = {"64": failed({"block_size_x": 64}, "CompilationFailedConfig")}
    told = unsaid(tmp_path, made, base="")
    assert told == "0.json: no configuration has a time: Kernel Tuner: it does not compile"


@pytest.mark.parametrize("unit", ["nanoseconds", "microseconds", "milliseconds", "seconds"])
def test_t4_times_have_the_unit_that_the_file_says(tmp_path, unit):
    found = read(tmp_path / "a.json", json.dumps(t4_document(unit=unit)))
    expected = read(tmp_path / "b.json", document())
    assert found.device == "NVIDIA H200"
    for one, other in zip(found.entries, expected.entries, strict=True):
        assert dict(one.values) == dict(other.values)
        assert one.outcome.samples == pytest.approx(other.outcome.samples)
        assert one.compiling == pytest.approx(0.4)


def test_t4_files_of_the_benchmark_hub_misspell_milliseconds(tmp_path):
    text = json.dumps(t4_document(unit="milliseconds"))
    expected = read(tmp_path / "a.json", text)
    found = read(tmp_path / "b.json", text.replace('"milliseconds"', '"miliseconds"'))
    assert [one.outcome for one in found.entries] == [one.outcome for one in expected.entries]


def t4_result(**more):
    made = t4_document()
    made["results"] = [{**made["results"][0], **more}]
    return json.dumps(made)


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({"invalidity": "timeout"}, TunedFailure("hang", "T4: timeout")),
        ({"invalidity": "compile"}, TunedFailure("compile", "T4: it does not compile")),
        ({"invalidity": "correctness"}, TunedFailure("wrong", "T4: its results are wrong")),
        ({"invalidity": "odd"}, TunedFailure("error", "T4: odd")),
        ({"invalidity": ["x"]}, TunedFailure("error", "T4: ['x']")),
        ({"correctness": 0}, TunedFailure("wrong", "T4: its results are wrong")),
        ({"times": {"runtimes": [3.0]}}, TunedTimes(None, (3e-6,))),
        ({"times": {}, "measurements": []}, TunedFailure("untimed", "it has no time")),
        (
            {"times": {}, "measurements": [{"name": "a"}, {"name": "time", "value": 5}]},
            TunedTimes(5e-6, ()),
        ),
        (
            {"times": {}, "measurements": [{"name": "time", "value": 5, "unit": "ms"}]},
            TunedTimes(5e-3, ()),
        ),
        (
            {"times": {}, "measurements": [{"name": "time", "value": 5, "unit": "weeks"}]},
            TunedFailure("untimed", "its time, \"5 'weeks'\", is not a plausible kernel time"),
        ),
    ],
)
def test_t4_outcomes(tmp_path, more, outcome):
    (entry,) = read(tmp_path / "a.json", t4_result(**more)).entries
    if isinstance(outcome, TunedTimes):
        assert entry.outcome.samples == pytest.approx(outcome.samples)
        assert entry.outcome.mean == pytest.approx(outcome.mean)
    else:
        assert (entry.outcome.kind, entry.outcome.reason.replace('"', "'")) == (
            outcome.kind,
            outcome.reason.replace('"', "'"),
        )


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({**t4_document(), "schema_version": "2.0.0"}, "T4 results of version '2.0.0'; policygen"),
        (
            {**t4_document(), "metadata": {}},
            "metadata has no timeunit, so the unit of its times is",
        ),
        ({**t4_document(), "metadata": {"timeunit": []}}, "metadata has no timeunit"),
        ({**t4_document(), "results": {"configuration": 1, "invalidity": 2}}, "results is an obj"),
        (
            {**t4_document(), "results": [], "x": {"configuration": 0, "invalidity": 0}},
            "there is no configuration\n",
        ),
        (t4_result(configuration={}), "results[0]: 0 parameters, but only 1 to 64 are possible"),
        (t4_result(configuration={"a": []}), "results[0] configuration 'a': a list cannot be a"),
        (t4_result(configuration={"a": "x" * 201}), "results[0] configuration 'a': a string of mo"),
        (t4_result(times=3), "results[0] times is a number, not an object"),
    ],
)
def test_what_are_no_t4_results_is_refused_with_its_place(tmp_path, made, told):
    text = made if isinstance(made, str) else json.dumps(made)
    assert refused(tmp_path / "a.json", text).startswith(told)


def test_t4_results_of_no_version_are_read(tmp_path):
    made = t4_document()
    del made["schema_version"]
    assert len(read(tmp_path / "a.json", json.dumps(made)).entries) == 9


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_what_the_script_writes(name):
    size, seed, closed = EXAMPLES[name]
    path = Path(__file__).parent.parent.parent / "fixtures/tuners" / name
    assert path.read_text() == example(size, seed, closed=closed), UPDATE
