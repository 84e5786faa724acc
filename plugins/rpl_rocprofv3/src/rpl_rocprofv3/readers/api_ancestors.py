"""From the call that launched a dispatch to the HIP call around it.

When HSA calls are traced too, the stack id of a dispatch may be that of an inner HSA call; the HIP call
is an ancestor (critical_path.md, section 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_rocprofv3.readers.id_lookup import positions
from rpl_rocprofv3.readers.rocpd_events import taken

if TYPE_CHECKING:
    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.readers.rocpd_api import HostCalls

__all__ = ["launching_calls"]

# Deeper nesting than this is a cycle.
_DEEPEST = 64


def launching_calls(stack_id: Int64Column, calls: HostCalls) -> Int64Column:
    """The nearest HIP call for each stack id; the id itself where no HIP ancestor is recorded."""
    ids, first = np.unique(calls.stack_id, return_index=True)
    is_hip = calls.is_hip[first]
    parent = calls.parent_stack_id[first]
    current: Int64Column = stack_id.copy()
    answer: Int64Column = stack_id.copy()
    open_rows = np.flatnonzero(stack_id != NOT_RECORDED)
    for _ in range(_DEEPEST):
        place = positions(current[open_rows], ids)
        known = place >= 0
        open_rows, place = open_rows[known], place[known]
        hip = is_hip[place]
        answer[open_rows[hip]] = current[open_rows[hip]]
        open_rows, place = open_rows[~hip], place[~hip]
        if not len(open_rows):
            break
        current[open_rows] = taken(parent, place)
    return answer
