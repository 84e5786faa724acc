"""The process that loads the foreign library: ``python -m rpl_att.decoding.worker``, a job on its input.

A crash, a hang or endless memory of the library ends here; the caller sees how the process ended.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from rpl_att.decoding.code_rows import CodeRows
from rpl_att.decoding.job import ANSWER, Answer, Job
from rpl_att.decoding.library import DecoderLibrary
from rpl_att.decoding.trace_writer import TraceWriter
from rpl_att.reading.folder import open_bounded
from rpl_core.errors import BadDataError, RplError

#: The largest trace buffer that rocprofv3 takes by default is 256 MiB for all shader engines
#: (docs/reference/thread-trace.md, 4.1).
MAX_TRACE_BYTES = 1 << 30


def main() -> None:
    """Do the job on standard input and leave the answer in its folder."""
    job = Job.from_json(sys.stdin.read())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (job.memory_bytes, job.memory_bytes))
    try:
        answer = decode(job)
    except (RplError, OSError) as error:
        answer = Answer({}, error=error.one_line() if isinstance(error, RplError) else str(error))
    except MemoryError:
        answer = Answer({}, error=f"decoding took more than {job.memory_bytes >> 20} MiB of memory")
    (job.out / ANSWER).write_text(answer.to_json(), encoding="utf-8")


def decode(job: Job) -> Answer:
    """Decode every trace of ``job`` into its folder, in order of shader engines."""
    library = DecoderLibrary(job.library)
    code = CodeRows(job.code, job.loads)
    writer = TraceWriter(job.out, code)
    statuses = {}
    for engine, path in sorted(job.traces):
        writer.engine = engine
        statuses[path.name] = library.decode(_read(path), writer.take, code.instruction)
    return Answer(statuses, writer.finish())


def _read(path: Path) -> bytes:
    with open_bounded(path) as stream:
        data = stream.read(MAX_TRACE_BYTES + 1)
    if len(data) > MAX_TRACE_BYTES:
        raise BadDataError(f"{path.name} is larger than {MAX_TRACE_BYTES >> 20} MiB and is not decoded")
    if not data:
        raise BadDataError(f"{path.name} is empty", next_step="record the trace again")
    return data


if __name__ == "__main__":
    main()
