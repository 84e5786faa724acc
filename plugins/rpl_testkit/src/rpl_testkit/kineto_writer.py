"""Writes small torch.profiler (Kineto) traces with a planted answer, as PyTorch on ROCm writes them.

PyTorch without a GPU records no work on one, so tests make theirs. Keys and categories are those of real
traces of MI300X (a test compares them); the member ``rpl_origin`` stamps a trace synthetic. Times are in
microseconds after ``base_ns``, with three digits, as in the files.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["KinetoTrace"]

_MI300X = {
    "id": 0,
    "name": "AMD Instinct MI300X",
    "totalGlobalMem": 206141652992,
    "computeMajor": 9,
    "computeMinor": 4,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 131072,
    "warpSize": 64,
    "sharedMemPerBlock": 65536,
    "numSms": 304,
    "maxSharedMemoryPerMultiProcessor": 65536,
}


class KinetoTrace:
    """The events of one rank, in the order in which they are added; ``write`` makes the file."""

    def __init__(
        self,
        *,
        rank: int | None = None,
        world_size: int = 1,
        pid: int = 4242,
        device: int = 2,
        base_ns: int = 1_767_189_312_000_000_000,
    ) -> None:
        self.rank, self.world_size, self.pid, self.device, self.base_ns = (
            rank,
            world_size,
            pid,
            device,
            base_ns,
        )
        self.events: list[dict[str, Any]] = []
        self._ids = 0
        self._correlation = 100

    def operator(
        self,
        name: str,
        begin_us: float,
        duration_us: float,
        *,
        dims: Sequence[Any] = (),
        types: Sequence[str] = (),
        scalars: Sequence[str] = (),
        thread: int | None = None,
    ) -> int:
        """A CPU operator; its external id, by which launches name it."""
        self._ids += 1
        args: dict[str, Any] = {"External id": self._ids, "Record function id": 0}
        if dims:
            args |= {"Concrete Inputs": list(scalars) or [""] * len(dims), "Input type": list(types)}
            args |= {"Input Strides": [[] for _ in dims], "Input Dims": list(dims)}
        self._timed("cpu_op", name, begin_us, duration_us, args, thread)
        return self._ids

    def annotation(self, name: str, begin_us: float, duration_us: float, *, thread: int | None = None) -> int:
        """A range of ``record_function``, such as ``ProfilerStep#3``; its external id."""
        self._ids += 1
        args = {"External id": self._ids, "Record function id": 0}
        self._timed("user_annotation", name, begin_us, duration_us, args, thread)
        return self._ids

    def frame(self, name: str, begin_us: float, duration_us: float, *, thread: int | None = None) -> None:
        """A Python function, as ``file.py(12): function``, or a module, as ``nn.Module: Linear_0``."""
        self._ids += 1
        args: dict[str, Any] = {"Python parent id": None, "Python id": self._ids}
        if name.startswith("nn.Module: "):
            args["Python module id"] = self._ids
        self._timed("python_function", name, begin_us, duration_us, args, thread)

    def call(
        self,
        name: str,
        begin_us: float,
        duration_us: float,
        *,
        operator: int | None = None,
        thread: int | None = None,
    ) -> int:
        """A call of the runtime that launches nothing; its correlation id."""
        self._correlation += 1
        args: dict[str, Any] = {"cid": 107, "correlation": self._correlation}
        if operator is not None:
            args["External id"] = operator
        self._timed("cuda_runtime", name, begin_us, duration_us, args, thread)
        return self._correlation

    def kernel(
        self,
        name: str,
        submitted_us: float,
        begin_us: float,
        duration_us: float,
        *,
        operator: int | None = None,
        stream: int = 0,
        thread: int | None = None,
        launcher: str | None = "hipLaunchKernel",
        grid: tuple[int, int, int] = (4, 1, 1),
        block: tuple[int, int, int] = (256, 1, 1),
        collective: Mapping[str, Any] | None = None,
    ) -> int:
        """A kernel and the call that launched it; without ``launcher`` the call is not in the trace."""
        args: dict[str, Any] = {"kind": "Dispatch Kernel", "grid": list(grid), "block": list(block)}
        return self._work(
            ("kernel", name),
            (submitted_us, begin_us, duration_us),
            {**args, **(collective or {})},
            launcher=launcher,
            operator=operator,
            stream=stream,
            thread=thread,
        )

    def copy(
        self,
        kind: str,
        size_bytes: int,
        submitted_us: float,
        begin_us: float,
        duration_us: float,
        *,
        operator: int | None = None,
        stream: int = 0,
    ) -> int:
        """A copy; ``kind`` is ``HtoD`` and the like."""
        args = {"kind": kind, "bytes": size_bytes}
        return self._work(
            ("gpu_memcpy", f"Memcpy {kind}"),
            (submitted_us, begin_us, duration_us),
            args,
            launcher="hipMemcpyAsync",
            operator=operator,
            stream=stream,
            thread=None,
        )

    def collective(
        self,
        operation: str,
        elements: int,
        ranks: Sequence[int],
        times_us: tuple[float, float, float],
        *,
        group: str = "0",
        dtype: str = "BFloat16",
        gathered: int | None = None,
    ) -> int:
        """A kernel of a collective: submitted, begin, duration. ``gathered``: elements of the result."""
        told = {
            "Collective name": operation,
            "In msg nelems": elements,
            "Out msg nelems": elements if gathered is None else gathered,
            "Group size": len(ranks),
            "dtype": dtype,
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": group,
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(ranks)),
        }
        operator = self.operator("record_param_comms", times_us[0], 20.0)
        name = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
        return self.kernel(
            name, *times_us, operator=operator, stream=4, launcher="hipExtLaunchKernel", collective=told
        )

    def forward_backward(self, forward: tuple[int, float], backward: tuple[int, float]) -> None:
        """A link between two operators, each by its thread and begin."""
        self._ids += 1
        for phase, (thread, time), more in (("s", forward, {}), ("f", backward, {"bp": "e"})):
            flow = {"ph": phase, "id": self._ids, "pid": self.pid, "tid": thread, "ts": time}
            self.events.append({**flow, "cat": "fwdbwd", "name": "fwdbwd", **more})

    def _timed(
        self,
        category: str,
        name: str,
        begin_us: float,
        duration_us: float,
        args: dict[str, Any],
        thread: int | None,
    ) -> None:
        own = self.pid if thread is None else thread
        where = {"pid": self.pid, "tid": own, "ts": begin_us, "dur": duration_us}
        args = {**args, "Ev Idx": len(self.events)} if category != "cuda_runtime" else args
        self.events.append({"ph": "X", "cat": category, "name": name, **where, "args": args})

    def _work(
        self,
        what: tuple[str, str],
        times_us: tuple[float, float, float],
        args: dict[str, Any],
        *,
        launcher: str | None,
        operator: int | None,
        stream: int,
        thread: int | None,
    ) -> int:
        submitted, begin, duration = times_us
        if launcher is None:
            self._correlation += 1
        else:
            self.call(launcher, submitted, 2.0, operator=operator, thread=thread)
        told = {"device": self.device, "stream": stream, "correlation": self._correlation}
        if operator is not None:
            told["External id"] = operator
        where = {"pid": self.device, "tid": stream, "ts": begin, "dur": duration}
        self.events.append({"ph": "X", "cat": what[0], "name": what[1], **where, "args": {**told, **args}})
        return self._correlation

    def document(self) -> dict[str, Any]:
        """The whole file as a value."""
        document: dict[str, Any] = {
            "rpl_origin": "synthetic",
            "schemaVersion": 1,
            "deviceProperties": [_MI300X],
            "roctracer_version": 4.1,
            "hip_runtime_version": 60443483,
        }
        if self.rank is not None:
            document["distributedInfo"] = {
                "backend": "nccl",
                "rank": self.rank,
                "world_size": self.world_size,
            }
        document |= {"record_shapes": 1, "with_stack": 1, "traceEvents": self.events}
        return {
            **document,
            "traceName": "trace.json",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self.base_ns,
        }

    def write(self, path: Path) -> Path:
        """Write it, packed where the name ends in ``.gz``."""
        text = json.dumps(self.document()).encode()
        path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
        return path
