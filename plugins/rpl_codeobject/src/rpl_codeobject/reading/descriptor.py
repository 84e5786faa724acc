"""Decode the 64-byte kernel descriptor (LLVM ``AMDGPUUsage``, "Kernel Descriptor", GFX6-GFX12 table)."""

from __future__ import annotations

import struct

from rpl_codeobject.values import KernelDescriptor
from rpl_core.errors import BadDataError

DESCRIPTOR_BYTES = 64
#: group, private, kernarg sizes; 4 reserved; entry offset; 20 reserved; rsrc3, rsrc1, rsrc2; properties;
#: kernarg preload; 4 reserved.
_LAYOUT = struct.Struct("<III4xq20xIIIHH4x")


def decode_descriptor(data: bytes, where: str) -> KernelDescriptor:
    """The descriptor in ``data`` (exactly 64 bytes); ``BadDataError`` when it is shorter or longer."""
    if len(data) != DESCRIPTOR_BYTES:
        raise BadDataError(f"{where}: a kernel descriptor of {len(data)} bytes, expected {DESCRIPTOR_BYTES}")
    group, private, kernarg, entry, rsrc3, rsrc1, _rsrc2, properties, preload = _LAYOUT.unpack(data)
    return KernelDescriptor(
        group_segment_bytes=group,
        private_segment_bytes=private,
        kernarg_bytes=kernarg,
        entry_offset=entry,
        vgpr_granules=(rsrc1 & 0x3F) + 1,
        sgpr_granules=(rsrc1 >> 6 & 0xF) + 1,
        accum_offset=((rsrc3 & 0x3F) + 1) * 4,  # meaningful on gfx90a and gfx94x only
        wavefront_size32=bool(properties >> 10 & 1),
        dynamic_stack=bool(properties >> 11 & 1),
        kernarg_preload=preload,
    )
