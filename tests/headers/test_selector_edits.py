# ruff: noqa: E501  a row of a table is one line
"""Values of guarded returns in the manner of the old ones."""

import pytest

from policygen.errors import InputError
from policygen.headers.comments import Surroundings
from policygen.headers.scan import read_header
from policygen.headers.selectors.return_edits import update_return
from policygen.headers.spelling import splice
from policygen.headers.text import Text
from policygen.model.tuning import Content

HEADER = """\
struct policy
{
  int threads_per_block;
  int items_per_thread;
  bool fast;
  CacheLoadModifier load_modifier;
  LookbackDelayPolicy lookback_delay;
};
constexpr auto get_sm100_tuning(compute_capability cc, int size) -> policy
{
  // todo: regresses, find better tuning
  if (size == 1) return RETURNED;
  return {};
}
"""


def written(returned, **values):
    data = HEADER.replace("RETURNED", returned).encode()
    header = read_header("tuning_x.cuh", data)
    (family,) = header.selectors
    content = Content("values", values, label="ipt_7 1.1")
    text = Text("x", data)
    edits = update_return(text, Surroundings(text), family.entries[0], content, "why")
    return splice("x", data, sorted(edits, key=lambda edit: edit.span)).decode()


DELAY = "fixed_delay_constructor_t<404, 710>"


@pytest.mark.parametrize(
    ("returned", "values", "expected"),
    [
        ("{128, 7}", {"threads_per_block": "256"}, "{256, 7}"),
        ("policy{128, 104 - 1}", {"items_per_thread": "119"}, "policy{128, 120 - 1}"),
        ("{128, 1 << 2}", {"items_per_thread": "8"}, "{128, 1 << 3}"),
        ("{128, 1 << 2}", {"items_per_thread": "4", "threads_per_block": "64"}, "{64, 1 << 2}"),
        ("{1, 2, false, x::LOAD_CA}", {"fast": "true", "load_modifier": "LOAD_LDG"}, "{1, 2, true, x::LOAD_LDG}"),
        ("{1, 2, true, LOAD_CA, LookbackDelayPolicy{LookbackDelayAlgorithm::no_delay, 0, 9}}", {"lookback_delay": DELAY},
         "{1, 2, true, LOAD_CA, LookbackDelayPolicy{LookbackDelayAlgorithm::fixed_delay, 404, 710}}"),
        ("{1, 2, true, LOAD_CA, {A::fixed_delay, 1, 9}}", {"lookback_delay": "no_delay_constructor_t<8>"},
         "{1, 2, true, LOAD_CA, {A::no_delay, 0, 8}}"),
        ("{1, 2, true, LOAD_CA, from_type<detail::no_delay_constructor_t<9>>}", {"lookback_delay": DELAY},
         f"{{1, 2, true, LOAD_CA, from_type<detail::{DELAY}>}}"),
    ],
)  # fmt: skip
def test_values_keep_the_manner_of_the_old_ones(returned, values, expected):
    text = written(returned, **values)
    assert f"  if (size == 1) return {expected};\n" in text
    # What the comment said of the old values goes, the provenance of the new ones comes.
    assert "todo" not in text
    assert "  // ipt_7 1.1\n  if (size == 1)" in text


def test_the_same_values_are_no_edit():
    text = written("{128, 7, true, x::LOAD_CA}", threads_per_block="128", fast="true")
    assert text == HEADER.replace("RETURNED", "{128, 7, true, x::LOAD_CA}")


def test_a_delay_that_is_computed_is_not_written():
    with pytest.raises(InputError, match=r"lookback_delay: 'f\(size\)' is not a delay"):
        written("{1, 2, true, LOAD_CA, f(size)}", lookback_delay=DELAY)
