"""Which launches a counter run keeps: --kernel-include-regex, -exclude-regex and -iteration-range.

Filters act on the display name and on counters only, never on the kernel trace
(docs/reference/formats.md, 4.2).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["kernel_filter"]


def kernel_filter(options: Mapping[str, Any]) -> Callable[[str, int], bool]:
    """Return `selects(kernel name, n-th launch of it from 1)`. ValueError for a bad range."""
    include = re.compile(options.get("kernel_include_regex") or "")
    pattern = options.get("kernel_exclude_regex")
    exclude = re.compile(pattern) if pattern else None
    wanted = _iterations(options.get("kernel_iteration_range") or [])

    def selects(name: str, launch: int) -> bool:
        if not include.search(name) or (exclude and exclude.search(name)):
            return False
        return not wanted or launch in wanted

    return selects


def _iterations(ranges: Sequence[str]) -> set[int]:
    wanted: set[int] = set()
    for token in re.split(r"[\[\], ]+", " ".join(ranges)):
        if not token:
            continue
        first, _, last = token.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            raise ValueError(f"invalid iteration range {token!r}")
        wanted.update(range(int(first), int(last or first) + 1))
    return wanted
