"""Serve one decoded folder: whole when the aim hits a traced wave, else empty as the decoder writes it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, Final

from rpl_core.model.origin import ORIGIN_MARK
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Aim", "serve_folder"]

_HEADER: Final = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
_STATS_HEADER: Final = '"CodeObj","Vaddr","Instruction","Hitcount","Latency","Stall","Idle","Source"\n'


@frozen
class Aim:
    """The target CU and the shader engines that are traced."""

    cu: int
    mask: int

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Aim:
        """Defaults are those of the driver script: CU 1, mask 0x1."""
        cu = int(str(options.get("att_target_cu") or 1), 0)
        return cls(cu, int(str(options.get("att_shader_engine_mask") or "0x1"), 0))

    def covers(self, engine: int) -> bool:
        return bool(self.mask >> engine & 1)


def serve_folder(source: Path, target: Path, aim: Aim, *, blind: bool = False) -> None:
    """Write `target` and the statistics beside it. `blind`: nothing is traced, whatever the aim."""
    target.mkdir(parents=True)
    stats = target.parent / f"stats_{target.name}.csv"
    if not blind and _hits(source, aim):
        for file in sorted(source.iterdir()):
            shutil.copyfile(file, target / file.name)
        shipped = source.parent / f"stats_{source.name}.csv"
        stats.write_text(shipped.read_text() if shipped.is_file() else _STATS_HEADER, encoding="utf-8")
        return
    stats.write_text(_STATS_HEADER, encoding="utf-8")
    _write(target / "code.json", {"code": None, "header": _HEADER, "version": "3.0.0"})
    index = json.loads((source / "filenames.json").read_text())
    _write(target / "filenames.json", {**index, "wave_filenames": None, ORIGIN_MARK: "synthetic"})
    events = json.loads((source / "occupancy.json").read_text())
    kept = {k: v for k, v in events.items() if not k.isdigit() or (not blind and aim.covers(int(k)))}
    _write(target / "occupancy.json", kept)


def _hits(source: Path, aim: Aim) -> bool:
    """Whether the source holds a wave on the target CU of a traced shader engine."""
    tree = json.loads((source / "filenames.json").read_text())["wave_filenames"] or {}
    for engine, simds in tree.items():
        if not aim.covers(int(engine)):
            continue
        for slots in simds.values():
            for waves in slots.values():
                for name, _begin, _end in waves.values():
                    if json.loads((source / name).read_text())["wave"]["cu"] == aim.cu:
                        return True
    return False


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
