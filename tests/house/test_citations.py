"""Whatever page code, settings and documentation cite, a reader of this repository can open it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: What is built or fetched, and the folder of this test, which speaks of pages that don't exist.
_NOT_OURS = {".venv", ".git", "node_modules", ".pytest_cache", "__pycache__", "rpl-runs", "dist", "build"}
_SUFFIXES = {".py", ".toml", ".md", ".j2", ".ts", ".js", ".css", ".h", ".c", ".cpp", ".hip", ".sh", ".txt"}

_PAGE = re.compile(r"(?<![\w/])(?:\.{1,2}/)*[\w{][\w./{}-]*\.md\b")
#: Parts of paths that code puts together, and links in generated text, which tests of the pages follow.
_PUT_TOGETHER = re.compile(r"""/ ["']$|\]\($|\[$""")
#: Pages of other projects are cited with the commit or repository that they are of.
_OTHER_PROJECT = re.compile(r"@[0-9a-f]{7,40}\s|https?://\S*$|\b[\w-]+/[\w.-]+,? (?:commit |@)")
#: Pages that list their sources by short names, which a table at their head explains.
_SOURCES_BY_NAME = ROOT / "docs" / "reference"
#: Where builds put pages of ours: into the wheel of the core, and onto the site.
_BUILT = ("rpl_core/pages/", "project/")
_NUMBERED = re.compile(r"(docs/reference/[\w-]+\.md), (?:section )?(\d+(?:\.\d+)*)")


@cache
def _files() -> tuple[tuple[Path, str], ...]:
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = set(path.relative_to(ROOT).parts)
        if path.suffix in _SUFFIXES and path.is_file() and not parts & _NOT_OURS and path != Path(__file__):
            # Citations break over lines of comments; they are read as one line.
            text = re.sub(r"\n[ \t]*(?:#:? ?|\* |//+ ?)?", " ", path.read_text(encoding="utf-8"))
            found.append((path, text))
    return tuple(found)


def _cited(path: Path, text: str) -> Iterator[str]:
    for match in _PAGE.finditer(text):
        if path.suffix == ".py" and _PUT_TOGETHER.search(text[: match.start()][-4:]):
            continue
        if not _OTHER_PROJECT.search(text[max(0, match.start() - 90) : match.start()]):
            yield match[0]


def _exists(path: Path, page: str) -> bool:
    """From the root, or relative to the citing file; names in pages also among the pages beside them."""
    places = [ROOT, path.parent, *([ROOT / "docs"] if path.suffix == ".md" else [])]
    return "{" in page or page.startswith(_BUILT) or any((place / page).is_file() for place in places)


def test_every_page_that_is_cited_exists():
    absent = [
        f"{path.relative_to(ROOT)}: {page}"
        for path, text in _files()
        if path.parent != _SOURCES_BY_NAME
        for page in _cited(path, text)
        if not _exists(path, page)
    ]
    assert absent == []


def test_every_numbered_section_that_is_cited_exists():
    lacking, seen = [], 0
    for path, text in _files():
        for page, number in _NUMBERED.findall(text):
            seen += 1
            headings = (ROOT / page).read_text(encoding="utf-8") if (ROOT / page).is_file() else ""
            if not re.search(rf"^#+ {re.escape(number)}\.? ", headings, re.MULTILINE):
                lacking.append(f"{path.relative_to(ROOT)}: {page}, {number}")
    assert lacking == []
    assert seen


def test_no_citation_of_what_only_the_authors_have():
    """Numbers of sections of unnamed documents are no source that a reader can open."""
    unnamed = re.compile(
        r"\bDESIGN, (?:section|principle)|\b(?:rocpd|[Dd]evice|att) reference,? \(?\d|PRODUCTION_MANUAL"
    )
    assert [str(path.relative_to(ROOT)) for path, text in _files() if unnamed.search(text)] == []
