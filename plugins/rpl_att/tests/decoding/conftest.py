"""A recording of raw traces, and the stand-in for the decoder library, compiled once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rpl_att.analysis.att_block import att_block
from rpl_att.decoding.decode import Limits, decode_raw
from rpl_gfx942.products import FACTS
from rpl_testkit.requirements import require

TABLE = {"0x1000": ["s_load_dwordx2 s[2:3], s[0:1], 0x0", 8], "0x1008": ["s_waitcnt lgkmcnt(0)", 4]}
END = {"0x100c": ["s_endpgm", 4]}


@pytest.fixture(scope="session")
def fake_decoder(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("decoder") / "librocprof-trace-decoder.so"
    source = Path(__file__).parent / "fake_decoder.c"
    command = [require("gcc"), "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source]
    subprocess.run(command, check=True, capture_output=True)
    return library


class RawRecording:
    """Raw traces of agent 7, dispatch 4; the first letter of each says what the decoder does."""

    def __init__(self, folder: Path, library: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._library = library
        self.table({**TABLE, **END})

    def table(self, instructions: dict) -> None:
        (self.folder / "isa_code_object_5.json").write_text(json.dumps(instructions))

    def traces(self, modes: str) -> list[Path]:
        paths = [self.folder / f"12_7_shader_engine_{n}_4.att" for n in range(len(modes))]
        for path, mode in zip(paths, modes, strict=True):
            path.write_text(mode)
        return paths

    def decode(self, modes: str, **limits: float):
        return decode_raw(self._library, self.traces(modes), Limits(**{"seconds": 60, **limits}))

    def block(self, modes: str):
        return att_block(self.decode(modes), FACTS)


@pytest.fixture
def recording(tmp_path, fake_decoder) -> RawRecording:
    return RawRecording(tmp_path / "recording", fake_decoder)
