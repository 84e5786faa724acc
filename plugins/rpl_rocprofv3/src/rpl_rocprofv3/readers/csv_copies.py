"""Copies of a CSV set. The table names no size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_rocprofv3.readers.copy_table import CopyRows, direction_name
from rpl_rocprofv3.readers.csv_findings import report_columns
from rpl_rocprofv3.readers.csv_tables import read_columns

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.readers.csv_agents import CsvAgents
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["read_csv_copies"]

_INTEGERS = ("Stream_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp")


def read_csv_copies(path: Path, agents: CsvAgents, findings: Findings) -> tuple[CopyRows, Int64Column]:
    """Read a memory copy trace, with the stream id of each copy."""
    columns = read_columns(
        path, integers=_INTEGERS, texts=("Direction", "Source_Agent_Id", "Destination_Agent_Id")
    )
    report_columns(columns, findings)
    direction = columns.texts["direction"]
    count = columns.row_count
    rows = CopyRows(
        process=np.zeros(count, np.int32),
        source_agent=agents.positions(columns.texts.get("source_agent_id"), count),
        destination_agent=agents.positions(columns.texts.get("destination_agent_id"), count),
        stream=np.full(count, NOT_RECORDED, np.int32),
        direction=direction.code,
        size_bytes=np.full(count, NOT_RECORDED, np.int64),
        correlation_id=columns.integer("Correlation_Id"),
        begin_ns=columns.integer("Start_Timestamp"),
        end_ns=columns.integer("End_Timestamp"),
        directions=tuple(direction_name(text) for text in direction.texts),
    )
    return rows, columns.integer("Stream_Id")
