"""The JSON documents of a capture, as they are read.

Written by tools/write_capture_format.py, which describes the files of a capture.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import FailFast, Field

from rpl_vmreplay.capture.bounds import (
    LARGEST_COUNT,
    Address,
    Count,
    Digest,
    KernargSize,
    Name,
    Part,
    Placed,
    Positive,
    Size,
    Triple,
    VariableFile,
    Versioned,
)
from rpl_vmreplay.capture.layout import Compression, Hash, Mode, Post, RegionKind


class Dispatch(Part):
    """``dispatch.json``: the launch."""

    mangled_name: Name
    demangled_name: Name
    agent_name: Name
    isa_name: Name
    wavefront_size: Count
    #: Address of the descriptor in the captured process; kerncap doesn't tell it.
    kernel_object: Address | None = None
    grid: Triple
    block: Triple
    group_segment_size: Count
    private_segment_size: Count
    kernarg_size: KernargSize
    dispatch_index: Size


class Region(Placed):
    """One entry of ``memory_regions.json``."""

    base: Address
    size: Positive
    is_pool: bool
    is_vmem: bool
    contains_kernarg: bool
    handle: Address = 0
    access: Count = 0


class Regions(Part):
    """``memory_regions.json``."""

    regions: Annotated[tuple[Region, ...], Field(strict=False), FailFast()]


class Tool(Part):
    name: Name
    version: Name


class Runtime(Part):
    interface_version: Name | None = None
    library: Name | None = None
    #: Major version, size in bytes, step.
    core_table: Triple | None = None
    #: The same.
    amd_table: Triple | None = None
    low_addresses: bool | None = None


class Agent(Part):
    name: Name
    product: Name | None = None
    uuid: Name | None = None
    node: Count | None = None
    isa: Name | None = None
    features: Annotated[tuple[Name, ...], Field(strict=False), FailFast()] = ()
    compute_units: Count | None = None
    #: Among the GPUs.
    number: Count | None = None


class Segment(Part):
    """Bytes that the code object asks for, and that the launch had; what is beyond is dynamic."""

    fixed: Count | None = None
    launched: Count


class Launch(Part):
    header: Count | None = None
    setup: Count | None = None
    kernarg_address: Address | None = None
    queue_id: Size | None = None
    packet_index: Size | None = None
    batch_position: Size | None = None
    batch_size: Size | None = None
    match_index: Size | None = None
    launch_index: Size | None = None
    group_segment: Segment | None = None
    private_segment: Segment | None = None
    start_ns: Size | None = None
    end_ns: Size | None = None
    duration_ns: Size | None = None


class Argument(Part):
    name: Name | None = None
    offset: Count
    size: Count
    value_kind: Name
    address_space: Name | None = None
    type_name: Name | None = None
    access: Name | None = None


class Kernel(Part):
    symbol: Name
    arguments: Annotated[tuple[Argument, ...], Field(strict=False, max_length=LARGEST_COUNT)] | None = None


class CodeObject(Part):
    size: Size
    source: Name | None = None
    xxh3: Digest | None = None
    kernels: Annotated[tuple[Name, ...], Field(strict=False), FailFast()] = ()
    load_base: Address | None = None


class Drain(Part):
    own_queue_ns: Size | None = None
    #: One of the other queues may have gone on.
    undrained: bool


class HashFiles(Part):
    """XXH3 of the ``.xxh3`` files themselves, so that the seal of this file covers them."""

    pre: Digest | None = None
    post: Digest | None = None


class MemoryAgent(Part):
    name: Name
    node: Count | None = None


class MemoryRegion(Part):
    """One region of ``memory_regions.json``, with where it came from and what became of it."""

    base: Address
    size: Positive
    kind: RegionKind
    agent: MemoryAgent | None = None
    allocation_base: Address | None = None
    allocation_size: Size | None = None
    in_offset: Size | None = None
    host_address: Address | None = None
    changed_by_launch: bool | None = None
    #: Null: nobody looked.
    written_by_host: bool | None = None
    hashes: HashFiles = HashFiles()


class Shrunk(Part):
    """``rpl capture shrink`` kept the touched pages; so many regions and bytes there were before."""

    page_bytes: Count
    regions: Count
    bytes: Size


class Memory(Part):
    mode: Mode
    hash: Hash
    compression: Compression
    post: Post
    chunk_bytes: Literal[1048576]
    bytes: Size | None = None
    bytes_stored: Size | None = None
    copy_ns: Size | None = None
    shrunk: Shrunk | None = None
    #: Host memory that could not be read: the program gave it back while the GPU kept its access.
    left_out: Annotated[tuple[MemoryRegion, ...], Field(strict=False), FailFast()] = ()
    regions: Annotated[tuple[MemoryRegion, ...], Field(strict=False), FailFast()]


class ModuleVariable(Part):
    name: Name
    address: Address | None = None
    size: Positive
    file: VariableFile
    changed_by_launch: bool | None = None
    hashes: HashFiles = HashFiles()


class Extras(Versioned):
    """``capture.json``: everything beside the files of the public tools."""

    schema_version: Name
    tool: Tool
    runtime: Runtime
    agent: Agent
    dispatch: Launch
    kernel: Kernel
    code_object: CodeObject
    drain: Drain
    memory: Memory
    module_variables: Annotated[tuple[ModuleVariable, ...], Field(strict=False), FailFast()] = ()
    #: The program wrote to memory while it was captured.
    host_writers: bool | None = None
    warnings: Annotated[tuple[Name, ...], Field(strict=False), FailFast()] = ()


class HashedFile(Part):
    size: Size
    xxh3: Digest


class Sentinel(Part):
    """``rpl_capture_complete``, written last."""

    schema_version: Name
    files: dict[Name, HashedFile]
