"""Entries below a heading stay together, and a new one goes below the heading that is its own."""

import pytest

from policygen.headers.comments import Surroundings
from policygen.headers.scan import read_header
from policygen.headers.specializations.entry_edits import (
    Headed,
    Writer,
    find_sections,
    heading_like,
)
from policygen.headers.text import Text
from policygen.model.records import Span
from policygen.model.tuning import Content, NewEntry
from tests.headers.edited import VERSIONS, entry_of, inserted, real, reread
from tests.headers.headers import wrap
from tests.headers.test_entry_edits import ITEMS, body_of, lined
from tests.tiers import sampled

KEPT = Content("empty")


@pytest.mark.trees
@pytest.mark.parametrize("version", sampled(VERSIONS, "3.0.1"))
def test_an_entry_of_cub_would_go_back_below_its_heading(version):
    written = 0
    for header, data in real(version):
        text = Text(header.name, data)
        for family in header.families:
            sections = find_sections(text, Surroundings(text), family)
            for number, section in enumerate(sections):
                end = sections[number + 1].heading.start if section != sections[-1] else len(data)
                for entry in section.entries if len(section.entries) > 1 else ():
                    rest = tuple(other for other in family.entries if other is not entry)
                    left = family.model_copy(update={"entries": rest})
                    at, _ = Writer(header, text).insertion(left, NewEntry(entry.slots, KEPT))
                    assert section.heading.end < at < end
                    written += 1
    assert written >= 290


SIZES = {0: 1, 1: 2}


@pytest.mark.parametrize(
    ("texts", "size", "expected"),
    [
        (("8-bit key", "16-bit key"), 16, "128-bit key"),
        (("key_size = 8 bits", "key_size = 16 bits"), 4, "key_size = 32 bits"),
        (("pairs 1-byte key", "pairs 2-byte key"), 16, "pairs 16-byte key"),
        (("pairs  8:xx", "pairs 16:xx"), 4, "pairs 32:xx"),
        (("pairs  8:xx", "pairs 16:xx"), 16, "pairs 128:xx"),
        (("small keys", "16-bit key"), 4, None),
        (("8-bit key", "16-bit value"), 4, None),
        (("8-bit key, 1", "16-bit key, 2"), 4, None),
        (("8-bit key", "32-bit key"), 4, None),
    ],
)
def test_a_heading_for_another_size_is_like_those_that_are_there(texts, size, expected):
    found = [Headed(Span(0, 0), text, ()) for text in texts]
    assert heading_like(found, SIZES, size) == expected


def test_one_heading_alone_does_not_tell_what_its_number_is():
    assert heading_like([Headed(Span(0, 0), "8-bit key", ())], {0: 1}, 2) is None


def entry(type_, size):
    return (
        f"template <>\nstruct sm90_tuning<{type_}, {size}>\n{{\n"
        "  static constexpr int items = 8;\n};"
    )


EIGHT = f"// 8-bit\n{entry('char', 1)}\n\n{entry('bool', 1)}"
SIXTEEN = f"// 16-bit\n{entry('char', 2)}\n\n// todo: tune\n#if 0\n// template\n#endif"
NEW = Content("values", ITEMS)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param(
            "4", f"{EIGHT}\n\n{SIXTEEN}\n\n// 32-bit\n{entry('int', 4)}", id="behind what is off"
        ),
        pytest.param(
            "0", f"\n\n// 0-bit\n{entry('int', 0)}\n\n{EIGHT}\n\n{SIXTEEN}", id="before all others"
        ),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_section_that_is_new_has_a_heading(size, expected, ending):
    data = lined(wrap(f"{EIGHT}\n\n{SIXTEEN}").decode(), ending).encode()
    header = read_header("tuning_demo.cuh", data)
    (family,) = header.families
    after = inserted(header, data, family, NewEntry(("int", size), NEW))
    assert entry_of(reread(header, after), family, ("int", size)).values == {"items": 8}
    assert body_of(after, ending).lstrip("\n") == expected.lstrip("\n")
