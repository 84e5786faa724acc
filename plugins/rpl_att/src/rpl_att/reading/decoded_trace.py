"""A decoded folder from start to end: the best level that its files allow, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rpl_att.join_dispatch import find_kernel
from rpl_att.model import Level, ThreadTrace
from rpl_att.reading.code_table import CodeTable, parse_code
from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.occupancy_events import read_occupancy
from rpl_att.reading.performance_counters import counter_sums
from rpl_att.reading.raw_files import raw_files_of
from rpl_att.reading.realtime import shader_clock_mhz
from rpl_att.reading.stats_file import read_stats, stats_path
from rpl_att.reading.wave_index import WaveIndex, read_wave_index
from rpl_att.reading.wave_states import read_state_steps
from rpl_att.reduction.waves import ReducedWaves, reduce_waves
from rpl_core.errors import BadDataError
from rpl_core.model.origin import Origin

T = TypeVar("T")


def read_decoded_trace(path: Path) -> ThreadTrace:
    """Read the decoded folder at ``path``.

    Parts that are damaged are named in ``problems`` and cost only what they held.
    """
    folder = TraceFolder.at(path)
    problems: list[str] = []

    def part(read: Callable[[], T | None]) -> T | None:
        try:
            return read()
        except BadDataError as error:
            problems.append(error.one_line())
            return None

    index = part(lambda: read_wave_index(folder)) or WaveIndex(())
    code = part(lambda: _code(folder))
    from_stats = code is None
    if code is None:
        code = part(lambda: _stats(folder))
    # A stats CSV has no row ids, so waves can't be laid over it.
    waves = part(lambda: reduce_waves(folder, index, None if from_stats else code)) if index.waves else None
    raw = raw_files_of(folder)
    occupancy = part(lambda: read_occupancy(folder))
    return ThreadTrace(
        folder=path.name,
        agent_handle=folder.agent_handle,
        dispatch_id=folder.dispatch_id,
        level=_level(waves, code, from_stats=from_stats, raw=len(raw)),
        gfx_major=index.gfx_major,
        code=code,
        waves=waves if waves is not None and waves.waves else None,
        occupancy=occupancy,
        counters=part(lambda: counter_sums(folder, index.counter_names)) or {},
        shader_clock_mhz=part(lambda: shader_clock_mhz(folder)),
        states=part(lambda: read_state_steps(folder)) or (),
        raw_files=len(raw),
        kernel=find_kernel(folder, code, occupancy.kernel_symbols if occupancy else {}),
        problems=(*problems, *(waves.damaged if waves else ())),
        pc_sampling_only=index.pc_sampling_only,
        origin=Origin.SYNTHETIC if index.synthetic else Origin.MEASURED,
    )


def _code(folder: TraceFolder) -> CodeTable | None:
    table = folder.table("code.json")
    return None if table is None else parse_code(table, folder.path / "code.json")


def _stats(folder: TraceFolder) -> CodeTable | None:
    path = stats_path(folder)
    return None if path is None else read_stats(path)


def _level(waves: ReducedWaves | None, code: CodeTable | None, *, from_stats: bool, raw: int) -> Level:
    if waves is not None and waves.waves:
        return Level.WAVES
    if code is not None:
        return Level.STATS if from_stats else Level.CODE
    return Level.RAW if raw else Level.NONE
