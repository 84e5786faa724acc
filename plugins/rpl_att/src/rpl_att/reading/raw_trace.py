"""Raw ``.att`` files of one dispatch that nobody decoded: what can be said of them without a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rpl_att.join_dispatch import TracedKernel
from rpl_att.model import Level, ThreadTrace
from rpl_att.reading.raw_files import raw_identity


def read_raw_trace(paths: Sequence[Path]) -> ThreadTrace:
    """A trace of level ``raw``: no figures, but the reason and the number of files are kept."""
    identity = raw_identity(paths[0].name)
    agent, dispatch = identity if identity is not None else (None, None)
    return ThreadTrace(
        folder=paths[0].parent.name,
        agent_handle=agent,
        dispatch_id=dispatch,
        level=Level.RAW,
        gfx_major=None,
        code=None,
        waves=None,
        occupancy=None,
        counters={},
        shader_clock_mhz=None,
        states=(),
        raw_files=len(paths),
        kernel=TracedKernel(),
    )
