"""How benchmarks run: what a call takes in a version, and what sub-benchmarks share."""

import pytest
from pydantic import ValidationError

from policygen.model.bindings import BufferBinding, RunBinding

CALL = {"benchmarks": ["cub.bench.a"], "buffers": {}, "function": "f", "arguments": "in"}


@pytest.mark.parametrize(
    ("keys", "version", "form"),
    [
        ({}, "3.0.1", "environment"),
        ({"form": "storage"}, "3.6.0", "storage"),
        ({"storage_below": "3.5"}, "3.4.2", "storage"),
        ({"storage_below": "3.5"}, "3.5.0", "environment"),
        ({"stream_below": "3.5"}, "3.4.2", "stream"),
        ({"stream_below": "3.5"}, "3.5.0", "environment"),
        ({"storage_below": "3.1", "stream_below": "3.5"}, "3.0.1", "storage"),
        ({"storage_below": "3.1", "stream_below": "3.5"}, "3.2.0", "stream"),
    ],
)
def test_a_version_says_what_a_call_takes_besides_its_arguments(keys, version, form):
    assert RunBinding(**CALL, **keys).form_in(version) == form


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ({}, ("base",)),
        ({"subbench": "large"}, ("large",)),
        ({"subbenches": ["small", "large"]}, ("small", "large")),
        ({"variations": {"sin": "a", "exp": "b"}}, ("sin", "exp")),
    ],
)
def test_a_table_is_of_one_sub_benchmark_or_of_several(keys, names):
    assert RunBinding(**CALL, **keys).every_subbench == names


def test_what_varies_stands_in_front_of_what_sub_benchmarks_share():
    run = RunBinding(
        **CALL, support="struct all;\n", variations={"sin": "\nstruct sin;", "exp": ""}
    )
    assert run.of("sin").support == "struct sin;\nstruct all;"
    assert run.of("exp").support == "struct all;"
    assert run.of("sin").every_subbench == ("sin",)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"result": "close"}, "a tolerance belongs to a result that is close"),
        ({"result": "equal", "tolerance": 0.1}, "a tolerance belongs to a result that is close"),
        ({"result": "equal", "group": "8"}, "group and beside belong to a result that is a set"),
        ({"beside": "values"}, "group and beside belong to a result that is a set"),
    ],
)
def test_what_does_not_fit_a_result_is_refused(keys, words):
    with pytest.raises(ValidationError, match=words):
        BufferBinding(type="int", count="1", **keys)


def test_a_set_has_groups_and_what_belongs_to_its_elements():
    buffer = BufferBinding(type="int", count="8", result="set", group="4", beside="values")
    assert (buffer.group, buffer.beside) == ("4", "values")
