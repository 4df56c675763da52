"""What a page is made of, as a parser reads it: elements with attributes, and where they stand."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "input", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    inside: "tuple[Element, ...]"
    text: list[str] = field(default_factory=list)

    def within(self, **wanted: str) -> bool:
        """Whether it stands in an element with such attributes."""
        return any(
            all(one.attributes.get(name) == value for name, value in wanted.items())
            for one in self.inside
        )

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


class Structure(HTMLParser):
    """All elements, in their order; a page whose tags are not closed fails."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        one = Element(tag, dict(attrs), tuple(self.open))
        self.elements.append(one)
        if tag not in VOID:
            self.open.append(one)

    def handle_endtag(self, tag):
        assert self.open.pop().tag == tag

    def handle_data(self, data):
        for one in self.open:
            one.text.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        return [
            one
            for one in self.elements
            if one.tag == tag
            and all(one.attributes.get(name) == value for name, value in attributes.items())
        ]

    def of(self, name: str) -> list[str]:
        """The values of an attribute."""
        return [value for one in self.elements if (value := one.attributes.get(name)) is not None]


def check_links(page: Structure) -> None:
    """Identifiers are there once, and each link leads to one."""
    ids = page.of("id")
    assert len(ids) == len(set(ids))
    assert all(link.startswith("#") and link[1:] in set(ids) for link in page.of("href"))


SVG = "{http://www.w3.org/2000/svg}"


def marks(drawing: ElementTree.Element, tag: str, *looks: str) -> list[ElementTree.Element]:
    """Elements of a drawing that have such a tag and all of these looks."""
    return [
        one for one in drawing.iter(f"{SVG}{tag}") if set(looks) <= {*one.get("class", "").split()}
    ]


def panels(svg: bytes) -> list[tuple[float, float, ElementTree.Element]]:
    """Where the drawings of a file begin, and they themselves."""
    parts = []
    for part in marks(ElementTree.fromstring(svg), "g"):
        match = re.fullmatch(r"translate\((\S+) (\S+)\)", part.get("transform", ""))
        assert match
        parts.append((float(match[1]), float(match[2]), part))
    return parts
