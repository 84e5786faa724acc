"""Captures as the two public tools and rpl's own write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xxhash
import zstandard

BASE = 0x7F0000200000
CHUNK = 1 << 20
DISPATCH: dict[str, Any] = {
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


def _regions(*sizes: tuple[int, int]) -> list[dict[str, Any]]:
    kinds = {"is_pool": True, "is_vmem": False, "contains_kernarg": False, "handle": 0, "access": 0}
    return [{"base": base, "size": size, **kinds} for base, size in sizes]


@pytest.fixture
def write_capture(tmp_path: Path) -> Callable[..., Path]:
    """``write_capture("kerncap")``: a small capture in the layout of that tool; returns its folder."""

    def write(layout: str = "rocm-perf-lab", name: str = "isolate_capture") -> Path:
        folder = tmp_path / name
        (folder / "memory").mkdir(parents=True)
        dispatch = dict(DISPATCH)
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


def _hashes(content: bytes) -> bytes:
    chunks = (content[i : i + CHUNK] for i in range(0, len(content), CHUNK))
    return b"".join(xxhash.xxh3_64_intdigest(chunk).to_bytes(8, "little") for chunk in chunks)


def _extras(dispatch: dict[str, Any], sizes: dict[int, int], changed: dict[int, bool]) -> dict[str, Any]:
    regions = [
        {"base": base, "size": size, "kind": "device_pool", "changed_by_launch": changed[base]}
        for base, size in sizes.items()
    ]
    return {
        "schema_version": "1.0",
        "tool": {"name": "rpl", "version": "0.1.0"},
        "runtime": {"interface_version": "1.7", "core_table": [2, 1016, 0], "amd_table": [2, 592, 5]},
        "agent": {"name": "gfx942", "number": 0, "features": ["sramecc+", "xnack-"]},
        "dispatch": {
            "launch_index": 5,
            "match_index": 3,
            "duration_ns": 1200,
            "group_segment": {"fixed": 0, "launched": dispatch["group_segment_size"]},
        },
        "kernel": {
            "symbol": dispatch["mangled_name"],
            "arguments": [{"name": "values", "offset": 0, "size": 8, "value_kind": "global_buffer"}],
        },
        "code_object": {"size": 64, "kernels": [dispatch["mangled_name"]]},
        "drain": {"own_queue_ns": 10, "undrained": False},
        "memory": {
            "mode": "full",
            "hash": "xxh3",
            "compression": "none",
            "post": "hashes",
            "chunk_bytes": CHUNK,
            "regions": regions,
        },
        "module_variables": [
            {
                "name": "table",
                "address": BASE - 4096,
                "size": 8,
                "file": "module_variables/0.bin",
                "changed_by_launch": False,
            },
        ],
        "host_writers": False,
        "warnings": [],
    }


@pytest.fixture
def write_rpl_capture(tmp_path: Path) -> Callable[..., Path]:
    """``write_rpl_capture(packed=True)``: a capture of the native tool, sealed."""

    def write(name: str = "isolate_capture", *, packed: bool = False) -> Path:
        folder = tmp_path / name
        (folder / "memory").mkdir(parents=True)
        large = bytearray(3 * CHUNK + 100)  # its second chunk is a hole
        large[5:9] = b"head"
        large[2 * CHUNK : 2 * CHUNK + 4] = b"tail"
        contents = {BASE: bytes(large), BASE + 8 * CHUNK: bytes(range(64))}
        after = {BASE: bytes(large[:-1]) + b"x", BASE + 8 * CHUNK: bytes(range(64))}
        dispatch = {**DISPATCH, "kernel_object": BASE - 8192}
        for base, content in contents.items():
            stem = folder / "memory" / f"region_{base:x}"
            if packed:
                Path(f"{stem}.bin.zst").write_bytes(zstandard.compress(content))
            else:
                _write_sparsely(Path(f"{stem}.bin"), content)
            Path(f"{stem}.pre.xxh3").write_bytes(_hashes(content))
            Path(f"{stem}.post.xxh3").write_bytes(_hashes(after[base]))
        sizes = {base: len(content) for base, content in contents.items()}
        extras = _extras(dispatch, sizes, {base: contents[base] != after[base] for base in contents})
        extras["memory"]["compression"] = "zstd" if packed else "none"
        (folder / "module_variables").mkdir()
        (folder / "module_variables" / "0.bin").write_bytes(b"t" * 8)
        for moment in ("pre", "post"):
            (folder / "module_variables" / f"0.{moment}.xxh3").write_bytes(_hashes(b"t" * 8))
        _tell_hashes(folder, extras)
        (folder / "dispatch.json").write_text(json.dumps(dispatch))
        (folder / "memory_regions.json").write_text(json.dumps({"regions": _regions(*sizes.items())}))
        (folder / "kernarg.bin").write_bytes(bytes(range(16)))
        (folder / "kernel.hsaco").write_bytes(b"\x7fELF" + bytes(60))
        (folder / "capture.json").write_text(json.dumps(extras))
        _seal(folder)
        return folder

    return write


def _tell_hashes(folder: Path, extras: dict[str, Any]) -> None:
    """Of the hash files, as ``capture.json`` seals them."""
    parts = [(one, f"memory/region_{one['base']:x}") for one in extras["memory"]["regions"]]
    parts += [(one, one["file"].removesuffix(".bin")) for one in extras["module_variables"]]
    for part, stem in parts:
        part["hashes"] = {
            moment: xxhash.xxh3_64_hexdigest((folder / f"{stem}.{moment}.xxh3").read_bytes())
            for moment in ("pre", "post")
        }


def _write_sparsely(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        for offset in range(0, len(content), CHUNK):
            if any(chunk := content[offset : offset + CHUNK]):
                stream.seek(offset)
                stream.write(chunk)
        stream.truncate(len(content))


def _seal(folder: Path) -> None:
    names = ("dispatch.json", "memory_regions.json", "capture.json", "kernarg.bin", "kernel.hsaco")
    contents = {name: (folder / name).read_bytes() for name in names}
    files = {
        name: {"size": len(content), "xxh3": xxhash.xxh3_64_hexdigest(content)}
        for name, content in contents.items()
    }
    (folder / "rpl_capture_complete").write_text(json.dumps({"schema_version": "1.0", "files": files}))


@pytest.fixture
def seal_capture() -> Callable[[Path], None]:
    """``seal_capture(folder)``: write the file that the tool writes last, for what the folder now holds."""
    return _seal


@pytest.fixture
def change_json() -> Callable[[Path, Callable[[Any], object]], None]:
    """``change_json(path, lambda data: ...)``: the file with a change in it."""

    def change(path: Path, edit: Callable[[Any], object]) -> None:
        data = json.loads(path.read_text())
        edit(data)
        path.write_text(json.dumps(data))

    return change
