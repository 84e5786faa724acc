"""Names from recordings on the page: safe to read, short where space is short, in full exactly once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import attrs
from markupsafe import escape

from rpl_core.text.distinct import shorten_apart
from rpl_core.text.safety import encodable, printable, shorten

__all__ = ["DETAILED_KERNELS", "SHOWN_KERNELS", "KernelNames", "base_name", "kernel_names", "readable"]

#: Kernels with a row and details of their own (chosen); the documents hold all.
SHOWN_KERNELS = 200
#: Kernels whose figures are all listed (chosen: 6 KB each).
DETAILED_KERNELS = 60
#: Characters of a name that the page shows in full, and of the markup of all names (chosen for its size).
_LONGEST_NAME = 4096
_ALL_NAMES = 600_000
_SHORT = 64
_OWN = 32
_NO_NAME = "(no name)"


def readable(text: str, width: int | None = None) -> str:
    """``text`` without control characters or broken encoding, cut in the middle to ``width``."""
    safe = printable(encodable(text)).replace("\n", "\\n").replace("\t", "\\t")
    return safe if width is None else shorten(safe, width)


@attrs.frozen
class KernelNames:
    """Kernels of the page: ``ids`` by recorded name, in order of rank; how often each own name occurs."""

    ids: dict[str, str]
    full: dict[str, str]
    apart: dict[str, str]
    own_names: Counter[str]

    def short(self, name: str) -> str:
        """For tables and legends: different kernels of the page read differently."""
        text = readable(name)
        return self.apart.get(text) or readable(text, _SHORT) or _NO_NAME

    def plain(self, name: str) -> str:
        """For sentences: the function's own name where no other kernel has it too."""
        own = base_name(readable(name))
        return own if self.own_names[own] == 1 else self.short(name)

    def of(self, name: str) -> str | None:
        """The id of the kernel's place on the page, if it has one."""
        return self.ids.get(name)


def kernel_names(names: Iterable[str]) -> KernelNames:
    """Give the first kernels their ids; names beyond the budget stay shortened everywhere."""
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
    texts = [readable(name) for name in ids]
    return KernelNames(ids, full, shorten_apart(texts, _SHORT), Counter(map(base_name, texts)))


def base_name(name: str) -> str:
    """The function's own name: without return type, scope, template arguments and parameters."""
    head = re.split(r"[<(\[]", name, maxsplit=1)[0].strip()
    return shorten(re.split(r"[\s:]+", head)[-1] or name, _OWN)
