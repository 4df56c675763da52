import json
import math
import os
import random
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from policygen.errors import InputError, PolicygenError
from policygen.results import nvbench
from policygen.results.database import open_database
from policygen.results.nvbench import guess_label, is_nvbench, read_nvbench, to_database
from policygen.results.samples import decode
from tests.results.measured import MEASURED

GPU = {
    "id": 0,
    "name": "NVIDIA Pretend",
    "global_memory_bus_width": 5120,
    "number_of_sms": 80,
    "ecc_state": True,
}
AXES = [
    {"name": "T{ct}", "type": "type", "flags": "", "values": [{"input_string": "I8"}]},
    {
        "name": "Elements{io}",
        "type": "int64",
        "flags": "pow2",
        "values": [{"input_string": "4", "value": 16}, {"input_string": "5", "value": 32}],
    },
    {
        "name": "Share",
        "type": "float64",
        "flags": "",
        "values": [{"input_string": "0.50", "value": 0.5}],
    },
]


def summary(tag, **data):
    return {"tag": tag, "data": [{"name": name, "value": value} for name, value in data.items()]}


def state(elements="16", *, samples=None, skipped=False, device=0):
    summaries = [
        summary("nv/cold/time/gpu/mean", value="0.25"),
        summary("nv/cold/bw/global/utilization", value="0.5"),
    ]
    if samples is not None:
        name = "nv/json/bin:nv/cold/sample_times"
        summaries.append(summary(name, filename=f"run/out.json-bin/{elements}.bin", size=samples))
    return {
        "name": f"Elements={elements}",
        "device": device,
        "axis_values": [
            {"name": "T{ct}", "type": "string", "value": "I8"},
            {"name": "Elements{io}", "type": "int64", "value": elements},
            {"name": "Share", "type": "float64", "value": "5e-1"},
        ],
        "summaries": None if skipped else summaries,
        "is_skipped": skipped,
    }


def document(program="./bin/cub.bench.toy.base", states=None, axes=AXES, **changes):
    states = [state("16"), state("32", skipped=True)] if states is None else states
    bench = {"name": "base", "axes": axes, "states": states}
    return {"meta": {"argv": [program]}, "devices": [GPU], "benchmarks": [bench], **changes}


def write(folder, content, name="out.json"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder / name


def fill(folder, elements, values):
    file = folder / f"out.json-bin/{elements}.bin"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(np.array(values, "<f4").tobytes())
    return file


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        query = 'SELECT * FROM "cub.bench.toy.base" ORDER BY variant'
        return connection.execute(query).fetchall()


def test_a_file_without_samples_has_means(tmp_path):
    run = read_nvbench(write(tmp_path, document()))
    assert (run.algorithm, run.is_base) == ("cub.bench.toy", True)
    assert run.gpu == "Pretend (5120, 80, eccon)"
    (bench,) = run.benches
    assert (bench.name, bench.axes) == ("base", ("T{ct}", "Elements{io}[pow2]", "Share"))
    (only,) = bench.states  # the skipped one is left out
    assert only.point == {"T{ct}": "I8", "Elements{io}[pow2]": "4", "Share": "0.50"}
    assert (only.center, only.bandwidth, only.samples) == (0.25, 0.5, None)
    assert run.declared == {
        ("cub.bench.toy", "base", "T{ct}"): ("I8",),
        ("cub.bench.toy", "base", "Elements{io}[pow2]"): ("4", "5"),
        ("cub.bench.toy", "base", "Share"): ("0.50",),
    }


@pytest.mark.parametrize("place", ["run", "elsewhere", "."])
def test_samples_are_found_where_the_program_ran_or_beside_the_file(tmp_path, place, monkeypatch):
    folder = tmp_path / place
    path = write(folder, document(states=[state("16", samples="3")]))
    fill(tmp_path / "run" if place == "." else folder, "16", [3e-3, 1e-3, 2e-3])
    (only,) = read_nvbench(path).benches[0].states
    assert only.center == float(np.float32(2e-3))
    assert list(only.samples) == sorted(only.samples)


@pytest.mark.parametrize(
    "name", ["{}/secret", "../secret", "a/../../secret", "../x/../secret", "link", "folder/secret"]
)
@pytest.mark.parametrize("there", [True, False])
def test_a_sample_file_of_another_folder_is_not_looked_for(tmp_path, monkeypatch, name, there):
    """Neither whether it is there nor how large it is."""
    folder = tmp_path / "run"
    content = document(states=[state("16", samples=1)])
    name = name.format(tmp_path)
    content["benchmarks"][0]["states"][0]["summaries"][-1]["data"][0]["value"] = name
    path = write(folder, content)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    if there:
        (tmp_path / "secret").write_bytes(b"12345")
    with pytest.raises(InputError) as raised:
        read_nvbench(path)
    reason = f": {name} is a symbolic link\n" if name[0] in "lf" else " is missing\n"
    assert str(raised.value).startswith(f"{path}: the sample file {name!r}{reason}")


def test_samples_are_bounded_before_they_are_read(tmp_path):
    path = write(tmp_path, document(states=[state("16", samples=10**10)]))
    file = fill(tmp_path, "16", [])
    os.truncate(file, 40 << 30)
    with pytest.raises(InputError, match=r"10,000,000,000 samples: more than the limit of 67,1"):
        read_nvbench(path)
    path = write(tmp_path, document(states=[state("16", samples=1)]))
    with pytest.raises(InputError, match=r"42,949,672,960 bytes: larger than the limit of 32 MiB"):
        read_nvbench(path)
    os.truncate(path, 40 << 30)
    with pytest.raises(InputError, match=r"out.json: 42,949,672,960 bytes: larger than the limit"):
        read_nvbench(path)


def test_a_link_beside_a_run_names_no_variant(tmp_path):
    path = write(tmp_path / "run", document())
    (tmp_path / "secret").write_text("x.ipt_7")
    path.with_name("cmd.txt").symlink_to(tmp_path / "secret")
    assert guess_label(path) == "run"


def test_no_samples_and_no_mean_give_no_center(tmp_path):
    bare = state("16") | {"summaries": []}
    zero = state("32", samples="0") | {"name": "zero"}
    run = read_nvbench(write(tmp_path, document(states=[bare, zero])))
    assert math.isnan(run.benches[0].states[0].center)
    assert run.benches[0].states[1].center == 0.25


@pytest.mark.parametrize(
    ("program", "algorithm", "base"),
    [
        ("bin/cub.bench.toy.variant", "cub.bench.toy", False),
        (r"C:\bin\cub.bench.toy.base.exe", "cub.bench.toy", True),
        ("mine", "mine", False),
    ],
)
def test_the_program_tells_the_benchmark(tmp_path, program, algorithm, base):
    run = read_nvbench(write(tmp_path, document(program)))
    assert (run.algorithm, run.is_base) == (algorithm, base)


def without(key):
    return {name: value for name, value in document().items() if name != key}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text", "not NVBench's JSON: it should be an object"),
        ({"benchmarks": []}, "not NVBench's JSON: meta: it is missing"),
        (without("devices"), "not NVBench's JSON: devices: it is missing"),
        (
            document(states=[{"axis_values": [{}]}]),
            "not NVBench's JSON: benchmarks[0].states[0].axis_values[0].name: it is missing",
        ),
        (
            document(meta={"argv": ["a"], "version": {"json": {"major": 2}}}),
            "NVBench JSON of version 2; policygen supports 1",
        ),
        (document(axes=AXES[:2]), "state 'Elements=16': no axis 'Share'"),
        (
            document(axes=[*AXES, {"name": "More", "flags": None, "values": None}]),
            "state 'Elements=16': no value of 'More'",
        ),
        (document(states=[state("64")]), "'Elements{io}[pow2]' does not list the value '64'"),
        (
            document(
                states=[
                    state("16") | {"summaries": [summary("nv/cold/time/gpu/mean", value="fast")]}
                ]
            ),
            "state 'Elements=16': nv/cold/time/gpu/mean is not a number: 'fast'",
        ),
        (document(states=[state("16", samples=1)]), "'run/out.json-bin/16.bin' is missing"),
        (
            document(devices=[GPU, GPU | {"id": 1}], states=[state(), state(device=1)]),
            "measured on 2 of the GPUs that it lists, instead of one",
        ),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(InputError) as failure:
        read_nvbench(path)
    assert str(failure.value).startswith(f"{path}: ")
    assert message in str(failure.value)


def test_a_file_that_is_cut_off_is_told(tmp_path):
    path = write(tmp_path, document())
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"out\.json: not JSON: line 1, column \d+$"):
        read_nvbench(path)
    with pytest.raises(InputError, match=r"cannot read .*none\.json: No such file"):
        read_nvbench(tmp_path / "none.json")


def test_samples_of_another_size_are_refused_with_both_files(tmp_path):
    path = write(tmp_path, document(states=[state("16", samples=3)]))
    file = fill(tmp_path, "16", [1.0, 2.0])
    with pytest.raises(InputError) as failure:
        read_nvbench(path)
    assert str(failure.value) == (
        f"{file}: has 8 bytes, but {path} says 3 samples of 4 bytes\n"
        "  They belong to different runs, or one is truncated."
    )
    with pytest.raises(InputError, match=r"not a size of run/out\.json-bin/16\.bin: 'many'"):
        read_nvbench(write(tmp_path, document(states=[state("16", samples="many")])))


def test_a_sample_file_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    path = write(tmp_path, document(states=[state("16", samples=1)]))
    fill(tmp_path, "16", [1.0])

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(nvbench, "read_inside", refuse)
    with pytest.raises(InputError, match=r"the sample file '.*16\.bin' cannot be read"):
        read_nvbench(path)


def test_a_name_that_no_file_can_have_is_missing(tmp_path):
    content = json.dumps(document(states=[state("16", samples=1)]))
    for name in ("\\u0000", "x" * 5000):
        path = tmp_path / "out.json"
        path.write_text(content.replace("16.bin", name), encoding="utf-8")
        with pytest.raises(InputError, match="is missing"):
            read_nvbench(path)


def test_nvbench_is_told_by_content():
    data = json.dumps(document()).encode()
    assert is_nvbench(data)
    assert is_nvbench(b"\xef\xbb\xbf \n" + data)
    assert is_nvbench(data[:-5])
    assert not is_nvbench(b'{"benchmarks": []}')
    assert not is_nvbench(b"ctk_version,13.0\n")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("cub.bench.reduce.sum.ipt_16.tpb_512.ipv_2\n./bin/x", "ipt_16.tpb_512.ipv_2"),
        ("cub.bench.radix_sort.keys.base", "base"),
        ("cub.bench.toy.off_-1", "off_-1"),
        ("ipt_16", "ipt_16"),
        ("something", "folder"),
        (None, "folder"),
    ],
)
def test_a_label_is_guessed(tmp_path, text, label):
    folder = tmp_path / "folder"
    path = write(folder, document())
    if text is not None:
        (folder / "cmd.txt").write_text(text, encoding="utf-8")
    assert guess_label(path) == label


@pytest.fixture
def pair(tmp_path):
    """A base with two points and a variant with one of them."""
    base = write(tmp_path / "b", document(states=[state("16", samples=2), state("32")]))
    fill(tmp_path / "b", "16", [1.0, 3.0])
    variant = write(tmp_path / "v", document("./bin/cub.bench.toy.variant"))
    return read_nvbench(base), read_nvbench(variant)


def test_a_pair_becomes_a_database_like_any_other(pair, tmp_path):
    out = tmp_path / "out.db"
    to_database(pair[0], [("ipt_7", pair[1])], out)
    found = rows(out)
    gpu = "Pretend (5120, 80, eccon)"
    assert [row[:7] + row[8:] for row in found] == [
        ("", "", gpu, "base", None, 2.0, 0.5, "I8", "4", "0.50"),
        ("", "", gpu, "base", None, 0.25, 0.5, "I8", "5", "0.50"),
        ("", "", gpu, "ipt_7", None, 0.25, 0.5, "I8", "4", "0.50"),
    ]
    assert list(decode(found[0][7])) == [1.0, 3.0]
    assert found[1][7] is None
    with open_database(out) as database:
        assert database.layout == "cccl"
        # Of runtime axes, NVBench names the values that were asked for.
        assert database.declared == {
            key: values for key, values in pair[0].declared.items() if "{ct}" in key[2]
        }


def changed(pair, folder, **changes):
    content = document("./bin/cub.bench.toy.variant")
    return read_nvbench(write(folder, content | changes, "changed.json"))


def test_what_was_not_measured_alike_is_refused(pair, tmp_path):
    bench = document()["benchmarks"][0]
    wrong = {
        "algorithm 'other', but 'cub.bench.toy' in ": {"meta": {"argv": ["other"]}},
        "gpu 'Pretend (5120, 80, eccoff)', but": {"devices": [GPU | {"ecc_state": False}]},
        "sub-benchmark 'more' is not in": {"benchmarks": [bench | {"name": "more"}]},
        "has the axes T{ct}, Elements{io}[pow2], Share, More, but T{ct}, Elements{io}[pow2],": {
            "benchmarks": [bench | {"axes": [*AXES, {"name": "More"}], "states": []}]
        },
        "has no measurement in common": {"benchmarks": [bench | {"states": []}]},
    }
    for message, changes in wrong.items():
        run = changed(pair, tmp_path, **changes)
        with pytest.raises(InputError) as failure:
            to_database(pair[0], [("ipt_7", run)], tmp_path / "out.db")
        assert message in str(failure.value)
        assert str(failure.value).startswith(str(run.path))
        assert str(pair[0].path) in str(failure.value)
    assert not (tmp_path / "out.db").exists()


def test_labels_must_be_distinct(pair, tmp_path):
    with pytest.raises(InputError, match="the variant is called 'base'"):
        to_database(pair[0], [("base", pair[1])], tmp_path / "out.db")
    with pytest.raises(InputError, match=r"ipt_7 base I8 4 0\.50: measured in .* already"):
        to_database(pair[0], [("ipt_7", pair[1]), ("ipt_7", pair[1])], tmp_path / "out.db")


@pytest.mark.parametrize("label", ["my variant", "ipt_7\n#define x", "ipt_7.ipt_8", ""])
def test_a_run_that_is_called_by_no_label_is_refused(pair, tmp_path, label):
    with pytest.raises(InputError) as failure:
        to_database(pair[0], [(label, pair[1])], tmp_path / "out.db")
    shown = label.replace("\n", "\\x0a")
    assert str(failure.value) == (
        f"{pair[1].path}: '{shown}' is not a variant label\n"
        "  Name its folder by the label, such as ipt_19.tpb_512."
    )


@pytest.mark.parametrize("count", [400, 4_000, 400_000])
def test_a_number_without_end_is_told(tmp_path, count):
    odd = state("16") | {"summaries": [summary("nv/cold/time/gpu/mean", value="MARK")]}
    path = write(tmp_path, document(states=[odd]))
    path.write_text(path.read_text().replace('"MARK"', "9" * count))
    with pytest.raises(InputError, match=r"mean is not a number: an endless integer|not JSON: "):
        read_nvbench(path)


def test_a_pipe_beside_a_run_names_no_variant(tmp_path):
    path = write(tmp_path / "ipt_7", document())
    os.mkfifo(path.with_name("cmd.txt"))
    assert guess_label(path) == "ipt_7"


@pytest.mark.parametrize("key_type", ["I32", "F32"])
def test_real_runs_give_the_rows_that_cccls_search_stored(tmp_path, key_type):
    folder = MEASURED / "A_reduce_sum/nvbench"
    base, variant = (
        folder / f"cub.bench.reduce.sum-T={key_type}_OffsetT=I32-{kind}/result.json"
        for kind in ("base", "variant")
    )
    label = guess_label(variant)
    runs = read_nvbench(base), read_nvbench(variant)
    assert (runs[0].is_base, runs[1].is_base) == (True, False)
    to_database(runs[0], [(label, runs[1])], tmp_path / "out.db")
    query = (
        'SELECT gpu, variant, center, bw, samples, "T{ct}", "OffsetT{ct}", "Elements{io}[pow2]"'
        ' FROM "cub.bench.reduce.sum.base" WHERE "T{ct}" = ? AND variant IN (\'base\', ?)'
        " ORDER BY variant, 8"
    )
    found = []
    for path in (tmp_path / "out.db", MEASURED / "A_reduce_sum/cccl_meta_bench.db"):
        uri = f"{path.as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            found.append(connection.execute(query, (key_type, label)).fetchall())
    assert found[0] == found[1]
    assert len(found[0]) == 8


@pytest.mark.slow
def test_damaged_files_give_our_errors_only(tmp_path):
    path = write(tmp_path / "a", document(states=[state("16", samples=2)]))
    fill(tmp_path / "a", "16", [1.0, 3.0])
    base, data = read_nvbench(path), path.read_bytes()
    other = tmp_path / "b"
    shutil.copytree(tmp_path / "a", other)
    chance, failures, out = random.Random(1), [], tmp_path / "out.db"
    for _ in range(2000):
        damaged = bytearray(data)
        if chance.random() < 0.1:
            del damaged[chance.randrange(len(damaged)) :]
        for _ in range(chance.randrange(1, 3)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(32, 127)
        (other / "out.json").write_bytes(damaged)
        is_nvbench(bytes(damaged))
        try:
            to_database(base, [("ipt_7", read_nvbench(other / "out.json"))], out)
        except PolicygenError as error:
            failures.append(str(error))
        out.unlink(missing_ok=True)
    assert 100 < len(failures) < 2000
    assert all(text.startswith(str(tmp_path)) for text in failures)
