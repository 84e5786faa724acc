"""The files of a capture, described once: what the capture tool writes (C++) and the reader reads (Python).

``python tools/write_capture_format.py`` writes four files that are committed, so that building needs no tool:

- ``native/isolate/capture/layout.h`` and ``records.h``: names of files, choices, and a struct for each
  record, whose fields nobody can forget or misspell;
- ``layout.py`` and ``records.py`` of ``rpl_vmreplay.capture``: the same names, and a model for each record.

A new field is a line here and its value in ``native/isolate/capture``. docs/REPLAY.md tells users what the
fields mean; tests compare all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rpl_core.files import write_atomic

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "native" / "isolate" / "capture"
READER = ROOT / "plugins" / "rpl_vmreplay" / "src" / "rpl_vmreplay" / "capture"

#: Readers take every minor version of the major one: fields are added, never changed.
SCHEMA_VERSION = "1.0"
#: Memory is hashed in chunks; of each, an ``.xxh3`` file holds so many bytes.
CHUNK_BYTES, HASH_BYTES = 1 << 20, 8

#: Files and folders of a capture, and how the files of one region are told apart.
NAMES = {
    "DISPATCH": "dispatch.json",
    "REGIONS": "memory_regions.json",
    "EXTRAS": "capture.json",
    "KERNARG": "kernarg.bin",
    "CODE_OBJECT": "kernel.hsaco",
    "SENTINEL": "rpl_capture_complete",
    "MEMORY_FOLDER": "memory",
    "AFTER_FOLDER": "memory_after",
    "VARIABLES_FOLDER": "module_variables",
    "REGION_PREFIX": "region_",
    "BYTES_SUFFIX": ".bin",
    "PACKED_SUFFIX": ".zst",
    "BEFORE_HASHES_SUFFIX": ".pre.xxh3",
    "AFTER_HASHES_SUFFIX": ".post.xxh3",
}

#: Texts of which a field has one, in the order of the C++ enumeration.
CHOICES = {
    "Mode": ("full", "referenced"),
    "Post": ("hashes", "bytes", "none"),
    "Hash": ("xxh3", "none"),
    "Compression": ("none", "zstd"),
    "RegionKind": (
        *("device_pool", "host_pool", "vmem", "svm"),
        *("locked_host", "ipc", "interop", "hsa_memory"),
    ),
}


@dataclass(frozen=True)
class Type:
    """How a value is held by the writer, and what the reader accepts (``rpl_vmreplay.capture.bounds``)."""

    cpp: str
    python: str


TEXT = Type("std::string", "Name")
FLAG = Type("bool", "bool")
COUNT = Type("uint32_t", "Count")
SIZE = Type("uint64_t", "Size")
BYTES = Type("uint64_t", "Positive")
ADDRESS = Type("uint64_t", "Address")
NANOSECONDS = Type("uint64_t", "Size")
TRIPLE = Type("std::array<uint32_t, 3>", "Triple")
DIGEST = Type("std::string", "Digest")
#: From a code object, of whatever shape that has.
JSON = Type("nlohmann::json", "")


def choice(name: str) -> Type:
    return Type(name, name)


def record(name: str) -> Type:
    return Type(name, name)


def many(of: Type, most: str = "") -> Type:
    bound = f", max_length={most}" if most else ", FailFast()"
    field = f"Field(strict=False{bound})" if most else f"Field(strict=False){bound}"
    return Type(f"std::vector<{of.cpp}>", f"Annotated[tuple[{of.python}, ...], {field}]")


@dataclass(frozen=True)
class Field:
    """One key of a record.

    ``nullable``: the tool writes null for what it does not know. ``needed``: the reader refuses a file
    without it, else it holds ``otherwise``. ``read``: rpl uses it, so that the reader holds it. ``native``:
    the capture tool writes it, not only rpl's own commands.
    """

    name: str
    type: Type
    about: str = ""
    nullable: bool = False
    needed: bool = False
    otherwise: str = "None"
    read: bool = True
    native: bool = True


@dataclass(frozen=True)
class Record:
    name: str
    about: str
    fields: tuple[Field, ...]
    #: Class of ``bounds`` with what the reader checks and offers beyond the fields.
    base: str = "Part"
    #: The tool passes it on as a code object has it: it needs the keys, not a struct.
    keys_only: bool = False
    native: bool = True


def needed(*names: str, of: Type) -> tuple[Field, ...]:
    return tuple(Field(name, of, needed=True) for name in names)


def known(*names: str, of: Type, nullable: bool = False) -> tuple[Field, ...]:
    """Fields that other tools and older versions leave out."""
    return tuple(Field(name, of, nullable=nullable) for name in names)


def unread(*names: str, of: Type, nullable: bool = False) -> tuple[Field, ...]:
    return tuple(Field(name, of, nullable=nullable, read=False) for name in names)


#: Each after those that it holds.
RECORDS = (
    Record(
        "Dispatch",
        "``dispatch.json``: the launch.",
        (
            *needed("mangled_name", "demangled_name", "agent_name", "isa_name", of=TEXT),
            *needed("wavefront_size", of=COUNT),
            Field(
                "kernel_object",
                ADDRESS,
                "Address of the descriptor in the captured process; kerncap doesn't tell it.",
            ),
            *needed("grid", "block", of=TRIPLE),
            *needed("group_segment_size", "private_segment_size", of=COUNT),
            *needed("kernarg_size", of=Type("uint64_t", "KernargSize")),
            *needed("dispatch_index", of=SIZE),
        ),
    ),
    Record(
        "Region",
        "One entry of ``memory_regions.json``.",
        (
            *needed("base", of=ADDRESS),
            *needed("size", of=BYTES),
            *needed("is_pool", "is_vmem", "contains_kernarg", of=FLAG),
            Field("handle", ADDRESS, otherwise="0"),
            Field("access", COUNT, otherwise="0"),
        ),
        base="Placed",
    ),
    Record(
        "Regions",
        "``memory_regions.json``.",
        needed("regions", of=many(record("Region"))),
    ),
    Record("Tool", "", needed("name", "version", of=TEXT)),
    Record("Process", "", (*unread("pid", of=COUNT), *unread("program", of=TEXT, nullable=True))),
    Record(
        "Runtime",
        "",
        (
            *known("interface_version", of=TEXT),
            *unread("build", of=TEXT, nullable=True),
            *known("library", of=TEXT, nullable=True),
            Field("core_table", TRIPLE, "Major version, size in bytes, step."),
            Field("amd_table", TRIPLE, "The same."),
            *known("low_addresses", of=FLAG),
        ),
    ),
    Record(
        "Agent",
        "",
        (
            *needed("name", of=TEXT),
            *known("product", "uuid", of=TEXT, nullable=True),
            *known("node", of=COUNT),
            *unread("bdf", of=TEXT),
            *known("isa", of=TEXT),
            Field("features", many(TEXT), otherwise="()"),
            *known("compute_units", of=COUNT),
            Field("number", COUNT, "Among the GPUs."),
        ),
    ),
    Record(
        "Segment",
        "Bytes that the code object asks for, and that the launch had; what is beyond is dynamic.",
        (*known("fixed", of=COUNT), *needed("launched", of=COUNT)),
    ),
    Record(
        "Launch",
        "",
        (
            *known("header", "setup", of=COUNT),
            *known("kernarg_address", of=ADDRESS),
            *unread("completion_signal", "reserved2", of=ADDRESS),
            *known("queue_id", "packet_index", "batch_position", "batch_size", of=SIZE),
            *known("match_index", "launch_index", of=SIZE),
            *known("group_segment", "private_segment", of=record("Segment")),
            *known("start_ns", "end_ns", "duration_ns", of=NANOSECONDS, nullable=True),
        ),
    ),
    Record(
        "Argument",
        "",
        (
            *known("name", of=TEXT, nullable=True),
            *needed("offset", "size", of=COUNT),
            *needed("value_kind", of=TEXT),
            *known("address_space", "type_name", "access", of=TEXT, nullable=True),
        ),
        keys_only=True,
    ),
    Record(
        "Kernel",
        "",
        (
            *needed("symbol", of=TEXT),
            Field(
                "arguments", Type(JSON.cpp, many(record("Argument"), "LARGEST_COUNT").python), nullable=True
            ),
            Field("metadata", JSON, "Other fields of the kernel, numbers and texts.", read=False),
        ),
    ),
    Record(
        "CodeObject",
        "",
        (
            *needed("size", of=SIZE),
            *known("source", of=TEXT),
            *known("xxh3", of=DIGEST),
            Field("kernels", many(TEXT), otherwise="()"),
            *known("load_base", of=ADDRESS, nullable=True),
        ),
    ),
    Record(
        "OtherQueue",
        "",
        (*unread("queue_id", of=SIZE), *unread("drained", of=FLAG), *unread("ns", of=NANOSECONDS)),
    ),
    Record(
        "Drain",
        "",
        (
            *known("own_queue_ns", of=NANOSECONDS),
            *unread("other_queues", of=many(record("OtherQueue"))),
            Field("undrained", FLAG, "One of the other queues may have gone on.", needed=True),
        ),
    ),
    Record(
        "HashFiles",
        "XXH3 of the ``.xxh3`` files themselves, so that the seal of this file covers them.",
        known("pre", "post", of=DIGEST, nullable=True),
    ),
    Record("MemoryAgent", "", (*needed("name", of=TEXT), *known("node", of=COUNT))),
    Record(
        "MemoryRegion",
        "One region of ``memory_regions.json``, with where it came from and what became of it.",
        (
            *needed("base", of=ADDRESS),
            *needed("size", of=BYTES),
            *needed("kind", of=choice("RegionKind")),
            *known("agent", of=record("MemoryAgent"), nullable=True),
            *unread("pool_flags", of=COUNT),
            *known("allocation_base", of=ADDRESS),
            *known("allocation_size", of=SIZE),
            *unread("reservation_base", "reservation_size", of=ADDRESS, nullable=True),
            *known("in_offset", of=SIZE, nullable=True),
            *unread("permissions", of=COUNT, nullable=True),
            *known("host_address", of=ADDRESS, nullable=True),
            *known("changed_by_launch", of=FLAG, nullable=True),
            Field("written_by_host", FLAG, "Null: nobody looked.", nullable=True),
            Field("hashes", record("HashFiles"), otherwise="HashFiles()"),
        ),
    ),
    Record(
        "Shrunk",
        "``rpl capture shrink`` kept the touched pages; so many regions and bytes there were before.",
        (*needed("page_bytes", "regions", of=COUNT), *needed("bytes", of=SIZE)),
        native=False,
    ),
    Record(
        "Memory",
        "",
        (
            *needed("mode", of=choice("Mode")),
            *needed("hash", of=choice("Hash")),
            *needed("compression", of=choice("Compression")),
            *needed("post", of=choice("Post")),
            *needed("chunk_bytes", of=Type("uint64_t", f"Literal[{CHUNK_BYTES}]")),
            *known("bytes", "bytes_stored", of=SIZE),
            *known("copy_ns", of=NANOSECONDS),
            Field("shrunk", record("Shrunk"), native=False),
            Field(
                "left_out",
                many(record("MemoryRegion")),
                "Host memory that could not be read: the program gave it back while the GPU kept its access.",
                otherwise="()",
            ),
            *needed("regions", of=many(record("MemoryRegion"))),
        ),
    ),
    Record(
        "ModuleVariable",
        "",
        (
            *needed("name", of=TEXT),
            *known("address", of=ADDRESS),
            *needed("size", of=BYTES),
            *needed("file", of=Type("std::string", "VariableFile")),
            *known("changed_by_launch", of=FLAG, nullable=True),
            Field("hashes", record("HashFiles"), otherwise="HashFiles()"),
        ),
    ),
    Record(
        "Extras",
        "``capture.json``: everything beside the files of the public tools.",
        (
            *needed("schema_version", of=TEXT),
            *needed("tool", of=record("Tool")),
            *unread("process", of=record("Process")),
            *needed("runtime", of=record("Runtime")),
            *needed("agent", of=record("Agent")),
            *needed("dispatch", of=record("Launch")),
            *needed("kernel", of=record("Kernel")),
            *needed("code_object", of=record("CodeObject")),
            *needed("drain", of=record("Drain")),
            *needed("memory", of=record("Memory")),
            Field("module_variables", many(record("ModuleVariable")), otherwise="()"),
            Field("host_writers", FLAG, "The program wrote to memory while it was captured."),
            Field("warnings", many(TEXT), otherwise="()"),
        ),
        base="Versioned",
    ),
    Record("HashedFile", "", (*needed("size", of=SIZE), *needed("xxh3", of=DIGEST))),
    Record(
        "Sentinel",
        "``rpl_capture_complete``, written last.",
        (
            *needed("schema_version", of=TEXT),
            *needed("files", of=Type("std::map<std::string, HashedFile>", "dict[Name, HashedFile]")),
        ),
    ),
)

_GENERATED = "Written by tools/write_capture_format.py, which describes the files of a capture."


def files() -> dict[Path, str]:
    """Every generated file with its text."""
    texts = {
        NATIVE / "layout.h": _layout_header(),
        NATIVE / "records.h": _records_header(),
        READER / "layout.py": _layout_module(),
        READER / "records.py": _records_module(),
    }
    return {path: "\n".join(lines) + "\n" for path, lines in texts.items()}


def _camel(name: str) -> str:
    return "k" + "".join(part.capitalize() for part in name.lower().split("_"))


def _layout_header() -> Iterator[str]:
    yield f"// {_GENERATED}"
    yield "// Names, sizes and choices of a capture. Nothing here is edited by hand."
    yield from (
        "// clang-format off",
        "#pragma once",
        "",
        "#include <array>",
        "#include <cstddef>",
        "#include <cstdint>",
    )
    yield from ("", "namespace rpl::isolate {", "")
    yield f'inline constexpr const char* kSchemaVersion = "{SCHEMA_VERSION}";'
    yield f"inline constexpr size_t kChunkBytes = {CHUNK_BYTES};"
    yield ""
    for name, value in NAMES.items():
        yield f'inline constexpr const char* {_camel(name)} = "{value}";'
    for name, values in CHOICES.items():
        yield ""
        yield f"enum class {name} : uint8_t {{ {', '.join(map(_camel, values))} }};"
        quoted = ", ".join(f'"{value}"' for value in values)
        yield f"inline constexpr std::array k{name}Names = {{{quoted}}};"
    yield from ("", "}  // namespace rpl::isolate")


def _records_header() -> Iterator[str]:
    yield f"// {_GENERATED}"
    yield "// Its JSON documents. Not edited by hand. Fields have no defaults, so that g++ refuses"
    yield "// to build where one is forgotten (-Wmissing-field-initializers)."
    yield from (
        "// clang-format off",
        "#pragma once",
        "",
        "#include <array>",
        "#include <cstdint>",
        "#include <map>",
    )
    yield from (
        "#include <nlohmann/json.hpp>",
        "#include <optional>",
        "#include <string>",
        "#include <vector>",
        "",
    )
    yield from (
        '#include "capture/layout.h"',
        "",
        "namespace rpl::isolate::record {",
        "",
        "using nlohmann::json;",
        "",
    )
    yield "template <typename T>"
    yield "json or_null(const std::optional<T>& value) { return value ? json(*value) : json(); }"
    yield ""
    for name in CHOICES:
        at = f"k{name}Names.at(static_cast<size_t>(value))"
        yield f"inline const char* name_of({name} value) {{ return {at}; }}"
    for one in RECORDS:
        if not one.native:
            continue
        yield from ("", *([f"// {one.about.replace('``', '')}"] if one.about else []))
        fields = [field for field in one.fields if field.native]
        if one.keys_only:
            quoted = ", ".join(f'"{field.name}"' for field in fields)
            yield f"inline constexpr std::array k{one.name}Keys = {{{quoted}}};"
            continue
        yield f"struct {one.name} {{"
        for field in fields:
            if field.about:
                yield f"  // {field.about}"
            yield f"  {_held(field)} {field.name};"
        yield "};"
        yield f"inline void to_json(json& to, const {one.name}& from) {{"
        yield "  to = json::object({"
        yield from (f'    {{"{field.name}", {_told(field)}}},' for field in fields)
        yield from ("  });", "}")
    yield from ("", "}  // namespace rpl::isolate::record")


def _held(field: Field) -> str:
    is_optional = field.nullable and field.type.cpp != JSON.cpp
    return f"std::optional<{field.type.cpp}>" if is_optional else field.type.cpp


def _told(field: Field) -> str:
    if field.type.cpp in CHOICES:
        return f"name_of(from.{field.name})"
    return f"or_null(from.{field.name})" if _held(field) != field.type.cpp else f"from.{field.name}"


def _layout_module() -> Iterator[str]:
    yield from ('"""Names, sizes and choices of a capture.', "", _GENERATED, '"""')
    yield from ("", "from __future__ import annotations", "", "from typing import Literal", "")
    yield f'SCHEMA_VERSION = "{SCHEMA_VERSION}"'
    yield f"CHUNK_BYTES = {CHUNK_BYTES}"
    yield "#: Of one chunk, in ``.xxh3`` files: XXH3, 64 bits, little-endian."
    yield f"HASH_BYTES = {HASH_BYTES}"
    yield ""
    yield from (f'{name} = "{value}"' for name, value in NAMES.items())
    yield ""
    for name, values in CHOICES.items():
        quoted = ", ".join(f'"{value}"' for value in values)
        yield f"{name} = Literal[{quoted}]"


def _records_module() -> Iterator[str]:
    bounds = (
        *("LARGEST_COUNT", "Address", "Count", "Digest", "KernargSize", "Name", "Part", "Placed", "Positive"),
        *("Size", "Triple", "VariableFile", "Versioned"),
    )
    yield from ('"""The JSON documents of a capture, as they are read.', "", _GENERATED, '"""')
    yield from ("", "from __future__ import annotations", "", "from typing import Annotated, Literal", "")
    yield from ("from pydantic import FailFast, Field", "", "from rpl_vmreplay.capture.bounds import (")
    yield from (f"    {name}," for name in bounds)
    yield ")"
    yield f"from rpl_vmreplay.capture.layout import {', '.join(sorted(CHOICES))}"
    for one in RECORDS:
        fields = [field for field in one.fields if field.read]
        if not fields:  # nothing of it is used
            continue
        yield from ("", "", f"class {one.name}({one.base}):")
        if one.about:
            yield from (f'    """{one.about}"""', "")
        for field in fields:
            if field.about:
                yield f"    #: {field.about}"
            yield f"    {field.name}: {_accepted(field)}"


def _accepted(field: Field) -> str:
    if field.needed:
        return field.type.python
    if field.otherwise != "None":
        return f"{field.type.python} = {field.otherwise}"
    return f"{field.type.python} | None = None"


def main() -> None:
    for path, text in files().items():
        if path.read_text(encoding="utf-8") != text:  # else all that includes it would be compiled anew
            write_atomic(path, text)


if __name__ == "__main__":
    main()
