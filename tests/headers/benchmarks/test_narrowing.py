import shutil

import pytest

from policygen.headers.benchmark_sources import find, narrowing
from tests.headers.benchmarks.places import CHECKOUT, write

REGISTERED = """
NVBENCH_BENCH_TYPES(sum, NVBENCH_TYPE_AXES(types, offset_types))
  .set_type_axes_names({"T{ct}", "OffsetT{ct}"});
"""


@pytest.fixture
def folder(tmp_path):
    """With the helper header beside it."""
    shutil.copytree(CHECKOUT / "nvbench_helper", tmp_path / "nvbench_helper")
    return tmp_path


def narrowed(path):
    (found,) = narrowing(find(path, [])).values()
    return sorted(found)


def test_lists_of_the_helper_are_narrowed_by_its_macros():
    found = narrowing(find(CHECKOUT, []))
    assert found["cub.bench.sum.plain"] == {"T", "OffsetT"}


def test_a_list_of_the_source_itself_is_narrowed_where_the_source_says_so(folder):
    chosen = "#ifdef TUNE_T\nusing types = nvbench::type_list<TUNE_T>;\n#else\n"
    own = "using types = nvbench::type_list<int8_t, float>;\n"
    assert narrowed(write(folder, own + REGISTERED)) == ["OffsetT"]
    assert narrowed(write(folder, f"{chosen}{own}#endif\n{REGISTERED}")) == ["OffsetT", "T"]


def test_a_macro_beside_other_types_narrows_nothing(folder):
    more = "#ifdef TUNE_T\nusing types = nvbench::type_list<TUNE_T, float>;\n#else\n"
    own = "using types = nvbench::type_list<int8_t, float>;\n#endif\n"
    assert narrowed(write(folder, more + own + REGISTERED)) == ["OffsetT"]


def test_what_cannot_be_read_is_compiled_whole(folder):
    assert narrowing(find(write(folder, "#if 1\n" + REGISTERED), [])) == {}
    assert narrowed(write(folder, "// %RANGE% TUNE_ITEMS ipt 7:1\n" + REGISTERED)) == []
