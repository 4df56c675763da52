"""What a policy selector takes, and what it asks of a compiler, read from its header."""

from types import SimpleNamespace

import pytest

from policygen.errors import InputError
from policygen.headers.selectors.functions import compiler_conditions, template_arguments
from policygen.headers.text import Text
from policygen.proof.reading import ReadTree

HEADER = b"""
#if _CCCL_HAS_CONCEPTS()
static_assert(true);
#endif
template <typename InIt, class OpT, mode Mode = mode::fast, bool Stable = false>
struct from_types
{
  constexpr policy operator()(int cc) const
  {
#  if NEWER(13, \\
           4)
    return {1};
#  endif // NEWER
    return {2};
  }
};
"""


def arguments(selector):
    return template_arguments(Text("h", HEADER).code, "h", selector)


def test_given_arguments_stand_by_their_parameters_and_defaults_follow():
    read = arguments("::cub::from_types<T*, pair<T, int>>")
    assert [(one.parameter, one.text, one.is_type) for one in read] == [
        ("InIt", "T*", True),
        ("OpT", "pair<T, int>", True),
        ("Mode", "mode::fast", False),
        ("Stable", "false", False),
    ]


def test_a_selector_without_arguments_or_of_another_header_has_none():
    assert arguments("from_types") == arguments("elsewhere<T>") == ()


@pytest.mark.parametrize("given", ["T*", "T*, OpT, mode::slow, true, int"])
def test_too_few_and_too_many_arguments_are_an_error(given):
    with pytest.raises(InputError, match="h: from_types takes other template arguments"):
        arguments(f"from_types<{given}>")


def test_conditions_in_functions_alone_decide_values():
    assert compiler_conditions("h", HEADER) == ("h:10: NEWER(13, 4)",)


def test_a_tree_says_the_conditions_of_the_headers_that_are_named_and_have_selectors():
    headers = [
        SimpleNamespace(name=name, selectors=selectors)
        for name, selectors in (("a", ("from_types",)), ("b", ("from_types",)), ("c", ()))
    ]
    tree = ReadTree(None, tuple(headers), {}, (), dict.fromkeys("abc", HEADER))
    assert tree.conditions(["b", "c"]) == ("b:10: NEWER(13, 4)",)
