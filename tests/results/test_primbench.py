"""What rocPRIM's newer benchmarks write: each file is read, or refused with its place."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from policygen.app.db_import import library_type_names
from policygen.bindings.load import library_types
from policygen.errors import PolicygenError
from policygen.results.tuners.formats import TunedFailure, TunedTimes
from policygen.results.tuners.suites import (
    SuiteFacts,
    gather_suite,
    suite_arch,
    suite_gpu,
    suite_sizes,
)
from policygen.rocprim import result_names
from tests.results import rocprim_files
from tests.results.primbench_files import (
    CALLS,
    EXAMPLES,
    KEYS,
    SCAN,
    SIZE,
    UPDATE,
    document,
    meta_of,
    results,
    run_of,
    text_of,
)
from tests.results.tuned_read import read, refused

META = meta_of("merge", KEYS[0], {"bs": 64, "ipt": 4})
ONE = {"bs": [128, 256], "ipt": [8]}
TYPES = library_type_names("rocprim")


def gathered(tmp_path, *made, **facts):
    given = {"gpu": "MI300X", "arch": "gfx942", "types": TYPES, **facts}
    return gather_suite(read(tmp_path, *made), SuiteFacts(**given))


def unsaid(tmp_path, *made, **facts):
    with pytest.raises(PolicygenError) as error:
        gathered(tmp_path, *made, **facts)
    return str(error.value).replace(f"{tmp_path}/", "")


def run(**more):
    return run_of(META, 1.0, random.Random(1), **more)


def outcome(tmp_path, made):
    """What is said of one run."""
    (found,) = read(tmp_path, document([made], "device_merge"))
    (entry,) = found.entries
    assert entry.place == "specializations[0]"
    return entry.outcome


def test_a_file_says_all_types_and_configurations(tmp_path):
    found = read(tmp_path, results())
    assert [(one.kernel, dict(one.workload)) for one in found] == [
        ("device_merge", {"key_type": "half", "value_type": "i16"}),
        ("device_merge", {"key_type": "i32", "value_type": "empty"}),
    ]
    first = found[0]
    assert (first.library, first.program, first.arch) == ("rocprim", "primbench", "gfx942")
    assert (first.device, first.size, len(first.entries)) == ("AMD Instinct MI300X", str(SIZE), 5)
    assert (first.notes, list(first.parameters)) == ((), ["bs", "ipt"])
    assert [one.is_default for one in first.entries] == [False, False, False, False, True]
    tuned = first.entries[0]
    assert tuned.values == {"bs": 128, "ipt": 4}
    assert (tuned.at, tuned.work) == ("2026-03-01T10:00:00+00:00 specializations[0]", SIZE / 8)
    assert tuned.running > 1


def test_a_time_is_what_the_rate_of_the_last_batch_says(tmp_path):
    found = outcome(tmp_path, {**run(), "items": 1000, "items_per_second": 4e6, "noise_percent": 2})
    assert found == TunedTimes(0.00025, (0.00025,), pytest.approx(5e-6))
    lone = outcome(tmp_path, run(noise=0.002))
    last = run(noise=0.002, batches=True)["batches"][-1]
    assert lone.mean == pytest.approx(last["batch_ms"] / CALLS / 1000, rel=1e-5)


@pytest.mark.parametrize("noise", [None, 0, -1, math.nan, math.inf, "1", True, 10**400])
def test_noise_that_is_none_is_not_known(tmp_path, noise):
    found = outcome(tmp_path, {**run(), "noise_percent": noise})
    assert (len(found.samples), found.deviation) == (1, None)


def test_batches_have_the_time_of_every_call(tmp_path):
    made = run(batches=True)
    found = outcome(tmp_path, made)
    calls = [one for batch in made["batches"] for one in batch["iterations_ms"]]
    assert (found.mean, found.deviation) == (None, None)
    assert found.samples == pytest.approx([one / 1000 for one in calls])
    assert len(calls) == 10 * CALLS


@pytest.mark.parametrize("batches", [[], [{"batch_ms": 0, "iterations_ms": []}]])
def test_batches_without_calls_leave_the_rate(tmp_path, batches):
    assert len(outcome(tmp_path, {**run(), "batches": batches}).samples) == 1


def test_batches_that_contradict_the_rate_are_no_measurement(tmp_path):
    made = run(batches=True)
    made["items_per_second"] *= 2
    found = outcome(tmp_path, made)
    assert isinstance(found, TunedFailure)
    assert found.reason.startswith(
        "its batches imply 0.000998 to 0.001 seconds per call, but its rate"
    )


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"items_per_second": 0}, "its items_per_second, 0, is not a rate"),
        ({"items_per_second": -1e9}, "its items_per_second, -1000000000.0, is not a rate"),
        ({"items_per_second": math.nan}, "its items_per_second, NaN, is not a rate"),
        ({"items_per_second": math.inf}, "its items_per_second, Infinity, is not a rate"),
        ({"items_per_second": 10**400}, "its items_per_second, a number of more than 63 bits"),
        ({"items_per_second": None}, "its items_per_second, null, is not a rate"),
        ({"items_per_second": "1e9"}, "its items_per_second, '1e9', is not a rate"),
        ({"items_per_second": True}, "its items_per_second, true, is not a rate"),
        ({"bytes_per_second": 0}, "its bytes_per_second, 0, is not a rate"),
        ({"items": 0}, "its items, 0, are not a count"),
        ({"items": -1}, "its items, -1, are not a count"),
        ({"items": 1.5}, "its items, 1.5, are not a count"),
        ({"items": True}, "its items, true, are not a count"),
        ({"items": 1 << 63}, "its items, a number of more than 63 bits, are not a count"),
        ({"items": 1, "items_per_second": 1e29}, "its time, 1e-29 seconds, is not a plausible ker"),
        (
            {"batches": [{"iterations_ms": [1.0, 0.0]}]},
            "0.0 among its times is not a plausible kernel time",
        ),
        (
            {"batches": [{"iterations_ms": [1.0]}, {"iterations_ms": ["x"]}]},
            "'x' among its times is not a plausible kernel time",
        ),
    ],
)
def test_what_is_no_rate_is_no_measurement(tmp_path, cells, reason):
    found = outcome(tmp_path, {**run(), **cells})
    assert isinstance(found, TunedFailure)
    assert found.kind == "untimed"
    assert found.reason.startswith(reason)


@pytest.mark.parametrize("key", ["items_per_second", "bytes_per_second"])
def test_a_run_without_a_rate_is_no_measurement(tmp_path, key):
    made = run()
    del made[key]
    assert outcome(tmp_path, made) == TunedFailure("untimed", f"it has no {key}")


def changed(path, value):
    """A file with something else in one place; what is `...` is taken out."""
    made = results()
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    if value is ...:
        del inner[path[-1]]
    return made


GENERAL, SETTINGS = ("context", "general"), ("context", "settings")
RUN = ("specializations", 3)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("context",), ["results_version"], "0.json: context is a list, not an object"),
        (GENERAL, ..., "0.json: context general is nothing, not an object"),
        (SETTINGS, 3, "0.json: context settings is a number, not an object"),
        ((*GENERAL, "gpu"), ..., "0.json: context general gpu is nothing, not an object"),
        (("specializations",), {}, "0.json: specializations is an object, not a list"),
        (("specializations",), [], "0.json: there is no specialization\n  Nothing was measured"),
        (RUN, 7, "0.json: specializations[3] is a number, not an object"),
        ((*RUN, "meta"), ..., "0.json: specializations[3] meta is nothing, not an object"),
        (
            (*RUN, "meta", "cfg"),
            ...,
            "0.json: specializations[3] meta: it has no cfg\n  rocPRIM's benchmarks write lvl,"
            " algo",
        ),
        ((*RUN, "meta", "key_type"), "\x1b", "0.json: specializations[3] meta: key_type, '\\x1b'"),
        ((*RUN, "elapsed_secs"), 1, "0.json: specializations[3] elapsed_secs is a number, not"),
        ((*RUN, "noise_timeout"), 1, "0.json: specializations[3] noise_timeout is a number, not"),
        ((*RUN, "batches"), 1, "0.json: specializations[3] batches is a number, not a list"),
        ((*RUN, "batches"), [1], "0.json: specializations[3] batches[0] is a number, not an"),
        (
            (*RUN, "batches"),
            [{"batch_ms": 1}],
            "0.json: specializations[3] batches[0] iterations_ms is nothing, not a list",
        ),
        (
            ("context", "results_version"),
            "2.0.0",
            "0.json: primbench's results of version 2.0.0; policygen supports 4.x\n  Measure with",
        ),
        (("context", "results_version"), "40", "0.json: primbench's results of version 40; policy"),
        (("context", "results_version"), 4, "0.json: context results_version, a number, is not"),
        (("context", "results_version"), "4.\x07", "0.json: context results_version, '4.\\x07'"),
        (("context", "results_version"), ..., None),
        (
            (*SETTINGS, "dry"),
            True,
            "0.json: is a dry run without measurements\n  Run it without --dry.",
        ),
        ((*SETTINGS, "dry"), "no", "0.json: context settings dry is a text, not true or"),
        ((*SETTINGS, "hot"), [], "0.json: context settings hot is a list, not true or f"),
        (("context", "flags"), [], "0.json: context flags is a list, not an object"),
        (
            (*GENERAL, "backend", "name"),
            "cuda",
            "0.json: was measured with the backend 'cuda', but rocPRIM runs only with hip\n",
        ),
        ((*GENERAL, "gpu", "arch"), "9.0", "0.json: context general gpu arch, '9.0', is not an A"),
        ((*GENERAL, "gpu", "name"), "\x1b", "0.json: context general gpu name is not a name"),
        ((*GENERAL, "date"), 3, "0.json: context general date is a number, not a string"),
        ((*GENERAL, "library_build_type"), 3, "0.json: context general library_build_type is a"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_refused_with_its_place(tmp_path, path, value, told):
    found = refused(tmp_path, changed(path, value))
    assert found.startswith(told or "0.json: not results of a tuner that policygen can import")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*GENERAL, "backend"), ...),
        ((*GENERAL, "monitoring"), ...),
        ((*GENERAL, "temperature_type"), ...),
        ((*GENERAL, "gpu", "arch"), "gfx942:sramecc+:xnack-"),
        ((*GENERAL, "specialization_count"), ...),
        (("summary",), ...),
        (("context", "flags"), ...),
        (("context", "custom_settings"), {"trials": 3}),
        (("context", "results_version"), "4.1.0"),
        ((*RUN, "gpu_temp_celsius"), ...),
        ((*RUN, "elapsed_secs"), ...),
        ((*RUN, "noise_timeout"), ...),
    ],
)
def test_what_need_not_be_there_may_be_missing(tmp_path, path, value):
    found = read(tmp_path, changed(path, value))
    assert [(one.arch, one.notes, len(one.entries)) for one in found] == [("gfx942", (), 5)] * 2


@pytest.mark.parametrize(
    ("more", "program", "notes"),
    [
        ({}, "primbench", ()),
        ({"settings": {"hot": True}}, "primbench, hot", ()),
        ({"flags": {"sync": True}}, "primbench, sync", ()),
        (
            {"general": {"library_build_type": "debug"}, "settings": {"hot": True}},
            "primbench, hot, debug",
            ("a debug build: times of other builds may differ",),
        ),
    ],
)
def test_how_it_was_measured_is_told(tmp_path, more, program, notes):
    made = results(types=KEYS[:1], **more)
    (found,) = read(tmp_path, made)
    assert (found.program, found.notes) == (program, notes)
    if more:
        told = unsaid(tmp_path, results(types=KEYS[:1]), made)
        assert told.startswith(
            f"1.json: device_merge was measured by {program}, but in 0.json by primbench: their"
        )


def test_runs_that_stayed_noisy_are_told_and_count(tmp_path):
    made = results(types=KEYS[:1])
    (found,) = read(tmp_path, made)
    assert found.notes == ()
    rng = random.Random(3)
    noisy = [run_of(one["meta"], 1.0, rng, noise=0.1) for one in made["specializations"][:2]]
    most = max(one["noise_percent"] for one in noisy)
    place = max((0, 1), key=lambda at: noisy[at]["noise_percent"])
    made["specializations"][:2] = noisy
    (found,) = read(tmp_path, made)
    assert found.notes == (
        f"2 of 5 runs were still noisy at the time limit, by {most:.3g} % at most"
        f" (specializations[{place}])",
    )
    assert all(isinstance(one.outcome, TunedTimes) for one in found.entries)
    made["specializations"][1]["noise_timeout"] = False
    del made["specializations"][0]["noise_percent"]
    (found,) = read(tmp_path, made)
    told = "1 of 5 runs was still noisy at the time limit (specializations[0])"
    assert found.notes == (told,)


def test_a_file_of_a_run_that_went_on_is_read_as_far_as_it_goes(tmp_path):
    made = results(types=KEYS[:1])
    text = text_of(made)
    whole = text[: text.index('},\n{"index": 3') + 1]
    for end in ("", ",", ",\n"):
        (found,) = read(tmp_path, whole + end)
        assert len(found.entries) == 3
        assert found.notes == (
            "it is not closed: its run was still going, or it was truncated",
            "3 of 5 specializations are there",
        )
    cut = text[: text.index('{"index": 0')]
    assert refused(tmp_path, cut).startswith("0.json: there is no specialization")
    assert refused(tmp_path, whole[:-20]).startswith("0.json: not JSON: line ")


def test_files_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(result_names, "MOST_ENTRIES", 2)
    assert refused(tmp_path, results()) == "0.json: more than 2 specializations"


def test_names_that_stand_there_twice_are_told(tmp_path):
    text = json.dumps(results(types=KEYS[:1]))
    twice = text.replace('"items": ', '"items": 1, "items": ', 1)
    assert refused(tmp_path, twice).startswith("0.json: specializations[0] has 'items' twice")
    twice = text.replace('"bs": 128', '"bs": 128, "bs": 128', 1)
    assert "meta: 'cfg' names something twice" in refused(tmp_path, twice)


def test_types_are_called_as_bindings_call_them(tmp_path):
    known = {one.name for one in library_types("rocprim").types}
    assert TYPES["i32"] == "int"
    assert set(TYPES.values()) <= known
    assert not TYPES.keys() & known
    types = [
        {"key_type": "f64", "value_type": "custom<i32,f64>", "nth": "half"},
        {"key_type": "i128", "value_type": "empty", "nth": "half"},
    ]
    found = gathered(tmp_path, results(types=types))
    assert [one.workload for one in found.kernels] == [
        {"key_type{ct}": "double", "nth{ct}": "half", "value_type{ct}": "custom<i32,f64>"},
        {
            "key_type{ct}": "rocprim::int128_t",
            "nth{ct}": "half",
            "value_type{ct}": "rocprim::empty_type",
        },
    ]


def test_a_type_has_one_word_in_other_results():
    words = [word for one in library_types("rocprim").types for word in one.also]
    assert len(words) == len({*words}) == len(TYPES)


def test_words_of_a_configuration_and_truth_values_are_read(tmp_path):
    types = [{"exclusive": False, "value_type": "f32"}]
    found = gathered(tmp_path, results("scan", types, SCAN))
    (kernel,) = found.kernels
    assert kernel.algorithm == "rocprim.device_scan"
    assert kernel.workload == {"exclusive{ct}": "false", "value_type{ct}": "float"}
    assert (kernel.base_from, len(kernel.points)) == ("default", 9)


def test_one_run_has_a_deviation_and_several_are_samples(tmp_path):
    (kernel,) = gathered(tmp_path, results(types=KEYS[:1], space=ONE)).kernels
    assert {one.samples is None for one in kernel.points} == {True}
    assert all(0 < one.deviation < 0.01 * one.center for one in kernel.points)
    made = [results(types=KEYS[:1], space=ONE, seed=seed) for seed in range(5)]
    for seed, one in enumerate(made):
        one["context"]["general"]["date"] = f"2026-03-01T1{seed}:00:00+00:00"
    (kernel,) = gathered(tmp_path, *made, made[0]).kernels
    assert [len(one.samples) for one in kernel.points] == [5, 5, 5]
    assert (kernel.copies, {one.deviation for one in kernel.points}) == (3, {None})
    base = kernel.points[2]
    assert base.center == pytest.approx(np.median(base.samples))


def test_base_is_by_default_of_a_tree_or_asked_for(tmp_path):
    tuned = results(types=KEYS[:1], space=ONE, default=False)
    assert "the current configuration is unknown" in unsaid(tmp_path, tuned)
    (kernel,) = gathered(tmp_path, tuned, base="bs=128").kernels
    assert (kernel.base, kernel.base_from) == ("bs_128.ipt_8", "option")

    def current(benchmark, workload, arch):
        assert (benchmark, arch) == ("rocprim.device_merge", "gfx942")
        assert workload == {"key_type": "int", "value_type": "rocprim::empty_type"}
        return {"bs": "256", "ipt": "8"}

    (kernel,) = gathered(tmp_path, tuned, current=current).kernels
    assert (kernel.base, kernel.base_from) == ("bs_256.ipt_8", "tree")
    plain = results(types=KEYS[:1], seed=2, default="only")
    (kernel,) = gathered(tmp_path, tuned, plain).kernels
    assert (kernel.base, kernel.base_from, len(kernel.files)) == ("base", "default", 2)


def test_zero_never_wins(tmp_path):
    made = results(types=KEYS[:1], space=ONE)
    made["specializations"][1]["items_per_second"] = 0
    found = gathered(tmp_path, made)
    (kernel,) = found.kernels
    assert [one.label for one in kernel.points if one.failure is None] == ["bs_128.ipt_8", "base"]
    (refusal,) = found.refused
    assert refusal.place.endswith(
        "0.json: specializations[1], device_merge key_type=int value_type=rocprim::empty_type"
    )
    for one in made["specializations"]:
        one["items_per_second"] = 0
    told = unsaid(tmp_path, made)
    assert told == "0.json: no configuration has a time: its items_per_second, 0, is not a rate"


def test_older_benchmarks_are_another_way_to_measure(tmp_path):
    google = rocprim_files.benchmarks({("merge", "key_type:int"): ONE})
    told = unsaid(tmp_path, results(types=[{"key_type": "i32"}], space=ONE), google)
    assert told.startswith(
        "1.json: device_merge was measured by Google Benchmark, but in 0.json by primbench:"
    )


def test_base_of_other_input_is_none(tmp_path):
    made = results(types=KEYS[:1], space=ONE)
    for key in ("items", "items_per_second"):
        made["specializations"][2][key] //= 2
    assert "base processed 8,388,608 items per run, but conf" in unsaid(tmp_path, made)


def test_all_is_of_one_gpu_and_size(tmp_path):
    files = read(tmp_path, results(types=KEYS[:1]))
    assert (suite_arch(files, ""), suite_gpu(files, "", "")) == ("gfx942", "Instinct MI300X")
    suite_sizes(files, "")
    nameless = changed((*GENERAL, "gpu", "name"), ...)
    (found, _) = read(tmp_path, nameless)
    assert found.device == "gfx942"
    old = rocprim_files.benchmarks({("scan", "value_type:int"): ONE})
    for made in ((old, results()), (results(), old)):
        files = read(tmp_path, *made)
        with pytest.raises(PolicygenError) as error:
            suite_gpu(files, "", "gfx942")
        told = str(error.value).replace(f"{tmp_path}/", "")
        first, second = ("1", "0") if made[0] is old else ("0", "1")
        assert told == (
            f"{first}.json: was measured on 'AMD Instinct MI300X', but {second}.json names 'AMD"
            " Instinct MI300X (8192, 304, eccon)'\n  If it was the same GPU, add --gpu 'AMD"
            " Instinct MI300X (8192, 304, eccon)'"
        )
        assert suite_gpu(files, "MI300X", "gfx942") == "MI300X"
    other = changed((*GENERAL, "gpu", "name"), "AMD Instinct MI300A")
    with pytest.raises(PolicygenError, match=r"on 'AMD Instinct MI300A', but .* on 'AMD Inst"):
        suite_gpu(read(tmp_path, old, other), "MI300X", "gfx942")
    sizeless = changed((*SETTINGS, "size"), ...)
    with pytest.raises(PolicygenError, match="does not state the problem size"):
        suite_sizes(read(tmp_path, sizeless), "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_what_the_script_writes(name):
    path = Path(__file__).parent.parent.parent / "fixtures/tuners" / name
    assert path.read_text() == text_of(EXAMPLES[name]()), UPDATE
