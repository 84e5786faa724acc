"""Thread trace: whether the decoder is there, which dispatches are traced, and where the traces are written.

The stand-in can't trace; it serves decoded folders of real traces that `RPL_STANDIN_ATT` names (separated as
in PATH), one per traced dispatch in turn. The names of the scenario's kernels should be those of the traces.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import attrs

from rpl_core.model.metric import ORIGIN_MARK
from rpl_core.values import frozen
from rpl_testkit.rocpd_writer.rows import DispatchRow, RocpdContents
from rpl_testkit.rocprofv3_standin.passes import Pass, PcSampling, kernel_filter
from rpl_testkit.rocprofv3_standin.result_files import NameKeys, output_file

if TYPE_CHECKING:
    from rpl_testkit.rocprofv3_standin.command_line import Log
    from rpl_testkit.synthetic_recording.application_model import Application, KernelModel

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


# Synthetic PC samples: what sampling the described kernels would have given, in both formats.
#
# Each kernel gets a short program made from its work model. A sample falls on an instruction as often as
# waves spend their cycles there: as often as it issues, waits by the model's ``wait_share`` on the wait
# behind the loads, and ``issue_wait_share`` on the busiest pipe.

_REASON: Final = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"
_TYPE: Final = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_"
_PIPES: Final = ("valu", "matrix", "lds", "lds_direct", "scalar", "vmem_tex", "flat", "exp", "misc", "brmsg")
_PIPE_OF: Final = {"VALU": "valu", "MATRIX": "matrix", "LDS": "lds", "SCALAR": "scalar", "TEX": "vmem_tex"}
_KERNEL_BYTES, _INSTRUCTION_BYTES = 0x1000, 8
_MOST_PER_DISPATCH = 2000

Json = dict[str, Any]


@frozen
class _State:
    """An instruction in one state, and the weight of that: issued as `kind`, or not for `reason`."""

    index: int
    weight: float
    issued: bool
    kind: str = "NO_INST"
    reason: str = "OTHER_WAIT"


@frozen
class _Sample:
    row: DispatchRow
    time_ns: int
    instruction: int  # index into the texts of the set
    offset: int
    state: _State
    lanes: int
    waves: int
    cu: int

    @property
    def exec_mask(self) -> int:
        return (1 << self.lanes) - 1


@frozen
class PcSampleSet:
    """All samples of one process, with the texts that they refer to."""

    method: str
    instructions: tuple[str, ...]
    comments: tuple[str, ...]
    samples: tuple[_Sample, ...]

    def csv_rows(self) -> Iterator[Json]:
        for sample in self.samples:
            row = {
                "Sample_Timestamp": sample.time_ns,
                "Exec_Mask": sample.exec_mask,
                "Dispatch_Id": sample.row.dispatch_id,
                "Instruction": self.instructions[sample.instruction],
                "Instruction_Comment": self.comments[sample.instruction],
                "Correlation_Id": sample.row.stack_id,
            }
            if self.method == "stochastic":
                row |= {
                    "Wave_Issued_Instruction": int(sample.state.issued),
                    "Instruction_Type": _TYPE + sample.state.kind,
                    "Stall_Reason": _REASON + sample.state.reason,
                    "Wave_Count": sample.waves,
                }
            yield row

    def records(self) -> list[Json]:
        """The entries of `buffer_records.pc_sample_<method>`."""
        return [{"record": self._record(one), "inst_index": one.instruction} for one in self.samples]

    def _record(self, sample: _Sample) -> Json:
        record: Json = {
            "hw_id": {
                "chiplet": sample.cu // 38 % 8,
                "wave_id": 0,
                "simd_id": sample.cu % 4,
                "pipe_id": 0,
                "cu_or_wgp_id": sample.cu % 10,
                "shader_array_id": 0,
                "shader_engine_id": sample.cu // 10 % 4,
                "workgroup_id": 0,
                "vm_id": 3,
                "queue_id": 2,
                "microengine_id": 1,
            },
            "pc": {"code_object_id": 1, "code_object_offset": sample.offset},
            "exec_mask": sample.exec_mask,
            "timestamp": sample.time_ns,
            "dispatch_id": sample.row.dispatch_id,
            "corr_id": {"internal": sample.row.stack_id, "external": 0},
            "wrkgrp_id": {"x": sample.cu, "y": 0, "z": 0},
            "wave_in_grp": 0,
        }
        if self.method == "stochastic":
            busy = _PIPE_OF.get(sample.state.kind) if sample.state.issued else None
            snapshot: Json = {"stall_reason": _REASON + sample.state.reason, "dual_issue_valu": 0}
            snapshot |= {f"arb_state_issue_{pipe}": int(pipe == busy) for pipe in _PIPES}
            snapshot |= {f"arb_state_stall_{pipe}": 0 for pipe in _PIPES}
            record = {
                "flags": {"has_mem_cnt": 0},
                **record,
                "wave_issued": int(sample.state.issued),
                "inst_type": _TYPE + sample.state.kind,
                "wave_cnt": sample.waves,
                "snapshot": snapshot,
            }
        return record


def sample_application(
    contents: RocpdContents, application: Application, asked: PcSampling, seed: str
) -> PcSampleSet:
    """Samples of all dispatches in `contents`; the same seed gives the same."""
    random = Random(f"{seed}/pc")
    instructions: list[str] = []
    comments: list[str] = []
    programs: list[tuple[int, Sequence[_State]]] = []
    for number, kernel in enumerate(application.kernels, 1):
        program = list(_program(kernel))
        programs.append((len(instructions), _states(kernel, program)))
        instructions += [text for text, _kind, _times in program]
        source = f"/src/{application.name}.hip"
        comments += [f"{source}:{100 * number + line}" for line, _ in enumerate(program, 1)]
    samples = [
        sample
        for row in contents.dispatches
        for sample in _of_dispatch(row, application, programs[row.kernel_id - 1], asked, random)
    ]
    # The profiler decodes an instruction when it is sampled: the others are in no table.
    seen = {place: index for index, place in enumerate(dict.fromkeys(one.instruction for one in samples))}
    return PcSampleSet(
        asked.method,
        tuple(instructions[place] for place in seen),
        tuple(comments[place] for place in seen),
        tuple(attrs.evolve(one, instruction=seen[one.instruction]) for one in samples),
    )


def _program(kernel: KernelModel) -> Iterator[tuple[str, str, int]]:
    """Text, type and executions per wave of each instruction."""
    work = kernel.work
    yield "s_load_dwordx4 s[0:3], s[4:5], 0x0", "SCALAR", max(1, work.smem_per_wave)
    yield "s_waitcnt lgkmcnt(0)", "OTHER", 1
    if work.vmem_read_per_wave:
        yield "global_load_dwordx4 v[4:7], v[0:1], off", "TEX", work.vmem_read_per_wave
    yield "s_waitcnt vmcnt(0)", "OTHER", max(1, work.vmem_read_per_wave)
    if work.lds_per_wave:
        yield "ds_read_b128 v[8:11], v2", "LDS", work.lds_per_wave
        yield "s_barrier", "BARRIER", 1
    if work.valu_per_wave:
        yield "v_fma_f32 v12, v4, v8, v12", "VALU", sum(work.valu_per_wave.values())
    if work.mfma_per_wave:
        yield "v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[8:9], a[0:15]", "MATRIX", work.mfma_per_wave
    if work.vmem_write_per_wave:
        yield "global_store_dwordx4 v[0:1], v[12:15], off", "TEX", work.vmem_write_per_wave
    yield "s_endpgm", "OTHER", 1


def _states(kernel: KernelModel, program: Sequence[tuple[str, str, int]]) -> Sequence[_State]:
    issue = float(sum(times for _text, _kind, times in program))
    share = max(0.05, 1.0 - kernel.work.wait_share - kernel.work.issue_wait_share)
    cycles = issue / share
    busiest = max(range(len(program)), key=lambda i: program[i][2])
    wait = next(i for i, (text, _kind, _times) in enumerate(program) if text == "s_waitcnt vmcnt(0)")
    states = [_State(i, float(times), True, kind) for i, (_text, kind, times) in enumerate(program)]
    states.append(_State(wait, cycles * kernel.work.wait_share, False, reason="WAITCNT"))
    states.append(_State(busiest, cycles * kernel.work.issue_wait_share, False, reason="ARBITER_NOT_WIN"))
    return states


def _of_dispatch(
    row: DispatchRow,
    application: Application,
    program: tuple[int, Sequence[_State]],
    asked: PcSampling,
    random: Random,
) -> Iterator[_Sample]:
    """Every busy CU is sampled once per interval: host-trap all at one moment, stochastic each on its own."""
    kernel, (first, states) = application.kernels[row.kernel_id - 1], program
    period_ns = (
        asked.interval * 1000 / application.clock_mhz if asked.unit == "cycles" else asked.interval * 1e3
    )
    units = max(1, min(kernel.work.busy_cus, _MOST_PER_DISPATCH))
    weights = [state.weight for state in states]
    taken, time_ns = 0, row.begin_ns + random.random() * period_ns
    while time_ns < row.end_ns and taken < _MOST_PER_DISPATCH:
        for cu in range(units):
            own = time_ns + (random.random() * period_ns if asked.method == "stochastic" else 0.0)
            if own < row.end_ns:
                state = random.choices(states, weights)[0]
                offset = row.kernel_id * _KERNEL_BYTES + state.index * _INSTRUCTION_BYTES
                yield _Sample(
                    row=row,
                    time_ns=int(own),
                    instruction=first + state.index,
                    offset=offset,
                    state=state,
                    lanes=max(1, min(64, round(kernel.work.active_lanes))),
                    waves=max(1, round(kernel.work.waves_per_busy_cu)),
                    cu=cu,
                )
                taken += 1
        time_ns += period_ns
