"""Real trace folders by short names, and a builder of small decoded folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rpl_att.analysis.att_block import att_block
from rpl_att.contract import AttPart
from rpl_att.decoded_trace import read_decoded_trace
from rpl_gfx90a.products import GFX90A
from rpl_gfx942.products import GFX942
from rpl_gfx950.products import GFX950
from rpl_gfx1030.products import FAMILIES as RDNA_2
from rpl_gfx1100.products import FAMILIES as RDNA_3_AND_4

FOLDERS = {
    "wave_gemm": "gfx950_wave_gemm/ui_output_agent_32617_dispatch_3",
    "aiter": "gfx950_aiter_mxfp4_gemm_legacy8col/ui_output_agent_34975_dispatch_20",
    "aiter_10col": "gfx950_aiter_mxfp4_gemm_legacy8col/derived_10col/ui_output_agent_34975_dispatch_20",
    "flashmla": "gfx942_flashmla_rocprofv2/derived_v3/ui_output_agent_154593152_dispatch_112",
    "flashmla_v2": "gfx942_flashmla_rocprofv2/flash_fwd_splitkv_mla_kernel_v1_ui",
    "gfx1100": "gfx1100_tinygrad_gemm/derived_ui/ui_output_agent_0_dispatch_1",
    "gfx1200": "gfx1200_tinygrad_gemm/derived_ui/ui_output_agent_0_dispatch_1",
    "gfx950_tinygrad": "gfx950_tinygrad_gemm/derived_ui/ui_output_agent_0_dispatch_1",
    "empty": "gfx950_tinygrad_empty/derived_ui/ui_output_agent_0_dispatch_1",
    "pcsampling": "pcsampling_ui_gfx9",
}
_FAMILIES = (GFX90A, GFX942, GFX950, *RDNA_2, *RDNA_3_AND_4)
ARCHITECTURES = {family.name: family.architecture for family in _FAMILIES}
HEADER = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"


@pytest.fixture(scope="session")
def att_folder(rpl_shared_data: Path):
    """``att_folder("wave_gemm")``: the path of a real decoded folder."""
    return lambda name: rpl_shared_data / "att" / FOLDERS[name]


@pytest.fixture(scope="session")
def att_of(att_folder):
    """``att_of("wave_gemm")``: its block, read once per session."""
    kept: dict[str, AttPart] = {}

    def block(name: str) -> AttPart:
        if name not in kept:
            kept[name] = att_block(read_decoded_trace(att_folder(name)), ARCHITECTURES["gfx950"])
        return kept[name]

    return block


class FolderBuilder:
    """Writes a decoded folder of one wave per call of ``wave``."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True)
        self.path = path
        self.tree: dict = {}

    def code(self, *rows: tuple, header: object = HEADER, **extra: object) -> FolderBuilder:
        """``rows``: (isa, vaddr, hit, latency, stall, idle[, source])."""
        listed = [[r[0], 0, n, r[6] if len(r) > 6 else "", 1, *r[1:6]] for n, r in enumerate(rows)]
        document = {"code": listed, "version": "3.0.0", **({"header": header} if header else {}), **extra}
        return self.file("code.json", document)

    def wave(self, instructions: list, begin: int, end: int, simd: int = 0, **more: object) -> FolderBuilder:
        slots = self.tree.setdefault("0", {}).setdefault(str(simd), {}).setdefault("0", {})
        number = len(slots)
        name = f"se0_sm{simd}_sl0_wv{number}.json"
        slots[str(number)] = [name, begin, end]
        wave = {
            "cu": 1,
            "id": number,
            "simd": simd,
            "slot": 0,
            "begin": begin,
            "end": end,
            "instructions": instructions,
            "timeline": [[2, end - begin]],
            "waitcnt": None,
            **more,
        }
        document = {"name": "SE0", "duration": end - begin, "wave": wave}
        self.file(name, document)
        return self.index()

    def index(self, **more: object) -> FolderBuilder:
        document = {"gfxip": 9, "gfxv": "vega", "version": "3.0.0", "counter_names": []}
        return self.file("filenames.json", {**document, "wave_filenames": self.tree or None, **more})

    def file(self, name: str, content: object) -> FolderBuilder:
        text = content if isinstance(content, str) else json.dumps(content)
        (self.path / name).write_text(text)
        return self

    def block(self, architecture: str | None = None) -> AttPart:
        return att_block(read_decoded_trace(self.path), ARCHITECTURES.get(architecture or ""))


@pytest.fixture
def trace_folder(tmp_path: Path) -> FolderBuilder:
    return FolderBuilder(tmp_path / "traces" / "ui_output_agent_7_dispatch_4")


@pytest.fixture
def make_folder(tmp_path: Path):
    return lambda name: FolderBuilder(tmp_path / name)
