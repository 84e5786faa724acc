"""Who waits for whom in a collective: the launches of all ranks matched in order, and compared by begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Int64Column = NDArray[np.int64]

__all__ = ["Arrivals", "compare_arrivals"]


@frozen(eq=False)
class Arrivals:
    """Per rank the time between its begins and the last begins, and how often it came last.

    With a ``reason`` nothing is known, and the others are empty.
    """

    wait_ns: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    reason: str | None = None


def compare_arrivals(begins: Sequence[Int64Column], ends: Sequence[Int64Column]) -> Arrivals:
    """One column per rank on one clock, each ascending by begin.

    The n-th launch of each rank belongs to the same operation only if all ranks have equally many, and no
    launch ends before another one of its operation begins.
    """
    if len(begins) < 2:
        return Arrivals(reason="one rank alone ran it")
    counts = sorted({column.size for column in begins})
    if len(counts) > 1:
        return Arrivals(reason=f"the ranks launched it {counts[0]} to {counts[-1]} times: no pairs are known")
    began, ended = np.stack(begins), np.stack(ends)
    last = began.max(axis=0)
    early = int((ended < last).any(axis=0).sum())
    if early:
        return Arrivals(
            reason=f"in {early} of {last.size} operations a rank ended before another began: "
            "the launches don't belong together, or the clocks differ"
        )
    waits = (last - began).sum(axis=1)
    # Where several came last at once nobody waited for the others; the first of them counts.
    latest = np.bincount(began.argmax(axis=0), minlength=len(begins))
    return Arrivals(wait_ns=tuple(waits.tolist()), last=tuple(latest.tolist()))
