"""Bytes that gfx942 kernels move per memory level, from TCC and TCP request counters.

Sources: rocprofiler-sdk ``counter_defs.yaml`` (FETCH_SIZE, WRITE_SIZE of gfx942) in rocm-systems @1b1610fc;
request sizes confirmed on a copy kernel of known traffic. ``TCC_EA0_RDREQ`` counts reads of 32, 64 and 128
bytes; ``TCC_BUBBLE`` is the number of the 128-byte ones.
"""

from __future__ import annotations

from rpl_core.model.device import Formula, Quantity
from rpl_core.model.origin import Exactness

_SDK = "rocprofiler-sdk counter_defs.yaml @1b1610fc"
_COPY = "request sizes confirmed on a copy kernel (rocprofiler-compute vcopy, MI300X and MI300A)"
_FABRIC_NOTE = (
    "Traffic between L2 and fabric: it includes Infinity Cache hits and remote memory, so it may exceed HBM."
)
_R, _R32, _R128 = "TCC_EA0_RDREQ", "TCC_EA0_RDREQ_32B", "TCC_BUBBLE"
_W, _W64 = "TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B"
_L1_READ = "TCP_TCC_READ_REQ"
_L1_WRITES = "TCP_TCC_WRITE_REQ + TCP_TCC_ATOMIC_WITH_RET_REQ + TCP_TCC_ATOMIC_WITHOUT_RET_REQ"


def byte_quantities() -> tuple[Quantity, ...]:
    """Bytes at HBM/fabric, L2, vL1D and LDS, and the legacy byte source."""
    return (
        Quantity("hbm_read_bytes", "B", _hbm_read()),
        Quantity("hbm_write_bytes", "B", _hbm_write()),
        Quantity("hbm_bytes", "B", sum_of=("hbm_read_bytes", "hbm_write_bytes")),
        Quantity("tcc_bytes", "B", (_legacy(),)),
        Quantity("l2_bytes", "B", _l2()),
        Quantity("vl1d_bytes", "B", (_vl1d(),)),
        Quantity("lds_bytes_moved", "B", (_lds(),)),
    )


def _hbm_read() -> tuple[Formula, ...]:
    return (
        Formula(
            f"128 * {_R128} + 64 * max0({_R} - {_R128} - {_R32}) + 32 * {_R32}",
            Exactness.EXACT,
            f"{_SDK}, FETCH_SIZE; {_COPY}",
            note=_FABRIC_NOTE,
        ),
        Formula("1024 * FETCH_SIZE", Exactness.ESTIMATE, f"{_SDK}, FETCH_SIZE in KiB", note=_FABRIC_NOTE),
        _interval(f"64 * max0({_R} - {_R32}) + 32 * {_R32}", f"128 * max0({_R} - {_R32}) + 32 * {_R32}"),
        _interval(f"128 * {_R128} + 32 * max0({_R} - {_R128})", f"128 * {_R128} + 64 * max0({_R} - {_R128})"),
        _interval(f"32 * {_R}", f"128 * {_R}"),
    )


def _hbm_write() -> tuple[Formula, ...]:
    return (
        Formula(
            f"64 * {_W64} + 32 * max0({_W} - {_W64})",
            Exactness.EXACT,
            f"{_SDK}, WRITE_SIZE; {_COPY}",
            note=_FABRIC_NOTE,
        ),
        Formula("1024 * WRITE_SIZE", Exactness.ESTIMATE, f"{_SDK}, WRITE_SIZE in KiB", note=_FABRIC_NOTE),
        _interval(f"32 * {_W}", f"64 * {_W}"),
    )


def _interval(lower: str, upper: str) -> Formula:
    return Formula(lower, Exactness.INTERVAL, _SDK, upper_expression=upper, note=_FABRIC_NOTE)


def _legacy() -> Formula:
    return Formula(
        "TCC_READ_BYTES + TCC_WRITE_BYTES",
        Exactness.ESTIMATE,
        "kalowery/rocm-perf-lab @112862e5 docs/USER_GUIDE.md, section 7",
        note="Legacy counters that the profiler does not define for gfx942: used only as a last resort.",
    )


def _l2() -> tuple[Formula, ...]:
    expression = f"128 * {_L1_READ} + 64 * ({_L1_WRITES})"
    return (
        Formula(expression, Exactness.EXACT, _COPY),
        Formula(
            "64 * (TCC_HIT + TCC_MISS)",
            Exactness.INTERVAL,
            _COPY,
            upper_expression="128 * (TCC_HIT + TCC_MISS)",
            note="From L2 look-ups, each of 64 or 128 bytes: scalar and instruction caches count too.",
        ),
        Formula(expression, Exactness.LOWER_BOUND, _COPY, absent_as_zero=True),
    )


def _vl1d() -> Formula:
    return Formula(
        "64 * TCP_TOTAL_CACHE_ACCESSES",
        Exactness.ESTIMATE,
        "rocprofiler-compute roofline @1b1610fc",
        note="Tag look-ups of 64 bytes, not bytes asked for: twice the truth for a streaming FP64 copy.",
    )


def _lds() -> Formula:
    return Formula(
        "4 * 32 * max0(SQ_LDS_IDX_ACTIVE - SQ_LDS_BANK_CONFLICT)",
        Exactness.ESTIMATE,
        "rocprofiler-compute @1b1610fc: 32 banks of 4 bytes per conflict-free cycle",
        note="Assumes that all 32 banks work in every active cycle.",
    )
