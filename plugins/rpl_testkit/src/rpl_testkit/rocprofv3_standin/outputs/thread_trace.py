"""Thread trace: whether the decoder is there, which dispatches are traced, and where the traces are written.

The stand-in can't trace; it serves decoded folders of real traces that `RPL_STANDIN_ATT` names (separated as
in PATH), one per traced dispatch in turn. The names of the scenario's kernels should be those of the traces.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rpl_core.model.metric import ORIGIN_MARK
from rpl_core.values import frozen
from rpl_testkit.rocpd_writer.rows import DispatchRow, RocpdContents
from rpl_testkit.rocprofv3_standin.outputs.result_files import NameKeys, output_file
from rpl_testkit.rocprofv3_standin.request.passes import Pass, kernel_filter

if TYPE_CHECKING:
    from rpl_testkit.rocprofv3_standin.messages import Log

__all__ = ["decoder_missing", "write_thread_traces"]


_HEADER: Final = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
_STATS_HEADER: Final = '"CodeObj","Vaddr","Instruction","Hitcount","Latency","Stall","Idle","Source"\n'


_LIBRARY = "librocprof-trace-decoder.so"


def decoder_missing(options: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    """Return the message about the folders that were searched in vain for the decoder library."""
    given = options.get("att_library_path")
    if given:
        folders: object = list(given)
        searched = list(given)
    elif environment.get("ROCPROF_ATT_LIBRARY_PATH"):
        folders = environment["ROCPROF_ATT_LIBRARY_PATH"]
        # the script of 2025-08 walks over the letters of the value (docs/reference/thread-trace.md, 4.1)
        searched = []
    else:
        folders = searched = [*environment.get("LD_LIBRARY_PATH", "").split(":"), "/opt/rocm/lib"]
    if any((Path(folder) / _LIBRARY).is_file() for folder in searched if folder):
        return None
    return f"rocprof-trace-decoder library path not found in {folders}"


def write_thread_traces(
    contents: RocpdContents,
    one: Pass,
    keys: NameKeys,
    environment: Mapping[str, str],
    log: Log,
    failures: Mapping[str, str],
) -> None:
    """Write raw and decoded traces of the dispatches that the options select. OSError as for any output."""
    sources = [Path(p) for p in environment.get("RPL_STANDIN_ATT", "").split(os.pathsep) if p]
    aim = Aim.from_options(one.options)
    base = output_file(one.directory, "x", "x", keys).parent
    for number, row in enumerate(_traced(contents, one.options)):
        handle = _handle(contents, row)
        raw = output_file(one.directory, one.name, f"{handle}_shader_engine_0_{row.dispatch_id}.att", keys)
        raw.parent.mkdir(parents=True, exist_ok=True)
        raw.write_bytes(b"synthetic\0")
        if "att_undecoded" in failures:
            log.decoder_failed(37)
            continue
        if "att_data_lost" in failures:
            log.data_lost()
        if sources:
            target = base / f"ui_output_agent_{handle}_dispatch_{row.dispatch_id}"
            serve_folder(sources[number % len(sources)], target, aim, blind="att_empty" in failures)


def _traced(contents: RocpdContents, options: Mapping[str, Any]) -> Iterator[DispatchRow]:
    """Without an iteration range only the first launch of each kernel is traced.

    See docs/reference/thread-trace.md, 4.1.
    """
    selects = kernel_filter(options)
    names = {kernel.kernel_id: kernel.name for kernel in contents.kernels}
    launches: dict[str, int] = {}
    for row in sorted(contents.dispatches, key=lambda d: d.dispatch_id):
        name = names[row.kernel_id]
        launches[name] = launches.get(name, 0) + 1
        first_only = not options.get("kernel_iteration_range")
        if selects(name, launches[name]) and (launches[name] == 1 or not first_only):
            yield row


def _handle(contents: RocpdContents, row: DispatchRow) -> int:
    (agent,) = [agent for agent in contents.agents if agent.index == row.agent]
    return int(agent.extdata["id"]["handle"])


@frozen
class Aim:
    """The target CU and the shader engines that are traced."""

    cu: int
    mask: int

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Aim:
        """Defaults are those of the driver script: CU 1, mask 0x1."""
        cu = int(str(options.get("att_target_cu") or 1), 0)
        return cls(cu, int(str(options.get("att_shader_engine_mask") or "0x1"), 0))

    def covers(self, engine: int) -> bool:
        return bool(self.mask >> engine & 1)


def serve_folder(source: Path, target: Path, aim: Aim, *, blind: bool = False) -> None:
    """Write `target` and the statistics beside it. `blind`: nothing is traced, whatever the aim."""
    target.mkdir(parents=True)
    stats = target.parent / f"stats_{target.name}.csv"
    if not blind and _hits(source, aim):
        for file in sorted(source.iterdir()):
            shutil.copyfile(file, target / file.name)
        shipped = source.parent / f"stats_{source.name}.csv"
        stats.write_text(shipped.read_text() if shipped.is_file() else _STATS_HEADER, encoding="utf-8")
        return
    stats.write_text(_STATS_HEADER, encoding="utf-8")
    _write(target / "code.json", {"code": None, "header": _HEADER, "version": "3.0.0"})
    index = json.loads((source / "filenames.json").read_text())
    _write(target / "filenames.json", {**index, "wave_filenames": None, ORIGIN_MARK: "synthetic"})
    events = json.loads((source / "occupancy.json").read_text())
    kept = {k: v for k, v in events.items() if not k.isdigit() or (not blind and aim.covers(int(k)))}
    _write(target / "occupancy.json", kept)


def _hits(source: Path, aim: Aim) -> bool:
    """Whether the source holds a wave on the target CU of a traced shader engine."""
    tree = json.loads((source / "filenames.json").read_text())["wave_filenames"] or {}
    for engine, simds in tree.items():
        if not aim.covers(int(engine)):
            continue
        for slots in simds.values():
            for waves in slots.values():
                for name, _begin, _end in waves.values():
                    if json.loads((source / name).read_text())["wave"]["cu"] == aim.cu:
                        return True
    return False


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
