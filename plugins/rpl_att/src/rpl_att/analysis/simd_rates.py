"""Rates per SIMD and CU: instructions per cycle, resident waves, and how busy each pipe issues."""

from __future__ import annotations

from rpl_att.contract import AttIpc
from rpl_att.reduction.waves import ReducedWaves


def ipc(waves: ReducedWaves, total: int) -> AttIpc:
    """H / T per wave; H / sum of SIMD windows per SIMD; per CU the sum over its SIMDs, mean over CUs."""
    executed = sum(wave.instructions for wave in waves.waves)
    windows = sum(simd.window for simd in waves.simds)
    return AttIpc(
        per_wave=executed / total if total else None,
        per_simd=executed / windows if windows else None,
        per_cu=_per_cu(waves),
    )


def _per_cu(waves: ReducedWaves) -> float | None:
    """Each traced shader engine has one target CU, so its SIMDs add up to that CU."""
    executed: dict[tuple[int, int], int] = {}
    for wave in waves.waves:
        place = (wave.file.shader_engine, wave.file.simd)
        executed[place] = executed.get(place, 0) + wave.instructions
    rates: dict[int, float] = {}
    for simd in waves.simds:
        if simd.window:
            rate = executed[simd.shader_engine, simd.simd] / simd.window
            rates[simd.shader_engine] = rates.get(simd.shader_engine, 0.0) + rate
    return sum(rates.values()) / len(rates) if rates else None


def waves_per_simd(waves: ReducedWaves) -> float | None:
    """Sum of lifetimes / sum of windows (docs/reference/thread-trace.md, 3.4)."""
    windows = sum(simd.window for simd in waves.simds)
    return sum(wave.lifetime for wave in waves.waves) / windows if windows else None


def issue_utilization(waves: ReducedWaves) -> dict[str, float] | None:
    """Busy cycles / window by class and for any pipe; ``None`` when a SIMD had too many intervals."""
    windows = sum(simd.window for simd in waves.simds)
    busy: dict[str, int] = {}
    for simd in waves.simds:
        if simd.busy is None:
            return None
        for name, cycles in simd.busy.items():
            busy[name] = busy.get(name, 0) + cycles
    return {name: cycles / windows for name, cycles in sorted(busy.items())} if windows else {}
