"""The JSON files of a capture, checked where they enter: of the public tools, and of rpl's own."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, ValidationError, model_validator

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import read_regular, refuse_countless

DISPATCH = "dispatch.json"
REGIONS = "memory_regions.json"
KERNARG = "kernarg.bin"
CODE_OBJECT = "kernel.hsaco"
#: kerncap's own: variables of modules, its second description of the launch, and the file written last.
VARIABLES = "module_variables.json"
VARIABLES_FOLDER = "module_variables"
KERNCAP_METADATA = "metadata.json"
KERNCAP_COMPLETE = "capture_complete"

#: A region takes some 150 bytes of text: this is half a million of them.
LARGEST_JSON_BYTES = 64 << 20
ADDRESSES = 1 << 64
#: Headers of the runtime keep kernel arguments and names far below these.
LARGEST_KERNARG_BYTES = 1 << 20
LONGEST_NAME = 1 << 16

Count = Annotated[int, Field(ge=0, lt=1 << 32)]
Address = Annotated[int, Field(ge=0, lt=ADDRESSES)]
Sizes = Annotated[tuple[Count, Count, Count], Field(strict=False)]
Name = Annotated[str, Field(max_length=LONGEST_NAME)]


class Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Dispatch(Part):
    """``dispatch.json``: the launch."""

    mangled_name: Name
    demangled_name: Name
    agent_name: Name
    isa_name: Name
    wavefront_size: Count
    #: Address of the descriptor in the captured process; kerncap doesn't tell it.
    kernel_object: Address | None = None
    grid: Sizes
    block: Sizes
    group_segment_size: Count
    private_segment_size: Count
    kernarg_size: Annotated[int, Field(ge=0, le=LARGEST_KERNARG_BYTES)]
    dispatch_index: Count


class Region(Part):
    """One entry of ``memory_regions.json``; its bytes are in ``memory/region_<base in hexadecimal>.bin``."""

    base: Address
    size: Annotated[int, Field(gt=0, lt=ADDRESSES)]
    is_pool: bool
    is_vmem: bool
    contains_kernarg: bool
    handle: Address = 0
    access: Count = 0

    @property
    def end(self) -> int:
        return self.base + self.size

    @property
    def file_name(self) -> str:
        return f"memory/region_{self.base:x}.bin"

    @model_validator(mode="after")
    def _ends_in_the_address_space(self) -> Region:
        if self.end > ADDRESSES:
            raise ValueError("the region ends behind the last address")
        return self


class Regions(Part):
    """``memory_regions.json``."""

    regions: Annotated[tuple[Region, ...], Field(strict=False), FailFast()]


def _in_its_folder(name: str) -> str:
    parts = PurePosixPath(name).parts
    if len(parts) != 2 or parts[0] != VARIABLES_FOLDER or parts[1] == "..":
        raise ValueError(f"its file is not in {VARIABLES_FOLDER}/")
    return name


VariableFile = Annotated[Name, AfterValidator(_in_its_folder)]


class Variable(Part):
    """One variable of a module, as kerncap keeps it."""

    name: Name
    size: Annotated[int, Field(gt=0, lt=ADDRESSES)]
    blob: VariableFile

    @property
    def file_name(self) -> str:
        return self.blob


class Variables(Part):
    """``module_variables.json``."""

    variables: Annotated[tuple[Variable, ...], Field(strict=False), FailFast()]


_Model = TypeVar("_Model", bound=Part)


def read_json(folder: Path, name: str, model: type[_Model], most: int = LARGEST_JSON_BYTES) -> _Model:
    """The file of that name, or the reason why it is refused."""
    path = folder / name
    if not path.exists():
        raise MissingError(
            f"{name} is not in {folder}",
            cause="no capture, or one that was cut short",
            next_step="name a folder that `rpl isolate` wrote",
        )
    require_plain(path)
    content = read_regular(path, most, links=False)
    refuse_countless(content, path)
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadDataError(f"{path} can't be used: {place + ': ' if place else ''}{first['msg']}") from None


def require_plain(path: Path) -> None:
    """A link could lead out of the capture, a pipe would never end."""
    if path.is_symlink() or not path.is_file():
        raise BadDataError(f"{path} is not a plain file")


# What rpl's own capture tool tells beside the files of the public tools: ``capture.json`` and the sentinel.
#
# The keys are described in docs/REPLAY.md. Unknown is null. Nothing in them is trusted: sizes have bounds,
# and a file is only ever named by a region's address or by one word inside of its folder.

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
