"""The reader of torch.profiler traces: knows them by their first bytes, and ranks of one run as one set."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import BadDataError, ForeignFileError, MissingError
from rpl_core.files import open_regular
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.recording import merge_traces
from rpl_core.values import frozen
from rpl_rocprofv3.readers.gzip_limits import unpacked_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rpl_core.model.trace import Trace

__all__ = ["TorchReader"]

_FORMAT = "torch.profiler trace"
#: Longer texts stand before the events of no trace that was seen; some tools put 20 kB there.
_HEAD_BYTES = 1 << 19
_LARGEST_FILE = 64 << 30
_EVENTS = b'"traceEvents"'
#: What only Kineto writes: members beside the events, and categories of events.
_KINETO = re.compile(
    rb'"(?:deviceProperties|distributedInfo|baseTimeNanoseconds|roctracer_version|cupti_version'
    rb'|hip_runtime_version|cuda_runtime_version|record_shapes|with_stack)"\s*:'
    rb'|"cat"\s*:\s*"(?:cpu_op|python_function|cuda_runtime|cuda_driver|user_annotation|gpu_memcpy)"'
)
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,6})\b')
_WORLD = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"world_size"\s*:\s*(\d{1,6})\b')
_FIRST_TIME = re.compile(rb'"ts"\s*:\s*(\d{1,18}(?:\.\d{1,9})?)')
_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_]?(\d{1,6})(?!\d)", re.IGNORECASE)


@frozen
class _Candidate:
    """A file that begins as such a trace. ``begins`` tells windows of one rank apart, nothing else."""

    path: Path
    rank: int | None
    world_size: int | None
    begins: float


class TorchReader(Reader):
    """One file is one rank. Files of one folder whose ranks are told and differ are one run."""

    name = "torch-profiler"
    summary = "traces of torch.profiler (Kineto JSON), plain or gzip, of ROCm and CUDA, one rank or many"
    priority = 30  # before readers of any JSON

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        folders: defaultdict[Path, list[_Candidate]] = defaultdict(list)
        for path in sorted(files):
            if (recorded := _candidate(path)) is not None:
                folders[path.parent].append(recorded)
        return [
            InputSet(self.name, _FORMAT, tuple(candidate.path for candidate in run))
            for _, candidates in sorted(folders.items())
            for run in _runs(candidates)
        ]

    def stands_alone(self, path: Path) -> bool:
        return _candidate(path) is not None

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        return tuple(attrs.evolve(inputs, paths=(path,)) for path in inputs.paths)

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        # The decoder is imported only when a file is read.
        from rpl_torch.trace_file import read_trace

        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        return (
            merge_traces([read_trace(path, self.name, _FORMAT, rank_in_name(path)) for path in inputs.paths]),
        )


def rank_in_name(path: Path) -> int | None:
    """``3`` for ``rank3.json``, ``trace_rank-3.pt.trace.json.gz`` and the like."""
    match = _RANK_IN_NAME.search(path.name)
    return None if match is None else int(match[1])


def _candidate(path: Path) -> _Candidate | None:
    head = _head(path)
    if head.lstrip()[:1] != b"{" or _EVENTS not in head or _KINETO.search(head) is None:
        return None
    rank, world, time = _RANK.search(head), _WORLD.search(head), _FIRST_TIME.search(head)
    return _Candidate(
        path,
        rank_in_name(path) if rank is None else int(rank[1]),
        None if world is None else int(world[1]),
        0.0 if time is None else float(time[1]),
    )


def _head(path: Path) -> bytes:
    """The first bytes, unpacked; empty where the file can't be one of these. Never raises."""
    if not path.name.endswith((".json", ".json.gz")):
        return b""
    if path.suffix == ".gz":
        return unpacked_head(path, _HEAD_BYTES)
    try:
        with open_regular(path, _LARGEST_FILE) as file:
            return file.read(_HEAD_BYTES)
    except (BadDataError, MissingError, OSError):
        return b""


def _runs(candidates: Iterable[_Candidate]) -> list[list[_Candidate]]:
    """Files of a folder by run: the n-th window of each rank belongs to the n-th run.

    A rank with fewer windows than another one, or one that is not told, leaves all files alone, so that their
    times, or the user, say what they are.
    """
    of_rank: defaultdict[tuple[int | None, int | None], list[_Candidate]] = defaultdict(list)
    for candidate in candidates:
        of_rank[candidate.world_size, candidate.rank].append(candidate)
    ranks = [
        sorted(of_one_rank, key=lambda c: (c.begins, c.path))
        for _, of_one_rank in sorted(of_rank.items(), key=str)
    ]
    told = all(rank is not None for _, rank in of_rank) and len({world for world, _ in of_rank}) == 1
    if not told or len({len(of_one_rank) for of_one_rank in ranks}) != 1:
        return [[candidate] for of_one_rank in ranks for candidate in of_one_rank]
    runs = [list(run) for run in zip(*ranks, strict=True)]
    return [sorted(run, key=lambda c: (c.rank or 0, c.path)) for run in runs]
