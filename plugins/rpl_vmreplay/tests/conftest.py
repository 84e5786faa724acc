"""Captures as the two public tools write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BASE = 0x7F0000200000


def _regions(*sizes: tuple[int, int]) -> list[dict[str, Any]]:
    kinds = {"is_pool": True, "is_vmem": False, "contains_kernarg": False, "handle": 0, "access": 0}
    return [{"base": base, "size": size, **kinds} for base, size in sizes]


@pytest.fixture
def write_capture(tmp_path: Path) -> Callable[..., Path]:
    """``write_capture("kerncap")``: a small capture in the layout of that tool; returns its folder."""

    def write(layout: str = "rocm-perf-lab", name: str = "isolate_capture") -> Path:
        folder = tmp_path / name
        (folder / "memory").mkdir(parents=True)
        dispatch: dict[str, Any] = {
            "mangled_name": "_Z5scalePfi.kd",
            "demangled_name": "scale(float*, int)",
            "agent_name": "gfx942",
            "isa_name": "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-",
            "wavefront_size": 64,
            "grid": [1024, 1, 1],
            "block": [256, 1, 1],
            "group_segment_size": 2048,
            "private_segment_size": 0,
            "kernarg_size": 16,
            "dispatch_index": 3,
        }
        regions = _regions((BASE, 4096), (BASE + 8192, 64))
        regions[1]["contains_kernarg"] = True
        if layout == "rocm-perf-lab":
            dispatch["kernel_object"] = BASE + 4096
        else:
            (folder / "metadata.json").write_text('{"kernel_name": "scale"}')
            (folder / "module_variables").mkdir()
            (folder / "module_variables" / "0011_table.bin").write_bytes(b"t" * 8)
            variable = {"executable_sha256": "0011", "name": "table", "size": 8}
            variable["blob"] = "module_variables/0011_table.bin"
            (folder / "module_variables.json").write_text(json.dumps({"variables": [variable]}))
            # kerncap lists a reservation and the mapping in it.
            regions += [{**regions[0], "is_pool": False, "is_vmem": True}]
            (folder / "capture_complete").write_text("ok\n")
        (folder / "dispatch.json").write_text(json.dumps(dispatch))
        (folder / "memory_regions.json").write_text(json.dumps({"regions": regions}))
        (folder / "kernarg.bin").write_bytes(bytes(range(16)))
        (folder / "kernel.hsaco").write_bytes(b"\x7fELF" + bytes(60))
        (folder / "memory" / f"region_{BASE:x}.bin").write_bytes(b"m" * 4096)
        (folder / "memory" / f"region_{BASE + 8192:x}.bin").write_bytes(bytes(64))
        return folder

    return write


@pytest.fixture
def change_json() -> Callable[[Path, Callable[[Any], object]], None]:
    """``change_json(path, lambda data: ...)``: the file with a change in it."""

    def change(path: Path, edit: Callable[[Any], object]) -> None:
        data = json.loads(path.read_text())
        edit(data)
        path.write_text(json.dumps(data))

    return change
