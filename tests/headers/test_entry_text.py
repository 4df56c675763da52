import pytest

from policygen.errors import InputError
from policygen.headers.scan import read_header
from policygen.headers.specializations import entry_edits
from policygen.model.tuning import Content, NewEntry

LABEL = "ipt_9.tpb_96 1.5  1.0  1.4  1.6"
PRIMARY = "template <class KeyT, class ValueT, size S> struct sm{}_x;\n"
NAMESPACE = "namespace a {{ {} }}\n"


def header(*bodies):
    """Families of one namespace for each body."""
    text = "".join(PRIMARY.format(100 + i) + body + "\n" for i, body in enumerate(bodies))
    return read_header("x.cuh", NAMESPACE.format(text).encode())


BLOCK = """template <class K, class V>
struct sm100_x<K, V, size::_1>
{
  static constexpr int threads   = 7;
  static constexpr Load load_mod = cub::LOAD_CA;
  using delay                    = detail::no_delay_t<1>;
};
"""
VALUES = {"delay": "no_delay_t<2>", "threads": "64", "load_mod": "LOAD_LDG"}


def block(new, body=BLOCK, name="sm100_x"):
    found = header(body)
    family = found.families[0]
    sibling = family.specializations[0] if family.specializations else None
    types = entry_edits.member_types(found, family, sibling)
    return entry_edits.entry_text(family, name, new, types, sibling, layout="block")


@pytest.mark.parametrize(
    ("new", "text"),
    [
        pytest.param(
            NewEntry((None, None, "size::_2"), Content("values", VALUES, None, LABEL)),
            """template <class K, class V>
struct sm100_x<K, V, size::_2>
{
  // ipt_9.tpb_96 1.5  1.0  1.4  1.6
  static constexpr int threads   = 64;
  static constexpr Load load_mod = cub::LOAD_LDG;
  using delay                    = detail::no_delay_t<2>;
};""",
            id="partial, with values",
        ),
        pytest.param(
            NewEntry(("int", "float", "size::_2"), Content("values", {"threads": "64"})),
            """template <>
struct sm100_x<int, float, size::_2>
{
  static constexpr int threads = 64;
};""",
            id="explicit, without a label",
        ),
        pytest.param(
            NewEntry(("int", None, "size::_2"), Content("inherits", {}, "sm90_x<{0}, 4>", LABEL)),
            """// ipt_9.tpb_96 1.5  1.0  1.4  1.6
template <class V>
struct sm100_x<int, V, size::_2>
    : sm90_x<int, 4>
{};""",
            id="inherits",
        ),
        pytest.param(
            NewEntry(("int", None, "size::_2"), Content("inherits", {}, "some_default")),
            "template <class V>\nstruct sm100_x<int, V, size::_2>\n    : some_default\n{};",
            id="inherits from no template",
        ),
        pytest.param(
            NewEntry(("int", None, "size::_2"), Content("empty")),
            "template <class V>\nstruct sm100_x<int, V, size::_2>\n{};",
            id="empty",
        ),
        pytest.param(
            NewEntry(
                (None, "__int128_t", "size::_16"),
                Content("values", {"threads": "64"}),
                "_CCCL_HAS_INT128()",
                (None, "__uint128_t", "size::_16"),
            ),
            """#if _CCCL_HAS_INT128()
template <class K>
struct sm100_x<K, __int128_t, size::_16>
{
  static constexpr int threads = 64;
};

template <class K>
struct sm100_x<K, __uint128_t, size::_16>
    : sm100_x<K, __int128_t, size::_16>
{};
#endif""",
            id="guarded, with an unsigned twin",
        ),
        pytest.param(
            NewEntry(
                ("a" * 40, "b" * 40, "c" * 40),
                Content("inherits", {}, f"y<{'d' * 60}, {'e' * 60}>"),
            ),
            f"""template <>
struct sm100_x<{"a" * 40},
               {"b" * 40},
               {"c" * 40}>
    : y<{"d" * 60},
        {"e" * 60}>
{{}};""",
            id="too wide for a line",
        ),
    ],
)  # fmt: skip
def test_a_block_is_laid_out_as_cub_does(new, text):
    assert block(new) == text


def test_a_block_has_another_name_in_a_new_family():
    new = NewEntry(("int", "int", "size::_1"), Content("empty"))
    assert block(new, name="sm120_x") == "template <>\nstruct sm120_x<int, int, size::_1>\n{};"


LINES = """
template <class K> struct sm100_x<K,  int, 0> { static constexpr int items = 1; using d = n::a; };
template <class K> struct sm100_x<K,  int, 1> : other<K> {};
"""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (Content("values", {"d": "b", "items": "2"}, None, LABEL),
         f"// {LABEL}\ntemplate <class K> struct sm100_x<K,  int, 2> "
         "{ static constexpr int items = 2; using d = n::b; };"),
        (Content("inherits", {}, "vals<{0}, 128,24>"),
         "template <class K> struct sm100_x<K,  int, 2> : vals<K, 128, 24> {};"),
        (Content("inherits", {}, "vals", LABEL),
         f"// {LABEL}\ntemplate <class K> struct sm100_x<K,  int, 2> : vals {{}};"),
        (Content("empty"), "template <class K> struct sm100_x<K,  int, 2> {};"),
    ],
)  # fmt: skip
def test_a_line_is_laid_out_as_those_beside_it(content, text):
    found = header(LINES)
    family = found.families[0]
    shown, sibling = family.specializations
    types = entry_edits.member_types(found, family, shown)
    new = NewEntry((None, "int", "2"), content)
    line = entry_edits.entry_text(family, "sm100_x", new, types, sibling, layout="line")
    assert line == text


@pytest.mark.parametrize(
    ("content", "layout", "text"),
    [
        (Content("values", VALUES, None, LABEL), "block",
         f"\n{{\n  // {LABEL}\n  static constexpr int threads   = 64;\n"
         "  static constexpr Load load_mod = cub::LOAD_LDG;\n"
         "  using delay                    = detail::no_delay_t<2>;\n};"),
        (Content("values", {"threads": "64"}), "block",
         "\n{\n  static constexpr int threads = 64;\n};"),
        (Content("values", {"threads": "64"}, None, LABEL), "line",
         " { static constexpr int threads = 64; };"),
        (Content("inherits", VALUES, "y<{1}>", LABEL), "block", "\n    : y<B>\n{};"),
        (Content("inherits", VALUES, "y<{1}>", LABEL), "line", " : y<B> {};"),
        (Content("empty", label=LABEL), "block", "\n{};"),
        (Content("empty"), "line", " {};"),
    ],
)  # fmt: skip
def test_a_body_follows_the_head_of_an_entry(content, layout, text):
    found = header(BLOCK)
    family = found.families[0]
    shown = family.specializations[0]
    types = entry_edits.member_types(found, family, shown)
    args = ["A", "B", "C"]
    assert entry_edits.body(family, content, args, types, layout=layout) == text


@pytest.mark.parametrize(
    ("content", "base"),
    [
        (Content("inherits", base="y<{0}, z<1, 2>, f(3, 4)>"), ("y", ["A", "z<1, 2>", "f(3, 4)"])),
        (Content("inherits", base="y"), ("y", [])),
        (Content("inherits", base="y<>"), ("y", [])),
        (Content("inherits"), None),
        (Content("values", base="y<{0}>"), None),
    ],
)
def test_a_base_has_a_name_and_arguments(content, base):
    assert entry_edits.base_of(content, ["A", "B"]) == base


ONE = "template <class K> struct sm{0}_x<K, int, 1> {{ static constexpr {1} a = 1; }};"
NONE = "template <class K> struct sm{0}_x<K, int, 2> : y<K> {{}};"
OFF = "\n#if 0\n" + ONE.format(101, "off") + "\n#endif\n"


@pytest.mark.parametrize(
    ("bodies", "family", "sibling", "kind"),
    [
        pytest.param([ONE.format(100, "int")], 0, 0, "int", id="the sibling"),
        pytest.param([NONE.format(100) + ONE.format(100, "int")], 0, 0, "int", id="the closest"),
        pytest.param([ONE.format(100, "int")], 0, None, "int", id="no sibling"),
        pytest.param([ONE.format(100, "int"), NONE.format(101)], 1, 0, "int", id="another family"),
        pytest.param([ONE.format(100, "a"), ONE.format(101, "b"), ""], 2, None, "b", id="newest"),
        pytest.param([ONE.format(100, "int"), OFF, ""], 2, None, "int", id="but a live one"),
        pytest.param(["", ""], 0, None, None, id="none"),
    ],
)
def test_members_are_like_those_of_the_closest_entry(bodies, family, sibling, kind):
    found = header(*bodies)
    wanted = found.families[family]
    beside = None if sibling is None else wanted.specializations[sibling]
    shown = entry_edits.typical(found, wanted, beside)
    types = entry_edits.member_types(found, wanted, shown)
    assert types == ({"a": (kind, "1")} if kind else {})
    assert (shown.members[0].type if shown else None) == kind


def test_the_primary_template_shows_members_where_no_entry_does():
    text = "template <int K> struct sm100_x { static constexpr int a = 1; };"
    found = read_header("x.cuh", text.encode())
    (family,) = found.families
    assert entry_edits.typical(found, family, None) == family.entries[0]


def test_a_member_that_no_entry_has_is_refused():
    new = NewEntry(("int", "int", "size::_1"), Content("values", {"items": "2", "blue": "1"}))
    with pytest.raises(InputError, match=r"x\.cuh: no entry of a has blue, items\n  The type"):
        block(new)
