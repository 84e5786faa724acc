"""Captures of one launch that were made to hurt: work that grows with what they hold, and no faster."""

from __future__ import annotations

import json

import pytest

REGIONS = 15_000
_SIZES = {"group_segment_size": 0, "private_segment_size": 0, "kernarg_size": 0, "dispatch_index": 0}
_NAMES = {"mangled_name": "k.kd", "demangled_name": "k", "agent_name": "gfx942", "isa_name": "gfx942"}
_MEMORY = {"mode": "full", "hash": "none", "compression": "none", "post": "none", "chunk_bytes": 1 << 20}


@pytest.fixture
def capture_of_many_regions(tmp_path):
    """Half a minute where each region is looked for among all of them."""
    places = [{"base": 4096 * number, "size": 8} for number in range(1, REGIONS + 1)]
    kinds = {"is_pool": True, "is_vmem": False, "contains_kernarg": False}
    files = {
        "dispatch.json": {**_NAMES, **_SIZES, "wavefront_size": 64, "grid": [1, 1, 1], "block": [1, 1, 1]},
        "memory_regions.json": {"regions": [{**place, **kinds} for place in places]},
        "capture.json": {
            "schema_version": "1.0",
            "tool": {"name": "rpl", "version": "0"},
            "agent": {"name": "gfx942"},
            "kernel": {"symbol": "k.kd"},
            "code_object": {"size": 0},
            "drain": {"undrained": False},
            "memory": {**_MEMORY, "regions": [{**place, "kind": "device_pool"} for place in places]},
            **{name: {} for name in ("runtime", "dispatch")},
        },
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    return tmp_path


def test_many_regions_are_listed_in_time(capture_of_many_regions, limited):
    ending = limited("capture", "info", capture_of_many_regions, cpu_s=10)
    assert ending.exit_code == 0, ending.err
