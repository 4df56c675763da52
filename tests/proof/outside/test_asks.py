"""What a header can ask of a compile, in a small tree and in real ones."""

import pytest

from policygen.cache import keep
from policygen.errors import InputError
from policygen.proof import outside_inputs as asking
from policygen.proof.outside_inputs import Folders, cached_dependences, find_dependences
from policygen.trees.manifest import shipped
from tests.real_trees import tree
from tests.tiers import sampled

TUNINGS = "cub/device/dispatch/tuning"
VERSIONS = ("2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0")
DEMO = f"{TUNINGS}/tuning_demo.cuh"
USE = "template <class T> struct sm90_tuning { static constexpr int items = %s; };\n"
CAT = "#define CUB_CAT(a, b) a##b\n"


def found(folder, files):
    """What is asked by `tuning_demo.cuh` in a tree of these files: file, text and message."""
    for name, text in {"cub/config.cuh": "", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [
        (one.header.name, one.header.data[slice(*one.span)].decode(), one.message)
        for one in find_dependences([DEMO], Folders((folder,)))
    ]


@pytest.mark.parametrize(
    ("text", "said", "message"),
    [
        (
            USE % 'ends_with(__BASE_FILE__, "unit.cu") ? 24 : 1',
            "__BASE_FILE__",
            "depends on the name of the compiled file",
        ),
        (USE % "length(__FILE__)", "__FILE__", "depends on the path of a header"),
        (USE % "__COUNTER__", "__COUNTER__", "depends on how often it was used before"),
        (USE % "__LINE__", "__LINE__", "depends on a line's number"),
        (
            "#if __INCLUDE_LEVEL__ > 2\n#endif\n",
            "__INCLUDE_LEVEL__",
            "depends on how deep the includes are",
        ),
        (USE % "__TIME__[7]", "__TIME__", "depends on the time of the compile"),
        (USE % "__DATE__[4]", "__DATE__", "depends on the day of the compile"),
        (USE % "__TIMESTAMP__[4]", "__TIMESTAMP__", "depends on when a file was changed"),
        (USE % "size(__func__)", "__func__", "depends on the name of a function"),
        (USE % "__builtin_LINE()", "__builtin_LINE", "depends on a line's number"),
        (USE % "size(__builtin_FILE())", "__builtin_FILE", "depends on the path of a file"),
        (
            USE % "::cuda::std::source_location::current().line()",
            "source_location",
            "depends on its own position",
        ),
        (
            "#if __has_include(<my_config.h>)\n#endif\n",
            "__has_include",
            "depends on a file that a user may or may not have",
        ),
        ("#include_next <a.h>\n", "include_next", "has a directive #include_next"),
        ("#embed <a.bin>\n", "embed", "has a directive #embed"),
        ("#line 7\n", "line", "has a directive #line"),
        (
            '#include "/etc/a.h"\n',
            "/etc/a.h",
            "includes a file that is not in the tree",
        ),
        (
            "#include <../../a.h>\n",
            "../../a.h",
            "includes a file that is not in the tree",
        ),
        (
            "#ifdef SOMETHING_UNKNOWN\n#endif\n",
            "SOMETHING_UNKNOWN",
            "tests SOMETHING_UNKNOWN, which is not defined by anything the header includes",
        ),
        (
            "#if defined(CUB_MYSTERY)\n#endif\n",
            "CUB_MYSTERY",
            "tests CUB_MYSTERY, which is not defined by anything the header includes",
        ),
        (
            "#if 1\n#elif __STRICT_ANSI__\n#endif\n",
            "__STRICT_ANSI__",
            "tests __STRICT_ANSI__, which is not defined by anything the header includes",
        ),
        (
            "#if 1 /* one\n two */ && NDEBUG\n#endif\n",
            "NDEBUG",
            "tests NDEBUG, which is not defined by anything the header includes",
        ),
        (
            "%:ifdef __CUDACC_RELAXED_CONSTEXPR__\n#endif\n",
            "__CUDACC_RELAXED_CONSTEXPR__",
            "tests __CUDACC_RELAXED_CONSTEXPR__, which is not defined by anything the header"
            " includes",
        ),
        (
            "#ifdef CUB_LATER\n#endif\n#define CUB_LATER 1\n",
            "CUB_LATER",
            "tests CUB_LATER, which is not defined by anything the header includes",
        ),
        (
            "#if 0\n#define NDEBUG\n#endif\n#ifdef NDEBUG\n#endif\n",
            "NDEBUG",
            "tests NDEBUG, which is not defined by anything the header includes",
        ),
        (USE % "is<policygen_probe::user_op>", "policygen_probe", "names policygen"),
        (USE % r"items\u0041", r"\u0041", "has a universal character name"),
        (
            USE % "__BASE_\\\nFILE__",
            "__BASE_\\\nFILE__",
            "depends on the name of the compiled file",
        ),
        (
            USE % "__BASE_\\ \t\r\nFILE__",
            "__BASE_\\ \t\r\nFILE__",
            "depends on the name of the compiled file",
        ),
        (
            USE % '1\'0 + R"x(" // )x"[0] + __COUNTER__',
            "__COUNTER__",
            "depends on how often it was used before",
        ),
        (
            USE % 'R"x()\\\nx")x"[0] + __COUNTER__',
            "__COUNTER__",
            "depends on how often it was used before",
        ),
        (
            USE % 'FOOR"x(" + __COUNTER__ + ")x"',
            "__COUNTER__",
            "depends on how often it was used before",
        ),
        (
            USE % 'size(1e+R"x(") + __COUNTER__ + size(")x")',
            "__COUNTER__",
            "depends on how often it was used before",
        ),
    ],
)
def test_a_tuning_header_that_asks_is_named_with_the_place(tmp_path, text, said, message):
    assert found(tmp_path, {DEMO: text}) == [(DEMO, said, message)]


@pytest.mark.parametrize(
    "text",
    [
        USE % "19",
        "// __BASE_FILE__ and #ifdef NDEBUG\n/* __COUNTER__ */\n",
        USE % '"__BASE_FILE__"[0]',
        USE % 'R"(\n#ifdef NDEBUG\n__COUNTER__)"[0]',
        USE % "1'000'000",
        "#if defined(CCCL_AVOID_SORT_UNROLL) || __cpp_lib_format >= 201907L\n#endif\n",
        "#define CUB_HERE 1\n#if CUB_HERE\n#endif\n",
        '#error "don\'t"\n#pragma unroll\n',
        "#error don't __builtin_LINE\n",
    ],
)
def test_words_that_are_no_question_are_left_alone(tmp_path, text):
    assert found(tmp_path, {DEMO: text}) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # A header beside the tunings, and one of CUB.
        (
            {
                DEMO: '#include "helper.h"\n',
                f"{TUNINGS}/helper.h": "constexpr int level = __COUNTER__;\n",
            },
            [(f"{TUNINGS}/helper.h", "__COUNTER__", "depends on how often it was used before")],
        ),
        (
            {
                DEMO: "#include <cub/util_odd.cuh>\n",
                "cub/util_odd.cuh": "#ifdef __OPTIMIZE__\n#endif\n#ifdef MYSTERY\n#endif\n",
            },
            [
                ("cub/util_odd.cuh", "__OPTIMIZE__", "depends on how the compiler was called"),
                (
                    "cub/util_odd.cuh",
                    "MYSTERY",
                    "tests MYSTERY, which is not defined by anything the header includes",
                ),
            ],
        ),
        # Macros that come to a word, through others and in the library beneath.
        (
            {
                DEMO: "#include <cuda/odd.h>\n" + USE % "CUDA_ODD()",
                "cuda/odd.h": "#define CUDA_ODD() ODDER\n#define ODDER size(__FILE__)\n",
            },
            [(DEMO, "CUDA_ODD", "the macro CUDA_ODD depends on the path of a header (__FILE__)")],
        ),
        (
            {
                DEMO: "#include <cuda/odd.h>\n#if _CCCL_ODD()\n#endif\n",
                "cuda/odd.h": "#define _CCCL_ODD() __COUNTER__\n",
            },
            [
                (
                    DEMO,
                    "_CCCL_ODD",
                    "the macro _CCCL_ODD depends on how often it was used before (__COUNTER__)",
                )
            ],
        ),
        # Words that are put together.
        (
            {DEMO: CAT + USE % "CUB_CAT(__BASE_, FILE__)"},
            [
                (
                    DEMO,
                    "CUB_CAT",
                    "the macro CUB_CAT pastes tokens, so it may depend on anything",
                )
            ],
        ),
        (
            {DEMO: CAT.replace("##", "%:%:") + USE % "CUB_CAT(__COUN, TER__)"},
            [
                (
                    DEMO,
                    "CUB_CAT",
                    "the macro CUB_CAT pastes tokens, so it may depend on anything",
                )
            ],
        ),
        (
            {
                DEMO: "#include <cuda/odd.h>\n",
                "cuda/odd.h": "#if __has_include(<version>)\n#elif __has_include(<my_config.h>)\n",
            },
            [
                (
                    "cuda/odd.h",
                    "__has_include(<my_config.h",
                    "depends on a file that a user may or may not have",
                )
            ],
        ),
        # Includes by a macro, and a question in libcu++ that is none of its own.
        (
            {DEMO: "#define CUB_NEXT <a.h>\n#include CUB_NEXT\n"},
            [(DEMO, "CUB_NEXT", "includes a file named by a macro")],
        ),
        (
            {DEMO: "#include __FILE__\n"},
            [
                (DEMO, "__FILE__", "depends on the path of a header"),
            ],
        ),
        (
            {
                DEMO: "#include <cuda/odd.h>\n",
                "cuda/odd.h": "inline int odd = ends_with(__FILE__);\n",
            },
            [("cuda/odd.h", "__FILE__", "depends on the path of a header")],
        ),
        # What may be asked in one file may not be in another.
        (
            {
                DEMO: "#include <cub/util_debug.cuh>\n#include <cub/other.cuh>\n",
                "cub/util_debug.cuh": "#define CubDebug(e) debug(e, __FILE__, __LINE__)\n",
                "cub/other.cuh": "#define CubOther(e) debug(e, __FILE__)\n",
            },
            [("cub/other.cuh", "__FILE__", "depends on the path of a header")],
        ),
        (
            {
                DEMO: "#include <cub/util_debug.cuh>\n" + USE % "CubDebug(1)",
                "cub/util_debug.cuh": "#define CubDebug(e) debug(e, __FILE__)\n",
            },
            [(DEMO, "CubDebug", "the macro CubDebug depends on the path of a header (__FILE__)")],
        ),
        (
            {
                DEMO: "#include <cub/util_debug.cuh>\n",
                "cub/util_debug.cuh": "inline int odd = size(__FILE__);\n",
            },
            [("cub/util_debug.cuh", "__FILE__", "depends on the path of a header")],
        ),
    ],
)
def test_what_a_header_reads_is_looked_at_too(tmp_path, files, expected):
    assert found(tmp_path, files) == expected


def test_headers_that_include_each_other_are_read_once(tmp_path):
    other = f"{TUNINGS}/other.cuh"
    files = {DEMO: '#include "other.cuh"\n', other: '#include "tuning_demo.cuh"\n#line 1\n'}
    assert found(tmp_path, files) == [(other, "line", "has a directive #line")]


def test_a_header_by_itself_may_test_what_a_tree_would_define(tmp_path):
    path = tmp_path / "tuning_demo.cuh"
    path.write_text("#if CUB_MYSTERY && _CCCL_HAS_INT128()\n#elif NDEBUG\n#endif\n")
    (one,) = find_dependences([path.name], Folders((tmp_path,)))
    assert one.message == "tests NDEBUG, which is not defined by anything the header includes"


def test_a_header_that_is_not_there_asks_nothing(tmp_path):
    assert find_dependences([DEMO, "/etc/passwd", "../a.cuh"], Folders((tmp_path,))) == ()


@pytest.mark.trees
@pytest.mark.parametrize("version", sampled(VERSIONS, "3.6.0"))
def test_real_trees_ask_for_nothing(version):
    root = tree(version)
    names = sorted(path.name for path in (root / TUNINGS).glob(shipped().tree.headers))
    assert len(names) > 15
    assert find_dependences([f"{TUNINGS}/{name}" for name in names], Folders((root,))) == ()


@pytest.fixture
def looked(tmp_path, monkeypatch):
    """A tree with a header that depends on nothing, and the number of times it is examined."""
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    looks = []
    monkeypatch.setattr(
        asking, "find_dependences", lambda *given: looks.append(given) or find_dependences(*given)
    )
    tree = tmp_path / "tree"
    files = {DEMO: "#include <cub/a.cuh>\n#include <cub/b.cuh>\n", "cub/a.cuh": "int a;\n"}
    assert found(tree, files) == []
    assert cached_dependences([DEMO], [tree]) == ()
    assert len(looks) == 1
    return tree, looks


def test_what_asks_for_nothing_is_not_looked_through_again(looked):
    tree, looks = looked
    assert cached_dependences([DEMO], [tree]) == ()
    copy = tree.rename(tree.with_name("copy"))
    assert cached_dependences([DEMO], [copy]) == ()
    assert len(looks) == 1


@pytest.mark.parametrize("name", [DEMO, "cub/a.cuh", "cub/b.cuh", f"{TUNINGS}/cub/a.cuh"])
def test_a_file_that_changed_or_came_is_looked_through(looked, name):
    tree, _ = looked
    quoted = '#include "cub/a.cuh"\n'
    assert found(tree, {DEMO: quoted}) == []
    assert cached_dependences([DEMO], [tree]) == ()
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text(f"{quoted if name == DEMO else ''}int a = __COUNTER__;\n")
    expected = [] if name == "cub/b.cuh" else ["depends on how often it was used before"]
    assert [one.message for one in cached_dependences([DEMO], [tree])] == expected


def test_a_file_that_was_missing_is_looked_through(looked):
    tree, looks = looked
    (tree / "cub/b.cuh").write_text("int b = __COUNTER__;\n")
    assert len(cached_dependences([DEMO], [tree])) == 1
    assert len(cached_dependences([DEMO], [tree])) == 1
    assert len(looks) == 3


def test_a_link_out_of_the_tree_is_refused_though_its_content_is_the_same(looked, tmp_path):
    tree, _ = looked
    (tree / "cub/a.cuh").rename(tmp_path / "a.cuh")
    (tree / "cub/a.cuh").symlink_to(tmp_path / "a.cuh")
    with pytest.raises(InputError, match="a link points outside of the tree"):
        cached_dependences([DEMO], [tree])


def test_without_a_place_to_remember_it_is_looked_each_time(looked, monkeypatch, tmp_path):
    tree, looks = looked
    (tmp_path / "file").touch()
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "file"))
    assert cached_dependences([DEMO], [tree]) == cached_dependences([DEMO], [tree]) == ()
    assert len(looks) == 3


@pytest.mark.parametrize("data", [b"[]", b"[", b'{"a": 1}', b"null"])
def test_what_is_remembered_in_another_shape_is_looked_through(looked, tmp_path, data):
    """What seals an entry is no secret."""
    tree, looks = looked
    (entry,) = (tmp_path / "cache" / "outside").iterdir()
    keep("outside", entry.name, data)
    assert cached_dependences([DEMO], [tree]) == ()
    assert len(looks) == 2
