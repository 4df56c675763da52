import pytest

from policygen.errors import InputError
from policygen.proof.kernel_code import content, ended
from policygen.proof.units import new_mark

MARK = "policygen_unit_" + "5e" * 16  # parametrised tests have the same names in each process


def printed(text, folder="/tree", mark=MARK, **files):
    """What a preprocessor prints of a unit that includes one header."""
    return (
        f'# 0 "/units/tmp/main.cu"\n# 1 "{folder}/some.cuh" 1\n{text}\n'
        f'# 2 "/units/tmp/main.cu" 2\n\nextern int {mark};\n'
    ).encode()


def name(text, folder="/tree", quoted=None):
    return content(printed(text, quoted or folder), MARK, (folder,))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int a;", "\n  int a;  \n\n"),
        ("int a;\nint b;", 'int a;\n# 12 "/tree/other.cuh" 3\nint b;'),
        ('int a;\nR"(b)" c', 'int a; \n# 2 "/tree/other.cuh"\n   R"(b)" c'),
    ],
)
def test_lines_and_space_make_no_other_unit(one, other):
    assert name(one) == name(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int a;", "int b;"),
        ("int a; int b;", "int a; intb;"),
        ('R"(\n# 1 "a"\n)"', 'R"(\n# 2 "a"\n)"'),
        ('R"(\n# 1 "a"\n)"', 'R"(\n)"'),
        ('R"(\n a \n)"', 'R"(\na\n)"'),
        ('x = R"(a)"\n# 1 b', 'x = R"(a)"'),
        ("# 12 x", ""),
        (' # 12 "x"', ""),
        ('# 12 "x" y', ""),
        ("#define Sum Min", "#define Sum Max"),
        ("#pragma unroll\nfor", "#pragma unroll for"),
        ("int a = __builtin_LINE();", "\nint a = __builtin_LINE();"),
        ("auto a = source_location::current();", "\nauto a = source_location::current();"),
        # Which quotes open a raw string is not certain.
        ('don\'t\nR"(\n# 1 "a"\n)"', 'don\'t\n\nR"(\n# 1 "a"\n)"'),
    ],
)
def test_other_text_is_another_unit(one, other):
    assert name(one) != name(other)


def test_a_name_is_no_question_and_neither_is_what_is_known():
    known = 'int a;\n# 1 "/tree/cuda/std/source_location" 1\nint b = __builtin_LINE();'
    assert name(known) == name(known.replace("int b", "\nint b"))
    system = 'int a;\n# 1 "/usr/include/c++/12/source_location" 1\nint b = __builtin_LINE();'
    assert name(system) == name(system.replace("int b", "\nint b"))


def test_a_question_before_any_file_counts():
    def told(lead):
        text = lead.encode() + b"int a = __builtin_LINE();\n" + printed("int b;")
        return content(text, MARK, ("/tree",))

    assert told("") != told("\n")


@pytest.mark.parametrize(
    ("folder", "quoted"),
    [('/a "b"', '/a \\"b\\"'), ("/a\\b", "/a\\\\b"), ("/é", "/\\303\\251")],
)
def test_folders_are_named_as_gcc_does(folder, quoted):
    assert name("int a;", folder, quoted)
    with pytest.raises(InputError):
        name("int a;", folder, "/elsewhere")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the preprocessor's output does not end with the given unit"),
        (
            printed("int a;", mark=new_mark()),
            "the preprocessor's output does not end with the given unit",
        ),
        (
            printed("int a;")[:-20],
            "the preprocessor's output does not end with the given unit",
        ),
        (
            printed("int a;") * 2,
            "the preprocessor's output does not end with the given unit",
        ),
        (
            f"extern int {MARK};".encode(),
            "the preprocessor read none of the unit's includes",
        ),
        (
            printed("int a;", "/elsewhere"),
            "the preprocessor read none of the unit's includes",
        ),
    ],
)
def test_what_is_not_of_the_unit_is_refused(text, message):
    with pytest.raises(InputError) as error:
        content(text, MARK, ("/tree",))
    assert error.value.message == message


def test_a_unit_ends_with_a_mark_that_is_another_each_time():
    assert new_mark() != new_mark()
    assert ended("int a;", MARK).encode().endswith(f"\nextern int {MARK};\n".encode())
