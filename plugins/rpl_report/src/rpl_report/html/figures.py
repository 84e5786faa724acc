"""How figures and kernels look in HTML: units, a dash for the unknown; names, ids and colours of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

from markupsafe import escape

from rpl_analysis.text import UNKNOWN, in_unit, number, one_unit, shorten_apart, work_name
from rpl_core.text import readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument

#: The filters of the page's templates.
__all__ = [
    "bytes_per_s",
    "count",
    "duration",
    "factor",
    "flops",
    "intensity",
    "plain",
    "share",
    "table_time",
    "table_unit",
]

_PREFIXES = ((1e6, "P"), (1e3, "T"), (1.0, "G"), (1e-3, "M"), (1e-6, "k"))


def duration(ns: float | None, total_ns: float | None = None) -> str:
    """A duration with a real micro sign, as a part of ``total_ns`` in the unit of that."""
    if ns is None:
        return UNKNOWN
    with one_unit(total_ns) if total_ns is not None else nullcontext():
        value, unit = in_unit(ns)
    return f"{_digits(value)} {_shown_unit(unit)}"


def table_unit(longest_ns: float | None) -> str:
    """The unit of all times of a table whose longest is this; its header tells it, its cells don't."""
    with _unit_of_table(longest_ns):
        return _shown_unit(in_unit(0)[1])


def table_time(ns: float | None, longest_ns: float | None) -> str:
    """A time in the unit of its table."""
    if ns is None:
        return UNKNOWN
    with _unit_of_table(longest_ns):
        return _digits(in_unit(ns)[0])


def _unit_of_table(longest_ns: float | None) -> AbstractContextManager[None]:
    """The longest time is 10 or more of the unit: what is a thousandth of it still has a narrow cell."""
    return one_unit(None if longest_ns is None else longest_ns / 10)


def _shown_unit(unit: str) -> str:
    return unit.replace("u", "µ")


def flops(gflops: float | None) -> str:
    """10^9 operations per second with the fitting prefix."""
    return _scaled(gflops, "FLOP/s")


def bytes_per_s(gbps: float | None) -> str:
    """10^9 bytes per second with the fitting prefix."""
    return _scaled(gbps, "B/s")


def intensity(value: float | None) -> str:
    """FLOP per byte."""
    return plain(value)


def share(value: float | None, digits: int = 1) -> str:
    """A fraction of 1 as percent."""
    return UNKNOWN if value is None else f"{value * 100:.{digits}f} %"


def factor(value: float | None) -> str:
    """A speed-up; ``None`` is no limit."""
    if value is None:
        return "∞"
    return f"{value:.2f}×" if value < 10 else f"{value:.3g}×"


def count(value: float | None) -> str:
    """A number of things, with thin spaces between thousands."""
    if value is None:
        return UNKNOWN
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    return text.replace(",", "\N{NARROW NO-BREAK SPACE}")


def plain(value: float | None) -> str:
    """A number without unit."""
    if value is None:
        return UNKNOWN
    if value and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.3g}"
    return _digits(value)


def _scaled(value: float | None, unit: str) -> str:
    """``value`` is in units of 10^9."""
    if value is None:
        return UNKNOWN
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{_digits(value / size)} {prefix}{unit}"
    return f"{_digits(value * 1e9)} {unit}"


def _digits(value: float) -> str:
    """Four significant digits below 1000, whole numbers above."""
    return number(value).replace(",", "\N{NARROW NO-BREAK SPACE}")


# How a kernel is recognised all over the page: its rank, its id, its names and its colour.


#: Kernels with a row and details of their own (chosen); the documents hold all.
SHOWN_KERNELS = 200
#: Kernels whose figures are all listed (chosen: 6 KB each).
DETAILED_KERNELS = 60
#: Characters of a name that the page shows in full, and of the markup of all names (chosen for its size).
_LONGEST_NAME = 4096
_ALL_NAMES = 600_000
_SHORT = 64
_NO_NAME = "(no name)"
#: Distinct colours in the style sheet (``--c0`` to ``--c7``: Okabe and Ito's set, told apart with every
#: common colour vision deficiency); ``c8`` stands for copies, ``c9`` for all other kernels.
COLOURS = 8
COPY = 8
OTHER = 9


def label_text(label: str) -> str:
    """A bottleneck label in words; one of a plugin (``plugin:label``) stays as it is."""
    return readable(label if ":" in label else label.replace("_", " "), 80)


def by_time(profile: ProfileDocument) -> list[KernelProfile]:
    """Ties keep the document's order."""
    return sorted(profile.kernels, key=lambda kernel: -(kernel.runtime_ms or 0.0))


def time_ns(kernel: KernelProfile) -> float | None:
    return None if kernel.runtime_ms is None else kernel.runtime_ms * 1e6


def time_shares(profile: ProfileDocument) -> dict[str, float]:
    """Share of kernel time by name, 0 where it is unknown."""
    return {kernel.name: kernel.time_share or 0.0 for kernel in profile.kernels}


@frozen
class KernelNames:
    """Kernels of the page: ``ids`` by recorded name, in order of rank; ``apart``: how they are called."""

    ids: dict[str, str]
    full: dict[str, str]
    apart: dict[str, str]

    def short(self, name: str) -> str:
        """Everywhere but in a kernel's own details: different kernels of the page read differently."""
        return self.apart.get(name) or readable(name, _SHORT) or _NO_NAME

    def work(self, name: str, kind: str) -> str:
        """The short name of a kernel, words for a copy direction."""
        return readable(work_name(name, kind), _SHORT) if kind == "copy" else self.short(name)

    def of(self, name: str) -> str | None:
        """The id of the kernel's place on the page, if it has one."""
        return self.ids.get(name)


def kernel_names(names: Iterable[str], shown: Mapping[str, str]) -> KernelNames:
    """Give the first kernels their ids; names beyond the budget stay shortened everywhere.

    ``shown`` says how kernels are called in the whole document, by recorded name.
    """
    ids: dict[str, str] = {}
    full: dict[str, str] = {}
    left = _ALL_NAMES
    for name in names:
        if len(ids) == SHOWN_KERNELS:
            break
        if name in ids:
            continue
        ids[name] = f"kernel-{len(ids) + 1}"
        text = readable(name, _LONGEST_NAME)
        if len(escape(text)) > left:
            text = readable(name, _SHORT)
        left -= len(escape(text))
        full[name] = text or _NO_NAME
    short = shorten_apart(shown.values(), _SHORT)
    return KernelNames(ids, full, {name: short[text] for name, text in shown.items()})


@frozen
class Colours:
    """Colour numbers by recorded name."""

    by_name: dict[str, int]

    def of(self, name: str, kind: str = "kernel") -> int:
        return COPY if kind == "copy" else self.by_name.get(name, OTHER)


def assign_colours(ranked: Iterable[str]) -> Colours:
    """The first kernels of ``ranked`` get a colour of their own."""
    names = list(dict.fromkeys(ranked))[:COLOURS]
    return Colours({name: number for number, name in enumerate(names)})
