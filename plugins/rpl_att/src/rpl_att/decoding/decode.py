"""Raw traces of one dispatch, decoded by a worker with limits; without a decoder, what else can be said."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import ijson

from rpl_att.decoded_trace import Level, ThreadTrace, TracedKernel, find_kernel, read_decoded_trace
from rpl_att.decoding import ANSWER, Answer, CodeSource, Job, Load, require_any
from rpl_att.options import find_decoder, library_in
from rpl_att.reading import (
    TraceFolder,
    files_in,
    process_prefix,
    raw_identity,
    recorded_architecture,
    shader_engine,
)
from rpl_codeobject.disassembly import find_disassembler
from rpl_core.errors import BadDataError, MissingError
from rpl_core.text import counted
from rpl_core.values import frozen

_TABLE = re.compile(r"isa_code_object_(?P<id>\d{1,9})\.json")
_RAW_TABLE = "isa_raw_address.json"
#: ``<prefix>_<gfx>_code_object_id_<id>.out`` (docs/reference/thread-trace.md, 2.1).
_OBJECT = re.compile(r"(?:.*_)?code_object_id_(?P<id>\d{1,9})\.out")
_LOADED = "rocprofiler-sdk-tool.item.code_objects.item"
_MAX_LOADED = 1_000_000
_ROCM_TOOL = Path("llvm", "bin", "llvm-objdump")


def code_sources(folder: Path, environment: Mapping[str, str]) -> dict[int, CodeSource]:
    """Code object id -> source, from ``folder`` and the one above it; 0 stands for absolute addresses.

    A table is preferred to a code object, and what lies nearer to what lies above. Raises
    ``MissingError`` if there are code objects and nothing to disassemble them with.
    """
    sources: dict[int, CodeSource] = {}
    objects: dict[int, Path] = {}
    for place in (folder, folder.resolve().parent):
        for path in files_in(place):
            if path.name == _RAW_TABLE:
                sources.setdefault(0, CodeSource(path))
            elif match := _TABLE.fullmatch(path.name):
                sources.setdefault(int(match["id"]), CodeSource(path))
            elif match := _OBJECT.fullmatch(path.name):
                objects.setdefault(int(match["id"]), path)
    wanted = {number: path for number, path in objects.items() if number not in sources}
    tool = disassembler(environment) if wanted else None
    return {**sources, **{number: CodeSource(path, tool) for number, path in wanted.items()}}


def disassembler(environment: Mapping[str, str]) -> Path:
    """llvm-objdump of ``ROCM_PATH``, else the one that the rest of rpl uses."""
    rocm = environment.get("ROCM_PATH")
    if rocm and (Path(rocm) / _ROCM_TOOL).is_file():
        return (Path(rocm) / _ROCM_TOOL).absolute()
    try:
        return find_disassembler().absolute()
    except MissingError as error:
        raise MissingError(
            f"{error.fact}: it reads the instructions in the code objects beside the trace",
            next_step=error.next_step,
        ) from None


def read_loads(trace: Path) -> tuple[Load, ...]:
    """Loads in the results of the process that recorded ``trace``, which lie beside it; empty without.

    Raises ``BadDataError`` for results that can't be read: addresses must not be guessed.
    """
    path = trace.parent / f"{process_prefix(trace.name)}results.json"
    if path.is_symlink() or not path.is_file():
        return ()
    loads = []
    with path.open("rb") as stream:
        try:
            for number, entry in enumerate(ijson.items(stream, _LOADED, use_float=True)):
                if number >= _MAX_LOADED:
                    raise BadDataError(f"{path.name} names more than {_MAX_LOADED} code objects")
                load = _load(entry)
                if load is not None:
                    loads.append(load)
        except (ijson.JSONError, ValueError, RecursionError) as error:
            raise BadDataError(f"{path.name} is not valid JSON: {error}") from None
    return tuple(sorted(loads))


def _load(entry: object) -> Load | None:
    """``None`` for an entry without the numbers. ``load_delta`` is the load base where it is not told:
    AMD's code objects are linked at address 0 (AMDGPUUsage, "Code Object").
    """
    if not isinstance(entry, dict):
        return None
    number, base, size = (entry.get(name) for name in ("code_object_id", "load_base", "load_size"))
    delta = entry.get("load_delta", base)
    if isinstance(number, int) and isinstance(base, int) and isinstance(size, int) and isinstance(delta, int):
        return Load(base, size, delta, number)
    return None


# Raw traces of one dispatch, decoded by a worker with limits and read like any decoded folder.
#
# How the worker ended is said in one line if it did not end well.

_NO_CODE = (
    "no code object (<prefix>_code_object_id_<id>.out) and no table of instructions lies beside the trace"
)
_USE_ANOTHER = "use the decoder of the ROCm that recorded the trace, or read a folder that it decoded"


def decode_raw(library: Path, paths: Sequence[Path], limits: Limits | None = None) -> ThreadTrace:
    """Decode ``paths`` (all of one dispatch) with the decoder at ``library``; the level stays ``raw``.

    Raises ``BadDataError`` or ``MissingError`` in one line if no shader engine could be decoded.
    """
    chosen = limits or Limits()
    identity = raw_identity(paths[0].name)
    assert identity is not None
    agent, dispatch = identity
    name = f"ui_output_agent_{agent}_dispatch_{dispatch}"
    code = code_sources(paths[0].parent, os.environ)
    if not code:
        raise BadDataError(_NO_CODE, next_step="keep the files of the recording together")
    traces = tuple((shader_engine(path.name), path.absolute()) for path in paths)
    with tempfile.TemporaryDirectory(prefix="rpl-att-") as scratch:
        out = Path(scratch, name)
        out.mkdir()
        job = Job(library, traces, code, read_loads(paths[0]), out, chosen.memory_bytes)
        answer = run_worker(job, chosen)
        refused = require_any(answer.statuses)
        trace = read_decoded_trace(out)
    place = TraceFolder(paths[0].parent / name, agent, dispatch)
    symbols = trace.occupancy.kernel_symbols if trace.occupancy else {}
    return attrs.evolve(
        trace,
        folder=paths[0].parent.name,
        level=Level.RAW,
        raw_files=len(paths),
        kernel=find_kernel(place, trace.code, symbols),
        problems=(*refused, *answer.notes, *trace.problems),
    )


@frozen
class Limits:
    """Seconds and bytes of address space for decoding one dispatch."""

    seconds: float = 600.0
    memory_bytes: int = 8 << 30


def run_worker(job: Job, limits: Limits) -> Answer:
    """The worker's answer. Raises ``BadDataError`` if it crashed, hung or could not decode."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rpl_att.decoding.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=job.out,  # -m looks for modules here first: never in a folder of someone else
        start_new_session=True,
    )
    try:
        process.communicate(job.to_json().encode(), timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        raise BadDataError(
            f"the trace decoder did not end within {limits.seconds:g} s and was stopped",
            next_step=_USE_ANOTHER,
        ) from None
    finally:
        _end(process)
    status = process.returncode
    if status != 0 or not (job.out / ANSWER).is_file():
        how = _signal_name(-status) if status < 0 else f"exit status {status}"
        raise BadDataError(f"the trace decoder crashed ({how})", next_step=_USE_ANOTHER)
    answer = Answer.from_json((job.out / ANSWER).read_text(encoding="utf-8"))
    if answer.error is not None:
        raise BadDataError(answer.error)
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the worker and its disassembler, if they still run."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# Raw ``.att`` files of one dispatch: decoded where there is a decoder, else what can be said without.


def read_raw_trace(paths: Sequence[Path]) -> ThreadTrace:
    """A trace of level ``raw``. What keeps it from being decoded is its first problem.

    Traces of rocprofv2 name no dispatch and are not decoded: their stall is another one
    (docs/reference/thread-trace.md, 4.4).
    """
    if raw_identity(paths[0].name) is None:
        return _undecoded(paths)
    try:
        folder = find_decoder(os.environ)
        if folder is None:
            return _undecoded(paths)
        decoded = decode_raw(library_in(folder), paths)
        return attrs.evolve(decoded, architecture=recorded_architecture(paths) or decoded.architecture)
    except (BadDataError, MissingError) as error:
        files = counted(len(paths), "raw .att file was", "raw .att files were")
        return _undecoded(paths, f"{files} not decoded: {error.one_line()}")


def _undecoded(paths: Sequence[Path], *problems: str) -> ThreadTrace:
    """No figures, but the reason and the number of files are kept."""
    identity = raw_identity(paths[0].name)
    agent, dispatch = identity if identity is not None else (None, None)
    return ThreadTrace(
        folder=paths[0].parent.name,
        agent_handle=agent,
        dispatch_id=dispatch,
        level=Level.RAW,
        gfx_major=None,
        code=None,
        waves=None,
        occupancy=None,
        counters={},
        shader_clock_mhz=None,
        states=(),
        raw_files=len(paths),
        kernel=TracedKernel(),
        problems=problems,
        architecture=recorded_architecture(paths),
    )
