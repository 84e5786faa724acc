"""PC samples out of CSV and JSON, against counts that plain code makes of the same files."""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections import Counter

import pytest

from rpl_core.errors import BadDataError
from rpl_core.model.metric import Origin
from rpl_core.model.trace import TraceRole
from rpl_pcsampling.reader import PcSampleReader
from rpl_pcsampling.reading import kernel_names
from rpl_pcsampling.samples import EXTRA, STALL_REASONS, UNKNOWN, Method, Position
from rpl_testkit.contracts import assert_reader

REASON = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"
TYPE = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_"
SHARED = ("pc_sampling_host_trap.csv", "pc_sampling_host_trap_debug.csv", "pc_sampling_stochastic_debug.csv")
HEADER = '"Sample_Timestamp","Exec_Mask","Dispatch_Id","Instruction","Instruction_Comment","Correlation_Id"\n'


def read(*files):
    reader = PcSampleReader()
    (inputs,) = reader.claim(list(files))
    (trace,) = reader.read(inputs)
    (samples,) = trace.extras[EXTRA]
    return trace, samples


def results(samples, *, kernels=(("k", 7),), dispatches=((1, 7),), **metadata):
    """A results JSON with stochastic samples: (dispatch, place, issued, reason, waves)."""
    return {
        "rocprofiler-sdk-tool": [
            {
                "metadata": {"pid": 1, **metadata},
                "agents": [],
                "strings": {
                    "pc_sample_instructions": ["v_add_f32 v0, v0, v1", "s_waitcnt vmcnt(0)"],
                    "pc_sample_comments": ["/src/a.hip:3 -> /src/a.hip:9", "/src/a.hip:4"],
                },
                "kernel_symbols": [
                    {"kernel_id": number, "formatted_kernel_name": f"{name}.kd"} for name, number in kernels
                ],
                "buffer_records": {
                    "kernel_dispatch": [
                        {"dispatch_info": {"dispatch_id": d, "kernel_id": k}} for d, k in dispatches
                    ],
                    "pc_sample_host_trap": [],
                    "pc_sample_stochastic": [
                        {
                            "record": {
                                "pc": {"code_object_id": 2, "code_object_offset": 16 * place},
                                "exec_mask": (1 << 48) - 1,
                                "timestamp": 1000 + number,
                                "dispatch_id": dispatch,
                                "wave_issued": issued,
                                "inst_type": f"{TYPE}VALU",
                                "wave_cnt": waves,
                                "snapshot": {"stall_reason": f"{REASON}{reason}"},
                            },
                            "inst_index": place,
                        }
                        for number, (dispatch, place, issued, reason, waves) in enumerate(samples)
                    ],
                },
            }
        ]
    }


@pytest.mark.parametrize("name", SHARED)
def test_counts_of_real_tables_are_those_of_their_rows(rpl_shared_data, name):
    path = rpl_shared_data / "pc_sampling" / name
    trace, samples = read(path)
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert trace.role is TraceRole.THREAD_TRACE
    assert (trace.origin, samples.position, samples.left_out) == (Origin.MEASURED, Position.TEXT, 0)
    assert samples.dispatch_id.tolist() == [int(row["Dispatch_Id"]) for row in rows]
    assert samples.timestamp_ns.tolist() == [int(row["Sample_Timestamp"]) for row in rows]
    assert samples.lanes.tolist() == [f"{int(row['Exec_Mask']):b}".count("1") for row in rows]
    of_place = Counter((p.instruction, p.source) for p in (samples.places[i] for i in samples.place.tolist()))
    assert of_place == Counter((row["Instruction"], row["Instruction_Comment"] or None) for row in rows)
    assert set(samples.kernel.tolist()) == {UNKNOWN}
    assert "no kernel trace" in samples.unnamed
    if "stochastic" in name:
        issued = [int(row["Wave_Issued_Instruction"]) for row in rows]
        assert samples.method is Method.STOCHASTIC
        assert samples.issued.tolist() == issued
        assert samples.waves.tolist() == [int(row["Wave_Count"]) for row in rows]
        stalled = [row["Stall_Reason"] for row, did in zip(rows, issued, strict=True) if not did]
        counted = Counter(STALL_REASONS[code] for code in samples.reason.tolist() if code != UNKNOWN)
        assert counted == Counter(reason.removeprefix(REASON).lower() for reason in stalled)
    else:
        assert samples.method is Method.HOST_TRAP
        assert {*samples.issued.tolist(), *samples.reason.tolist(), *samples.waves.tolist()} == {UNKNOWN}


def test_the_contract_of_readers_holds(rpl_shared_data, tmp_path):
    assert_reader(PcSampleReader(), rpl_shared_data / "pc_sampling" / SHARED[2], tmp_path)
    sample = tmp_path / "real" / "9_results.json"
    sample.parent.mkdir()
    sample.write_text(json.dumps(results([(1, 0, 1, "NONE", 3)])))
    assert_reader(PcSampleReader(), sample, tmp_path)


def test_a_renamed_and_packed_table_is_told_by_its_header(rpl_shared_data, tmp_path):
    packed = tmp_path / "mine.csv.gz"
    packed.write_bytes(gzip.compress((rpl_shared_data / "pc_sampling" / SHARED[0]).read_bytes()))
    _, samples = read(packed)
    assert len(samples) == 79


def test_the_kernel_trace_beside_a_table_names_kernels_and_gives_no_times(tmp_path):
    table, kernels = tmp_path / "4_pc_sampling_host_trap.csv", tmp_path / "4_kernel_trace.csv"
    table.write_text(HEADER + '5,3,1,"s_nop 0","",1\n6,3,2,"s_nop 0","",2\n7,3,9,"s_nop 0","",9\n')
    kernels.write_text(
        '"Kind","Dispatch_Id","Kernel_Name","Start_Timestamp","End_Timestamp"\n'
        '"KERNEL_DISPATCH",1,"first(int)",1,2\n"KERNEL_DISPATCH",2,"second.kd",3,4\n'
    )
    trace, samples = read(kernels, table)
    assert len(trace.dispatches) == 0
    named = [samples.kernels[k] if k >= 0 else None for k in samples.kernel.tolist()]
    assert named == ["first(int)", "second", None]
    assert "does not have" in samples.unnamed


def test_rows_that_are_no_samples_are_left_out_and_counted(tmp_path):
    table = tmp_path / "pc_sampling_host_trap.csv"
    bad = ('"a",3,1,"","",1\n', "5,36893488147419103232,1,,,1\n", "5,3,-1,,,1\n", "5,3\n")
    table.write_text(HEADER + '5,0xff,1,"s_nop 0","",1\n' + "".join(bad))
    trace, samples = read(table)
    assert (len(samples), samples.lanes.tolist(), samples.left_out) == (1, [8], 4)
    (told,) = trace.diagnostics
    assert (told.code, told.count) == ("pcsampling.rows_left_out", 4)


def test_what_the_profiler_could_not_decode_is_one_place_without_an_instruction(tmp_path):
    table = tmp_path / "pc_sampling_host_trap.csv"
    unknown = '5,1,1,"","Unrecognized code object id, physical virtual address of PC:{}",1\n'
    table.write_text(HEADER + unknown.format(77) + unknown.format(78))
    _, samples = read(table)
    assert [place.instruction for place in samples.places] == [None]


def test_a_table_without_a_sample_is_refused_with_what_to_do(tmp_path):
    table = tmp_path / "pc_sampling_host_trap.csv"
    table.write_text(HEADER)
    (inputs,) = PcSampleReader().claim([table])
    with pytest.raises(BadDataError, match="holds no sample") as refused:
        PcSampleReader().read(inputs)
    assert "--pc-interval" in refused.value.next_step


def test_json_says_where_instructions_lie_and_which_kernels_ran(tmp_path):
    path = tmp_path / "9_results.json"
    entries = [(1, 0, 1, "OTHER_WAIT", 4), (1, 1, 0, "WAITCNT", 6), (2, 1, 0, "UNHEARD_OF", 0)]
    path.write_text(json.dumps(results(entries)))
    trace, samples = read(path)
    assert samples.position is Position.OFFSET
    assert [(p.code_object, p.offset, p.instruction) for p in samples.places] == [
        (2, 0, "v_add_f32 v0, v0, v1"),
        (2, 16, "s_waitcnt vmcnt(0)"),
    ]
    assert samples.kernels == ("k",)
    assert samples.kernel.tolist() == [0, 0, UNKNOWN]
    assert samples.lanes.tolist() == [48, 48, 48]
    # The reason of an issued sample, and the type of one that was not, mean nothing.
    assert samples.reason.tolist() == [UNKNOWN, STALL_REASONS.index("waitcnt"), UNKNOWN]
    assert samples.instruction_type.tolist() == [1, UNKNOWN, UNKNOWN]
    assert samples.waves.tolist() == [4, 6, UNKNOWN]
    assert trace.origin is Origin.MEASURED


@pytest.mark.parametrize(("mark", "origin"), [("synthetic", Origin.SYNTHETIC), ("?", Origin.SYNTHETIC)])
def test_the_mark_of_a_writer_that_is_no_profiler_counts(tmp_path, mark, origin):
    path = tmp_path / "9_results.json"
    path.write_text(json.dumps(results([(1, 0, 1, "NONE", 4)], rpl_origin=mark)))
    assert read(path)[0].origin is origin


def test_entries_of_wrong_types_cost_themselves(tmp_path):
    content = results([(1, 0, 1, "NONE", 4)] * 3)
    records = content["rocprofiler-sdk-tool"][0]["buffer_records"]["pc_sample_stochastic"]
    records[0]["record"]["exec_mask"] = "all"
    records[1]["record"]["pc"] = None
    records.append(5)
    path = tmp_path / "9_results.json"
    path.write_text(json.dumps(content))
    _, samples = read(path)
    assert (len(samples), samples.left_out) == (1, 3)


def test_results_without_samples_are_left_to_others(tmp_path):
    content = results([])
    strings = content["rocprofiler-sdk-tool"][0]["strings"]
    strings["pc_sample_instructions"] = []
    path, other = tmp_path / "9_results.json", tmp_path / "4_kernel_trace.csv"
    path.write_text(json.dumps(content, indent=1))
    other.write_text('"Kind","Dispatch_Id","Kernel_Name"\n')
    assert PcSampleReader().claim([path, other]) == []


def test_a_file_that_was_cut_off_is_refused_by_its_name(tmp_path):
    text = json.dumps(results([(1, 0, 1, "NONE", 4)] * 50))
    path = tmp_path / "9_results.json"
    path.write_text(text[: len(text) * 3 // 4])
    (inputs,) = PcSampleReader().claim([path])
    with pytest.raises(BadDataError, match=r"9_results\.json can't be read as JSON"):
        PcSampleReader().read(inputs)


def test_both_formats_of_one_process_count_once(tmp_path):
    path, table = tmp_path / "9_results.json", tmp_path / "9_pc_sampling_stochastic.csv"
    path.write_text(json.dumps(results([(1, 0, 1, "NONE", 4)])))
    table.write_text(HEADER + "5,1,1,s_nop 0,,1\n")
    trace = tmp_path / "9_kernel_trace.csv"
    trace.write_text('"Kind","Dispatch_Id","Kernel_Name"\n')
    (inputs,) = PcSampleReader().claim([table, path, trace])
    assert inputs.paths[0] == path
    assert set(inputs.paths) == {path, table, trace}


@pytest.mark.parametrize("seed", range(10))
def test_kernels_are_named_by_rows_that_are_whole(tmp_path, seed):
    """Rows cut short, without a number or without a name are passed over, and cost no other row."""
    draw = random.Random(seed)
    header = ["Kind", "Dispatch_Id", "Kernel_Name", "Start"]
    draw.shuffle(header)
    lines, expected = [header], {}
    for number in range(20):
        row = {"Kind": "K", "Dispatch_Id": str(number), "Kernel_Name": f"k{number}", "Start": "5"}
        damage = draw.choice(("none", "none", "number", "name", "short", "long", "digit"))
        if damage == "number":
            row["Dispatch_Id"] = draw.choice(("", "x", "-1", "1.5", "\N{SUPERSCRIPT TWO}"))
        elif damage == "digit":
            row["Dispatch_Id"] = "\N{ARABIC-INDIC DIGIT THREE}"
        elif damage == "name":
            row["Kernel_Name"] = ""
        else:
            expected |= {number: f"k{number}"} if damage == "none" else {}
        cells = [row[name] for name in header]
        lines.append(cells[:-1] if damage == "short" else [*cells, "more"] if damage == "long" else cells)
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(",".join(line) for line in lines) + "\n", encoding="utf-8")
    assert kernel_names(path) == expected
    for lost in ("Dispatch_Id", "Kernel_Name"):
        path.write_text(",".join(name for name in header if name != lost) + "\n1,2,3\n")
        assert kernel_names(path) == {}
    path.write_text("")
    assert kernel_names(path) == {}
