"""What the compiler sees is read, however it is spelled, or refused where it stands."""

import pytest

from policygen.errors import SourceError
from policygen.headers.scan import read_header, scan_headers
from policygen.headers.syntax import Counted, check_families, check_returns, parse_with_tree_sitter
from policygen.headers.text import Text
from policygen.model.records import Span
from tests.headers.headers import read_entries, wrap

HEADER = """#pragma once
CUB_NAMESPACE_BEGIN
struct MergePolicy
{
  int items;
  bool unroll = true;
};
namespace detail::merge
{
struct policy_selector
{
  int key_size;

  CUB_API constexpr auto operator()(::cuda::compute_capability cc) const -> MergePolicy
  {
    if (cc >= ::cuda::compute_capability{10, 0})
    {
      return MergePolicy{11, true};
    }
    return MergePolicy{7, false};
  }
};
}
CUB_NAMESPACE_END
"""
RETURNS = [("sm100", 11), ("sm50", 7)]
PLAIN = "\n  Write it out; policygen does not expand macros."


def returns(text):
    header = read_header("tuning_merge.cuh", text.encode())
    return [(f.arch, e.values.get("items")) for f in header.selectors for e in f.entries]


def changed(old, new):
    assert HEADER.count(old) == 1
    return HEADER.replace(old, new)


def refused(text):
    with pytest.raises(SourceError) as raised:
        read_header("tuning_merge.cuh", text.encode())
    return str(raised.value)


def test_the_header_reads():
    assert returns(HEADER) == RETURNS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("struct MergePolicy", "struct alignas(8) MergePolicy"),
        ("struct MergePolicy", "struct __attribute__((aligned(8))) MergePolicy"),
        ("struct MergePolicy", "struct [[maybe_unused]] CUB_VISIBLE MergePolicy final"),
        ("struct MergePolicy\n{", "class MergePolicy\n{\npublic:"),
        ("  int items;", "  [[maybe_unused]] alignas(8) int items;"),
        ("constexpr auto", "constexpr _CCCL_HOST_DEVICE_API auto"),
        ("constexpr auto", "auto constexpr"),
        ("constexpr auto", "consteval auto"),
        ("constexpr auto", "inline constexpr auto"),
        ("const -> MergePolicy", "const& -> MergePolicy"),
        ("const -> MergePolicy", "const noexcept(true) -> MergePolicy"),
        ("const -> MergePolicy", "const noexcept -> const MergePolicy"),
        ("const -> MergePolicy", "const -> ::cub::MergePolicy"),
        ("const -> MergePolicy", "const"),
        ("    return MergePolicy{7, false};", "    [[unlikely]] return MergePolicy{7, false};"),
        ("    {\n      return", "    [[likely]] {\n      return"),
        ("operator()(::cuda", "operator ( ) (::cuda"),
        ("compute_capability cc)", "compute_capability cc = {})"),
        ("namespace detail", "using policy = MergePolicy;\nnamespace detail"),
    ],
)
def test_other_spellings_read_the_same(old, new):
    assert returns(changed(old, new)) == RETURNS


def test_a_plain_return_type_reads_the_same():
    text = changed("const -> MergePolicy", "const")
    assert returns(text.replace("constexpr auto", "constexpr MergePolicy")) == RETURNS


@pytest.mark.parametrize(
    "declared", ["using policy = MergePolicy;", "typedef ::cub::MergePolicy policy;"]
)
def test_a_second_name_of_a_policy_reads_the_same(declared):
    text = changed("const -> MergePolicy", "const -> policy")
    assert returns(text.replace("namespace detail", f"{declared}\nnamespace detail")) == RETURNS


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "-> MergePolicy",
            "-> P",
            "14:11: operator(): cannot read the policies of a function that returns P, which is"
            " not a struct of this header",
        ),
        (
            "struct MergePolicy",
            "struct MergePolicy : base",
            "14:11: operator(): cannot read the policies of a function that returns MergePolicy,"
            " which is not a struct of this header",
        ),
        ("  int items;", "  int items, more;", "5:3: MergePolicy: cannot read this field"),
        ("  int items;", "  int (items);", "5:3: MergePolicy: cannot read this field"),
        ("  int items;", "  int items : 8;", "5:3: MergePolicy: cannot read this field"),
        (
            "return MergePolicy{7, false};",
            "do { return MergePolicy{7, false}; } while (false);",
            "20:10: policy_selector::operator(): cannot read this statement",
        ),
        (
            "return MergePolicy{7, false};",
            "return [&] { return MergePolicy{7, false}; }();",
            "20:5: policy_selector::operator(): cannot read this statement",
        ),
        (
            "return MergePolicy{7, false};",
            "CUB_TUNED(7, false);",
            "20:5: policy_selector::operator(): cannot read this statement",
        ),
        (
            "return MergePolicy{7, false};",
            "CUB_TUNED(7) if (cc) { return MergePolicy{7, false}; } int x;",
            "20:28: policy_selector::operator(): cannot read this statement",
        ),
        (
            "if (cc >=",
            "if (int x = 1; cc >=",
            "16:8: policy_selector::operator(): cannot read this statement",
        ),
        (
            "namespace detail",
            "constexpr auto other = [](int x) { return MergePolicy{x, true}; };\nnamespace detail",
            "8:36: a return outside of any readable function",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_where_it_stands(old, new, message):
    assert refused(changed(old, new)).startswith(f"tuning_merge.cuh:{message}\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  int items", "  in\\\nt items", "5:5: a line continuation: cannot be read"),
        ("  int items", "  int \\u00e9;\n  int items", "5:7: a name with a universal character: "),
        ("  int items", "  int \\ items", "5:7: a stray backslash: cannot be read"),
        ("  int items", "  int a<:2:>;\n  int items", "5:8: '<:' is a digraph or trigraph "),
        (
            "#pragma once",
            "#pragma once\n#define MergePolicy Other",
            "4:8: MergePolicy is a macro of line 2; policygen does not expand it",
        ),
        (
            "#pragma once",
            "#pragma once\n#define items(x) x",
            "6:7: items is a macro of line 2; policygen does not expand it",
        ),
        (
            "#pragma once",
            "#pragma once\n#include WHICH",
            "2:1: cannot determine what this includes",
        ),
        (
            "#pragma once",
            '#pragma once\n#include_next "x"',
            "2:1: cannot determine what this includes",
        ),
        (
            "  int key_size;",
            '#include "fields.inl"\n',
            "12:1: an include inside a declaration; policygen does not read it",
        ),
        (
            "struct MergePolicy",
            '#include "policies.inl"\nstruct MergePolicy',
            "3:1: an include inside a declaration; policygen does not read it",
        ),
    ],
)
def test_what_hides_code_is_refused_where_it_stands(old, new, message):
    told = refused(changed(old, new))
    assert told.startswith(f"tuning_merge.cuh:{message}")
    assert told.endswith(PLAIN)


def test_a_macro_that_is_a_number_may_be_used():
    text = changed("#pragma once", "#pragma once\n#define ELEVEN (10 + 1)")
    assert len(returns(text.replace("{11, true}", "{ELEVEN, true}"))) == 2


@pytest.mark.parametrize(
    "member",
    [
        "alignas(8) static constexpr int items = 7;",
        "[[maybe_unused]] static constexpr int items = 7;",
        "__attribute__((aligned(8))) static constexpr int items = 7;",
        "constexpr static int items{7};",
    ],
)
def test_members_behind_attributes_are_read(member):
    (entry,) = read_entries(f"template <> struct sm90_tuning<int, 1> {{ {member} }};")
    assert entry.values == {"items": 7}


def test_a_member_behind_a_macro_is_refused():
    body = "template <> struct sm90_tuning<int, 1> { MAKE(x) static constexpr int items = 7; };"
    with pytest.raises(SourceError, match=r"4:42: cannot read this member"):
        read_header("tuning_demo.cuh", wrap(body))


def test_a_family_that_only_tree_sitter_sees_is_refused():
    text = Text("x.cuh", b"template <> struct detail :: sm90_tuning<int> { };")
    seen = parse_with_tree_sitter(text.data)
    check_families(text, seen.families, {29})
    with pytest.raises(SourceError) as raised:
        check_families(text, seen.families, set())
    assert str(raised.value) == (
        "x.cuh:1:30: sm90_tuning: cannot read this declaration\n"
        "  template <> struct detail :: sm90_tuning<int> { };\n" + " " * 31 + "^^^^^^^^^^^"
    )


def test_names_of_no_family_and_uses_of_one_are_not_counted():
    data = b"template <class T> struct policy_hub { friend struct sm90_x<T>; sm90_x<T> y; };"
    assert parse_with_tree_sitter(data) == Counted((), ())


def test_returns_are_counted_by_the_functions_around_them():
    text = Text("x.cuh", b"int f() { return 1; } int g() { return 2; }")
    seen = parse_with_tree_sitter(text.data)
    assert seen.returns == (10, 32)
    check_returns(text, seen, [Span(9, 20), Span(31, 42)])
    for bodies in ([], [Span(9, 20)], [Span(31, 42)]):
        with pytest.raises(SourceError, match="a return outside of any"):
            check_returns(text, seen, bodies)


ENTRIES = b"template <> struct sm90_tuning<int, 1> { static constexpr int a = 1; };\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tree/cub/device/dispatch/tuning"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ("include", "name", "data"),
    [
        ('"entries.inl"', "cub/device/dispatch/tuning/entries.inl", ENTRIES),
        ('"../entries.inl"', "cub/device/dispatch/entries.inl", ENTRIES),
        ("<cub/entries.inl>", "cub/entries.inl", ENTRIES),
        ("<thrust/entries.h>", "thrust/entries.h", ENTRIES),
        ("<cub/x.inl>", "cub/x.inl", b"struct policy_selector { int x; };"),
        ("<cub/x.inl>", "cub/x.inl", b"constexpr auto get_sm90_tuning(int x) -> policy { }"),
    ],
)
def test_an_included_file_with_tunings_is_refused_by_name(folder, include, name, data):
    """Also when it is read from the cache otherwise."""
    tuning = folder / "tuning_demo.cuh"
    tuning.write_bytes(f"#include {include}\n".encode() + wrap(""))
    assert scan_headers([tuning]).errors == ()
    root = folder.parents[3]
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(data)
    (error,) = scan_headers([tuning]).errors
    shown = name if "../" not in include else "cub/device/dispatch/tuning/../entries.inl"
    assert str(error) == (
        f"{tuning}:1:11: {shown} contains tunings but is not a tuning header, so they are not"
        " read\n"
        f"  #include {include}\n  {' ' * 10}{'^' * (len(include) - 2)}\n"
        "  Move them into a header named tuning_*.cuh."
    )


def test_tunings_that_are_included_by_what_is_included_are_refused(folder):
    tuning, root = folder / "tuning_demo.cuh", folder.parents[3]
    tuning.write_bytes(b"#include <cub/a.cuh>\n#include <cuda/b.h>\n" + wrap(""))
    (root / "cub/a.cuh").write_bytes(b'#include "b.cuh"\n#include <cuda/std/x>\n')
    (root / "cub/b.cuh").write_bytes(b"#include <cub/a.cuh>\n#include <cub/c.inl>\n")
    (root / "cub/c.inl").write_bytes(b"// struct sm90_tuning<int>\n")
    assert scan_headers([tuning]).errors == ()
    (root / "cub/c.inl").write_bytes(ENTRIES)
    (error,) = scan_headers([tuning]).errors
    assert "tuning_demo.cuh:1:11: cub/c.inl contains tunings" in str(error)


def test_an_included_file_that_leaves_the_tree_is_refused_by_name(folder, tmp_path):
    tuning, root = folder / "tuning_demo.cuh", folder.parents[3]
    tuning.write_bytes(b"#include <cub/a.cuh>\n#include <cuda/b.h>\n" + wrap(""))
    (tmp_path / "secret").write_bytes(b"struct sm90_secret<")
    (root / "cuda").symlink_to(tmp_path)  # a library may be kept elsewhere
    assert scan_headers([tuning]).errors == ()
    (root / "cub/a.cuh").symlink_to(tmp_path / "secret")
    (error,) = scan_headers([tuning]).errors
    assert str(error).startswith(
        f"{root}/cub/a.cuh:1:1: a link points outside of the tree {root}\n"
    )


def test_headers_of_tunings_that_include_each_other_are_read_for_themselves(folder):
    one, two = folder / "tuning_one.cuh", folder / "tuning_two.cuh"
    one.write_bytes(b'#include "tuning_two.cuh"\n' + wrap(""))
    two.write_bytes(wrap(ENTRIES.decode()))
    assert scan_headers([one, two]).errors == ()
    assert scan_headers([one]).errors == ()


PARTS = """struct Part { int items; };
struct Whole { Part part; };
HEAD get_PART(::cuda::compute_capability cc)
{
  if (cc >= ::cuda::compute_capability{9, 0}) { return Part{3}; }
  return Part{2};
}
"""


@pytest.mark.parametrize(
    ("name", "count"),
    [("sm90_part", 2), ("vectorized", 0)],
)
def test_a_helper_of_a_deduced_type_that_makes_a_part_has_no_entries(name, count):
    """CUB has one, `tuned_vectorized_policy`; what is called after an architecture is a tuning."""
    text = PARTS.replace("PART", name).replace("HEAD", "constexpr auto")
    assert len(returns(text)) == count
    plain = PARTS.replace("PART", name).replace("HEAD", "constexpr Part")
    assert len(returns(plain)) == 2
