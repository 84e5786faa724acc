"""The readers of this plugin, imported when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpl_core.interfaces.reader import Reader

__all__ = ["all_readers"]


def all_readers() -> tuple[Reader, ...]:
    """Every reader."""
    from rpl_rocprofv3.readers.csv.reader import CsvReader
    from rpl_rocprofv3.readers.foreign import ForeignReader
    from rpl_rocprofv3.readers.json.reader import JsonReader
    from rpl_rocprofv3.readers.rocpd.reader import RocpdReader
    from rpl_rocprofv3.readers.rpd.reader import RpdReader
    from rpl_rocprofv3.readers.workload.reader import ComputeWorkloadReader

    return (ComputeWorkloadReader(), RocpdReader(), CsvReader(), JsonReader(), RpdReader(), ForeignReader())
