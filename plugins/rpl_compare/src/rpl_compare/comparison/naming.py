"""How the items of a comparison are called: the same in tables, sentences and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.distinct import shorten_apart
from rpl_analysis.text.names import shown_names
from rpl_core.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["APPLICATION_TIMES", "item_name", "kernel_names", "one_line"]

_NAME_WIDTH = 56
#: By kind of item.
APPLICATION_TIMES = {
    "runtime": "application: kernel time",
    "makespan": "application: makespan",
    "critical_path": "application: critical path",
    "process_time": "application: process time",
}


def one_line(text: str) -> str:
    """Names from recordings may hold anything; a row of a table stays a row."""
    return printable(text.replace("\n", "\\n").replace("\t", "\\t"))


def kernel_names(recorded: Iterable[str], form: str = "short") -> dict[str, str]:
    """By recorded name, on one line, different ones apart: give all kernels of both sides."""
    shown = shown_names(recorded, form)
    short = shorten_apart(map(one_line, shown.values()), _NAME_WIDTH)
    return {name: short[one_line(text)] for name, text in shown.items()}


def item_name(kind: str, name: str, kernels: Mapping[str, str]) -> str:
    """Application times in words, kernels as they are called on both sides."""
    return APPLICATION_TIMES.get(kind) or kernels.get(name, one_line(name))
