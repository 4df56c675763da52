"""The grammar of variant labels."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from policygen.model.emitted import EmitAction
from policygen.model.plans import Action
from policygen.model.workload import Variant, is_label, parse_label, shortened
from tests.tiers import sampled


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ("ipt_19", {"ipt": 19}),
        ("ipt_19.tpb_384", {"ipt": 19, "tpb": 384}),
        ("wrps_4.lbs_-2", {"wrps": 4, "lbs": -2}),
        ("my_name_7", {"my_name": 7}),
        ("IPT2_0", {"IPT2": 0}),
        ("a_2147483647.b_-2147483648", {"a": 2147483647, "b": -2147483648}),
    ],
)
def test_a_label_is_its_parameters(label, values):
    assert parse_label(label) == values
    assert is_label(label)


HOSTILE = "ipt_19.tpb_384.a\n#define private public\ninline int evil(){return 1;}\n//_1"


@pytest.mark.parametrize(
    "label",
    [
        HOSTILE,
        "",
        ".",
        "ipt",
        "ipt_",
        "_19",
        "ipt_19.",
        ".ipt_19",
        "ipt_19..tpb_2",
        "ipt_19\n",
        "ipt_19 ",
        " ipt_19",
        "ipt_1.ipt_2",
        "ipt_+1",
        "ipt_01",
        "ipt_-0",
        "ipt_1.5",
        "ipt_1e3",
        "ipt_0x10",
        "ipt_\uff12",
        "ipt_\u0663",
        "größe_1",
        "a-b_1",
        "a b_1",
        "a\\_1",
        "1a_1",
        "ipt_2147483648",
        "ipt_-2147483649",
        f"ipt_{'9' * 400_000}",
        f"{'a' * 64}_1",
        ".".join(f"p{n}_1" for n in range(65)),
    ],
)
def test_what_is_not_completely_a_label_is_none(label):
    assert parse_label(label) is None
    assert not is_label(label)


def test_base_is_the_name_of_no_parameters():
    assert is_label("base")
    assert parse_label("base") is None


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,62}", fullmatch=True)
VALUES = st.integers(-(1 << 31), (1 << 31) - 1)


@pytest.mark.slow
@pytest.mark.parametrize("share", sampled(range(4), 0))
@settings(max_examples=25)
@given(values=st.dictionaries(NAMES, VALUES, min_size=1, max_size=64))
def test_what_is_written_as_a_label_is_read_from_it(share, values):
    assert parse_label(".".join(f"{name}_{value}" for name, value in values.items())) == values


@given(st.text(max_size=40))
def test_a_label_is_the_one_spelling_of_its_parameters(text):
    if values := parse_label(text):
        assert ".".join(f"{name}_{value}" for name, value in values.items()) == text


def test_a_document_refuses_what_is_none():
    variants = TypeAdapter(Variant)
    assert variants.validate_python("base") == "base"
    assert variants.validate_python("ipt_1") == "ipt_1"
    with pytest.raises(ValidationError, match=r"'ipt_1\\x0a#define x' is not a variant label"):
        variants.validate_python("ipt_1\n#define x")


def test_a_long_text_is_told_by_its_beginning():
    assert shortened("a" * 60) == f"'{'a' * 60}'"
    assert shortened("\x1b" + "a" * 400_000) == f"'\\x1b{'a' * 59}…'"


@pytest.mark.parametrize("kind", [Action, EmitAction])
def test_a_plan_with_another_variant_is_refused(kind):
    given = {
        "benchmark": "b", "workload": {}, "decision": "reject", "reason": "", "gpu": "",
        "ctk": "", "cccl": "", "databases": (),
    }  # fmt: skip
    assert kind(**given, variant="ipt_1").variant == "ipt_1"
    assert kind(**given).variant is None
    with pytest.raises(ValidationError, match="is not a variant label"):
        kind(**given, variant=HOSTILE)
