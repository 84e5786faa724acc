"""Writes what `nsys export --type sqlite` writes, through its documented schema.

Source: Nsight Systems User Guide, "SQLite Schema Reference". Columns that the reader does not ask for are
left out.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

SCHEMA = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "TARGET_INFO_SYSTEM_ENV": "name TEXT NOT NULL, value TEXT NOT NULL",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": "id INTEGER NOT NULL, name TEXT, smCount INTEGER, threadsPerWarp INTEGER,"
    " maxShmemPerSm INTEGER, clockRate INTEGER, totalMemory INTEGER,"
    " computeMajor INTEGER, computeMinor INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL",
    "TARGET_INFO_CUDA_CONTEXT_INFO": "nullStreamId INTEGER NOT NULL, processId INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL",
    "TARGET_INFO_CUDA_STREAM": "streamId INTEGER NOT NULL, processId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, priority INTEGER NOT NULL, flag INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER,"
    " correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,"
    " registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,"
    " gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,"
    " staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,"
    " localMemoryPerThread INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " value INTEGER NOT NULL, bytes INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,"
    " streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, eventId INTEGER NOT NULL",
}
NULL_STREAM, NOBODY = 7, 0xFFFF_FFFF
CONTEXT = {"deviceId": 0, "contextId": 1}


class Session:
    """A program as it runs: each call gets the next correlation id."""

    def __init__(self, gpu="NVIDIA H100 80GB HBM3", pid=4242):
        self.rows = {table: [] for table in SCHEMA}
        self.strings, self.correlation, self.pid = {}, 0, pid
        self.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="hopper")
        self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_790_000_000_000_000_000)
        self.add(
            "TARGET_INFO_GPU",
            id=0,
            name=gpu,
            smCount=132,
            threadsPerWarp=32,
            maxShmemPerSm=233_472,
            clockRate=1_980_000_000,
            totalMemory=85_520_809_984,
            computeMajor=9,
            computeMinor=0,
        )
        self.add("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=pid)
        self.add("TARGET_INFO_CUDA_CONTEXT_INFO", nullStreamId=NULL_STREAM, processId=pid, **CONTEXT)
        self.stream(NULL_STREAM, flag=3)

    @property
    def serialized(self):
        """vmId, process and thread in one number."""
        return (1 << 48) | (self.pid << 24)

    def add(self, table, **values):
        self.rows[table].append(values)

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings) + 1)

    def stream(self, number, flag=1):
        self.add(
            "TARGET_INFO_CUDA_STREAM", streamId=number, processId=self.pid, contextId=1, priority=0, flag=flag
        )

    def call(self, name, begin, end):
        self.correlation += 1
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=begin,
            end=end,
            globalTid=self.serialized | self.pid,
            returnValue=0,
            correlationId=self.correlation,
            nameId=self.string(name),
        )
        return {"correlationId": self.correlation, "globalPid": self.serialized, **CONTEXT}

    def kernel(self, name, called, begin, end, stream=NULL_STREAM, registers=32, block=256, shared=0):
        self.add(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            **self.call("cudaLaunchKernel_v7000", called, called + 5),
            start=begin,
            end=end,
            streamId=stream,
            registersPerThread=registers,
            **dict.fromkeys(("demangledName", "shortName", "mangledName"), self.string(name)),
            gridX=1000,
            gridY=1,
            gridZ=1,
            blockX=block,
            blockY=1,
            blockZ=1,
            staticSharedMemory=0,
            dynamicSharedMemory=shared,
            localMemoryPerThread=0,
        )

    def copy(self, name, called, returned, begin, end, kind, stream=NULL_STREAM, size=4096):
        self.add(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            **self.call(name, called, returned),
            start=begin,
            end=end,
            streamId=stream,
            bytes=size,
            copyKind=kind,
        )

    def fill(self, called, begin, end, stream=NULL_STREAM):
        self.add(
            "CUPTI_ACTIVITY_KIND_MEMSET",
            **self.call("cudaMemset_v3020", called, called + 5),
            start=begin,
            end=end,
            streamId=stream,
            value=0,
            bytes=512,
        )

    def record(self, event, called, stream):
        self.add(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
            **self.call("cudaEventRecord_v3020", called, called + 2),
            streamId=stream,
            eventId=event,
        )

    def synchronize(self, name, kind, called, returned, stream=NOBODY, event=NOBODY):
        self.add(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            **self.call(name, called, returned),
            start=called,
            end=returned,
            syncType=kind,
            streamId=stream,
            eventId=event,
        )

    def write(self, path, without=()):
        self.rows["StringIds"] = [{"id": number, "value": text} for text, number in self.strings.items()]
        with closing(sqlite3.connect(path)) as database, database:
            for table, columns in SCHEMA.items():
                if table not in without:
                    database.execute(f"CREATE TABLE {table} ({columns})")
                    for row in self.rows[table]:
                        names, marks = ", ".join(row), ", ".join("?" * len(row))
                        database.execute(
                            f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values())
                        )
        return path


def program(**options):
    """saxpy on one stream, an event, gemm on another one that waits for it, the host waits, tail."""
    session = Session(**options)
    session.stream(13)
    session.stream(14, flag=2)
    session.copy("cudaMemcpy_v3020", 1_000, 2_000, 1_500, 1_900, kind=1)
    session.kernel("saxpy(float*)", 2_100, 2_500, 4_500, stream=13, registers=40)
    session.record(5, 2_200, stream=13)
    session.synchronize("cudaStreamWaitEvent_v3020", 2, 2_210, 2_220, stream=14, event=5)
    session.kernel("gemm(half*)", 2_300, 4_600, 9_000, stream=14, registers=168, block=384, shared=100_000)
    session.synchronize("cudaStreamSynchronize_v3020", 3, 2_400, 9_100, stream=14)
    session.kernel("tail(float*)", 9_200, 9_300, 9_800, stream=13)
    session.copy("cudaMemcpy_v3020", 9_900, 11_000, 10_100, 10_900, kind=2)
    return session
