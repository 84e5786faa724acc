"""What rpl's own capture tool tells beside the files of the public tools: ``capture.json`` and the sentinel.

The keys are described in docs/REPLAY.md. Unknown is null. Nothing in them is trusted: sizes have bounds, and
a file is only ever named by a region's address or by one word inside of its folder.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import FailFast, Field, model_validator

from rpl_vmreplay.capture.files import ADDRESSES, Address, Count, Name, Part, VariableFile

EXTRAS = "capture.json"
SENTINEL = "rpl_capture_complete"
#: It names five files.
LARGEST_SENTINEL_BYTES = 1 << 20
AFTER_FOLDER = "memory_after"
CHUNK_BYTES = 1 << 20
#: Bytes of one chunk's hash in ``.xxh3`` files.
HASH_BYTES = 8


def chunk_hash(content: bytes) -> bytes:
    """Of one chunk, as ``.xxh3`` files hold it."""
    import xxhash

    return int(xxhash.xxh3_64_intdigest(content)).to_bytes(HASH_BYTES, "little")


_Nanoseconds = Annotated[int, Field(ge=0, lt=ADDRESSES)]
_Size = Annotated[int, Field(ge=0, lt=ADDRESSES)]
_Hash = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
_Table = Annotated[tuple[Count, Count, Count], Field(strict=False)]


class Tool(Part):
    name: Name
    version: Name


class Runtime(Part):
    interface_version: Name | None = None
    library: Name | None = None
    core_table: _Table | None = None
    amd_table: _Table | None = None
    low_addresses: bool | None = None


class Agent(Part):
    name: Name
    product: Name | None = None
    uuid: Name | None = None
    node: Count | None = None
    isa: Name | None = None
    features: Annotated[tuple[Name, ...], Field(strict=False), FailFast()] = ()
    compute_units: Count | None = None
    number: Count | None = None


class Segment(Part):
    """Bytes that the code object asks for, and that the launch had; what is beyond is dynamic."""

    fixed: Count | None = None
    launched: Count


class Launch(Part):
    header: Count | None = None
    setup: Count | None = None
    kernarg_address: Address | None = None
    queue_id: _Size | None = None
    packet_index: _Size | None = None
    batch_position: Count | None = None
    batch_size: Count | None = None
    match_index: _Size | None = None
    launch_index: _Size | None = None
    group_segment: Segment | None = None
    private_segment: Segment | None = None
    start_ns: _Nanoseconds | None = None
    end_ns: _Nanoseconds | None = None
    duration_ns: _Nanoseconds | None = None


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
    arguments: Annotated[tuple[Argument, ...] | None, Field(strict=False, max_length=1 << 16)] = None


class CodeObject(Part):
    size: _Size
    source: Name | None = None
    xxh3: _Hash | None = None
    kernels: Annotated[tuple[Name, ...], Field(strict=False), FailFast()] = ()
    load_base: Address | None = None


class Drain(Part):
    own_queue_ns: _Nanoseconds | None = None
    undrained: bool


class HashFiles(Part):
    """XXH3 of the ``.xxh3`` files themselves, so that the seal of this file covers them."""

    pre: _Hash | None = None
    post: _Hash | None = None


class MemoryAgent(Part):
    name: Name
    node: Count | None = None


class MemoryRegion(Part):
    """One region of ``memory_regions.json``, with where it came from and what became of it."""

    base: Address
    size: Annotated[int, Field(gt=0, lt=ADDRESSES)]
    kind: Literal["device_pool", "host_pool", "vmem", "svm", "locked_host", "ipc", "interop", "hsa_memory"]
    agent: MemoryAgent | None = None
    allocation_base: Address | None = None
    allocation_size: _Size | None = None
    in_offset: _Size | None = None
    host_address: Address | None = None
    changed_by_launch: bool | None = None
    written_by_host: bool | None = None
    hashes: HashFiles = HashFiles()


class LeftOut(Part):
    """Host memory that could not be read: the program gave it back while the GPU kept its access."""

    base: Address
    size: Annotated[int, Field(gt=0, lt=ADDRESSES)]
    kind: Name
    host_address: Address | None = None


class Shrunk(Part):
    """``rpl capture shrink`` kept the touched pages; so many regions and bytes there were before."""

    page_bytes: Count
    regions: Count
    bytes: _Size


class Memory(Part):
    mode: Literal["full", "referenced"]
    hash: Literal["xxh3", "none"]
    compression: Literal["none", "zstd"]
    post: Literal["hashes", "bytes", "none"]
    chunk_bytes: Literal[1048576]
    bytes: _Size | None = None
    bytes_stored: _Size | None = None
    copy_ns: _Nanoseconds | None = None
    shrunk: Shrunk | None = None
    left_out: Annotated[tuple[LeftOut, ...], Field(strict=False), FailFast()] = ()
    regions: Annotated[tuple[MemoryRegion, ...], Field(strict=False), FailFast()]


class ModuleVariable(Part):
    name: Name
    address: Address | None = None
    size: Annotated[int, Field(gt=0, lt=ADDRESSES)]
    file: VariableFile
    changed_by_launch: bool | None = None
    hashes: HashFiles = HashFiles()


class Extras(Part):
    """``capture.json``."""

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
    host_writers: bool | None = None
    warnings: Annotated[tuple[Name, ...], Field(strict=False), FailFast()] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_a_known_version(cls, data: Any) -> Any:
        version = data.get("schema_version") if isinstance(data, dict) else None
        if isinstance(version, str) and version.partition(".")[0] != "1":
            raise ValueError(f"its schema version is {version[:20]}, and this rpl reads 1.x")
        return data


def doubts_of(extras: Extras) -> tuple[str, ...]:
    """Why a replay of the capture may do something else."""
    doubts = list(extras.warnings)
    if extras.drain.undrained:
        doubts.append("work on another queue may have gone on while the memory was read")
    if extras.host_writers:
        doubts.append("the program wrote to memory while it was captured")
    return tuple(doubts)


class HashedFile(Part):
    size: _Size
    xxh3: _Hash


class Sentinel(Part):
    """``rpl_capture_complete``, written last."""

    schema_version: Name
    files: dict[Name, HashedFile]
