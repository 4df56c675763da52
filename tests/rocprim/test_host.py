"""The compiler for the host: what headers can do to it, what it needs, and what it remembers."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from policygen import process
from policygen.cli.main import main
from policygen.model.trees import Cub
from policygen.proof.ask import replaces_files
from policygen.rocprim import host, host_worker
from policygen.rocprim.host import find_host_compiler
from policygen.trees import layout
from tests.real_trees import rocprim_tree
from tests.rocprim.places import CONFIGS, REDUCE, changed_tree, resolved, rows_of, text_of
from tests.tiers import sampled

pytestmark = pytest.mark.trees

ASKED = ("-R", "rocprim.device_reduce$", "--arch", "gfx90a")
BOTH = ("-R", "rocprim.device_(reduce|scan)$", "--arch", "gfx90a")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache: nothing was asked before."""
    rocprim_tree("5.7.1")  # found by the shared one
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def truth():
    """What the release has, asked by itself."""
    return {}


def as_it_is(capsys, *options):
    return rows_of(resolved(capsys, rocprim_tree("5.7.1"), *options)[0])


@pytest.mark.slow
def test_a_header_that_does_not_compile_ends_its_site_alone(tmp_path, capsys):
    broken = text_of(REDUCE).replace("reduce_config<256, 16,", "reduce_config<unheard_of, 16,")
    tree = changed_tree(tmp_path, {REDUCE: broken})
    document, err = resolved(capsys, tree, *BOTH, status=2)
    scans = {row["benchmark"] for row in document["rows"]}
    assert scans == {"rocprim.device_scan"}
    assert "device_reduce.hpp:" in err
    assert "use of undeclared identifier 'unheard_of'" in err
    expected = as_it_is(capsys, *BOTH)
    assert rows_of(document) == {k: v for k, v in expected.items() if "scan" in k[0]}


FORGED = [
    "namespace rocprim { namespace detail { namespace policygen_asked {\n"
    "struct row_0 : reduce_config<1, 1> {}; using type_0 = reduce_config<1, 1>; } } }\n",
    'namespace rocprim { namespace detail {\n#line 455 "device_reduce.hpp"\n'
    "template<class T> struct config_of_it : reduce_config<1, 1> {}; } }\n#line 1\n",
    "namespace detail { namespace policygen_asked { struct row_0 {}; } }\n"
    "namespace rocprim { namespace policygen_asked { using type_0 = int; } }\n",
    "namespace rocprim { namespace detail { struct row_0 {}; struct row_1; using type_0 = int;\n"
    "template<class T> int config_of(T); int config_of(...); } }\n",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", sampled(FORGED, FORGED[0]))
def test_what_looks_like_an_answer_is_none(tmp_path, capsys, text):
    real = text_of(REDUCE)
    tree = changed_tree(tmp_path, {REDUCE: f"{real}\n{text}"})
    document, err = resolved(capsys, tree, *ASKED)
    assert (rows_of(document), err) == (as_it_is(capsys, *ASKED), "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "#define detail other\n",
        "#define rocprim other\n",
        "#define namespace inline namespace\n",
        "#define struct union\n",
    ],
)
def test_words_that_mean_something_else_are_no_answer(tmp_path, capsys, text):
    tree = changed_tree(tmp_path, {REDUCE: f"{text_of(REDUCE)}\n{text}"})
    assert main(["resolve", "--cub", str(tree), "--json", *ASKED]) == 2
    told = capsys.readouterr()
    assert json.loads(told.out)["rows"] == []
    assert "libclang" in told.err or REDUCE in told.err
    assert "internal" not in told.err


@pytest.mark.slow
def test_a_line_directive_moves_no_entry(tmp_path, capsys):
    real = text_of(REDUCE)
    head, mark, rest = real.partition("// Based on key_type = double")
    tree = changed_tree(tmp_path, {REDUCE: f'{head}\n#line 7 "other.hpp"\n{mark}{rest}'})
    document, _ = resolved(capsys, tree, *ASKED)
    expected = as_it_is(capsys, *ASKED)
    moved = {
        key: (values, status, (place[0], place[1] + (2 if place[1] > 50 else 0)))
        for key, (values, status, place) in expected.items()
    }
    assert rows_of(document) == moved


@pytest.mark.slow
def test_a_header_of_the_same_name_has_no_entries_of_this_one(tmp_path, capsys):
    """What decides stands in another folder, at the offset of an entry of the header."""
    real = text_of(REDUCE)
    config = (
        "template<> struct default_reduce_config<static_cast<unsigned int>(target_arch::gfx90a)"
    )
    config += ", double> : reduce_config<32, 1> {};\n"
    at = real.index("// Based on key_type = double", real.index("target_arch::gfx908"))
    included = "namespace rocprim { namespace detail {\n".ljust(at, " ") + config + "} }\n"
    tree = changed_tree(tmp_path, {REDUCE: real + '\n#include "apart/device_reduce.hpp"\n'})
    (tree / CONFIGS / "apart").mkdir()
    (tree / CONFIGS / "apart" / REDUCE).write_text(included)
    document, _ = resolved(capsys, tree, *ASKED, "-a", "key_type=double")
    (row,) = document["rows"]
    assert row["values"]["BlockSize"] == 32
    assert row["entry"] is None


@pytest.fixture
def without_hip(tmp_path, monkeypatch):
    for name in ("ROCM_PATH", "HIP_PATH"):
        monkeypatch.delenv(name, raising=False)
    made = tmp_path / "include"
    made.mkdir()
    shutil.copytree(rocprim_tree("5.7.1") / "rocprim", made / "rocprim")
    # hipcc of this machine brings HIP's headers.
    monkeypatch.setattr(layout, "which", lambda _: None)
    monkeypatch.setattr(layout, "usual_folders", lambda _: ())
    return made


def test_without_hips_headers_one_message_says_where_they_are(without_hip, capsys):
    assert main(["resolve", "--cub", str(without_hip)]) == 3
    told = capsys.readouterr().err
    assert told.count("hip/hip_runtime.h is missing") == 1
    assert "policygen headers fetch rocprim@5.7.1" in told
    assert "ROCM_PATH" in told
    assert len(told.splitlines()) < 8


@pytest.mark.slow
def test_a_rocm_that_has_hips_headers_may_be_named(without_hip, tmp_path, capsys, monkeypatch):
    rocm = tmp_path / "rocm"
    shutil.copytree(rocprim_tree("5.7.1") / "hip", rocm / "include/hip")
    monkeypatch.setenv("ROCM_PATH", str(rocm))
    document, _ = resolved(capsys, without_hip, *ASKED)
    assert rows_of(document) == as_it_is(capsys, *ASKED)


def test_without_a_gpp_one_message_says_so(capsys, monkeypatch):
    monkeypatch.setattr(host, "which", lambda program: None)
    find_host_compiler.cache_clear()
    try:
        assert main(["resolve", "--cub", str(rocprim_tree("5.7.1")), *ASKED]) == 3
    finally:
        find_host_compiler.cache_clear()
    told = capsys.readouterr().err
    assert told.endswith("g++ is missing\n  Install it: rocPRIM's headers include its library.\n")


def test_a_gpp_without_headers_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(process, "run", lambda *args, **named: "")
    find_host_compiler.cache_clear()
    try:
        assert main(["resolve", "--cub", str(rocprim_tree("5.7.1")), *ASKED]) == 2
    finally:
        find_host_compiler.cache_clear()
    assert "g++ does not report its include folders" in capsys.readouterr().err


def counted(monkeypatch):
    """How often libclang was started."""
    calls, real = [], process.module
    monkeypatch.setattr(process, "module", lambda name: (calls.append(name), real(name))[1])
    return calls


@pytest.mark.slow
def test_an_answer_is_kept_until_a_byte_of_a_header_changes(
    own_cache, tmp_path, capsys, monkeypatch
):
    tree = changed_tree(tmp_path, {REDUCE: text_of(REDUCE)})
    calls = counted(monkeypatch)
    first = rows_of(resolved(capsys, tree, *ASKED)[0])
    again = [name for name in calls if "host_worker" in name]
    assert len(again) == 1
    assert rows_of(resolved(capsys, tree, *ASKED)[0]) == first
    assert len([name for name in calls if "host_worker" in name]) == 1
    types = tree / "rocprim/type_traits.hpp"
    text = types.read_text()
    types.unlink()
    types.write_text(text + "\n")
    assert rows_of(resolved(capsys, tree, *ASKED)[0]) == first
    assert len([name for name in calls if "host_worker" in name]) == 2


QUESTION = """
namespace rocprim { namespace detail {
enum class how { fast, exact };
template<unsigned int Size, how How, bool Whole, int Below, class Inner, class Other> struct c {};
template<unsigned int arch, class T> struct d : c<3, how::exact, true, -1, c<1, how(7), false, 0,
    int, int>, T> {};
template<> struct d<1, int> {};
template<class...> struct pack {};
template<int* Where> struct at {};
} }
namespace rocprim { namespace detail { namespace scope {
struct row_0 : d<0, long> {};
struct row_1 : d<1, int> {};
struct row_2 {};
using type_0 = c<3, how::exact, true, -1, c<1, how(7), false, 0, int, int>, long>;
using type_1 = unsigned;
using type_2 = pack<int, long>;
using type_3 = at<nullptr>;
int other;
} } }
"""


def request(text, scopes=("rocprim", "detail", "scope"), **files):
    return {
        "unit": "/nowhere/unit.cpp",
        "arguments": ["-std=c++17"],
        "files": {"/nowhere/unit.cpp": text, **files},
        "scopes": list(scopes),
    }


def test_the_worker_takes_types_apart():
    found = host_worker.answered(request(QUESTION))
    assert found["errors"] == found["read"] == []
    inner = ["c", 1, 7, False, 0, "int", "int"]
    assert found["types"] == {
        "type_0": ["c", 3, "exact", True, -1, inner, "long"],
        "type_1": "unsigned int",
        "type_2": ["pack", "<PACK>"],
        "type_3": ["at", "<NULLPTR>"],
    }
    lines = {name: place and place[2] for name, place in found["rows"].items()}
    assert lines == {"row_0": 5, "row_1": 7, "row_2": None}


def test_the_worker_answers_no_scope_of_another_file():
    header = '#include "/nowhere/header.hpp"\nnamespace a { namespace b { struct row_1 {}; } }\n'
    more = {"/nowhere/header.hpp": "namespace a { namespace b { struct row_0 {}; } }\n"}
    found = host_worker.answered(request(header, ("a", "b"), **more))
    assert list(found["rows"]) == ["row_1"]


def test_the_worker_tells_errors_with_their_places():
    found = host_worker.answered(request('#line 7 "x"\nint a = ;\n' + "b c;\n" * 100))
    assert found["errors"][0] == ["/nowhere/unit.cpp", 2, "expected expression"]
    assert len(found["errors"]) <= host_worker.MOST
    assert found["rows"] == found["types"] == {}


def test_the_worker_is_a_program(monkeypatch, capsys):
    monkeypatch.setattr(host_worker.resource, "setrlimit", lambda *args: None)
    given = json.dumps(request(QUESTION)).encode()

    class Given:
        buffer = type("Buffer", (), {"read": staticmethod(lambda: given)})

    monkeypatch.setattr(sys, "stdin", Given)
    host_worker.main()
    assert json.loads(capsys.readouterr().out) == host_worker.answered(request(QUESTION))


def test_the_compiler_names_itself():
    found = find_host_compiler()
    assert found.name == f"libclang {found.version}"
    assert found.archs == ()
    assert replaces_files(Cub(root=".", version="5.7.1", dialect="configs", found="--cub"))
    assert all(Path(one).is_dir() for one in found.standard)
