import pickle
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from policygen.cache import keep
from policygen.errors import (
    InputError,
    MissingToolError,
    PolicygenError,
    ProcessError,
    UnprovableError,
)
from policygen.proof import kernel_build as module
from policygen.proof.compile import Listings, RefusedError
from policygen.proof.kernel_build import Job, Tools, UnitHeaders
from policygen.proof.toolchain import find_toolchain
from tests.proof.sass.dumps import FOLDER, SUM_INT, build, disassemble

pytestmark = pytest.mark.nvcc

TEXT = (FOLDER / "kernels.cu").read_text()
HEADERS = UnitHeaders("#include <some.cuh>\nint used = VALUE;\n", (), "sm90")


@pytest.fixture(scope="module")
def tools():
    toolchain = find_toolchain()
    return Tools.of(toolchain)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def none(tools, tmp_path):
    """A toolchain of which nothing may be started."""
    return replace(tools, nvcc=str(tmp_path / "absent"), cuobjdump=str(tmp_path / "absent"))


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def included(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "some.cuh").write_text(text)
    return replace(HEADERS, includes=(str(folder),))


def preprocess(headers, tools, cache):
    return module.preprocess(headers, Listings().of(headers.includes), tools, cache)


def job(text=TEXT, content="content"):
    return Job(text, replace(HEADERS, text=""), content)


def test_where_headers_stand_and_their_comments_do_not_matter(tools, cache, tmp_path):
    one = included(tmp_path / "one", "#define VALUE 1\nconst char* file = __FILE__;\n")
    two = included(
        tmp_path / "two",
        "/* a\n comment */\n\n#define VALUE 1\nconst char* file = __FILE__; // b\n",
    )
    three = included(tmp_path / "three", "#define VALUE 2\nconst char* file = __FILE__;\n")
    names = [preprocess(one_of, tools, cache) for one_of in (one, two, three)]
    assert isinstance(names[0], str)
    assert names[0] == names[1] != names[2]


def test_headers_are_preprocessed_once_until_they_change(tools, none, cache, tmp_path):
    headers = included(tmp_path / "one", "#define VALUE 1\n")
    name = preprocess(headers, tools, cache)
    assert preprocess(headers, none, cache) == name
    included(tmp_path / "one", "#define VALUE 3\n")
    assert isinstance(preprocess(headers, none, cache), MissingToolError)
    assert preprocess(headers, tools, cache) not in {name, None}


@pytest.mark.parametrize("asks", ["__has_include(<evil.cuh>)", "HAS(<evil.cuh>)"])
def test_a_header_that_asks_for_a_file_is_not_the_same_where_it_is(tools, cache, tmp_path, asks):
    """No list of what was read has the file: it is not read."""
    text = "#define HAS __has_include\n#if {}\n#define VALUE 2\n#else\n#define VALUE 1\n#endif\n"
    one, two = (included(tmp_path / name, text.format(asks)) for name in ("one", "two"))
    (tmp_path / "two" / "evil.cuh").write_text("")
    assert preprocess(one, tools, cache) != preprocess(two, tools, cache)


def test_a_computed_include_is_followed(tools, none, cache, tmp_path):
    text = "#define NAMED <other.cuh>\n#include NAMED\n"
    sides = [included(tmp_path / name, text) for name in ("one", "two", "three")]
    for name, value in zip(("one", "two", "three"), (1, 1, 2), strict=True):
        (tmp_path / name / "other.cuh").write_text(f"#define VALUE {value}\n")
    first = preprocess(sides[0], tools, cache)
    assert preprocess(sides[1], none, cache) == first, "the same files are not preprocessed again"
    assert preprocess(sides[2], tools, cache) != first


@pytest.mark.slow
def test_a_name_that_is_damaged_is_made_again(tools, cache, tmp_path):
    headers = included(tmp_path / "one", "#define VALUE 1\n")
    name = preprocess(headers, tools, cache)
    (kept,) = (cache / "preprocessed").iterdir()
    for damage in (b"", name.encode()[:-1], b"\xff" * 64):
        kept.write_bytes(damage)
        assert preprocess(headers, tools, cache) == name


def test_what_macros_are_decides_too(tools, cache, tmp_path):
    """The call below the headers may be one: `#define Sum Max` leaves no other text."""
    one = included(tmp_path / "one", "#define VALUE 1\n")
    two = included(tmp_path / "two", "#define VALUE 1\n#define Sum Max\n")
    assert preprocess(one, tools, cache) != preprocess(two, tools, cache)


def test_lines_within_raw_strings_are_text(tools, cache, tmp_path):
    raw = '#define VALUE 1\nconst char* text = R"(\n# %d "file" 1\n)";\n'
    one, two = (included(tmp_path / str(n), raw % n) for n in (12, 13))
    assert preprocess(one, tools, cache) != preprocess(two, tools, cache)


def test_a_header_that_asks_for_its_lines_is_the_same_on_these_alone(tools, cache, tmp_path):
    text = "#define VALUE 1\ninline int line() { return __builtin_LINE(); }\n"
    one, two = included(tmp_path / "one", text), included(tmp_path / "two", f"\n{text}")
    assert preprocess(one, tools, cache) != preprocess(two, tools, cache)


def test_a_header_that_asks_for_the_units_name_is_named(tools, cache, tmp_path):
    text = "#define VALUE 1\n\n#define NAME(a, b) a##b\nauto name = NAME(__BASE_, FILE__);\n"
    with pytest.raises(UnprovableError) as error:
        preprocess(included(tmp_path / "one", text), tools, cache)
    assert str(error.value) == (
        "the tunings are not provable: they depend on more than types and architecture\n"
        f"  {tmp_path}/one/some.cuh:4: it depends on the name of the compiled file"
    )


PRINTS = 'while [ "$1" != -o ]; do shift; done; '


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("true", "nvcc reported success but wrote nothing"),
        (f'{PRINTS}: > "$2"', "nvcc reported success but wrote nothing"),
        (f'{PRINTS}echo same > "$2"', "the output of nvcc does not belong to the given unit"),
        (
            f'{PRINTS}tail -1 "$3" > "$2"; echo >> "$2"; cat "$2" "$2" > "$2.twice"; '
            'mv "$2.twice" "$2"',
            "the preprocessor's output does not end with the given unit",
        ),
        (
            f'{PRINTS}tail -1 "$3" > "$2"',
            "the preprocessor read none of the unit's includes",
        ),
    ],
)
def test_a_preprocessor_that_says_nothing_of_the_unit_is_refused(
    tools, cache, tmp_path, does, message
):
    fake = replace(tools, nvcc=script(tmp_path / "nvcc", does))
    headers = included(tmp_path / "one", "#define VALUE 1\n")
    error = preprocess(headers, fake, cache)
    assert isinstance(error, InputError)
    assert error.message == message
    assert isinstance(preprocess(headers, tools, cache), str)


@pytest.mark.slow
@pytest.mark.parametrize("make", [build, disassemble])
def test_a_cubin_of_another_unit_is_refused(tools, cache, tmp_path, make):
    old = tmp_path / "old.cubin"
    saves = f'{tools.nvcc} "$@"; {PRINTS}cp "$2" {old}'
    assert not isinstance(
        make(job(), replace(tools, nvcc=script(tmp_path / "saves", saves)), cache), PolicygenError
    )
    replays = replace(tools, nvcc=script(tmp_path / "nvcc", f'{PRINTS}cp {old} "$2"'))
    error = make(job(content="other"), replays, cache)
    assert isinstance(error, InputError)
    assert error.message == "the output of nvcc does not belong to the given unit"


def test_a_unit_without_kernels_is_never_kept(tools, cache):
    error = build(job("int nothing;\n"), tools, cache)
    assert isinstance(error, InputError)
    assert error.message == "the cubin: it contains no recognizable kernel"
    assert not (cache / "cubin").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("s/FADD/FMUL/; s/0x\\([0-9a-f]\\{15\\}\\)0/0x\\11/", "its code of"),
        ("s/CUB_300001/CUB_300002/", "it disagrees with the cubin about"),
    ],
)
def test_a_listing_of_another_code_is_refused(tools, cache, tmp_path, edit, message):
    fake = script(tmp_path / "cuobjdump", f"{tools.cuobjdump} \"$@\" | sed '{edit}'")
    error = disassemble(job(), replace(tools, cuobjdump=fake), cache)
    assert isinstance(error, InputError)
    assert message in error.message
    assert not isinstance(disassemble(job(), tools, cache), PolicygenError)


def test_headers_that_are_refused_say_why(tools, cache, tmp_path):
    error = preprocess(included(tmp_path / "one", "#error stop here\n"), tools, cache)
    assert isinstance(error, RefusedError)
    assert "stop here" in str(error)


def test_a_unit_is_compiled_once(tools, none, cache):
    kernels = build(job(), tools, cache)
    assert {k.name: k.max_threads for k in kernels}[SUM_INT] == 128
    assert build(job(), none, cache) == kernels
    assert isinstance(build(job(content="other"), none, cache), MissingToolError)
    assert isinstance(build(job(), replace(none, named="14.0"), cache), MissingToolError)
    assert sorted(path.name for path in cache.iterdir()) == ["cubin", "kernels", "units"]


@pytest.mark.slow
def test_a_compiled_unit_is_disassembled_without_compiling_it_again(tools, none, cache):
    sealed = build(job(), tools, cache)
    listed = disassemble(job(), replace(tools, nvcc=none.nvcc), cache)
    assert [k.model_copy(update={"code": ()}) for k in listed] == [
        k.model_copy(update={"code": ()}) for k in sealed
    ]
    assert {len(kernel.code) for kernel in sealed} == {1}
    assert {kernel.name: len(kernel.code) for kernel in listed}[SUM_INT] == 40
    assert disassemble(job(), none, cache) == listed


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-20],
        lambda data: data[:200] + b"x" + data[201:],
        lambda data: data.partition(b"\n")[2],
    ],
)
def test_a_damaged_cache_costs_a_compile_and_nothing_else(tools, cache, damage):
    kernels = disassemble(job(), tools, cache)
    for kind in ("sass", "cubin"):
        (kept,) = (cache / kind).iterdir()
        kept.write_bytes(damage(kept.read_bytes()))
    assert disassemble(job(), tools, cache) == kernels
    sealed = build(job(), tools, cache)
    (kept,) = (cache / "kernels").iterdir()
    kept.write_bytes(damage(kept.read_bytes()))
    assert build(job(), tools, cache) == sealed


@pytest.mark.slow
@pytest.mark.parametrize(("make", "kind"), [(build, "kernels"), (disassemble, "sass")])
def test_no_kernels_are_no_answer_of_the_cache(tools, cache, make, kind):
    kernels = make(job(), tools, cache)
    (kept,) = (cache / kind).iterdir()
    for text in (b"[]", b'[{"name": "of another policygen"}]'):
        keep(kind, kept.name, text, cache)
        assert make(job(), tools, cache) == kernels


def test_a_unit_that_is_refused_shows_its_command_and_stays(tools, cache):
    error = build(job("int broken() { return not_declared; }\n"), tools, cache)
    assert isinstance(error, RefusedError)
    assert 'identifier "not_declared" is undefined' in str(error)
    command = shlex.split(error.command[0])
    assert command[0] == tools.nvcc
    assert "-cubin" in command
    assert "not_declared" in (cache / "units" / command[-1]).read_text()


def test_a_compiler_that_dies_says_nothing_of_the_unit(tools, cache, tmp_path):
    dies = replace(tools, nvcc=script(tmp_path / "nvcc", "kill -9 $$"))
    error = build(job(), dies, cache)
    assert isinstance(error, ProcessError)
    assert not isinstance(error, RefusedError)
    assert "it was killed" in str(error)
    assert list((cache / "units").iterdir()) == []
    assert not isinstance(build(job(), tools, cache), PolicygenError)


def test_a_full_disk_is_told_and_leaves_nothing(tools, cache, tmp_path):
    full = 'echo "fatal error: error writing to unit.ii: No space left on device" >&2; exit 1'
    error = build(job(), replace(tools, nvcc=script(tmp_path / "nvcc", full)), cache)
    assert "No space left on device" in str(error)
    assert not (cache / "cubin").exists()
    assert not isinstance(build(job(), tools, cache), PolicygenError)


@pytest.mark.slow
def test_a_disk_that_is_full_when_a_result_is_kept_is_told(tools, cache, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("policygen.cache.write_atomically", full)
    error = build(job(), tools, cache)
    assert isinstance(error, InputError)
    assert "No space left on device" in str(error)
    monkeypatch.undo()
    assert not isinstance(build(job(), tools, cache), PolicygenError)


def test_a_cache_that_cannot_be_written_is_an_error(tools, tmp_path):
    (tmp_path / "cache").write_text("")
    for error in (
        build(job(), tools, tmp_path / "cache"),
        preprocess(HEADERS, tools, tmp_path / "cache"),
    ):
        assert isinstance(error, InputError)
        assert "POLICYGEN_CACHE" in str(error)


@pytest.mark.parametrize("text", ["true", "echo 'code for sm_90'"])
def test_a_listing_without_kernels_is_never_kept(tools, cache, tmp_path, text):
    silent = replace(tools, cuobjdump=script(tmp_path / "cuobjdump", text))
    error = disassemble(job(), silent, cache)
    assert isinstance(error, InputError)
    assert "it contains no recognizable kernel" in str(error)
    error = build(job(), silent, cache)
    assert isinstance(error, InputError)
    assert "cuobjdump and the cubin disagree about _ZN3lib" in str(error)
    assert not isinstance(build(job(), tools, cache), PolicygenError)


def test_compilers_leave_their_own_files_with_ours(tools, cache, tmp_path):
    folder = tmp_path / "said"
    writes = script(tmp_path / "nvcc", f'echo "$TMPDIR" > {folder}; exit 1')
    build(job(), replace(tools, nvcc=writes), cache)
    said = folder.read_text().strip()
    assert said.startswith(str(cache / "units"))
    assert not Path(said).exists()


def test_another_process_can_do_a_job(tools):
    assert pickle.loads(pickle.dumps((job(), tools))) == (job(), tools)
    for error in (
        InputError("a", "b"),
        RefusedError(["nvcc"], 1, "text"),
        MissingToolError("a", "b"),
        UnprovableError(["a"]),
    ):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
