"""Which kernels the reports list, in which order: the options, and the choice by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.config import at_most, flag, one_of
from rpl_core.errors import UsageError
from rpl_core.interfaces.options import CommandOption, OptionForm, SettingKind
from rpl_core.text import counted

if TYPE_CHECKING:
    from rpl_analysis.contracts.profile import KernelProfile
    from rpl_core.interfaces.options import Options

_COMMANDS = ("profile", "analyze", "report")
#: Kernels listed where nobody says how many; the documents hold all.
SHOWN_KERNELS = 5
SORT_KEYS = ("time", "calls", "median", "criticality", "occupancy", "bandwidth", "intensity", "name")
_LONGEST_PATTERN = 1000
#: A shell waits: larger documents complete nothing (chosen).
_LARGEST_PROFILE = 32 << 20


def _pattern(value: Any) -> str:
    text = str(value)
    try:
        if len(text) > _LONGEST_PATTERN:
            raise UsageError(
                f"the expression has {counted(len(text), 'character')}, at most {_LONGEST_PATTERN} are read"
            )
        re.compile(text)
    except re.error as error:
        raise UsageError(f"{text!r} is no regular expression: {error}") from None
    return text


def kernels_of_run(directory: Path) -> list[str]:
    """How the kernels of a run are called, for a shell that completes; nothing where there is no run."""
    from rpl_analysis.text import shown_names
    from rpl_core.files import parse_json, read_regular

    place = directory / "profile.json"
    document = parse_json(read_regular(place, _LARGEST_PROFILE), place)
    return list(shown_names(str(kernel["name"]) for kernel in document["kernels"]).values())


TOP: CommandOption[int] = CommandOption(
    name="top",
    commands=_COMMANDS,
    parse=at_most(1_000_000),
    default=SHOWN_KERNELS,
    help=f"Kernels in the table, default {SHOWN_KERNELS}; see --all.",
    meaning="kernels in the table of the text report",
    metavar="N",
    group="Output",
    setting=True,
    kind=SettingKind.VALUE,
)
ALL: CommandOption[bool] = CommandOption(
    name="all",
    commands=_COMMANDS,
    parse=flag,
    default=False,
    help="All kernels in the table.",
    form=OptionForm.FLAG,
    group="Output",
)
SORT: CommandOption[str] = CommandOption(
    name="sort",
    commands=_COMMANDS,
    parse=one_of(*SORT_KEYS),
    default="time",
    help=f"Order of the kernels: {', '.join(SORT_KEYS)}; largest first.",
    meaning="order of the kernels in the text report",
    metavar="KEY",
    group="Output",
    values=lambda _run: SORT_KEYS,
    setting=True,
    kind=SettingKind.VALUE,
)
KERNEL: CommandOption[str | None] = CommandOption(
    name="kernel",
    commands=_COMMANDS,
    parse=_pattern,
    default=None,
    help="Only kernels whose name holds this regular expression.",
    metavar="REGEX",
    group="Output",
    values=lambda run: [re.escape(name) for name in kernels_of_run(run)],
)
REPORT_OPTIONS: tuple[CommandOption[Any], ...] = (TOP, ALL, SORT, KERNEL)


_Figure = Callable[["KernelProfile"], float | None]
_FIGURES: Mapping[str, _Figure] = {
    "time": lambda k: k.runtime_ms,
    "calls": lambda k: k.launches,
    "median": lambda k: k.median_ns,
    "criticality": lambda k: k.criticality_weight,
    "occupancy": lambda k: k.occupancy.theoretical,
    "bandwidth": lambda k: k.roofline.achieved_gbps if k.roofline else None,
    "intensity": lambda k: k.roofline.operational_intensity if k.roofline else None,
}


def chosen_kernels(
    kernels: Sequence[KernelProfile], names: Mapping[str, str], options: Options
) -> list[KernelProfile]:
    """Those that ``--kernel`` keeps, by their recorded or shown name, in the order of ``--sort``.

    Kernels without the figure come last; equal ones keep the document's order, which is by time.
    """
    pattern = re.compile(options[KERNEL] or "")
    chosen = [k for k in kernels if pattern.search(k.name) or pattern.search(names.get(k.name, ""))]
    if options[SORT] == "name":
        return sorted(chosen, key=lambda kernel: names.get(kernel.name, kernel.name))
    figure = _FIGURES[options[SORT]]

    def rank(kernel: KernelProfile) -> tuple[bool, float]:
        value = figure(kernel)
        return value is None, -(value or 0.0)

    return sorted(chosen, key=rank)
