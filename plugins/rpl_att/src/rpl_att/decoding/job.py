"""What the worker process is asked to do and what it answers, as JSON between the two processes."""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from rpl_core.values import frozen

#: Name of the answer in the folder that the worker writes.
ANSWER = "decoding.json"


@frozen
class CodeSource:
    """Where instructions of a code object come from: a JSON table, or an ELF for ``disassembler``."""

    path: Path
    disassembler: Path | None = None


@attrs.frozen(order=True)
class Load:
    """Code object ``number`` in memory: ``size`` bytes at ``base``; ``delta`` is address - ELF address."""

    base: int
    size: int
    delta: int
    number: int


@frozen
class Job:
    """``traces`` are (shader engine, file); ``code`` is by code object id, 0 for absolute addresses."""

    library: Path
    traces: tuple[tuple[int, Path], ...]
    code: dict[int, CodeSource]
    loads: tuple[Load, ...]
    out: Path
    memory_bytes: int

    def to_json(self) -> str:
        return json.dumps(
            {
                "library": str(self.library),
                "traces": [[engine, str(path)] for engine, path in self.traces],
                "code": {
                    str(number): [str(source.path), str(source.disassembler) if source.disassembler else None]
                    for number, source in sorted(self.code.items())
                },
                "loads": [attrs.astuple(load) for load in self.loads],
                "out": str(self.out),
                "memory_bytes": self.memory_bytes,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Job:
        fields = json.loads(text)
        return cls(
            Path(fields["library"]),
            tuple((engine, Path(path)) for engine, path in fields["traces"]),
            {
                int(number): CodeSource(Path(path), Path(tool) if tool else None)
                for number, (path, tool) in fields["code"].items()
            },
            tuple(Load(*load) for load in fields["loads"]),
            Path(fields["out"]),
            fields["memory_bytes"],
        )


@frozen
class Answer:
    """``statuses`` of the library by file, ``notes`` about the trace, ``error`` if there was no decoding."""

    statuses: dict[str, int]
    notes: tuple[str, ...] = ()
    error: str | None = None

    def to_json(self) -> str:
        return json.dumps(attrs.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Answer:
        fields = json.loads(text)
        return cls(fields["statuses"], tuple(fields["notes"]), fields["error"])
