"""The readers: SQLite exports of Nsight Systems, and what this plugin's own collector records by CUPTI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rpl_core.errors import BadDataError, ForeignFileError
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.trace import Trace

_FORMAT = "Nsight Systems SQLite export"
_RECORDING = "CUPTI activity recording"
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
#: Tables that exports have and other databases do not.
_OWN = ("TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_CUDA_STREAM", "ENUM_NSYS_EVENT_TYPE", _KERNELS)


class NsightReader(Reader):
    """Reads ``nsys export --type sqlite``; one file is one session, with all of its processes."""

    name = "nsight-systems"
    summary = "SQLite exports of NVIDIA Nsight Systems: kernels, copies, CUDA calls, streams, events"
    priority = 20

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        found = []
        for path in files:
            tables = _tables(path)
            if "StringIds" in tables and tables.intersection(_OWN):
                missing = _KERNELS not in tables
                found.append(
                    InputSet(
                        self.name,
                        _FORMAT,
                        (path,),
                        refusal="it holds no CUDA kernels" if missing else None,
                        next_step="record with `nsys profile --trace=cuda`" if missing else None,
                    )
                )
        return found

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        from rpl_sm90.export import open_export
        from rpl_sm90.trace import read_export

        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        with open_export(inputs.paths[0]) as export:
            return (read_export(export, self.name, _FORMAT),)


class CuptiReader(Reader):
    """Reads what the collector ``cupti`` records; one file is one process."""

    name = "cupti"
    summary = "recordings of the collector cupti: kernels, copies, CUDA calls, streams, events"
    priority = 20

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return [InputSet(self.name, _RECORDING, (path,)) for path in files if _begins_as_recording(path)]

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        from rpl_sm90.activity import ActivityFile
        from rpl_sm90.trace import read_export

        recording = ActivityFile(inputs.paths[0])
        return (read_export(recording, self.name, _RECORDING, recording.diagnostics()),)


def _begins_as_recording(path: Path) -> bool:
    from rpl_sm90.activity import MAGIC

    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _tables(path: Path) -> set[str]:
    from rpl_sm90.export import is_sqlite, open_export

    if not is_sqlite(path):
        return set()
    try:
        with open_export(path) as export:
            return export.tables
    except (BadDataError, OSError):
        return set()
