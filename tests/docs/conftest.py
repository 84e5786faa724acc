"""Pages as data: their code blocks, tables and links, and the texts of the code that they speak about."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[2]
_META = (ROOT / "metapackage" / "pyproject.toml").read_text(encoding="utf-8")
#: The plugins that belong to a release: those that the metapackage depends on.
PLUGINS = tuple(
    ROOT / "plugins" / name.replace("-", "_")
    for name in sorted(set(re.findall(r'"(rpl-[\w-]+)', _META)) - {"rpl-core"})
)
SOURCES = (ROOT / "rpl_core", *(plugin / "src" for plugin in PLUGINS))
GAP = "\0"

_FENCE = re.compile(r"^```(\w*)\s*$")
_MARKER = re.compile(r"^<!-- (run|check)(?:: (\w+))? -->$")
_EXITS = re.compile(r"#.*\bexit ([\d or]+)")


@attrs.frozen
class Command:
    """A line that begins with ``$``: its words, and the exit codes that its comment announces."""

    words: tuple[str, ...]
    exits: frozenset[int]


@attrs.frozen
class Block:
    """A fenced block: ``marker`` is "run", "check" or "", ``need`` what it needs from outside."""

    language: str
    marker: str
    need: str | None
    lines: tuple[str, ...]

    @property
    def commands(self) -> tuple[Command, ...]:
        return tuple(_command(line[2:]) for line in self.lines if line.startswith("$ "))


def _command(line: str) -> Command:
    words = shlex.split(line, comments=True)
    found = _EXITS.search(line)
    exits = {int(code) for code in found[1].split(" or ")} if found else {0}
    return Command(tuple(words), frozenset(exits))


def parse_blocks(page: Path) -> tuple[Block, ...]:
    blocks: list[Block] = []
    marker, need, language = "", None, None
    lines: list[str] = []
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = _FENCE.match(line.strip())
        if language is None and fence:
            language, lines = fence[1], []
        elif language is not None and line.strip() == "```":
            blocks.append(Block(language, marker, need, tuple(lines)))
            marker, need, language = "", None, None
        elif language is not None:
            lines.append(line.strip())
        elif found := _MARKER.match(line):
            marker, need = found[1], found[2]
    return tuple(blocks)


def table_rows(page: Path, *columns: str) -> list[list[str]]:
    """The rows of the one table of ``page`` whose header is ``columns``."""
    lines = page.read_text(encoding="utf-8").splitlines()
    cells = [_cells(line) if line.startswith("|") else None for line in lines]
    starts = [i for i, row in enumerate(cells) if row == list(columns)]
    assert len(starts) == 1, f"{page.name} has {len(starts)} tables with the columns {columns}"
    rows = []
    for row in cells[starts[0] + 2 :]:
        if row is None:
            break
        rows.append(row)
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def code_spans(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


def syntax_trees() -> Iterator[tuple[Path, ast.Module]]:
    for folder in SOURCES:
        for path in sorted(folder.rglob("*.py")):
            if "testing" not in path.parts and "rocpd_writer" not in path.parts:
                yield path, ast.parse(path.read_text(encoding="utf-8"))


def template(node: ast.expr) -> str | None:
    """A string expression with ``GAP`` for whatever is filled in; ``None`` for other expressions."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template(node.left), template(node.right)
        return None if left is None and right is None else (left or GAP) + (right or GAP)
    return None


_CPP_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)+)"')


@cache
def string_templates() -> tuple[str, ...]:
    found = {template(n) for _, tree in syntax_trees() for n in ast.walk(tree) if isinstance(n, ast.expr)}
    sources = [path.read_text("utf-8") for path in (ROOT / "native").rglob("*.cpp")]
    native = {text for source in sources for text in _CPP_TEXT.findall(source)}
    return tuple(sorted(text for text in found | native if text))


def pages() -> tuple[Path, ...]:
    """All pages of this documentation, those that others generate included."""
    roots = [
        ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md")
    ]
    return (*roots, *sorted((ROOT / "docs").rglob("*.md")), *(plugin / "README.md" for plugin in PLUGINS))


@attrs.frozen
class Documentation:
    """What the tests of this folder ask of the pages."""

    root: Path = ROOT
    plugins: tuple[Path, ...] = PLUGINS

    def page(self, name: str) -> Path:
        return self.root / name

    @property
    def pages(self) -> tuple[Path, ...]:
        return pages()

    def blocks(self, page: Path) -> tuple[Block, ...]:
        return parse_blocks(page)

    def rows(self, name: str, *columns: str) -> list[list[str]]:
        return table_rows(self.page(name), *columns)

    def spans(self, text: str) -> list[str]:
        return code_spans(text)

    def templates(self) -> tuple[str, ...]:
        return string_templates()

    def trees(self) -> Iterable[tuple[Path, ast.Module]]:
        return syntax_trees()

    def template(self, node: ast.expr) -> str | None:
        return template(node)


@pytest.fixture(scope="session")
def documentation() -> Documentation:
    return Documentation()
