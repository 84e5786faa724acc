"""Versions of eight kernels, right and wrong ones, and captures of the version that others are compared with.

What is right is computed by numpy in higher precision, in ``Subject.check``, for any input.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np

FOLDER = Path(__file__).parent
_BASE, _STEP = 0x4801400000, 0x100000
Arrays = dict[str, Any]


@attrs.frozen
class Subject:
    """``draw`` gives the arrays behind the pointers, in the order of the arguments, also those that are only
    written. ``wrong``
    tells from them, before and after, what of the results is no result of a right kernel."""

    name: str
    symbol: str
    demangled: str
    groups: int
    number: int  # the argument behind the pointers
    draw: Callable[[Any], Arrays]
    wrong: Callable[[Arrays, Arrays], bool]
    right_versions: tuple[int, ...]
    wrong_versions: tuple[int, ...]
    source: str
    options: tuple[str, ...] = ()

    def arguments(self, arrays: Arrays) -> bytes:
        places = struct.pack(f"<{len(arrays)}Q", *(_BASE + k * _STEP for k in range(len(arrays))))
        return places + struct.pack("<I", self.number)

    def place(self, arrays: Arrays, name: str) -> int:
        return _BASE + list(arrays).index(name) * _STEP

    def write_capture(self, folder: Path, code: Path, arrays: Arrays) -> Path:
        """As kerncap writes them."""
        (folder / "memory").mkdir(parents=True)
        kinds = {"is_pool": True, "is_vmem": False, "contains_kernarg": False, "handle": 0, "access": 0}
        listed = []
        for name, array in arrays.items():
            base, content = self.place(arrays, name), array.tobytes()
            (folder / "memory" / f"region_{base:x}.bin").write_bytes(content)
            listed.append({"base": base, "size": len(content), **kinds})
        arguments = self.arguments(arrays)
        launch = {
            "mangled_name": f"{self.symbol} [clone .kd]", "demangled_name": self.demangled,
            "agent_name": "gfx942",
            "isa_name": "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "wavefront_size": 64,
            "kernel_object": 0, "grid": [256 * self.groups, 1, 1], "block": [256, 1, 1],
            "group_segment_size": 0, "private_segment_size": 0, "kernarg_size": len(arguments),
            "dispatch_index": 0,
        }  # fmt: skip
        (folder / "dispatch.json").write_text(json.dumps(launch))
        (folder / "memory_regions.json").write_text(json.dumps({"regions": listed}))
        (folder / "module_variables.json").write_text(json.dumps({"variables": []}))
        (folder / "kernarg.bin").write_bytes(arguments)
        shutil.copy(code, folder / "kernel.hsaco")
        (folder / "metadata.json").write_text("{}")
        (folder / "capture_complete").write_text("")
        return folder


def _segments(values: Any) -> Any:
    """Of 256, the last one filled up with zeros."""
    whole = np.zeros(-(-len(values) // 256) * 256)
    whole[: len(values)] = values
    return whole.reshape(-1, 256)


def _beyond(found: Any, right: Any, magnitudes: Any, steps: float, unit: float) -> bool:
    """Whether any is further away than ``steps`` roundings of sums of such magnitudes."""
    apart = np.abs(found.astype(np.float64) - right)
    return bool((~(apart <= steps * unit * magnitudes + 1e-300)).any())


_F32, _F16 = 2.0**-24, 2.0**-11


def _histogram_wrong(before: Arrays, after: Arrays) -> bool:
    counts = before["bins"] + np.bincount(before["keys"] % 256, minlength=256)
    return bool((after["bins"] != counts).any())


def _scan_wrong(before: Arrays, after: Arrays) -> bool:
    parts = _segments(before["values"].astype(np.float64))
    sums, sizes = np.cumsum(parts, 1).ravel()[:1000], np.cumsum(np.abs(parts), 1).ravel()[:1000]
    return _beyond(after["sums"], sums, sizes, 256, _F32)


def _reduction_wrong(before: Arrays, after: Arrays) -> bool:
    parts = _segments(before["values"].astype(np.float64))
    return _beyond(after["sums"], parts.sum(1), np.abs(parts).sum(1), 256, _F32)


def _gemm_wrong(before: Arrays, after: Arrays) -> bool:
    a, b = (before[name].astype(np.float64) for name in "ab")
    a, b = a.reshape(32, 70), b.reshape(70, 32)
    right, sizes = (a @ b).ravel(), (np.abs(a) @ np.abs(b)).ravel()
    stored = np.abs(right) * _F16 * 1.01 if after["c"].dtype == np.float16 else 0.0
    apart = np.abs(after["c"].astype(np.float64) - right)
    return bool((~(apart <= 71 * _F32 * sizes + stored)).any())


def _gemm_sums16_wrong(before: Arrays, after: Arrays) -> bool:
    a, b = (before[name].astype(np.float64) for name in "ab")
    a, b = a.reshape(32, 70), b.reshape(70, 32)
    return _beyond_halves(after["c"], (a @ b).ravel(), (np.abs(a) @ np.abs(b)).ravel(), 140, a, b)


def _reduction_sums16_wrong(before: Arrays, after: Arrays) -> bool:
    parts = _segments(before["values"].astype(np.float64))
    return _beyond_halves(after["sums"], parts.sum(1), np.abs(parts).sum(1), 256, parts)


def _beyond_halves(found: Any, right: Any, magnitudes: Any, steps: float, *given: Any) -> bool:
    """Sums of few whole numbers are exact in halves, too."""
    exact = all((one == np.rint(one)).all() for one in given) and magnitudes.max() <= 2048
    return _beyond(found, right, magnitudes, 0 if exact else steps, _F16)


def _softmax_wrong(before: Arrays, after: Arrays) -> bool:
    rows = before["in"].astype(np.float64).reshape(4, 200)
    shifted = rows - rows.max(1, keepdims=True)
    right = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    # A rounding of the exponent counts as often as it is large.
    steps = 64 + 8 * np.abs(shifted) + 8 * np.abs(rows).max()
    apart = np.abs(after["out"].reshape(4, 200).astype(np.float64) - right)
    return bool((~(apart <= steps * _F32 * right + 2.0**-140)).any())


def _stencil_wrong(before: Arrays, after: Arrays) -> bool:
    field = np.pad(before["in"].astype(np.float64).reshape(48, 48), 1)
    parts = [0.3 * field[1:-1, 1:-1], 0.2 * field[1:-1, :-2], 0.2 * field[1:-1, 2:],
             0.15 * field[:-2, 1:-1], 0.15 * field[2:, 1:-1]]  # fmt: skip
    return _beyond(after["out"], sum(parts).ravel(), sum(map(np.abs, parts)).ravel(), 8, _F32)


def _compaction_wrong(before: Arrays, after: Arrays) -> bool:
    places = np.flatnonzero(before["values"] > 0)
    count = int(after["found"][0])
    if count != len(places):
        return True
    found = sorted(zip(after["places"][:count].tolist(), after["kept"][:count].tolist(), strict=True))
    return found != list(zip(places.tolist(), before["values"][places].tolist(), strict=True))


def _sort_wrong(before: Arrays, after: Arrays) -> bool:
    right = np.concatenate([np.sort(before["in"][k : k + 256]) for k in range(0, 1000, 256)])
    return bool((after["out"] != right).any())


def _uneven(draw: Any, count: int) -> Any:
    """Of very different sizes."""
    return (draw.normal(size=count) * 2.0 ** draw.integers(-8, 8, count)).astype(np.float32)


def _gemm_arrays(draw: Any, number: type) -> Arrays:
    a, b = (draw.normal(size=32 * 70).astype(number) for _ in "ab")
    return {"a": a, "b": b, "c": np.zeros(32 * 32, number)}


_F, _U = np.float32, np.uint32
_EIGHT = tuple(range(101, 109))
SUBJECTS = {
    one.name: one
    for one in (
        Subject(
            "histogram", "_Z9histogramPKjPjj", "histogram(unsigned int const*, unsigned int*, unsigned int)",
            4, 1000,
            lambda r: {"keys": r.integers(0, 256, 1000).astype(_U), "bins": np.zeros(256, _U)},
            _histogram_wrong, (1, 2, 3, 4, 5), _EIGHT, "histogram.hip",
        ),
        Subject(
            "scan", "_Z4scanPKfPfj", "scan(float const*, float*, unsigned int)", 4, 1000,
            lambda r: {"values": _uneven(r, 1000), "sums": np.zeros(1000, _F)},
            _scan_wrong, (1, 2, 3, 4, 5), _EIGHT, "scan.hip",
        ),
        Subject(
            "reduction", "_Z9reductionPKfPfj", "reduction(float const*, float*, unsigned int)", 4, 1000,
            lambda r: {"values": _uneven(r, 1000), "sums": np.zeros(4, _F)},
            _reduction_wrong, (1, 2, 3, 4, 5), _EIGHT, "reduction.hip",
        ),
        Subject(
            "gemm_f32", "_Z8gemm_f32PKfS0_Pfj", "gemm_f32(float const*, float const*, float*, unsigned int)",
            4, 70,
            lambda r: _gemm_arrays(r, np.float32), _gemm_wrong, (1, 2, 3, 4, 5), _EIGHT, "gemm.hip",
        ),
        Subject(
            "gemm_f16", "_Z8gemm_f16PKDF16_S0_PDF16_j",
            "gemm_f16(_Float16 const*, _Float16 const*, _Float16*, unsigned int)", 4, 70,
            lambda r: _gemm_arrays(r, np.float16), _gemm_wrong, (1, 2, 3, 4, 5), _EIGHT, "gemm.hip",
            ("-DHALVES",),
        ),
        Subject(
            "gemm_sums16", "_Z11gemm_sums16PKDF16_S0_PDF16_j",
            "gemm_sums16(_Float16 const*, _Float16 const*, _Float16*, unsigned int)", 4, 70,
            lambda r: _gemm_arrays(r, np.float16), _gemm_sums16_wrong, (1, 2, 3, 4, 5, 6, 7), _EIGHT,
            "gemm_sums16.hip",
        ),
        Subject(
            "reduction_sums16", "_Z16reduction_sums16PKDF16_Pfj",
            "reduction_sums16(_Float16 const*, float*, unsigned int)", 4, 1000,
            lambda r: {"values": r.normal(size=1000).astype(np.float16), "sums": np.zeros(4, _F)},
            _reduction_sums16_wrong, (1, 2, 3, 4, 5), _EIGHT, "reduction_sums16.hip",
        ),
        Subject(
            "softmax", "_Z7softmaxPKfPfj", "softmax(float const*, float*, unsigned int)", 4, 200,
            lambda r: {"in": (3 * r.normal(size=800)).astype(_F), "out": np.zeros(800, _F)},
            _softmax_wrong, (1, 2, 3, 4, 5, 6), _EIGHT, "softmax.hip",
        ),
        Subject(
            "stencil", "_Z7stencilPKfPfi", "stencil(float const*, float*, int)", 9, 48,
            lambda r: {"in": r.normal(size=48 * 48).astype(_F), "out": np.zeros(48 * 48, _F)},
            _stencil_wrong, (1, 2, 3, 4, 5), _EIGHT, "stencil.hip",
        ),
        Subject(
            "compaction", "_Z10compactionPKfPfPjS2_j",
            "compaction(float const*, float*, unsigned int*, unsigned int*, unsigned int)", 4, 1000,
            lambda r: {"values": r.uniform(-1, 1, 1000).astype(_F), "kept": np.zeros(1000, _F),
                       "places": np.zeros(1000, _U), "found": np.zeros(1, _U)},
            _compaction_wrong, (1, 2, 3, 4, 5), _EIGHT, "compaction.hip",
        ),
        Subject(
            "sort", "_Z4sortPKiPij", "sort(int const*, int*, unsigned int)", 4, 1000,
            lambda r: {"in": r.integers(-1000, 1000, 1000).astype(np.int32), "out": np.zeros(1000, np.int32)},
            _sort_wrong, (1, 2, 3, 4, 5), _EIGHT, "sort.hip",
        ),
    )
}  # fmt: skip
