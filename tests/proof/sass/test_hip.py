"""Kernels for AMD's GPUs, by the hipcc that is here; and compilers that lie."""

import pickle
from dataclasses import replace

import pytest

from policygen.cache import keep
from policygen.errors import InputError, UnprovableError
from policygen.model.trees import Cub
from policygen.paths import cache_folder
from policygen.proof.compile import Listings, RefusedError, copied
from policygen.proof.kernel_build import Job, UnitHeaders, preprocess
from policygen.rocprim.hipcc import find_hipcc, find_kernel_tools
from tests.proof.sass.dumps import build, disassemble
from tests.rocprim.toy import REDUCE, make_toy

TEXT = """\
template <int Threads>
__attribute__((global)) void sum(const int* in, int* out)
{
  out[Threads] = in[0] + in[Threads];
}
template __attribute__((global)) void sum<64>(const int*, int*);
"""
HEADERS = UnitHeaders('#include "some.hpp"\n', (), "gfx90a")


@pytest.fixture(scope="module")
def tools():
    return find_kernel_tools(("gfx90a", "gfx999"))


def with_clang(tools, path):
    return replace(tools, hipcc=replace(tools.hipcc, clang=path))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def job(text=TEXT, content="content"):
    return Job(text, replace(HEADERS, text=""), content)


def included(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "some.hpp").write_text(text)
    return replace(HEADERS, includes=(str(folder),))


def named(headers, tools, cache):
    return preprocess(headers, Listings().of(headers.includes), tools, cache)


@pytest.mark.hipcc
def test_it_compiles_for_what_hipcc_does_alone(tools):
    assert tuple(tools.targets) == ("gfx90a",)
    assert str(tools) == find_hipcc().name
    assert pickle.loads(pickle.dumps(tools)) == tools


@pytest.mark.hipcc
def test_where_headers_stand_and_their_comments_do_not_matter(tools, cache, tmp_path):
    one = included(tmp_path / "one", "const char* file = __FILE__;\n")
    two = included(tmp_path / "two", "// a comment\n\nconst char* file = __FILE__;\n")
    three = included(tmp_path / "three", "const char* file = __FILE__ __FILE__;\n")
    names = [named(headers, tools, cache) for headers in (one, two, three)]
    assert isinstance(names[0], str)
    assert names[0] == names[1] != names[2]


@pytest.mark.hipcc
def test_a_header_that_asks_for_the_unit_is_no_answer(tools, cache, tmp_path):
    with pytest.raises(UnprovableError, match="depends on the name of the compiled file"):
        named(included(tmp_path / "one", "auto* file = __BASE_FILE__;\n"), tools, cache)


@pytest.mark.hipcc
def test_kernels_are_listed_or_sealed_and_compiled_once(tools, cache, tmp_path):
    (listed,) = disassemble(job(), tools, cache)
    (sealed,) = build(job(), tools, cache)
    assert (listed.name, listed.resources) == (sealed.name, sealed.resources)
    assert len(sealed.code) == 1
    assert any(row.startswith("global_store_dword ") for row in listed.code)
    none = with_clang(tools, str(tmp_path / "absent"))
    assert disassemble(job(), none, cache) == (listed,)
    assert build(job(), none, cache) == (sealed,)
    assert isinstance(build(job(content="other"), none, cache), Exception)


@pytest.mark.hipcc
def test_the_assembly_is_kept_beside_what_was_read_of_it(tools, cache, monkeypatch, tmp_path):
    (listed,) = disassemble(job(), tools, cache)
    for path in (cache / "sass").iterdir():
        path.unlink()
    none = with_clang(tools, str(tmp_path / "absent"))
    assert disassemble(job(), none, cache) == (listed,)
    (kept,) = (cache / "isa").iterdir()
    keep("isa", kept.name, b"damaged", cache)
    for path in (cache / "sass").iterdir():
        path.unlink()
    assert disassemble(job(), tools, cache) == (listed,)


@pytest.mark.hipcc
def test_what_is_refused_is_told_with_its_place(tools, cache):
    found = build(job("int value = nonsense;\n"), tools, cache)
    assert isinstance(found, RefusedError)
    assert "use of undeclared identifier 'nonsense'" in found.first
    assert f"{tools.hipcc.clang} " in str(found)


@pytest.mark.hipcc
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exit 0", "hipcc reported success but wrote nothing"),
        (
            'for last; do :; done; echo x > "${last%.cu}.s"',
            "the output of hipcc does not belong to the given unit",
        ),
    ],
)
def test_one_that_lies_is_not_believed(tools, cache, tmp_path, text, message):
    liar = with_clang(tools, script(tmp_path / "clang", text))
    found = build(job(), liar, cache)
    assert isinstance(found, InputError)
    assert found.message == message
    assert found.remedy == "It was not judged. Check whether this hipcc is complete."


@pytest.mark.hipcc
def test_a_unit_without_kernels_is_never_kept(tools, cache):
    for _ in range(2):
        found = build(job("int value;\n"), tools, cache)
        assert isinstance(found, InputError)
        assert found.message == "clang's assembly: it contains no recognizable kernel"
    assert not (cache / "kernels").exists()


def test_a_copy_of_a_tree_has_other_content_of_a_header(tmp_path):
    root = make_toy(tmp_path / "toy")
    cub = Cub(root=str(root), version="4.2.0", dialect="configs", found="--cub")
    made = copied(cub, {"device_reduce.hpp": b"other"})
    assert made == copied(cub, {"device_reduce.hpp": b"other"})
    assert made != copied(cub, {"device_reduce.hpp": b"another"})
    for path in root.joinpath("rocprim").rglob("*.hpp"):
        place = path.relative_to(root)
        held = (cache_folder() / "copied" / made.rpartition("/")[2] / place).read_bytes()
        assert held == (b"other" if str(place) == REDUCE else path.read_bytes())


def test_a_copy_that_cannot_be_made_is_told(tmp_path, monkeypatch):
    root = make_toy(tmp_path / "toy")
    cub = Cub(root=str(root), version="4.2.0", dialect="configs", found="--cub")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError):
        copied(cub, {"device_reduce.hpp": b"other"})
