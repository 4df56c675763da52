"""docs/bindings.md has every key of a binding, and none that there is not."""

import re

import pytest

from policygen import rendering
from policygen.model.bindings import (
    AxisType,
    BenchmarkBinding,
    Binding,
    Call,
    DelayConstructor,
    DispatchBinding,
    FamilyBinding,
    Group,
    HubBinding,
    Limit,
    MemberRule,
    Scaling,
    SelectorBinding,
    Site,
    Types,
    Unit,
    ValuesBase,
)
from policygen.model.own_workload import OwnCallBinding

DOCS = rendering.folder("schemas").parent / "docs/bindings.md"


def keys(model):
    """What a table of TOML may have."""
    return {field.alias or name for name, field in model.model_fields.items()}


def section(title):
    """The text below a heading."""
    return re.split(r"^##+ ", DOCS.read_text().partition(f"\n### {title}\n")[2], flags=re.M)[0]


def named(text):
    """The words in backquotes, without the brackets of tables."""
    return {name.strip("[]") for name in re.findall(r"`(\[*\w+\]*)`", text)}


def first_column(title):
    rows = [row.split("|")[1] for row in section(title).splitlines() if row.startswith("|")]
    return named("".join(rows[2:]))


@pytest.mark.parametrize(
    ("title", "model"),
    [
        ("A file", Binding),
        ("`[[site]]`", Site),
        ("`[[family]]`", FamilyBinding),
        ("`[[benchmark]]`", BenchmarkBinding),
        ("`[[selector]]`", SelectorBinding),
        ("`[[hub]]`", HubBinding),
        ("`[[hub.dispatch]]`", DispatchBinding),
        ("`[[workload]]`", OwnCallBinding),
        ("Rules", MemberRule),
        ("`types.toml`", Types),
    ],
)
def test_a_table_lists_the_keys_of_its_model(title, model):
    assert first_column(title) == keys(model)


@pytest.mark.parametrize(
    ("title", "word", "model"),
    [
        ("`[[family]]`", "`base`", ValuesBase),
        ("`[[benchmark]]`", "A `[[call]]` has", Call),
        ("Rules", "`unit`", Unit),
        ("`types.toml`", "`[[types]]`", AxisType),
        ("`types.toml`", "`[[groups]]`", Group),
        ("`types.toml`", "`[[delays]]`", DelayConstructor),
        ("`types.toml`", "`[[scalings]]`", Scaling),
        ("`types.toml`", "`[[limits]]`", Limit),
    ],
)
def test_a_row_names_the_keys_of_what_is_within(title, word, model):
    (row,) = [row for row in section(title).split("\n") if row.startswith((word, f"| {word}"))]
    assert keys(model) <= named(row)
