"""``se<N>_perfcounter.json``: the sampled SQ counters, summed over all samples, CUs and shader engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rpl_att.reading.folder import TraceFolder, open_bounded
from rpl_att.reading.json_skeleton import SkeletonError, split_arrays
from rpl_att.reading.numeric_rows import NotRowsError, row_blocks
from rpl_core.errors import BadDataError

#: Rows are ``time, e0, e1, e2, e3, cu, bank``; bank 1 holds counters 4 to 7 (att.md, 1.6).
_WIDTH = 7
_PER_BANK = 4


def counter_sums(folder: TraceFolder, names: Sequence[str]) -> dict[str, int]:
    """Sum of the deltas of each counter; empty without names or samples."""
    totals = np.zeros(2 * _PER_BANK, np.int64)
    files = folder.names(r"se\d+_perfcounter\.json") if names else ()
    for name in files:
        totals += _file_sums(folder, name)
    if not files:
        return {}
    return {name: int(totals[index]) for index, name in enumerate(names[: 2 * _PER_BANK])}


def _file_sums(folder: TraceFolder, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    totals = np.zeros(2 * _PER_BANK, np.int64)
    path = folder.find(name)
    assert path is not None
    with open_bounded(path) as stream:
        try:
            span = split_arrays(stream, rows=("data",)).arrays.get("data")
            for block in row_blocks(stream, span, _WIDTH) if span else ():
                for bank in (0, 1):
                    chosen = block[block[:, 6] == bank]
                    totals[bank * _PER_BANK : (bank + 1) * _PER_BANK] += chosen[:, 1:5].sum(axis=0)
        except (SkeletonError, NotRowsError) as error:
            raise BadDataError(f"{path}: {error}") from None
    return totals
