"""The core knows no counter, format, GPU, compiler or plugin; analyses and reports no GPU and no counter."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_GPU = r"gfx\w*|cdna\d?|rdna\d?|mi[23]\d\d\w*|sq_\w+|tcc_\w+|tcp_\w+|grbm_\w+|ta_\w+|spi_\w+"
_TOOLS = r"hip|hipcc|clang|rocprof\w*|rocpd\w*|rpd|att|hsa|rocm|cuda"
#: The name of this project.
_OURS = re.compile("ROCm Perf Lab|rocm-perf(-lab)?")
_PLUGINS = (
    "rpl_(?:analysis|report|compare|codeobject|optimize|autotune|rocprofv3|gfx[0-9a-f]+|amdgpu|att"
    "|llm_unroll|transforms|testkit)"
)


def _words(path: Path) -> list[tuple[int, str]]:
    """Whole words of identifiers and strings (docstrings and comments left out), with their lines."""
    text = _OURS.sub("", path.read_text())
    docstrings = _docstring_lines(ast.parse(text))
    words = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            words += [(token.start[0], word) for word in (token.string, *token.string.split("_"))]
        elif token.type == tokenize.STRING and token.start[0] not in docstrings:
            words += [(token.start[0], word) for word in re.findall(r"[A-Za-z][A-Za-z0-9_]*", token.string)]
            words += [(token.start[0], w) for w in re.findall(r"[A-Za-z0-9]+", token.string)]
    return words


def _docstring_lines(tree: ast.Module) -> set[int]:
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines.add(first.lineno)
    return lines


def _offences(folder: Path, pattern: str) -> list[str]:
    banned = re.compile(rf"(?:{pattern})\Z", re.IGNORECASE)
    return [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in sorted(folder.rglob("*.py"))
        for line, word in _words(path)
        if banned.match(word)
    ]


def test_the_core_names_no_counter_format_gpu_compiler_or_plugin():
    assert _offences(ROOT / "rpl_core", f"{_GPU}|{_TOOLS}|{_PLUGINS}") == []


def test_not_even_in_comments():
    banned = re.compile(rf"(?<![\w-])(?:{_GPU}|{_TOOLS}|{_PLUGINS})(?!\w)", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in sorted((ROOT / "rpl_core").rglob("*.py"))
        for number, line in enumerate(_OURS.sub("", path.read_text()).splitlines(), 1)
        for match in banned.finditer(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "package", ["rpl_analysis", "rpl_report", "rpl_compare", "rpl_optimize", "rpl_autotune"]
)
def test_no_gpu_and_no_counter_above_the_core(package):
    assert _offences(ROOT / "plugins" / package / "src", _GPU) == []


@pytest.mark.parametrize(
    "package", ["rpl_analysis", "rpl_report", "rpl_compare", "rpl_optimize", "rpl_autotune"]
)
def test_thread_traces_are_named_by_their_plugin_alone(package):
    """The documented block ``att`` of profile.json is the one exception: a field of its contract."""
    named = _offences(ROOT / "plugins" / package / "src", r"att|rpl_att")
    contract = "plugins/rpl_analysis/src/rpl_analysis/contracts/profile.py"
    assert [offence for offence in named if not offence.startswith(contract)] == []


def test_the_core_stays_small():
    lines = {path: path.read_text().count("\n") for path in (ROOT / "rpl_core").rglob("*.py")}
    assert sum(lines.values()) < 10_000
