"""How a kernel is recognised all over the page: its rank, its id, its names and its colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from markupsafe import escape

from rpl_analysis.text.figures import work_name
from rpl_analysis.text.names import shorten_apart
from rpl_core.text.safety import readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument

__all__ = [
    "DETAILED_KERNELS",
    "SHOWN_KERNELS",
    "Colours",
    "KernelNames",
    "assign_colours",
    "by_time",
    "kernel_names",
    "label_text",
    "time_ns",
    "time_shares",
]

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
