"""A report read with the standard library's HTML parser: elements, attributes and text, no scripts."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

_VOID = {"meta", "link", "br", "input", "img", "hr"}


class Element:
    """``text`` is that of the element and everything in it."""

    def __init__(self, tag: str, attributes: dict[str, str | None], parent: Element | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[Element] = []
        self.text = ""

    def find_all(self, tag: str, **wanted: str) -> list[Element]:
        """Descendants of this tag with these attributes (``cls`` stands for class)."""
        wanted = {("class" if key == "cls" else key): value for key, value in wanted.items()}
        found = []
        for child in self.children:
            if child.tag == tag and all(
                value in (child.attributes.get(key) or "").split() for key, value in wanted.items()
            ):
                found.append(child)
            found += child.find_all(tag, **{("cls" if k == "class" else k): v for k, v in wanted.items()})
        return found

    def by_id(self, identity: str) -> Element:
        for child in self.children:
            if child.attributes.get("id") == identity:
                return child
            try:
                return child.by_id(identity)
            except KeyError:
                continue
        raise KeyError(identity)

    def all(self) -> list[Element]:
        return [each for child in self.children for each in (child, *child.all())]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.current = Element("root", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs), self.current)
        self.current.children.append(element)
        if tag not in _VOID:
            self.current = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.current.children.append(Element(tag, dict(attrs), self.current))

    def handle_endtag(self, tag: str) -> None:
        if self.current.tag != tag:
            raise AssertionError(f"</{tag}> closes <{self.current.tag}> at {self.getpos()}")
        assert self.current.parent is not None
        self.current = self.current.parent

    def handle_data(self, data: str) -> None:
        element: Element | None = self.current
        while element is not None:
            element.text += data
            element = element.parent


def parse(path: Path) -> Element:
    """The tree; elements that do not nest are an error."""
    parser = _Parser()
    parser.feed(path.read_text(encoding="utf-8"))
    parser.close()
    assert parser.current is parser.root, f"<{parser.current.tag}> is not closed"
    return parser.root
