# ruff: noqa: E501  a row of a table is one line
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policygen import trees
from policygen.bindings.load import bound
from policygen.errors import InputError
from policygen.headers.dialects import Specializations
from policygen.headers.scan import read_header, scan_headers
from policygen.model.trees import BoundVersion
from policygen.model.tuning import STEP, Marked, TuningHeader, mark
from policygen.proof.sites import marked_members
from policygen.proof.units import overlay
from tests.headers.headers import MINI, wrap
from tests.real_trees import tree as cub_tree
from tests.tiers import sampled

VERSIONS = ["2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0"]
DEMO = "cub::detail::demo"
HELD = "static constexpr int policygen_entry = "


def marked(body: str | bytes, **members: str) -> Marked:
    """A toy header with marks, in `sm90_tuning::items` unless said otherwise."""
    data = body if isinstance(body, bytes) else wrap(body)
    header = read_header("tuning_demo.cuh", data)
    named = members or {"sm90_tuning": "items"}
    return Specializations.mark(
        header, data, {(DEMO, name): member for name, member in named.items()}
    )


def body_of(found: Marked) -> str:
    """The toy header without what `wrap` puts around it."""
    text = found.data.decode()
    return text[text.index("sm90_tuning;\n") + len("sm90_tuning;\n") : text.rindex("\n}}")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "template <> struct sm90_tuning<int, 4>\n{\n  static constexpr int items = 7;\n};",
            "template <> struct sm90_tuning<int, 4>\n"
            "{ static constexpr int policygen_entry = 0;\n"
            "  static constexpr int items = 4096;\n};",
            id="explicit",
        ),
        pytest.param(
            "template <class T> struct sm90_tuning<T, 4> { static constexpr int items = 7; };",
            "template <class T> struct sm90_tuning<T, 4> { static constexpr int policygen_entry = 0;"
            " static constexpr int items = 4096; };",
            id="partial, on one line",
        ),
        pytest.param(
            "template <> struct sm90_tuning<int, 4> { // why\n  static constexpr int items=7; };",
            "template <> struct sm90_tuning<int, 4> { static constexpr int policygen_entry = 0;"
            " // why\n  static constexpr int items=4096; };",
            id="a comment behind the brace",
        ),
        pytest.param(
            "template <> struct sm90_tuning<int, 4> { static constexpr int items = 3 * 4 + 1; };",
            "template <> struct sm90_tuning<int, 4> { static constexpr int policygen_entry = 0;"
            " static constexpr int items = 4096; };",
            id="a computed value",
        ),
        pytest.param(
            "template <> struct sm90_tuning<int, 4> {};",
            "template <> struct sm90_tuning<int, 4> { static constexpr int policygen_entry = 0;};",
            id="without the member",
        ),
        pytest.param(
            "template <> struct sm90_tuning<int, 4> { static constexpr int threads = 7; };",
            "template <> struct sm90_tuning<int, 4> { static constexpr int policygen_entry = 0;"
            " static constexpr int threads = 7; };",
            id="with other members",
        ),
    ],
)
def test_an_entry_gets_a_number(before: str, after: str) -> None:
    assert body_of(marked(before)) == after


BASE = "template <> struct sm90_tuning<int, 4> { static constexpr int items = 7; };\n"
HEIR = "template <> struct sm90_tuning<float, 4> : {1} {{{0}}};"
OF_BASE = "sm90_tuning<int, 4>"


@pytest.mark.parametrize(
    ("heir", "base", "after"),
    [
        pytest.param("", OF_BASE, f" {HELD}1;", id="nothing of its own"),
        pytest.param(
            " static constexpr int threads = 9; ",
            OF_BASE,
            f" {HELD}1; static constexpr int threads = 9; ",
            id="another member of its own",
        ),
        pytest.param("", "tuning<int, 4>", f" {HELD}1;", id="of something that is no tuning"),
    ],
)
def test_an_heir_gets_the_mark_through_its_base(heir: str, base: str, after: str) -> None:
    """Only the compiler knows whether the base has the member."""
    text = BASE + HEIR.format(heir, base)
    wrapped = f"::policygen_marks::items_of<{base}, 12288>"
    assert body_of(marked(text)).splitlines()[1] == HEIR.format(after, wrapped)


def test_an_heir_with_the_member_is_marked_there() -> None:
    text = BASE + HEIR.format(" static constexpr int items = 9; ", OF_BASE)
    after = f" {HELD}1; static constexpr int items = 12288; "
    assert body_of(marked(text)).splitlines()[1] == HEIR.format(after, OF_BASE)


def test_the_primary_template_keeps_what_it_has() -> None:
    """Its members are the default of every key; those that it lacks it shall not get."""
    data = wrap("").replace(b"sm90_tuning;", b"sm90_tuning { static constexpr int items = 5; };")
    assert (
        f"sm90_tuning {{ {HELD}0; static constexpr int items = 4096; }};"
        in marked(data).data.decode()
    )
    assert (
        f"sm90_tuning {{ {HELD}0; static constexpr int items = 5; }};"
        in marked(data, sm90_tuning="threads").data.decode()
    )


def test_what_no_compiler_sees_is_left_alone() -> None:
    text = "\n".join(
        [
            "// template <> struct sm90_tuning<char, 1> { static constexpr int items = 5; };",
            "#if 0",
            "template <> struct sm90_tuning<short, 1> { static constexpr int items = 6; };",
            "#endif",
            "template <> struct sm90_tuning<int, 1> { static constexpr int items = 7; };",
        ]
    )
    found = marked(text)
    assert [(entry.args, entry.line) for _, entry in found.entries] == [(("int", "1"), 8)]
    assert body_of(found).splitlines()[:4] == text.splitlines()[:4]


TWO = (
    "template <class T> struct sm100_tuning;\n"
    "template <> struct sm100_tuning<int> { static constexpr int nominal = 1; };\n"
    "template <class T> struct sm80_tuning { static constexpr int items = 1; };\n"
    "template <> struct sm90_tuning<int, 1> { static constexpr int items = 2; };\n"
    "template <> struct sm90_tuning<int, 2> { static constexpr int items = 3; };\n"
)


def test_families_are_numbered_through_and_those_that_are_not_named_stay() -> None:
    found = marked(TWO, sm90_tuning="items", sm100_tuning="nominal", sm86_tuning="items")
    assert [(family.name, entry.args) for family, entry in found.entries] == [
        ("sm90_tuning", ("int", "1")),
        ("sm90_tuning", ("int", "2")),
        ("sm100_tuning", ("int",)),
    ]
    assert body_of(found) == (
        "template <class T> struct sm100_tuning;\n"
        f"template <> struct sm100_tuning<int> {{ {HELD}2; static constexpr int nominal = 20480; }};\n"
        "template <class T> struct sm80_tuning { static constexpr int items = 1; };\n"
        f"template <> struct sm90_tuning<int, 1> {{ {HELD}0; static constexpr int items = 4096; }};\n"
        f"template <> struct sm90_tuning<int, 2> {{ {HELD}1; static constexpr int items = 12288; }};\n"
    )


def test_a_family_of_another_namespace_is_another() -> None:
    data = wrap("template <> struct sm90_tuning<int, 1> { static constexpr int items = 2; };")
    header = read_header("tuning_demo.cuh", data)
    found = Specializations.mark(header, data, {("cub::detail::other", "sm90_tuning"): "items"})
    assert (found.data, found.entries) == (data, ())


def test_line_endings_stay() -> None:
    text = "template <> struct sm90_tuning<int, 1>\n{\n  static constexpr int items = 2;\n};"
    with_lf = marked(wrap(text)).data
    with_crlf = marked(wrap(text).replace(b"\n", b"\r\n")).data
    assert with_crlf == with_lf.replace(b"\n", b"\r\n")
    assert with_lf.count(b"policygen_entry") == 1


FOUND = marked(TWO)
MANY = Marked(FOUND.header, b"", FOUND.entries[:1] * 500)


@given(st.integers(0, 499), st.sampled_from([0, 1, 2, 3, 4]), st.sampled_from([1, 2, 4]))
def test_a_mark_survives_scaling(number: int, halvings: int, factor: int) -> None:
    """CUB scales a count by a type's size: at most by 1/4 for 16 bytes, by 4 for one."""
    assert mark(number) % 2**halvings == 0
    assert MANY.entry(mark(number) // 2**halvings * factor) == number


@given(st.integers(0, 499), st.sampled_from([1, 2, 4, 8, 16]))
def test_a_mark_survives_the_scalings_of_cub(number: int, size: int) -> None:
    count = mark(number)
    for items in (
        min(count, max(1, count * 4 // size)),
        max(1, min(count * 4 // size, count * 2)),
        max(1, count * 4 // max(4, size)),
    ):
        assert MANY.entry(items) == number


@pytest.mark.parametrize("items", [0, 1, 24, STEP // 16 - 1, True, -4096, "4096", None, mark(500)])
def test_what_is_no_mark(items: object) -> None:
    assert MANY.entry(items) is None


@pytest.mark.parametrize("items", [1, 7, 24, 64, 128, 255])
def test_a_count_that_a_tuning_can_have_is_no_mark(items: int) -> None:
    assert FOUND.entry(items) is None


def test_an_overlay_stands_under_its_content(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path))
    folder = overlay(FOUND.header.name, FOUND.data)
    written = tmp_path / "overlay"
    (path,) = written.rglob("*.cuh")
    assert path.read_bytes() == FOUND.data
    assert str(path) == f"{folder}/cub/device/dispatch/tuning/tuning_demo.cuh"
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert overlay(FOUND.header.name, FOUND.data) == folder
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    path.write_bytes(b"damaged")
    assert overlay(FOUND.header.name, FOUND.data) == folder
    assert path.read_bytes() == FOUND.data
    assert overlay(FOUND.header.name, FOUND.data + b"\n") != folder


def test_an_overlay_that_cannot_be_written_is_named(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError) as raised:
        overlay(FOUND.header.name, FOUND.data)
    first, second = str(raised.value).splitlines()
    assert first.startswith(f"cannot write {tmp_path}/file/overlay")
    assert first.endswith("Not a directory")
    assert second == "  Set POLICYGEN_CACHE to a folder that can be written."


INSERTED = re.compile(rb" static constexpr int policygen_entry = (\d+);")
WRAPPED = re.compile(rb"::policygen_marks::\w+_of<(.*?), (\d+)>(?=\s*\{)", re.DOTALL)


def unmarked(found: Marked, members: dict[tuple[str, str], str]) -> bytes:
    """The original: every mark belongs to its entry, and taken out leaves what was there."""
    data = WRAPPED.sub(rb"\1", found.data)
    wrapped = {int(match[2]) for match in WRAPPED.finditer(found.data)}
    shift = 0
    for number, (family, entry) in sorted(
        enumerate(found.entries), key=lambda pair: pair[1][1].span.start
    ):
        member = members[family.namespace, family.name]
        start = entry.body_span.start + shift
        told = INSERTED.match(data, start)
        assert told is not None
        assert int(told[1]) == number
        data = data[:start] + data[told.end() :]
        own = next((m for m in entry.members if m.name == member), None)
        inherits = entry.inherits is not None and entry.kind != "primary"
        assert (mark(number) in wrapped) == (own is None and inherits)
        if own is not None:
            text = str(mark(number)).encode()
            at = own.value_span.start + shift
            assert data[at : at + len(text)] == text
            data = data[:at] + own.spelling.encode() + data[at + len(text) :]
            shift += len(own.spelling.encode()) - (own.value_span.end - own.value_span.start)
    return data


def marked_headers(headers: tuple[TuningHeader, ...], root, members):
    for header in headers:
        data = (root / "cub/device/dispatch/tuning" / header.name).read_bytes()
        yield header, data, Specializations.mark(header, data, members)


@pytest.mark.trees
@pytest.mark.parametrize("version", sampled(VERSIONS, "3.0.1"))
def test_every_entry_of_a_real_tree_is_marked_and_nothing_else_changes(version: str) -> None:
    root = cub_tree(version)
    scanned = scan_headers(trees.tuning_headers(trees.open_tree(root)))
    members = marked_members(bound(BoundVersion(version)), "specializations")
    entries = 0
    for header, data, found in marked_headers(scanned.headers, root, members):
        live = [
            (family.name, entry)
            for family in header.families
            if (family.namespace, family.name) in members
            for entry in family.specializations
        ]
        named = [(family.name, entry) for family, entry in found.entries]
        assert [pair for pair in named if pair[1].kind != "primary"] == live
        assert unmarked(found, members) == data
        entries += len(live)
    assert entries > 400


@pytest.mark.trees
@pytest.mark.parametrize("version", ["3.0.1", "3.2.0"])
def test_a_marked_header_reads_as_before_but_for_its_marks(version: str) -> None:
    root = cub_tree(version)
    scanned = scan_headers(trees.tuning_headers(trees.open_tree(root)))
    members = marked_members(bound(BoundVersion(version)), "specializations")
    for header, _, found in marked_headers(scanned.headers, root, members):
        if not found.entries:
            continue
        again = read_header(header.name, found.data)
        after = [e for f in again.families for e in f.entries if "policygen_entry" in e.values]
        before = sorted(enumerate(found.entries), key=lambda pair: pair[1][1].span.start)
        after.sort(key=lambda entry: entry.span.start)
        assert len(after) == len(before)
        for new, (number, (family, old)) in zip(after, before, strict=True):
            member = members[family.namespace, family.name]
            marks = {"policygen_entry": number}
            if member in new.values:
                marks[member] = mark(number)
            assert new.values == old.values | marks
            assert (new.args, new.kind) == (old.args, old.kind)
            assert (old.inherits or "") in (new.inherits or "")


def test_the_miniature_tree_can_be_marked() -> None:
    for path in sorted(MINI.glob("*.cuh")):
        data = path.read_bytes()
        header = read_header(path.name, data)
        members = {(f.namespace, f.name): "items_per_thread" for f in header.families}
        found = Specializations.mark(header, data, members)
        assert unmarked(found, members) == data
