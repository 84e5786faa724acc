"""API calls as read from a file to the ordered ``ApiCalls`` of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, ApiCalls
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.model_columns import typed_columns
from rpl_rocprofv3.readers.trace.dispatch_table import impossible_times, time_order

if TYPE_CHECKING:
    from rpl_core.model.trace import Int32Column, Int64Column, UInt64Column
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["ApiArguments", "no_arguments", "ordered_api_calls"]


@frozen(eq=False)
class ApiArguments:
    """The arguments that order work, one entry per call."""

    stream_handle: UInt64Column
    event_handle: UInt64Column
    flags: Int64Column
    device: Int64Column


def no_arguments(count: int) -> ApiArguments:
    """Arguments of ``count`` calls of which only the names were recorded."""
    return ApiArguments(
        np.full(count, NO_HANDLE, np.uint64),
        np.full(count, NO_HANDLE, np.uint64),
        np.full(count, NOT_RECORDED, np.int64),
        np.full(count, NOT_RECORDED, np.int64),
    )


def ordered_api_calls(
    *,
    process: Int32Column,
    thread_id: Int64Column,
    function: Int32Column,
    correlation_id: Int64Column,
    begin_ns: Int64Column,
    end_ns: Int64Column,
    arguments: ApiArguments,
    findings: Findings,
) -> ApiCalls:
    """Calls in order of (begin, end, process, correlation id); calls without sensible times are left out."""
    bad = impossible_times(begin_ns, end_ns) | (end_ns < begin_ns)
    findings.add(
        "api.impossible_time",
        int(bad.sum()),
        "API call has no usable times or ends before it begins, and is left out",
        "API calls have no usable times or end before they begin, and are left out",
        cause="the recording is damaged or was edited",
    )
    selection = time_order(~bad, begin_ns, end_ns, process, correlation_id)
    columns = {
        "process": process,
        "thread_id": thread_id,
        "function": function,
        "correlation_id": correlation_id,
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        **attrs.asdict(arguments, recurse=False),
    }
    return ApiCalls(**typed_columns(ApiCalls, columns, selection))
