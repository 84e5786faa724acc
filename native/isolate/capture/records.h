// Written by tools/write_capture_format.py, which describes the files of a capture.
// Its JSON documents. Not edited by hand. Fields have no defaults, so that g++ refuses
// to build where one is forgotten (-Wmissing-field-initializers).
// clang-format off
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "capture/layout.h"

namespace rpl::isolate::record {

using nlohmann::json;

template <typename T>
json or_null(const std::optional<T>& value) { return value ? json(*value) : json(); }

inline const char* name_of(Mode value) { return kModeNames.at(static_cast<size_t>(value)); }
inline const char* name_of(Post value) { return kPostNames.at(static_cast<size_t>(value)); }
inline const char* name_of(Hash value) { return kHashNames.at(static_cast<size_t>(value)); }
inline const char* name_of(Compression value) { return kCompressionNames.at(static_cast<size_t>(value)); }
inline const char* name_of(RegionKind value) { return kRegionKindNames.at(static_cast<size_t>(value)); }

// dispatch.json: the launch.
struct Dispatch {
  std::string mangled_name;
  std::string demangled_name;
  std::string agent_name;
  std::string isa_name;
  uint32_t wavefront_size;
  // Address of the descriptor in the captured process; kerncap doesn't tell it.
  uint64_t kernel_object;
  std::array<uint32_t, 3> grid;
  std::array<uint32_t, 3> block;
  uint32_t group_segment_size;
  uint32_t private_segment_size;
  uint64_t kernarg_size;
  uint64_t dispatch_index;
};
inline void to_json(json& to, const Dispatch& from) {
  to = json::object({
    {"mangled_name", from.mangled_name},
    {"demangled_name", from.demangled_name},
    {"agent_name", from.agent_name},
    {"isa_name", from.isa_name},
    {"wavefront_size", from.wavefront_size},
    {"kernel_object", from.kernel_object},
    {"grid", from.grid},
    {"block", from.block},
    {"group_segment_size", from.group_segment_size},
    {"private_segment_size", from.private_segment_size},
    {"kernarg_size", from.kernarg_size},
    {"dispatch_index", from.dispatch_index},
  });
}

// One entry of memory_regions.json.
struct Region {
  uint64_t base;
  uint64_t size;
  bool is_pool;
  bool is_vmem;
  bool contains_kernarg;
  uint64_t handle;
  uint32_t access;
};
inline void to_json(json& to, const Region& from) {
  to = json::object({
    {"base", from.base},
    {"size", from.size},
    {"is_pool", from.is_pool},
    {"is_vmem", from.is_vmem},
    {"contains_kernarg", from.contains_kernarg},
    {"handle", from.handle},
    {"access", from.access},
  });
}

// memory_regions.json.
struct Regions {
  std::vector<Region> regions;
};
inline void to_json(json& to, const Regions& from) {
  to = json::object({
    {"regions", from.regions},
  });
}

struct Tool {
  std::string name;
  std::string version;
};
inline void to_json(json& to, const Tool& from) {
  to = json::object({
    {"name", from.name},
    {"version", from.version},
  });
}

struct Process {
  uint32_t pid;
  std::optional<std::string> program;
};
inline void to_json(json& to, const Process& from) {
  to = json::object({
    {"pid", from.pid},
    {"program", or_null(from.program)},
  });
}

struct Runtime {
  std::string interface_version;
  std::optional<std::string> build;
  std::optional<std::string> library;
  // Major version, size in bytes, step.
  std::array<uint32_t, 3> core_table;
  // The same.
  std::array<uint32_t, 3> amd_table;
  bool low_addresses;
};
inline void to_json(json& to, const Runtime& from) {
  to = json::object({
    {"interface_version", from.interface_version},
    {"build", or_null(from.build)},
    {"library", or_null(from.library)},
    {"core_table", from.core_table},
    {"amd_table", from.amd_table},
    {"low_addresses", from.low_addresses},
  });
}

struct Agent {
  std::string name;
  std::optional<std::string> product;
  std::optional<std::string> uuid;
  uint32_t node;
  std::string bdf;
  std::string isa;
  std::vector<std::string> features;
  uint32_t compute_units;
  // Among the GPUs.
  uint32_t number;
};
inline void to_json(json& to, const Agent& from) {
  to = json::object({
    {"name", from.name},
    {"product", or_null(from.product)},
    {"uuid", or_null(from.uuid)},
    {"node", from.node},
    {"bdf", from.bdf},
    {"isa", from.isa},
    {"features", from.features},
    {"compute_units", from.compute_units},
    {"number", from.number},
  });
}

// Bytes that the code object asks for, and that the launch had; what is beyond is dynamic.
struct Segment {
  uint32_t fixed;
  uint32_t launched;
};
inline void to_json(json& to, const Segment& from) {
  to = json::object({
    {"fixed", from.fixed},
    {"launched", from.launched},
  });
}

struct Launch {
  uint32_t header;
  uint32_t setup;
  uint64_t kernarg_address;
  uint64_t completion_signal;
  uint64_t reserved2;
  uint64_t queue_id;
  uint64_t packet_index;
  uint64_t batch_position;
  uint64_t batch_size;
  uint64_t match_index;
  uint64_t launch_index;
  Segment group_segment;
  Segment private_segment;
  std::optional<uint64_t> start_ns;
  std::optional<uint64_t> end_ns;
  std::optional<uint64_t> duration_ns;
};
inline void to_json(json& to, const Launch& from) {
  to = json::object({
    {"header", from.header},
    {"setup", from.setup},
    {"kernarg_address", from.kernarg_address},
    {"completion_signal", from.completion_signal},
    {"reserved2", from.reserved2},
    {"queue_id", from.queue_id},
    {"packet_index", from.packet_index},
    {"batch_position", from.batch_position},
    {"batch_size", from.batch_size},
    {"match_index", from.match_index},
    {"launch_index", from.launch_index},
    {"group_segment", from.group_segment},
    {"private_segment", from.private_segment},
    {"start_ns", or_null(from.start_ns)},
    {"end_ns", or_null(from.end_ns)},
    {"duration_ns", or_null(from.duration_ns)},
  });
}

inline constexpr std::array kArgumentKeys = {"name", "offset", "size", "value_kind", "address_space", "type_name", "access"};

struct Kernel {
  std::string symbol;
  nlohmann::json arguments;
  // Other fields of the kernel, numbers and texts.
  nlohmann::json metadata;
};
inline void to_json(json& to, const Kernel& from) {
  to = json::object({
    {"symbol", from.symbol},
    {"arguments", from.arguments},
    {"metadata", from.metadata},
  });
}

struct CodeObject {
  uint64_t size;
  std::string source;
  std::string xxh3;
  std::vector<std::string> kernels;
  std::optional<uint64_t> load_base;
};
inline void to_json(json& to, const CodeObject& from) {
  to = json::object({
    {"size", from.size},
    {"source", from.source},
    {"xxh3", from.xxh3},
    {"kernels", from.kernels},
    {"load_base", or_null(from.load_base)},
  });
}

struct OtherQueue {
  uint64_t queue_id;
  bool drained;
  uint64_t ns;
};
inline void to_json(json& to, const OtherQueue& from) {
  to = json::object({
    {"queue_id", from.queue_id},
    {"drained", from.drained},
    {"ns", from.ns},
  });
}

struct Drain {
  uint64_t own_queue_ns;
  std::vector<OtherQueue> other_queues;
  // One of the other queues may have gone on.
  bool undrained;
};
inline void to_json(json& to, const Drain& from) {
  to = json::object({
    {"own_queue_ns", from.own_queue_ns},
    {"other_queues", from.other_queues},
    {"undrained", from.undrained},
  });
}

// XXH3 of the .xxh3 files themselves, so that the seal of this file covers them.
struct HashFiles {
  std::optional<std::string> pre;
  std::optional<std::string> post;
};
inline void to_json(json& to, const HashFiles& from) {
  to = json::object({
    {"pre", or_null(from.pre)},
    {"post", or_null(from.post)},
  });
}

struct MemoryAgent {
  std::string name;
  uint32_t node;
};
inline void to_json(json& to, const MemoryAgent& from) {
  to = json::object({
    {"name", from.name},
    {"node", from.node},
  });
}

// One region of memory_regions.json, with where it came from and what became of it.
struct MemoryRegion {
  uint64_t base;
  uint64_t size;
  RegionKind kind;
  std::optional<MemoryAgent> agent;
  uint32_t pool_flags;
  uint64_t allocation_base;
  uint64_t allocation_size;
  std::optional<uint64_t> reservation_base;
  std::optional<uint64_t> reservation_size;
  std::optional<uint64_t> in_offset;
  std::optional<uint32_t> permissions;
  std::optional<uint64_t> host_address;
  std::optional<bool> changed_by_launch;
  // Null: nobody looked.
  std::optional<bool> written_by_host;
  HashFiles hashes;
};
inline void to_json(json& to, const MemoryRegion& from) {
  to = json::object({
    {"base", from.base},
    {"size", from.size},
    {"kind", name_of(from.kind)},
    {"agent", or_null(from.agent)},
    {"pool_flags", from.pool_flags},
    {"allocation_base", from.allocation_base},
    {"allocation_size", from.allocation_size},
    {"reservation_base", or_null(from.reservation_base)},
    {"reservation_size", or_null(from.reservation_size)},
    {"in_offset", or_null(from.in_offset)},
    {"permissions", or_null(from.permissions)},
    {"host_address", or_null(from.host_address)},
    {"changed_by_launch", or_null(from.changed_by_launch)},
    {"written_by_host", or_null(from.written_by_host)},
    {"hashes", from.hashes},
  });
}

struct Memory {
  Mode mode;
  Hash hash;
  Compression compression;
  Post post;
  uint64_t chunk_bytes;
  uint64_t bytes;
  uint64_t bytes_stored;
  uint64_t copy_ns;
  // Host memory that could not be read: the program gave it back while the GPU kept its access.
  std::vector<MemoryRegion> left_out;
  std::vector<MemoryRegion> regions;
};
inline void to_json(json& to, const Memory& from) {
  to = json::object({
    {"mode", name_of(from.mode)},
    {"hash", name_of(from.hash)},
    {"compression", name_of(from.compression)},
    {"post", name_of(from.post)},
    {"chunk_bytes", from.chunk_bytes},
    {"bytes", from.bytes},
    {"bytes_stored", from.bytes_stored},
    {"copy_ns", from.copy_ns},
    {"left_out", from.left_out},
    {"regions", from.regions},
  });
}

struct ModuleVariable {
  std::string name;
  uint64_t address;
  uint64_t size;
  std::string file;
  std::optional<bool> changed_by_launch;
  HashFiles hashes;
};
inline void to_json(json& to, const ModuleVariable& from) {
  to = json::object({
    {"name", from.name},
    {"address", from.address},
    {"size", from.size},
    {"file", from.file},
    {"changed_by_launch", or_null(from.changed_by_launch)},
    {"hashes", from.hashes},
  });
}

// capture.json: everything beside the files of the public tools.
struct Extras {
  std::string schema_version;
  Tool tool;
  Process process;
  Runtime runtime;
  Agent agent;
  Launch dispatch;
  Kernel kernel;
  CodeObject code_object;
  Drain drain;
  Memory memory;
  std::vector<ModuleVariable> module_variables;
  // The program wrote to memory while it was captured.
  bool host_writers;
  std::vector<std::string> warnings;
};
inline void to_json(json& to, const Extras& from) {
  to = json::object({
    {"schema_version", from.schema_version},
    {"tool", from.tool},
    {"process", from.process},
    {"runtime", from.runtime},
    {"agent", from.agent},
    {"dispatch", from.dispatch},
    {"kernel", from.kernel},
    {"code_object", from.code_object},
    {"drain", from.drain},
    {"memory", from.memory},
    {"module_variables", from.module_variables},
    {"host_writers", from.host_writers},
    {"warnings", from.warnings},
  });
}

struct HashedFile {
  uint64_t size;
  std::string xxh3;
};
inline void to_json(json& to, const HashedFile& from) {
  to = json::object({
    {"size", from.size},
    {"xxh3", from.xxh3},
  });
}

// rpl_capture_complete, written last.
struct Sentinel {
  std::string schema_version;
  std::map<std::string, HashedFile> files;
};
inline void to_json(json& to, const Sentinel& from) {
  to = json::object({
    {"schema_version", from.schema_version},
    {"files", from.files},
  });
}

}  // namespace rpl::isolate::record
