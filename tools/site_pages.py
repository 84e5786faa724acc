"""Hooks of mkdocs: pages at the root of the repository join those of ``docs/``, and links follow them.

In the repository they link to each other as files; on the site the root's pages stand under ``project/``.
What is no page (sources, examples, the licence) has no place on the site, so a link to it becomes its text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"(!?)\[([^\]]+)\]\(([^)\s]+)\)")
#: File of the repository -> page of the site.
ADDED = {
    **{f"{name}.md": f"project/{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")},
    "skills/rocm-perf-lab/references/cli.md": "project/commands.md",
}
_FILE_OF = {page: file for file, page in ADDED.items()}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the root's pages."""
    for file, page in ADDED.items():
        files.append(File.generated(config, page, content=(ROOT / file).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Links between files of the repository as links between pages."""
    here = page.file.src_uri
    file = _FILE_OF.get(here, f"docs/{here}")

    def linked(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        name, mark, anchor = target.partition("#")
        if "://" in target or not name:
            return match[0]
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
        found = ADDED.get(meant) or meant.removeprefix("docs/")
        if meant.startswith("docs/") or meant in ADDED:
            return (
                f"{picture}[{text}]({posixpath.relpath(found, posixpath.dirname(here) or '.')}{mark}{anchor})"
            )
        return text if (ROOT / meant).exists() else match[0]

    return _LINK.sub(linked, markdown)
