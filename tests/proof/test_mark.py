import pytest

from policygen.errors import InputError, UnprovableError
from policygen.proof.units import check_unnamed, made_of, marked

HEAD = "the tunings are not provable: they depend on more than types and architecture\n"


def test_what_is_made_shows_the_unit(tmp_path):
    assert marked("int a;", "mark") == "int a;\n__device__ int mark;\n"
    made = tmp_path / "made"
    for data, message in (
        (None, "nvcc reported success but wrote nothing"),
        (b"", "nvcc reported success but wrote nothing"),
        (b"another", "the output of nvcc does not belong to the given unit"),
    ):
        if data is not None:
            made.write_bytes(data)
        with pytest.raises(InputError) as error:
            made_of(made, "mark")
        assert error.value.message == message
    made.write_bytes(b"of mark")
    assert made_of(made, "mark") == b"of mark"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('# 1 "/tree/a.cuh" 1\nint a;\n\nauto b = "{0}/main.cu";\n', "/tree/a.cuh:3"),
        ('# 1 "{0}/main.cu"\n# 7 "/tree/a.cuh" 1\nauto b = "{0}/main.cu";\n', "/tree/a.cuh:7"),
        ('auto b = "{0}/main.cu";\n', "the unit"),
        (' # 1 "{0}/main.cu"\n', "the unit"),
    ],
)
def test_a_question_for_the_units_name_is_named_with_its_place(tmp_path, text, place):
    source = tmp_path / "tmp8x2k" / "main.cu"
    with pytest.raises(UnprovableError) as error:
        check_unnamed(text.format(source.parent).encode(), source)
    what = "it depends on the name of the compiled file"
    assert str(error.value) == f"{HEAD}  {place}: {what}"
    assert error.value.exit_code == 1


def test_where_lines_come_from_is_no_question(tmp_path):
    source = tmp_path / "tmp8x2k" / "main.cu"
    check_unnamed(f'# 1 "{source}"\n# 1 "/tree/a.cuh" 1\n# 2 "{source}" 2\n'.encode(), source)


def test_long_lists_of_places_are_cut():
    rows = str(UnprovableError([str(i) for i in range(23)])).splitlines()
    assert rows[-2:] == ["  19", "  and 3 more"]
