"""Everything that ``dependencies`` asks about the host program of a process, read once per trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.execution_graph.host_program.calls import host_calls
from rpl_analysis.execution_graph.host_program.submission import find_submissions, order_lanes
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.stream_handles import StreamHandles
    from rpl_analysis.execution_graph.host_program.submission import LaneOrder, Submissions
    from rpl_core.model.trace import Trace

__all__ = ["HostProgram", "host_program"]


@frozen(eq=False)
class HostProgram:
    """``calls`` and ``streams`` are None where the API was not traced; the order is known from ids then."""

    nodes: WorkNodes
    submissions: Submissions
    order: LaneOrder
    calls: HostCalls | None
    streams: StreamHandles | None


def host_program(trace: Trace, nodes: WorkNodes) -> HostProgram:
    """Match nodes with calls, and handles with lanes."""
    calls = host_calls(trace)
    submissions = find_submissions(nodes.process, nodes.correlation_id, calls)
    order = order_lanes(nodes.lane, len(nodes.lanes), nodes.end_ns, submissions)
    streams = None
    if calls is not None:
        from rpl_analysis.execution_graph.host_program.calls import find_current_device, submitted_as_they_ran
        from rpl_analysis.execution_graph.host_program.stream_handles import learn_stream_handles

        as_they_ran = submitted_as_they_ran(nodes, submissions, order, calls)
        if as_they_ran is not submissions:
            submissions = as_they_ran
            order = order_lanes(nodes.lane, len(nodes.lanes), nodes.end_ns, submissions)
        device = find_current_device(nodes, submissions, calls)
        streams = learn_stream_handles(nodes, submissions, calls, device)
    return HostProgram(nodes=nodes, submissions=submissions, order=order, calls=calls, streams=streams)
