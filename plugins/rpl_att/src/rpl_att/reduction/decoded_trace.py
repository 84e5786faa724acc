"""A decoded folder from start to end: the best level that its files allow, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from rpl_att.join_dispatch import find_kernel
from rpl_att.model import Level, ThreadTrace
from rpl_att.reading.code_table import CodeTable, parse_code, read_stats, stats_path
from rpl_att.reading.folder import TraceFolder, mapping, open_bounded, rows, source_texts, whole
from rpl_att.reading.json_arrays import NotRowsError, SkeletonError, row_blocks, split_arrays
from rpl_att.reading.occupancy_events import read_occupancy, read_state_steps
from rpl_att.reading.raw_files import raw_files_of, recorded_architecture
from rpl_att.reading.wave_files import WaveIndex, read_wave_index
from rpl_att.reduction.waves import ReducedWaves, reduce_waves
from rpl_core.errors import BadDataError
from rpl_core.model.origin import Origin

T = TypeVar("T")

#: Rows of samples are ``time, e0, e1, e2, e3, cu, bank``; bank 1 holds counters 4 to 7
#: (docs/reference/thread-trace.md, 2.8).
_SAMPLE_WIDTH = 7
_PER_BANK = 4


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
        counters=part(lambda: _counter_sums(folder, index.counter_names)) or {},
        shader_clock_mhz=part(lambda: _shader_clock_mhz(folder)),
        states=part(lambda: read_state_steps(folder)) or (),
        raw_files=len(raw),
        kernel=find_kernel(folder, code, occupancy.kernel_symbols if occupancy else {}),
        problems=(*problems, *(waves.damaged if waves else ())),
        pc_sampling_only=index.pc_sampling_only,
        origin=Origin.SYNTHETIC if index.synthetic else Origin.MEASURED,
        architecture=recorded_architecture(raw) or _family(index.gfx_major),
        source_texts=part(lambda: source_texts(folder, code.source if code else ())) or {},
    )


def _family(gfx_major: int | None) -> str | None:
    return None if gfx_major is None else f"gfx{gfx_major}"


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


def _counter_sums(folder: TraceFolder, names: Sequence[str]) -> dict[str, int]:
    """Sampled counters, summed over all samples, CUs and shader engines; empty without names or samples."""
    totals = np.zeros(2 * _PER_BANK, np.int64)
    files = folder.names(r"se\d+_perfcounter\.json") if names else ()
    for name in files:
        totals += _counters_in(folder, name)
    if not files:
        return {}
    return {name: int(totals[index]) for index, name in enumerate(names[: 2 * _PER_BANK])}


def _counters_in(folder: TraceFolder, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    totals = np.zeros(2 * _PER_BANK, np.int64)
    path = folder.find(name)
    assert path is not None
    with open_bounded(path) as stream:
        try:
            span = split_arrays(stream, rows=("data",)).arrays.get("data")
            for block in row_blocks(stream, span, _SAMPLE_WIDTH) if span else ():
                for bank in (0, 1):
                    chosen = block[block[:, 6] == bank]
                    totals[bank * _PER_BANK : (bank + 1) * _PER_BANK] += chosen[:, 1:5].sum(axis=0)
        except (SkeletonError, NotRowsError) as error:
            raise BadDataError(f"{path}: {error}") from None
    return totals


def _shader_clock_mhz(folder: TraceFolder) -> float | None:
    """Mean shader clock: sum of clock steps over sum of time steps of all shader engines.

    See docs/reference/thread-trace.md, 2.8.
    """
    table = folder.table("realtime.json")
    if table is None:
        return None
    path = folder.path / "realtime.json"
    document = mapping(table, path, "the document")
    metadata = mapping(document.get("metadata") or {}, path, "metadata")
    frequency_hz = whole(metadata.get("frequency") or 0, path, "frequency")
    clocks = ticks = 0
    for key, pairs in sorted(document.items()):
        if key == "metadata" or not pairs:
            continue
        first, last = (_clock_pair(rows(pairs, path, key)[i], path, key) for i in (0, -1))
        clocks += last[0] - first[0]
        ticks += last[1] - first[1]
    if frequency_hz <= 0 or ticks <= 0 or clocks <= 0:
        return None
    return clocks / (ticks / frequency_hz) / 1e6


def _clock_pair(value: object, path: Path, place: str) -> Sequence[int]:
    pairs = rows(value, path, place)
    if len(pairs) < 2:
        raise BadDataError(f"{path}: {place} has a row without two clocks")
    return [whole(number, path, place) for number in pairs[:2]]
