"""Links between pages lead somewhere: to a file that exists and to a heading that it has."""

from __future__ import annotations

import re
from pathlib import Path

LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_internal_links_exist(documentation):
    broken, checked = [], 0
    for page in documentation.pages:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            if "://" in target or target.startswith("mailto:"):
                continue
            checked += 1
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists() or (anchor and anchor not in _anchors(file)):
                broken.append(f"{page.relative_to(documentation.root)}: {target}")
    assert checked > 40
    assert broken == []


def test_every_page_is_reachable_from_the_index(documentation):
    text = documentation.page("docs/index.md").read_text(encoding="utf-8")
    linked = {(documentation.root / "docs" / target).resolve() for target in LINK.findall(text)}
    pages = set((documentation.root / "docs").glob("*.md")) - {documentation.page("docs/index.md")}
    assert pages - linked == set()


def test_pages_name_no_machine(documentation):
    """Paths of a developer's machine have no place in a page."""
    for page in documentation.pages:
        found = re.findall(r"/(?:home|work|root|Users)/\S+", page.read_text(encoding="utf-8"))
        assert found == [], page
