"""Small sound recordings of formats that the stand-in of the profiler does not write."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

_RPD_SCHEMA = """
CREATE TABLE rocpd_string (id integer NOT NULL PRIMARY KEY, string varchar(4096) NOT NULL);
CREATE TABLE rocpd_metadata (id integer NOT NULL PRIMARY KEY, tag varchar(4096), value varchar(4096));
CREATE TABLE rocpd_op (id integer NOT NULL PRIMARY KEY, gpuId integer NOT NULL, queueId integer NOT NULL,
  sequenceId integer NOT NULL, completionSignal varchar(18) NOT NULL, start integer NOT NULL,
  end integer NOT NULL,   description_id integer NOT NULL, opType_id integer NOT NULL);
CREATE TABLE rocpd_api (id integer NOT NULL PRIMARY KEY, pid integer NOT NULL, tid integer NOT NULL,
  start integer NOT NULL, end integer NOT NULL, apiName_id integer NOT NULL, args_id integer NOT NULL);
CREATE TABLE rocpd_api_ops (id integer NOT NULL PRIMARY KEY, api_id integer NOT NULL, op_id integer NOT NULL);
CREATE TABLE rocpd_kernelapi (api_ptr_id integer NOT NULL PRIMARY KEY, stream varchar(18) NOT NULL,
  gridX integer, gridY integer, gridZ integer, workgroupX integer, workgroupY integer, workgroupZ integer,
  groupSegmentSize integer, privateSegmentSize integer, kernelArgAddress varchar(18), aquireFence varchar(8),
  releaseFence varchar(8), codeObject_id integer, kernelName_id integer);
CREATE TABLE rocpd_copyapi (api_ptr_id integer NOT NULL PRIMARY KEY, stream varchar(18) NOT NULL,
  size integer, width integer, height integer, kind integer, dst varchar(18), src varchar(18),
  dstDevice integer, srcDevice integer, sync bool, pinned bool);
CREATE TABLE rocpd_monitor (id integer NOT NULL PRIMARY KEY, deviceType varchar(16), deviceId integer,
  monitorType varchar(16), start integer, end integer, value varchar(255));
"""
_STRINGS = (
    "KernelExecution",
    "hipLaunchKernel",
    "",
    "gemm(float*, int)",
    "hipMemcpyAsync",
    "CopyHostToDevice",
    "add",
)
_BEGIN = 8_306_017_670_485_923
_DESCRIPTION = (
    *("Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem",),
    *("Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID",),
)
_SYSTEM = "gpu_arch,gpu_model,num_xcd,cu_per_gpu,compute_partition"
_COUNTERS = "SQ_WAVES,SQ_INSTS_VALU,SQ_WAVES_1,TCC_HIT[0],TCC_HIT[1],TCC_EA0_RDREQ[0],TCC_EA0_RDREQ[1]"


def write_rpd(path: Path) -> None:
    """Eight operations of two kernels and a copy, launched by one thread."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_RPD_SCHEMA)
        database.execute("INSERT INTO rocpd_metadata VALUES (1, 'schema_version', '2')")
        database.executemany("INSERT INTO rocpd_string VALUES (?, ?)", enumerate(_STRINGS, 1))
        for number in range(1, 9):
            begin = _BEGIN + 10_000 * number
            copy = number % 4 == 0
            call, name, kind = (5, 3, 6) if copy else (2, 4 + 3 * (number % 2), 1)
            database.execute(
                "INSERT INTO rocpd_api VALUES (?, 77, 78, ?, ?, ?, 3)",
                (number, begin - 900, begin - 500, call),
            )
            database.execute(
                "INSERT INTO rocpd_op VALUES (?, 2, ?, 0, '', ?, ?, ?, ?)",
                (number, number % 2, begin, begin + 5000, name, kind),
            )
            database.execute("INSERT INTO rocpd_api_ops VALUES (?, ?, ?)", (number, number, number))
            if copy:
                values = (number, "0x0", 4096, "", "", 1, "0x7f00", "0x8f00", 0, 0, 0, 0)
                database.execute(f"INSERT INTO rocpd_copyapi VALUES ({'?,' * 11}?)", values)
            else:
                values = (number, "0x1", 1024, 1, 1, 256, 1, 1, 0, 0, "", "", "", 0, name)
                database.execute(f"INSERT INTO rocpd_kernelapi VALUES ({'?,' * 14}?)", values)
        database.commit()


def workload_tables() -> dict[str, str]:
    """The tables of a rocprofiler-compute workload folder by file name: times, wide and long counters."""
    described = ",".join(_DESCRIPTION)
    begins = [_BEGIN + 9000 * number for number in range(4)]
    rows = [
        f"{i},60633,1,77,78,1048576,256,0,0,4,4,16,64,vecCopy(int),{begin},{begin + 4000},0"
        for i, begin in enumerate(begins)
    ]
    wide = [f"{row},16384.0,98304.0,16384.0,512.0,513.0,64.0,65.0" for row in rows]
    long = [f"{row},{name},{10 * i}.0" for i, row in enumerate(rows) for name in ("SQ_WAVES", "TCC_MISS")]
    return {
        "timestamps.csv": "\n".join((described, *rows)) + "\n",
        "pmc_perf.csv": "\n".join((f"{described},{_COUNTERS}", *wide)) + "\n",
        "SQ_LEVEL_WAVES.csv": "\n".join((f"{described},Counter_Name,Counter_Value", *long)) + "\n",
        "sysinfo.csv": f"{_SYSTEM}\ngfx942,MI300X_A1,8,304,SPX\n",
    }


def thread_trace_tables() -> dict[str, str]:
    """The files of a decoded thread-trace folder with two waves, a loop and an occupancy table."""
    header = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
    listing = [
        ("; kernel", 0, 0, 0, 0, 0),
        ("global_load_dword v1, v0, s[0:1]", 0, 2, 40, 10, 6),
        ("s_waitcnt vmcnt(0)", 8, 2, 200, 190, 0),
        ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", 12, 4, 16, 0, 0),
        ("s_cbranch_scc1 65533", 20, 4, 16, 0, 2),
        ("s_endpgm", 24, 2, 8, 0, 0),
    ]
    code = [[row[0], 0, n, "app.hip:7", 1, *row[1:]] for n, row in enumerate(listing)]
    instructions = [
        [106, 6, 10, 20, 1],
        [200, 9, 95, 100, 2],
        [306, 6, 0, 8, 3],
        [314, 5, 0, 8, 4],
        [322, 11, 0, 4, 5],
    ]
    names = {str(i): [f"se0_sm0_sl0_wv{i}.json", 100, 330] for i in range(2)}
    tables: dict[str, object] = {
        "code.json": {"code": code, "version": "3.0.0", "header": header},
        "filenames.json": {
            "gfxip": 9,
            "gfxv": "vega",
            "version": "3.0.0",
            "counter_names": ["SQ_WAVES"],
            "wave_filenames": {"0": {"0": {"0": names}}},
        },
        "occupancy.json": {"0": [4096, 8193], "dispatches": {"4": "kernel(int*)"}},
        "snapshots.json": {"app.hip": "source_0_app.hip"},
    }
    for number in range(2):
        wave = {
            "cu": 1,
            "id": number,
            "simd": 0,
            "slot": 0,
            "begin": 100,
            "end": 330,
            "waitcnt": None,
            "instructions": instructions,
            "timeline": [[2, 230]],
        }
        tables[f"se0_sm0_sl0_wv{number}.json"] = {"name": "SE0", "duration": 230, "wave": wave}
    return {name: json.dumps(content) for name, content in tables.items()}
