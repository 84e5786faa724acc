"""Raw traces of one dispatch, decoded into a temporary folder and read like any decoded folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from rpl_att.decoding.code_sources import code_sources, read_loads
from rpl_att.decoding.job import Job
from rpl_att.decoding.library import require_any
from rpl_att.decoding.worker_process import Limits, run_worker
from rpl_att.join_dispatch import find_kernel
from rpl_att.model import Level, ThreadTrace
from rpl_att.reading.decoded_trace import read_decoded_trace
from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.raw_files import raw_identity, shader_engine
from rpl_core.errors import BadDataError

_NO_CODE = (
    "no code object (<prefix>_code_object_id_<id>.out) and no table of instructions lies beside the trace"
)


def decode_raw(library: Path, paths: Sequence[Path], limits: Limits | None = None) -> ThreadTrace:
    """Decode ``paths`` (all of one dispatch) with the decoder at ``library``; the level stays ``raw``.

    Raises ``BadDataError`` or ``MissingError`` in one line if no shader engine could be decoded.
    """
    chosen = limits or Limits()
    identity = raw_identity(paths[0].name)
    assert identity is not None
    agent, dispatch = identity
    name = f"ui_output_agent_{agent}_dispatch_{dispatch}"
    code = code_sources(paths[0].parent, os.environ)
    if not code:
        raise BadDataError(_NO_CODE, next_step="keep the files of the recording together")
    traces = tuple((shader_engine(path.name), path.absolute()) for path in paths)
    with tempfile.TemporaryDirectory(prefix="rpl-att-") as scratch:
        out = Path(scratch, name)
        out.mkdir()
        job = Job(library, traces, code, read_loads(paths[0]), out, chosen.memory_bytes)
        answer = run_worker(job, chosen)
        refused = require_any(answer.statuses)
        trace = read_decoded_trace(out)
    place = TraceFolder(paths[0].parent / name, agent, dispatch)
    symbols = trace.occupancy.kernel_symbols if trace.occupancy else {}
    return attrs.evolve(
        trace,
        folder=paths[0].parent.name,
        level=Level.RAW,
        raw_files=len(paths),
        kernel=find_kernel(place, trace.code, symbols),
        problems=(*refused, *answer.notes, *trace.problems),
    )
