"""Every product against the tables of docs/reference: sizes, clocks, ids, rates, counters per pass.

The tables name their sources (ROCm's ``gpu-specs.rst``, data sheets, AQLprofile) and are read as text.
Ceilings are worked out here: operations or bytes per clock, times compute units or channels, times MHz.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rpl_gfx90a.plugin
import rpl_gfx942.plugin
import rpl_gfx950.plugin
import rpl_gfx1030.plugin
import rpl_gfx1100.plugin
from rpl_core.model.device import CeilingOrigin, DeviceModel, Pipe

ROOT = Path(__file__).parents[3]
DEVICES, COUNTERS = "docs/reference/devices.md", "docs/reference/counters.md"
MODELS = [
    model
    for plugin in (
        rpl_gfx90a.plugin,
        rpl_gfx942.plugin,
        rpl_gfx950.plugin,
        rpl_gfx1030.plugin,
        rpl_gfx1100.plugin,
    )
    for model in plugin.rpl_device_models()
]
CDNA = [model for model in MODELS if model.name.startswith("mi")]
RADEON = [model for model in MODELS if model not in CDNA]
#: How a product is called in the tables, where not by the name on its box.
_CALLED = {
    "mi210": "MI210, one die of MI250",
    "mi250": "MI210, one die of MI250",
    "mi250x": "one die of MI250X",
}


def _table(page: str, *heads: str) -> list[dict[str, str]]:
    """The rows of the first table whose header begins with these cells."""
    lines = iter((ROOT / page).read_text(encoding="utf-8").splitlines())
    columns = next(cells for line in lines if (cells := _cells(line))[: len(heads)] == list(heads))
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(dict(zip(columns, _cells(line), strict=True)))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _number(cell: str) -> float | None:
    """Without the word for its source; nothing where the cell is empty or says that there is none."""
    found = re.match(r"[\d.]+", cell)
    return float(found[0]) if found else None


def _mib(size_bytes: int | None) -> float | None:
    return None if size_bytes is None else size_bytes / 2**20


def _spec(model: DeviceModel, level: str) -> float | None:
    found = model.memory_ceiling(level, CeilingOrigin.SPEC)
    return None if found is None else found.peak_gbps


@pytest.mark.parametrize("model", CDNA, ids=lambda model: model.name)
def test_sizes_of_instinct_products(model: DeviceModel) -> None:
    called = _CALLED.get(model.name, model.name.upper())
    (row,) = (
        row for row in _table(DEVICES, "product", "architecture", "CU", "XCD") if row["product"] == called
    )
    assert model.architecture == row["architecture"]
    assert model.compute_units == _number(row["CU"])
    assert model.xcd_count == _number(row["XCD"])
    assert model.clock_mhz == _number(row["clock MHz"])
    assert _mib(model.l2_bytes) == _number(row["L2 MiB"])
    assert _mib(model.llc_bytes) == _number(row["Infinity Cache MiB"])
    assert model.lds_bytes_per_cu == 1024 * (_number(row["LDS per CU KiB"]) or 0)
    assert _spec(model, "hbm") == _number(row["HBM GB/s"])
    assert (model.simd_per_cu, model.wave_size, model.max_waves_per_simd) == (4, 64, 8)


def _radeon_rows() -> Iterator[tuple[str, dict[str, str]]]:
    """One product each, where a row of the table holds several."""
    for row in _table(DEVICES, "product", "architecture", "CU", "L2 MiB"):
        names = re.split(r"[;,] ", row["product"])
        family = re.match(r"(?:RX|PRO|AI PRO|Radeon) ", names[0])
        for number, name in enumerate(names):
            if name == "48 GB":
                name = f"{names[0]} 48GB"
            whole = name if re.match(r"RX|PRO|AI|Radeon", name) else f"{family[0] if family else ''}{name}"
            parts = {key: re.split(r"[;,] ", cell) for key, cell in row.items()}
            yield (
                whole.removeprefix("Radeon "),
                {
                    key: cells[number] if len(cells) == len(names) else cells[0]
                    for key, cells in parts.items()
                },
            )


@pytest.mark.parametrize("model", RADEON, ids=lambda model: model.name)
def test_sizes_of_radeon_products(model: DeviceModel) -> None:
    rows = dict(_radeon_rows())
    assert {f"AMD Radeon {name}" for name in rows} == {one.product for one in RADEON}
    row = rows[model.product.removeprefix("AMD Radeon ")]
    assert model.architecture == row["architecture"]
    assert (model.compute_units, model.xcd_count) == (_number(row["CU"]), 1)
    assert _mib(model.l2_bytes) == _number(row["L2 MiB"])
    assert _mib(model.llc_bytes) == _number(row["Infinity Cache MiB"])
    assert model.clock_mhz == _number(row["clock MHz"])
    assert _spec(model, "hbm") == _number(row["memory GB/s"])
    assert model.wave_size == 32


def test_chip_ids_of_instinct_products() -> None:
    (row,) = _table(DEVICES, "MI300X", "MI300X HF")
    models = {model.name.upper(): model for model in CDNA}
    for name, cell in row.items():
        if not name.endswith("HF"):
            assert models[name].chip_ids == tuple(int(one) for one in cell.split(", "))
    assert models["MI210"].chip_ids == (29711,)
    assert models["MI250"].chip_ids == (29708,)
    assert models["MI250X"].chip_ids == (29704, 29708)
    shared = {
        0x744C: {"rx7900xtx", "rx7900xt", "rx7900gre"},
        0x73BF: {"rx6900xt", "rx6800xt", "rx6800"},
        0x1586: {"8060s", "8050s", "8040s"},
        0x7550: {"rx9070xt", "rx9070"},
    }
    for chip, names in shared.items():
        assert {model.name for model in RADEON if chip in model.chip_ids} == names


_UNITS = {
    "F64, F32, F16 vector": (Pipe.VALU, "F64", "F32", "F16"),
    "F32 vector, packed or dual": (Pipe.VALU_PACKED, "F32"),
    "F64 matrix": (Pipe.MFMA, "F64"),
    "F32 matrix": (Pipe.MFMA, "F32"),
    "XF32 matrix": (Pipe.MFMA, "XF32"),
    "F16, BF16 matrix": (Pipe.MFMA, "F16", "BF16"),
    "I8 matrix": (Pipe.MFMA, "I8"),
    "F8 matrix": (Pipe.MFMA, "F8"),
    "F6, F4 matrix": (Pipe.MFMA, "F6F4"),
}


@pytest.mark.parametrize("model", CDNA, ids=lambda model: model.name)
def test_rates_of_instinct_products(model: DeviceModel) -> None:
    clocks = None
    if model.compute_units is not None and model.clock_mhz is not None:
        clocks = model.compute_units * model.clock_mhz / 1000
    for row in _table(DEVICES, "type, unit", "gfx90a"):
        pipe, *types = _UNITS[row["type, unit"]]
        rate = _number(row[model.architecture])
        for data_type in types:
            found = model.compute_ceiling(data_type, pipe, CeilingOrigin.SPEC)
            if rate is None or clocks is None:
                assert found is None
            else:
                assert found is not None
                assert found.peak_gflops == pytest.approx(rate * clocks)
    bytes_of = {row["level"]: row for row in _table(DEVICES, "level", "gfx942, gfx950")}
    column = "gfx90a" if model.architecture == "gfx90a" else "gfx942, gfx950"
    if clocks is None or model.clock_mhz is None or model.l2_channels is None:
        return
    assert _spec(model, "vl1d") == pytest.approx((_number(bytes_of["vL1D, per CU"][column]) or 0) * clocks)
    lds = (_number(bytes_of["LDS, per CU"][column]) or 0) * clocks
    # The panel's figure for LDS of gfx950 is not the one of its data sheet, so there is none.
    assert _spec(model, "lds") == (None if model.architecture == "gfx950" else pytest.approx(lds))
    assert _spec(model, "l2") == pytest.approx(128 * model.l2_channels * model.clock_mhz / 1000)
    assert model.l2_channels == (32 if model.architecture == "gfx90a" else 16 * (model.xcd_count or 0))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_counters_per_pass(model: DeviceModel) -> None:
    if model in CDNA:
        (row,) = _table(COUNTERS, "block", "SQ")
        expected = {block: int(count) for block, count in row.items() if block != "block"}
    else:
        text = " ".join((ROOT / COUNTERS).read_text(encoding="utf-8").split())
        (told,) = re.findall(r"`gfx11_block_info.h`\): (.*?)\. The profiler's own", text)
        expected = {}
        for part in told.split("; "):
            blocks, count = part.rsplit(" ", 1)
            expected |= dict.fromkeys(re.split(r", | and ", blocks), int(count))
    assert dict(model.counter_map.block_limits) == expected
    prefixes = dict(model.counter_map.block_prefixes)
    assert prefixes == {f"{block}_": block for block in expected} | {"SQC_": "SQ"}
    # Whatever is asked for has a block, so that the limits hold for it.
    for name in model.counter_map.recommended:
        assert any(name.startswith(prefix) for prefix in prefixes), name


def test_rates_of_radeon_products() -> None:
    """F32 128 operations per clock and CU, twice that with dual issue from RDNA 3 on."""
    for model in RADEON:
        clocks = None if model.clock_mhz is None else (model.compute_units or 0) * model.clock_mhz / 1000
        single = model.compute_ceiling("F32", Pipe.VALU, CeilingOrigin.SPEC)
        dual = model.compute_ceiling("F32", Pipe.VALU_PACKED, CeilingOrigin.SPEC)
        if clocks is None or model.architecture == "gfx1201":
            assert (single, dual) == (None, None)
            continue
        assert single is not None
        assert single.peak_gflops == pytest.approx(128 * clocks)
        if model.architecture in {"gfx1100", "gfx1151"}:
            assert dual is not None
            assert dual.peak_gflops == pytest.approx(256 * clocks)
            halves = model.compute_ceiling("F16", Pipe.VALU_PACKED, CeilingOrigin.SPEC)
            doubles = model.compute_ceiling("F64", Pipe.VALU, CeilingOrigin.SPEC)
            assert halves is not None
            assert doubles is not None
            assert (halves.peak_gflops, doubles.peak_gflops) == (
                pytest.approx(512 * clocks),
                pytest.approx(4 * clocks),
            )
