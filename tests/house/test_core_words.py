"""The core knows no counter, format, GPU, compiler or plugin; analyses and reports no GPU and no counter."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCKS = "SQC?|TCC|TCP|TCA|TD|TA|GRBM|SPI|CPC|CPF|GL2C|GL1C|GCEA|EA"
_GPU = r"gfx\w*|cdna\d?|rdna\d?|mi[1-3]\d\d\w*|radeon|instinct|navi\d+|vega\d+|h[12]00|sm_?\d\d"
_TOOLS = (
    r"hip|hipcc|clang|llvm|gcc|nvcc|triton|rocprof\w*|rocpd\w*|rpd|att|hsa|rocm|cuda|nvidia"
    r"|csv|sqlite\w*|elf|perfetto|otf2|parquet"
)
#: The name of this project.
_OURS = re.compile("ROCm Perf Lab|rocm-perf(-lab)?")
_WORD = re.compile(r"\w+", re.ASCII)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ABOVE = ("rpl_analysis", "rpl_report", "rpl_measure", "rpl_compare", "rpl_optimize", "rpl_autotune")

#: Every distribution but the core.
_PLUGINS = {*(path.name for path in (ROOT / "plugins").glob("rpl_*")), "rpl_native", "rocm_perf_lab"}


def _folded(node: ast.AST) -> str:
    """What is known of a text that the program puts together; a gap for what is not."""
    if isinstance(node, ast.Constant):
        return node.value.decode("latin-1") if isinstance(node.value, bytes) else str(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _folded(node.left) + _folded(node.right)
    if isinstance(node, ast.JoinedStr):
        return "".join(_folded(value) for value in node.values)
    return _folded(node.value) if isinstance(node, ast.FormattedValue) else " "


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """The file's name, its lines, and the texts that its code makes: identifiers, strings, comments."""
    text = path.read_text(encoding="utf-8")
    yield 0, path.name
    yield from enumerate(text.splitlines(), 1)
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Constant, ast.BinOp, ast.JoinedStr)):
                yield node.lineno, _folded(node)


def _offences(folder: Path, pattern: str, names: Collection[str] = ()) -> list[str]:
    """Whole words, those inside of snake_case and CamelCase too, in code and in the data beside it."""
    banned = re.compile(rf"(?:\A|_)(?:{pattern})(?:_|\Z)", re.IGNORECASE)
    counter = re.compile(rf"(?:\A|_)(?:{_BLOCKS})_[A-Z0-9]")
    return [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
        for line, text in _texts(path)
        for word in _WORD.findall(_OURS.sub("", text))
        if banned.search(_CAMEL.sub("_", word)) or counter.search(word) or word in names
    ]


def test_the_core_names_no_counter_format_gpu_compiler_or_plugin():
    assert _offences(ROOT / "rpl_core", f"{_GPU}|{_TOOLS}", _PLUGINS) == []


@pytest.mark.parametrize("package", _ABOVE)
def test_no_gpu_and_no_counter_above_the_core(package):
    assert _offences(ROOT / "plugins" / package / "src", _GPU) == []


@pytest.mark.parametrize("package", _ABOVE)
def test_thread_traces_are_named_by_their_plugin_alone(package):
    """The documented block ``att`` of profile.json is the one exception: a field of its contract."""
    named = _offences(ROOT / "plugins" / package / "src", r"att|rpl_att")
    contract = re.compile(r"plugins/rpl_analysis/src/rpl_analysis/contracts/(shapes/)?profile\.\w+:")
    assert [offence for offence in named if not contract.match(offence)] == []
