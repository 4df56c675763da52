"""Configs of a few lines: what is read of each form, and what is refused with its place."""

import pytest

from policygen.errors import SourceError
from tests.rocprim.toys import BY_HAND, FORMS, GENERATED, PICKERS, cut, families, read_toy


def shown(text):
    """By name and architecture: kind, facts, values, and what is taken."""
    return {
        f"{family.name} {family.arch}": [
            (one.kind, one.args, dict(one.values), one.guard, one.remarks) for one in family.entries
        ]
        for family in read_toy(text).families
    }


def test_generated_configs_have_facts_values_guards_and_remarks():
    assert shown(GENERATED) == {
        "default_blend_config unknown": [("primary", (), {}, None, ())],
        "default_blend_config gfx942": [
            (
                "branch",
                ("is_floating_point<key_type>", "sizeof(key_type) <= 8", "sizeof(key_type) > 4"),
                {
                    "BlockSize": 256,
                    "ItemsPerThread": 8,
                    "Method": "exact",
                    "Inner.BlockSize": 64,
                    "Inner.ItemsPerThread": 2,
                },
                None,
                ("Based on key_type = double",),
            ),
            (
                "branch",
                ("!is_floating_point<key_type>", "sizeof(key_type) <= 1"),
                {"BlockSize": 128, "ItemsPerThread": 16},
                "BLEND_BYTES",
                ("Based on key_type = int8_t", "todo: search again"),
            ),
        ],
        "default_blend_config gfx90a": [
            (
                "branch",
                ("sizeof(key_type) <= 1",),
                {"BlockSize": 64, "ItemsPerThread": 1},
                "0",
                (),
            )
        ],
    }


def test_what_is_switched_off_is_disabled():
    (entry,) = families(read_toy(GENERATED))["default_blend_config", "gfx90a"].entries
    assert entry.disabled


def test_configs_by_hand_belong_to_the_architectures_of_their_table():
    mine = [
        (
            "primary",
            (),
            {"BlockSize": 256, "ItemsPerThread": "max(1u, 10u / sizeof(Key))"},
            None,
            (),
        ),
        *(
            ("branch", ("empty_type", *facts), dict(zip(NAMES, values, strict=True)), None, why)
            for facts, values, why in (
                (("sizeof(Key) <= 2",), (256, 11), ("TODO: tune",)),
                (("sizeof(Key) <= 4", "sizeof(Key) > 2"), (256, 10), ("TODO: tune",)),
                ((), (64, 1), ("TODO: tune",)),
            )
        ),
    ]
    assert shown(BY_HAND) == {
        "blend_config_900 gfx900": mine,
        "blend_config_90a gfx90a": [
            ("primary", (), {"BlockSize": 512, "ItemsPerThread": 2}, None, ())
        ],
        "blend_config_900 unknown": mine,
    }


NAMES = ("BlockSize", "ItemsPerThread")


def test_pickers_have_a_branch_for_each_condition_and_a_family_for_each_target():
    sizes = ("kernel_config.block_size", "kernel_config.items_per_thread")
    base = "blend_config_params_base<key_type>()"
    assert shown(PICKERS) == {
        "blend_config_picker gfx942:mi300x": [
            (
                "branch",
                ("is_floating_point<key_type>", "sizeof(key_type) <= 8"),
                {sizes[0]: 256, sizes[1]: 8, "method": "exact"},
                None,
                ('CONFIG: {"key_type": "double"}',),
            ),
            (
                "branch",
                ("sizeof(key_type) <= 4",),
                {sizes[0]: 128, sizes[1]: 4, "method": "fast"},
                None,
                ('CONFIG: {"key_type": "int"}',),
            ),
            ("primary", (), {}, None, ()),
        ],
        "blend_config_picker gfx942": [("primary", (), {}, None, ())],
        "blend_config_picker unknown": [("primary", (), {}, None, ())],
    }
    found = families(read_toy(PICKERS))
    (*_, own) = found["blend_config_picker", "gfx942:mi300x"].entries
    (generic,) = found["blend_config_picker", "gfx942"].entries
    assert [own.inherits, generic.inherits] == [base, base]
    (other,) = found["blend_config_picker", "unknown"].entries
    assert other.inherits.startswith("blend_config_picker<comp_target<gen::cdna3,")
    assert [p.name for p in found["blend_config_picker", "gfx942"].parameters] == ["key_type"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_spans_are_of_bytes_that_say_the_values(form, ending):
    """Also behind characters of several bytes, and where lines end otherwise."""
    text = "// äöü €\n" + FORMS[form]
    text = text.replace("\n", ending)
    for family in read_toy(text).families:
        assert family.namespace == "rocprim::detail"
        for entry in family.entries:
            for member in entry.members:
                spelled = cut(text, member.value_span)
                assert " ".join(spelled.split()) == member.spelling
                assert str(entry.values[member.name]) in spelled
                assert entry.span.start <= member.span.start < member.span.end <= entry.span.end
            taken = cut(text, entry.inherits_span)
            assert "".join(taken.split()) == "".join(entry.inherits.split())
            line = text.encode()[: entry.span.end].count(b"\n") + 1
            assert entry.line <= line
            if entry.comment_span:
                above = cut(text, entry.comment_span)
                assert all(remark in above for remark in entry.remarks)
                assert above.startswith("//")


def test_parameters_of_templates_are_known_for_what_is_written():
    assert read_toy(GENERATED).aggregates["blend_config"] == (
        ("BlockSize", "unsigned int"),
        ("ItemsPerThread", "unsigned int"),
        ("Method", "blend_method"),
        ("Inner", "class"),
    )


def test_names_of_templates_may_be_qualified_and_templates_of_the_standard_are_followed():
    chosen = "typename std::conditional<(sizeof(key_type) > 4), kernel_config<1, 2>, X>::type"
    text = GENERATED.replace("kernel_config<64, 2>", chosen)
    (entry, _) = families(read_toy(text))["default_blend_config", "gfx942"].entries
    assert {name: value for name, value in entry.values.items() if "Inner" in name} == {
        "Inner.enabled": "(sizeof(key_type) > 4)",
        "Inner.BlockSize": 1,
        "Inner.ItemsPerThread": 2,
        "Inner.otherwise": "X",
    }
    text = GENERATED.replace("blend_config<128, 16>", "::rocprim :: blend_config<128, 16, a, b, c>")
    (_, entry) = families(read_toy(text))["default_blend_config", "gfx942"].entries
    assert entry.values == {
        "BlockSize": 128,
        "ItemsPerThread": 16,
        "Method": "a",
        "Inner": "b",
        "4": "c",  # nobody says how it is called
    }


def test_the_name_of_a_config_may_be_an_alias():
    alias = "template<unsigned int Threads> using row_config = blend_config<Threads, 4>;\n"
    text = GENERATED.replace("namespace detail", alias + "namespace detail")
    text = text.replace("blend_config<128, 16>", "row_config<96>")
    (_, entry) = families(read_toy(text))["default_blend_config", "gfx942"].entries
    assert entry.values == {"Threads": 96}


def test_configs_that_are_no_template_have_no_values():
    text = GENERATED.replace(": blend_config<128, 16>", ": plain_config")
    (_, entry) = families(read_toy(text))["default_blend_config", "gfx942"].entries
    assert (entry.values, entry.inherits) == ({}, "plain_config")
    text = GENERATED.replace(": blend_config<128, 16>", "")
    (entry,) = families(read_toy(text))["default_blend_config", "gfx942"].entries
    assert entry.remarks == ("Based on key_type = double",)  # the other one takes nothing


def test_what_is_no_config_for_architectures_is_none():
    text = (
        "namespace rocprim {\ntemplate<class T> struct default_x_config : kernel_config<1> {};\n}"
    )
    assert read_toy(text).families == ()
    text = "namespace rocprim {\ntemplate<> struct default_x_config<int> : kernel_config<1> {};\n}"
    assert read_toy(text).families == ()
    assert read_toy("namespace rocprim {\nstruct default_x_config : y {};\n}").families == ()


def test_configs_whose_primary_template_stands_elsewhere_are_read():
    head, _, rest = GENERATED.partition("template<unsigned int arch")
    text = head + rest.partition("{};\n")[2]
    found = {family.arch: len(family.entries) for family in read_toy(text).families}
    assert found == {"gfx942": 2, "gfx90a": 1}


def test_architectures_may_be_counted_as_the_older_headers_do():
    text = BY_HAND.replace("ROCPRIM_ARCH_90a", "910")
    assert families(read_toy(text)).keys() == families(read_toy(BY_HAND)).keys()


def refused(text):
    with pytest.raises(SourceError) as raised:
        read_toy(text)
    error = raised.value
    return error.line, error.column, error.message, error.text


HEAD = """namespace rocprim {
template<class Target, class T>
constexpr auto x_config_picker() -> std::enable_if_t<
    std::is_same_v<Target, comp_target<gen::a, target_arch::gfx942, gpu::generic, rep::a>>, int>
{
%s
}
}
"""


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (
            GENERATED.replace("gfx90a", "gfxx"),
            32,
            8,
            "default_blend_config: cannot determine its architecture",
        ),
        (
            GENERATED.replace("static_cast<unsigned int>(target_arch::gfx90a)", "MACRO"),
            32,
            8,
            "default_blend_config: cannot determine its architecture",
        ),
        (
            BY_HAND.replace("blend_config_90a<Key, Value>>", "blend_config_90b<Key, Value>>"),
            25,
            8,
            "default_blend_config: no blend_config_90b is declared here",
        ),
        (
            BY_HAND.replace("ROCPRIM_ARCH_90a", "SOME"),
            29,
            9,
            "cannot determine which config belongs to which architecture",
        ),
        (
            BY_HAND.replace("select_arch_case<900, blend_config_900<Key, Value> >", "word"),
            28,
            9,
            "cannot determine which config belongs to which architecture",
        ),
        (
            BY_HAND.replace("ROCPRIM_ARCH_90a, blend_config_90a<Key, Value>", "900, word"),
            29,
            9,
            "cannot determine which config belongs to which architecture",
        ),
        (
            PICKERS.replace("comp_target<gen::cdna3, target_arch::gfx942, gpu::mi300x", "x<y", 1),
            5,
            16,
            "blend_config_picker: cannot determine its target",
        ),
        (
            PICKERS.replace("target_arch::gfx942", "mine", 1),
            6,
            28,
            "cannot determine the architecture of this target",
        ),
        (
            HEAD % "if constexpr(A) {\nif constexpr(B) { return x{1}; } return x{2}; }",
            6,
            1,
            "a condition without a return of its own",
        ),
        (HEAD % "if constexpr(A) { f(); }\nreturn x{1};", 6, 1, "a condition without a return"),
        (HEAD % "if constexpr(A)\n{ return x{1}; f(); }\n", 6, 1, "a condition without a return"),
        (HEAD % "if constexpr(A)", 6, 1, "a condition without a return of its own"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text, line, column, message):
    found = refused(text)
    assert found[:2] == (line, column)
    assert found[2].startswith(message)
    assert found[3]


def test_a_picker_that_is_declared_first_is_read_once():
    declared = PICKERS.partition("\n{\n    // CONFIG")[0].partition("{\n")[2]
    text = PICKERS.replace("namespace detail\n{\n", f"namespace detail\n{{\n{declared};\n", 1)
    assert shown(text) == shown(PICKERS)


def test_pickers_take_conditions_without_braces_and_alternatives():
    found = shown(HEAD % "if constexpr(A) return x{1};\nelse if constexpr(B) { return x{2}; }\n"
                  "else { return x{3}; }")  # fmt: skip
    assert [(args, dict(values)) for _, args, values, _, _ in found["x_config_picker gfx942"]] == [
        (("A",), {"0": 1}),
        (("B",), {"0": 2}),
        ((), {"0": 3}),
    ]


def test_pickers_keep_what_guards_them():
    text = HEAD % "#if OLD\nif constexpr(A) { return x{1}; }\n#endif\n#if 0\nreturn x{2};\n#endif"
    (family,) = read_toy(text).families
    assert [(one.guard, one.disabled) for one in family.entries] == [("OLD", False), ("0", True)]
