"""Bytes that kernels move per memory level on CDNA GPUs, from TCC and TCP request counters.

Sources: rocprofiler-sdk ``counter_defs.yaml`` (FETCH_SIZE, WRITE_SIZE) in rocm-systems @1b1610fc; request
sizes confirmed on a copy kernel of known traffic (docs/reference/counters.md, 5). Which reads there are
differs from GPU to GPU, so a device plugin gives those formulas.
"""

from __future__ import annotations

from rpl_core.model.device import Formula, Quantity
from rpl_core.model.metric import Exactness

__all__ = ["COPY", "FABRIC_NOTE", "SDK", "byte_quantities", "fabric_interval", "reads_of_three_sizes"]

SDK = "rocprofiler-sdk counter_defs.yaml @1b1610fc"
COPY = "request sizes confirmed on a copy kernel (rocprofiler-compute vcopy, {gpus})"
FABRIC_NOTE = (
    "Traffic between L2 and fabric: it includes Infinity Cache hits and remote memory, so it may exceed HBM."
)
_L1_READ = "TCP_TCC_READ_REQ"
_L1_WRITES = "TCP_TCC_WRITE_REQ + TCP_TCC_ATOMIC_WITH_RET_REQ + TCP_TCC_ATOMIC_WITHOUT_RET_REQ"


def byte_quantities(
    *,
    fabric: str,
    reads: tuple[Formula, ...],
    l1_read_bytes: int,
    copied_on: str,
    write_note: str = FABRIC_NOTE,
    lds: tuple[Formula, ...] = (),
    others: tuple[Quantity, ...] = (),
) -> tuple[Quantity, ...]:
    """Bytes at HBM/fabric, L2, vL1D and LDS.

    ``fabric`` is the prefix of the counters beyond L2 ("TCC_EA0"), ``l1_read_bytes`` what a read of the vL1D
    asks L2 for, ``copied_on`` the GPUs whose request sizes a copy kernel confirmed. ``lds`` are better ways
    to count LDS bytes than by active cycles.
    """
    copy = COPY.format(gpus=copied_on)
    return (
        Quantity("hbm_read_bytes", "B", reads),
        Quantity("hbm_write_bytes", "B", _writes(fabric, copy, write_note)),
        Quantity("hbm_bytes", "B", sum_of=("hbm_read_bytes", "hbm_write_bytes")),
        *others,
        Quantity("l2_bytes", "B", _l2(l1_read_bytes, copy)),
        Quantity("vl1d_bytes", "B", (_vl1d(),)),
        Quantity("lds_bytes_moved", "B", (*lds, _lds())),
    )


def reads_of_three_sizes(
    *, fabric: str, reads_128: str, source: str, fetch_size: tuple[Formula, ...] = ()
) -> tuple[Formula, ...]:
    """Reads of 32, 64 and 128 bytes, where ``<fabric>_RDREQ`` counts all and ``reads_128`` the largest ones.

    Without ``reads_128`` a read that is not of 32 bytes has 64 or 128: an interval, never the lower end.
    """
    reads, reads_32 = f"{fabric}_RDREQ", f"{fabric}_RDREQ_32B"
    exact = f"128 * {reads_128} + 64 * max0({reads} - {reads_128} - {reads_32}) + 32 * {reads_32}"
    return (
        Formula(exact, Exactness.EXACT, source, note=FABRIC_NOTE),
        *fetch_size,
        fabric_interval(
            f"64 * max0({reads} - {reads_32}) + 32 * {reads_32}",
            f"128 * max0({reads} - {reads_32}) + 32 * {reads_32}",
        ),
        fabric_interval(
            f"128 * {reads_128} + 32 * max0({reads} - {reads_128})",
            f"128 * {reads_128} + 64 * max0({reads} - {reads_128})",
        ),
        fabric_interval(f"32 * {reads}", f"128 * {reads}"),
    )


def fabric_interval(lower: str, upper: str, note: str = FABRIC_NOTE) -> Formula:
    """Bytes beyond L2 between two bounds, where a request's size was not recorded."""
    return Formula(lower, Exactness.INTERVAL, SDK, upper_expression=upper, note=note)


def _writes(fabric: str, copy: str, note: str) -> tuple[Formula, ...]:
    writes, writes_64 = f"{fabric}_WRREQ", f"{fabric}_WRREQ_64B"
    return (
        Formula(
            f"64 * {writes_64} + 32 * max0({writes} - {writes_64})",
            Exactness.EXACT,
            f"{SDK}, WRITE_SIZE; {copy}",
            note=note,
        ),
        Formula("1024 * WRITE_SIZE", Exactness.ESTIMATE, f"{SDK}, WRITE_SIZE in KiB", note=note),
        fabric_interval(f"32 * {writes}", f"64 * {writes}", note),
    )


def _l2(read_bytes: int, copy: str) -> tuple[Formula, ...]:
    if read_bytes == 64:
        expression = f"64 * ({_L1_READ} + {_L1_WRITES})"
    else:
        expression = f"{read_bytes} * {_L1_READ} + 64 * ({_L1_WRITES})"
    return (
        Formula(expression, Exactness.EXACT, copy),
        Formula(
            "64 * (TCC_HIT + TCC_MISS)",
            Exactness.INTERVAL,
            copy,
            upper_expression="128 * (TCC_HIT + TCC_MISS)",
            note="From L2 look-ups, each of 64 or 128 bytes: scalar and instruction caches count too.",
        ),
        Formula(expression, Exactness.LOWER_BOUND, copy, absent_as_zero=True),
    )


def _vl1d() -> Formula:
    return Formula(
        "64 * TCP_TOTAL_CACHE_ACCESSES",
        Exactness.ESTIMATE,
        "rocprofiler-compute roofline @1b1610fc",
        note=(
            "Tag look-ups of 64 bytes, not bytes asked for: twice the truth for a streaming FP64 copy."
            " AMD's panels disagree: the roofline takes 64 bytes, the speed of light of gfx942 takes 128."
        ),
    )


def _lds() -> Formula:
    return Formula(
        "4 * 32 * max0(SQ_LDS_IDX_ACTIVE - SQ_LDS_BANK_CONFLICT)",
        Exactness.ESTIMATE,
        "rocprofiler-compute @1b1610fc: 32 banks of 4 bytes per conflict-free cycle",
        note="Assumes that all 32 banks work in every active cycle.",
    )
