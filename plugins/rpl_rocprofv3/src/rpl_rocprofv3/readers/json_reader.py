"""The reader of ``*_results.json`` files, an output format of rocprofv3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.reader import InputSet, Reader
from rpl_rocprofv3.readers.json_records import is_results_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.model.trace import Trace

__all__ = ["JsonReader"]


class JsonReader(Reader):
    """Streams JSON of any size; one file is one process and a set of its own."""

    name = "rocprofv3-json"
    summary = "JSON results of rocprofv3, streamed, plain or gzip"
    priority = 5

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return tuple(
            InputSet(self.name, "rocprofv3 JSON", (path,)) for path in sorted(files) if is_results_json(path)
        )

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        from rpl_rocprofv3.readers.json_trace import read_results_json

        return tuple(read_results_json(path, self.name) for path in inputs.paths)
