"""From the call that launched a dispatch to the HIP call around it.

When HSA calls are traced too, the stack id of a dispatch may be that of an inner HSA call; the HIP call
is an ancestor (critical_path.md, section 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_rocprofv3.readers.id_lookup import positions, taken

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.readers.rocpd_api import HostCalls

__all__ = ["CallTree", "call_tree"]

# Deeper nesting than this is a cycle.
_DEEPEST = 64


@attrs.frozen(eq=False)
class CallTree:
    """Host-side calls by stack id (distinct, ascending), with their parents."""

    stack_id: Int64Column
    parent: Int64Column
    is_hip: NDArray[np.bool_]

    def launching(self, stack_id: Int64Column) -> Int64Column:
        """The nearest HIP call for each stack id; the id itself where no HIP ancestor is recorded."""
        current: Int64Column = stack_id.copy()
        answer: Int64Column = stack_id.copy()
        open_rows = np.flatnonzero(stack_id != NOT_RECORDED)
        for _ in range(_DEEPEST):
            place = positions(current[open_rows], self.stack_id)
            known = place >= 0
            open_rows, place = open_rows[known], place[known]
            hip = self.is_hip[place]
            answer[open_rows[hip]] = current[open_rows[hip]]
            open_rows, place = open_rows[~hip], place[~hip]
            if not len(open_rows):
                break
            current[open_rows] = taken(self.parent, place)
        return answer


def call_tree(calls: HostCalls) -> CallTree | None:
    """The tree of all calls; None where all are HIP calls, whose stack ids stand as they are."""
    if calls.is_hip.all():
        return None
    ids, first = np.unique(calls.stack_id, return_index=True)
    return CallTree(ids, calls.parent_stack_id[first], calls.is_hip[first])
