"""Raw ``.att`` files of one dispatch: decoded where there is a decoder, else what can be said without."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import attrs

from rpl_att.decoder_library import find_decoder, library_in
from rpl_att.decoding.decode import decode_raw
from rpl_att.join_dispatch import TracedKernel
from rpl_att.model import Level, ThreadTrace
from rpl_att.reading.raw_files import raw_identity, recorded_architecture
from rpl_core.errors import BadDataError, MissingError
from rpl_core.text.table import counted


def read_raw_trace(paths: Sequence[Path]) -> ThreadTrace:
    """A trace of level ``raw``. What keeps it from being decoded is its first problem.

    Traces of rocprofv2 name no dispatch and are not decoded: their stall is another one
    (docs/reference/thread-trace.md, 4.4).
    """
    if raw_identity(paths[0].name) is None:
        return _undecoded(paths)
    try:
        folder = find_decoder(os.environ)
        if folder is None:
            return _undecoded(paths)
        decoded = decode_raw(library_in(folder), paths)
        return attrs.evolve(decoded, architecture=recorded_architecture(paths) or decoded.architecture)
    except (BadDataError, MissingError) as error:
        files = counted(len(paths), "raw .att file was", "raw .att files were")
        return _undecoded(paths, f"{files} not decoded: {error.one_line()}")


def _undecoded(paths: Sequence[Path], *problems: str) -> ThreadTrace:
    """No figures, but the reason and the number of files are kept."""
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
        problems=problems,
        architecture=recorded_architecture(paths),
    )
