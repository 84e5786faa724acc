"""The reader of ``*_results.json`` files, an output format of rocprofv3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import BadDataError, ForeignFileError
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.recording import merge_traces
from rpl_rocprofv3.readers.json.records import is_results_json
from rpl_rocprofv3.readers.run_groups import RecordedFile, execution_groups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.model.trace import Trace

__all__ = ["JsonReader"]

_FORMAT = "rocprofv3 JSON"
_EMPTY = "the file is empty (0 bytes)"


class JsonReader(Reader):
    """Streams JSON of any size; one file is one process."""

    name = "rocprofv3-json"
    summary = "JSON results of rocprofv3, streamed, plain or gzip, one or several processes"
    priority = 5

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        recorded = [_described(path) for path in sorted(files) if is_results_json(path)]
        groups = execution_groups(recorded)
        sets = [InputSet(self.name, _FORMAT, tuple(file.path for file in group)) for group in groups]
        empty = [
            InputSet(self.name, _FORMAT, (path,), _EMPTY, "record again")
            for path in sorted(files)
            if path.name.endswith("_results.json") and path.is_file() and path.stat().st_size == 0
        ]
        return (*sets, *empty)

    def stands_alone(self, path: Path) -> bool:
        return is_results_json(path)

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        return tuple(attrs.evolve(inputs, paths=(path,)) for path in inputs.paths)

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        # The parser is imported only when a file is read.
        from rpl_rocprofv3.readers.json.trace import read_results_json

        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        return (merge_traces([read_results_json(path, self.name) for path in inputs.paths]),)


def _described(path: Path) -> RecordedFile:
    """Process and lifetime from the first section of the file; unknown where that can't be read."""
    from rpl_rocprofv3.readers.json.trace import JSON_NODE, first_process

    try:
        process = first_process(path)
    except BadDataError:
        return RecordedFile(path, JSON_NODE, None, None, None)
    return RecordedFile(
        path, JSON_NODE, None, process.begin_ns, process.end_ns, pids=frozenset({process.pid})
    )
