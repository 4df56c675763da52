"""For which architectures returns are."""

from policygen.headers.scan import read_header
from policygen.model.tuning import ALWAYS, ends, steps

HEADER = """
struct policy { int threads; };
constexpr auto get_sm107_tuning(int size) -> policy
{
  if (size == 1) return {1};
  return {2};
}
constexpr auto select(compute_capability cc, int size) -> policy
{
  if (cc >= compute_capability{10, 7} && cc < compute_capability{11, 0})
  {
    if (size == 1) return get_sm107_tuning(size);
  }
  if (cc >= compute_capability{10, 0})
  {
    if (size == 1) return {3};
  }
  return {4};
}
"""
FAMILIES = read_header("tuning_x.cuh", HEADER.encode()).selectors


def test_a_bound_ends_what_is_for_an_architecture():
    assert ends(FAMILIES) == {107: 110, 100: ALWAYS, 50: ALWAYS}
    assert steps(FAMILIES) == {"sm50", "sm100", "sm107", "sm110"}
    assert ends(()) == {}


def test_a_number_that_no_gpu_has_is_read_as_cub_computes_it():
    text = HEADER.replace("{11, 0}", "{10, 39}").replace("{10, 0}", "{10, 40}")
    assert ends(read_header("tuning_x.cuh", text.encode()).selectors) == {
        107: 139,
        140: ALWAYS,
        50: ALWAYS,
    }
