"""One read thread trace: which dispatch it is of, and all that its files say, reduced and not interpreted."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import ijson
import numpy as np

from rpl_att.reading import (
    CodeTable,
    TraceFolder,
    files_beside,
    mapping,
    open_bounded,
    parse_code,
    process_prefix,
    raw_files_of,
    read_stats,
    recorded_architecture,
    rows,
    source_texts,
    stats_path,
    whole,
)
from rpl_att.reading.wave_files import (
    NotRowsError,
    SkeletonError,
    WaveIndex,
    read_occupancy,
    read_state_steps,
    read_wave_index,
    row_blocks,
    split_arrays,
)
from rpl_att.reduction import ReducedWaves, reduce_waves
from rpl_core.errors import BadDataError
from rpl_core.model.metric import Origin
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_att.reading.wave_files import OccupancyEvents, StateSteps


class Level(str, Enum):
    """The best input that was there; each gives less than the one before it."""

    WAVES = "waves"
    CODE = "code"
    STATS = "stats"
    RAW = "raw"
    NONE = "none"


@frozen(eq=False)
class ThreadTrace:
    """One decoded folder.

    ``code`` is ``None`` for an empty trace. ``problems`` are parts that could not be read, each in one
    line; ``raw_files`` counts the ``.att`` files of the dispatch. ``kernel`` is what the profiler's
    own results, or failing them the label in the code, say about the dispatch. ``architecture`` is the GPU
    that the profiler's table of agents names, or the family ("gfx9") of the decoder's tables.
    """

    folder: str
    agent_handle: int | None
    dispatch_id: int | None
    level: Level
    gfx_major: int | None
    code: CodeTable | None
    waves: ReducedWaves | None
    occupancy: OccupancyEvents | None
    counters: dict[str, int]
    shader_clock_mhz: float | None
    states: tuple[StateSteps, ...]
    raw_files: int
    kernel: TracedKernel
    problems: tuple[str, ...] = ()
    pc_sampling_only: bool = False
    origin: Origin = Origin.MEASURED
    architecture: str | None = None
    source_texts: Mapping[str, str] = attrs.field(factory=dict)  # "path:line" -> the line, of kept copies


# A decoded folder from start to end: the best level that its files allow, and what could not be read.


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


# Which kernel a trace is of: agent handle and dispatch id, looked up in the profiler's own results.


_TOOL = "rocprofiler-sdk-tool.item"
_DISPATCHES = f"{_TOOL}.buffer_records.kernel_dispatch.item"
_SYMBOLS = f"{_TOOL}.kernel_symbols.item"
#: Suffix that the runtime adds to the symbol of a kernel descriptor.
_DESCRIPTOR = ".kd"
_MAX_CSV_ROWS = 10_000_000


@frozen
class TracedKernel:
    """``name`` as displayed, ``symbol`` mangled, ``witness`` what says so; all ``None`` if unknown.

    ``tied``: the witness is of the traced run, by agent handle or by the process in its file name.
    """

    name: str | None = None
    symbol: str | None = None
    witness: str | None = None
    problem: str | None = None
    tied: bool = True


def find_kernel(folder: TraceFolder, code: CodeTable | None, symbols: Mapping[int, str]) -> TracedKernel:
    """The kernel of the dispatch that ``folder`` holds; ``symbols`` are those of its occupancy events."""
    label = _label(code) or _only_symbol(symbols) or TracedKernel()
    refused: list[str] = []
    for candidate in _from_results(folder, refused):
        if _agree(candidate, label) and (candidate.tied or _same_function(candidate, label)):
            return attrs.evolve(candidate, symbol=candidate.symbol or label.symbol)
        named = candidate.symbol or candidate.name
        fact = f"{candidate.witness} names {named}"
        if _agree(candidate, label):
            refused.append(f"{fact}, but nothing ties that file to this trace")
        else:
            refused.append(f"{fact}, the traced code is of {label.symbol}")
    return attrs.evolve(label, problem="; ".join(refused) or None)


def _agree(kernel: TracedKernel, label: TracedKernel) -> bool:
    """Whether both may be the same kernel: by symbol, by name, or because one of them has no comparable name.

    A label without debug information has a mangled name only, which says nothing about a demangled one.
    """
    if label.symbol is None or label.symbol in (kernel.symbol, kernel.name) or label.name == kernel.name:
        return True
    return kernel.symbol is None and label.name == label.symbol


def _same_function(kernel: TracedKernel, label: TracedKernel) -> bool:
    """Whether the label names the kernel of a file that may be of any run: both names say the same function.

    Of a mangled label it is enough that it holds the function's own name with its length in front.
    """
    if label.symbol is None or kernel.name is None:
        return False
    if kernel.name in (label.symbol, label.name):
        return True
    identifier = re.split(r"[<(\[]", kernel.name, maxsplit=1)[0].split()[-1:]
    function = identifier[0].split("::")[-1] if identifier else ""
    return bool(function) and f"{len(function)}{function}" in label.symbol


def _only_symbol(symbols: Mapping[int, str]) -> TracedKernel | None:
    """The one symbol that was resolved; "3 / 0x1700" and id 0 are no symbols.

    See docs/reference/thread-trace.md, 2.7.
    """
    named = {symbol for number, symbol in symbols.items() if number and symbol and " / 0x" not in symbol}
    if len(named) != 1:
        return None
    (symbol,) = named
    return TracedKernel(symbol, symbol, "symbol in the occupancy events")


def _label(code: CodeTable | None) -> TracedKernel | None:
    """The label row with the most cycles behind it: symbol from its text, name from its source column."""
    if code is None:
        return None
    labels = [row for row in code.labels if code.isa[row] != "; Begin ATT ASM"]
    if not labels:
        return None
    ends = [*labels[1:], len(code)]
    cycles = [int(code.latency[a:b].sum()) for a, b in zip(labels, ends, strict=True)]
    best = labels[cycles.index(max(cycles))]
    symbol = code.isa[best].removeprefix("; ").strip()
    return TracedKernel(code.source[best] or symbol, symbol, "label in the traced code")


def _from_results(folder: TraceFolder, refused: list[str]) -> Iterator[TracedKernel]:
    if folder.dispatch_id is None:
        return
    for path in files_beside(folder.path.resolve().parent):
        try:
            if path.name.endswith("_results.json"):
                yield from _from_json(path, folder)
            elif path.name.endswith("_kernel_trace.csv"):
                yield from _from_csv(path, folder)
        except (BadDataError, OSError, UnicodeDecodeError, csv.Error) as error:
            refused.append(f"{path.name} can't be read: {error}")


def _from_json(path: Path, folder: TraceFolder) -> Iterator[TracedKernel]:
    """Streamed: a results file may be large. Agent handle and dispatch id must both agree."""
    kernel_id = None
    for record in _items(path, _DISPATCHES):
        info = record.get("dispatch_info") if isinstance(record, dict) else None
        if not isinstance(info, dict) or info.get("dispatch_id") != folder.dispatch_id:
            continue
        agent = info.get("agent_id")
        if isinstance(agent, dict) and agent.get("handle") == folder.agent_handle:
            kernel_id = info.get("kernel_id")
    if kernel_id is None:
        return
    for symbol in _items(path, _SYMBOLS):
        if isinstance(symbol, dict) and symbol.get("kernel_id") == kernel_id:
            yield _kernel_of_symbol(symbol, path)


def _kernel_of_symbol(symbol: dict[str, Any], path: Path) -> TracedKernel:
    mangled = str(symbol.get("kernel_name") or "").removesuffix(_DESCRIPTOR) or None
    shown = symbol.get("formatted_kernel_name") or symbol.get("demangled_kernel_name") or mangled
    return TracedKernel(
        str(shown).removesuffix(_DESCRIPTOR) if shown else None,
        mangled,
        f"agent handle and dispatch id in {path.name}",
    )


def _items(path: Path, prefix: str) -> Iterator[Any]:
    with path.open("rb") as stream:
        try:
            yield from ijson.items(stream, prefix, use_float=True)
        except (ijson.JSONError, ValueError, RecursionError) as error:
            raise BadDataError(f"{path.name} is not valid JSON: {error}") from None


def _from_csv(path: Path, folder: TraceFolder) -> Iterator[TracedKernel]:
    """A kernel trace has no agent handle; dispatch ids count over all agents of the process.

    It is of the traced run if its name begins as that of the raw traces does.
    """
    prefixes = {process_prefix(raw.name) for raw in raw_files_of(folder)} - {""}
    tied = any(path.name.startswith(prefix) for prefix in prefixes)
    with path.open(encoding="utf-8", newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream)):
            if number > _MAX_CSV_ROWS:
                return
            if row.get("Dispatch_Id") == str(folder.dispatch_id) and row.get("Kernel_Name"):
                name = row["Kernel_Name"].removesuffix(_DESCRIPTOR)
                yield TracedKernel(name, None, f"dispatch id in {path.name}", tied=tied)
