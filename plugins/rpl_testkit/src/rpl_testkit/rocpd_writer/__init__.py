"""rpl's own writer for rocpd schema 3, the SQLite format of rocprofv3.

Used by the test kit, the demo and emulated devices. `write_rocpd` takes plain rows (`rows.py`) and writes
a file whose tables, views and columns equal those of a real recording. The package `synthetic_recording`
plays a small MI300X program for it.
"""

from __future__ import annotations

from rpl_testkit.rocpd_writer.rows import (
    AgentRow,
    AllocationRow,
    CodeObjectRow,
    CopyRow,
    CounterDefinitionRow,
    CounterRow,
    DispatchRow,
    GraphLaunchRow,
    HipEventRow,
    KernelRow,
    NodeRow,
    ProcessRow,
    QueueRow,
    RegionArgument,
    RegionRow,
    RocpdContents,
    StreamedCounterRow,
    StreamRow,
)
from rpl_testkit.rocpd_writer.tables import SCHEMA_VERSIONS
from rpl_testkit.rocpd_writer.writer import guid_from_seed, write_rocpd

__all__ = [
    "SCHEMA_VERSIONS",
    "AgentRow",
    "AllocationRow",
    "CodeObjectRow",
    "CopyRow",
    "CounterDefinitionRow",
    "CounterRow",
    "DispatchRow",
    "GraphLaunchRow",
    "HipEventRow",
    "KernelRow",
    "NodeRow",
    "ProcessRow",
    "QueueRow",
    "RegionArgument",
    "RegionRow",
    "RocpdContents",
    "StreamRow",
    "StreamedCounterRow",
    "guid_from_seed",
    "write_rocpd",
]
