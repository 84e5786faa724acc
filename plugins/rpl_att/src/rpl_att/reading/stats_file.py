"""``stats_ui_output_*.csv`` beside a decoded folder, and ``att_output.csv`` inside an early one."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from rpl_att.reading.code_table import CodeTable, parse_stats
from rpl_att.reading.folder import MAX_TABLE_BYTES, TraceFolder, open_bounded
from rpl_core.errors import BadDataError

_EARLY_NAME = "att_output.csv"


def stats_path(folder: TraceFolder) -> Path | None:
    """The CSV that belongs to ``folder``: inside of it, or beside it under its own name."""
    inside = folder.find(_EARLY_NAME)
    if inside is not None:
        return inside
    resolved = folder.path.resolve()
    return TraceFolder(resolved.parent).find(f"stats_{resolved.name}.csv")


def read_stats(path: Path) -> CodeTable | None:
    """The table; ``None`` for a file that holds only a header (an empty trace)."""
    with open_bounded(path) as stream:
        data = stream.read(MAX_TABLE_BYTES + 1)
    if len(data) > MAX_TABLE_BYTES:
        raise BadDataError(f"{path} is larger than {MAX_TABLE_BYTES >> 20} MiB")
    try:
        records = list(csv.DictReader(io.StringIO(data.decode("utf-8")), skipinitialspace=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadDataError(f"{path} is no CSV table: {error}") from None
    return parse_stats(records, path)
