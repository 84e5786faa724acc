"""Real raw traces through AMD's real decoder, where this machine has one, against folders decoded before.

The library is under AMD's end-user licence and is never installed for a test run, so these tests end as
skipped without it, in CI too: set RPL_TRACE_DECODER to the library, or install ROCm.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from rpl_att.decoded_trace import read_decoded_trace
from rpl_att.decoding.decode import decode_raw
from rpl_att.options import find_decoder, library_in
from rpl_att.reading import is_raw_file

#: Sample -> (folder of raw traces, table of instructions); the decoded folder has the same name.
SAMPLES = {
    "wave_gemm": ("gfx950_wave_gemm/smci350-zts-gtu-b20-05", "isa_code_object_3.json"),
    "aiter": ("gfx950_aiter_mxfp4_gemm_legacy8col/bg-126-035d", "isa_code_object_4.json"),
    "gfx1100": ("gfx1100_tinygrad_gemm/raw", "isa_raw_address.json"),
    "gfx1200": ("gfx1200_tinygrad_gemm/raw", "isa_raw_address.json"),
    "gfx950_tinygrad": ("gfx950_tinygrad_gemm/raw", "isa_raw_address.json"),
}
#: The GEMM's kernel begins at ELF address 0x1700 (its decoded folder) and at 0x7f081dc6b700 in the raw trace.
_GEMM_BASE = 0x7F081DC6B700 - 0x1700


@pytest.fixture(scope="session")
def decoder() -> Path:
    named = os.environ.get("RPL_TRACE_DECODER")
    if named:
        return Path(named)
    folder = find_decoder(os.environ)
    if folder is None:
        pytest.skip("no trace decoder of AMD is installed (RPL_TRACE_DECODER names one); it can't be shipped")
    return library_in(folder)


@pytest.fixture
def decoded(decoder, rpl_shared_data, tmp_path):
    def decode(name: str):
        place, table = SAMPLES[name]
        source = rpl_shared_data / "att" / place
        shutil.copy(source.parent / table, tmp_path)
        paths = []
        for path in sorted(source.glob("*.att")):
            full = path.name if is_raw_file(path.name) else f"9_0_{path.name}"
            paths.append(Path(shutil.copy(path, tmp_path / full)))
        if name == "wave_gemm":
            entry = {"code_object_id": 3, "load_base": _GEMM_BASE, "load_size": 0x4000}
            results = {"rocprofiler-sdk-tool": [{"code_objects": [entry]}]}
            (tmp_path / "3785403_results.json").write_text(json.dumps(results))
        return decode_raw(decoder, paths)

    return decode


def _waves(trace):
    return sorted(
        (
            (w.file.shader_engine, w.file.simd, w.file.slot, w.file.begin, w.file.end, w.cu),
            (w.instructions, w.latency, w.stall, w.idle, w.startup),
        )
        for w in trace.waves.waves
    )


def _executed(code):
    """Executed instructions in order of addresses, which start anywhere."""
    rows = [place for place in np.flatnonzero(code.hit).tolist() if place not in code.labels]
    first = min(int(code.vaddr[place]) for place in rows)
    columns = (code.hit, code.latency, code.stall, code.idle)
    return sorted(
        (int(code.vaddr[place]) - first, code.isa[place], *(int(c[place]) for c in columns)) for place in rows
    )


def _events(occupancy):
    """Every wave's begin and end; several at the same clock have no order."""
    return {
        e.shader_engine: sorted(
            zip(*(c.tolist() for c in (e.time, e.cu, e.simd, e.slot, e.start)), strict=True)
        )
        for e in occupancy.engines
        if len(e)
    }


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_raw_traces_give_the_figures_of_their_decoded_folders(decoded, att_folder, name):
    raw, known = decoded(name), read_decoded_trace(att_folder(name))
    assert (raw.problems, raw.level.value, raw.gfx_major) == ((), "raw", known.gfx_major or raw.gfx_major)
    assert _waves(raw) == _waves(known)
    assert raw.waves.categories == known.waves.categories
    assert raw.waves.states == known.waves.states
    assert raw.waves.latencies == known.waves.latencies
    assert raw.shader_clock_mhz == known.shader_clock_mhz
    assert [(s.state, s.clocks, s.counts) for s in raw.states] == [
        (s.state, s.clocks, s.counts) for s in known.states
    ]
    # The shipped folder of this sample has neither stall nor exact times of occupancy events.
    rows = read_decoded_trace(att_folder("aiter_10col")) if name == "aiter" else known
    assert _executed(raw.code) == _executed(rows.code)
    assert _events(raw.occupancy) == _events(rows.occupancy)
