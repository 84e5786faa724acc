#include "capture/snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "capture/chunk.h"
#include "capture/region_file.h"

namespace rpl::isolate {
namespace {

std::string region_name(uint64_t base) {
  constexpr size_t kDigits = 16;
  std::array<char, kDigits> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), base, 16);
  return kRegionPrefix + std::string(text.data(), written.ptr);
}

std::string file_in(const char* folder, const std::string& name) { return std::string(folder) + "/" + name; }

// As the runtime knows an address.
struct Pointer {
  hsa::PointerInfo info{};
  std::vector<hsa::Agent> accessible;
};

Pointer look_up(const hsa::ApiTables& api, uint64_t address) {
  Pointer found;
  found.info.size = sizeof(found.info);
  uint32_t count = 0;
  hsa::Agent* agents = nullptr;
  const auto status = api.original(hsa::amd::kPointerInfo)(reinterpret_cast<const void*>(address),
                                                           &found.info, &std::malloc, &count, &agents);
  if (status != hsa::kSuccess) found.info.type = hsa::kPointerUnknown;
  if (agents != nullptr) found.accessible.assign(agents, agents + count);
  std::free(agents);
  return found;
}

// Where the driver shares pages with the GPU, locked memory keeps its address and the runtime's pointer
// information knows nothing of it.
bool is_shared_lock(const Allocation& allocation) {
  return allocation.kind == Kind::kLockedHost && allocation.host == allocation.base;
}

// Whose pool it is; the runtime's pointer information knows nothing of virtual memory before ROCm 7.
hsa::Agent owner_of_pool(const hsa::ApiTables& api, const std::vector<AgentDescription>& agents,
                         uint64_t pool) {
  struct Search {
    uint64_t pool;
    bool found;
  } search{pool, false};
  for (const AgentDescription& agent : agents) {
    api.original(hsa::amd::kIteratePools)(
        agent.agent,
        [](hsa::Pool its, void* data) {
          auto* const wanted = static_cast<Search*>(data);
          wanted->found = wanted->found || its.handle == wanted->pool;
          return hsa::kSuccess;
        },
        &search);
    if (search.found) return agent.agent;
  }
  return {};
}

std::optional<record::MemoryAgent> agent_at(const std::vector<AgentDescription>& agents, hsa::Agent handle) {
  for (const AgentDescription& agent : agents) {
    if (agent.agent.handle != handle.handle) continue;
    return record::MemoryAgent{.name = agent.name, .node = agent.node};
  }
  return std::nullopt;
}

RegionKind kind_of(const CapturedRegion& region) {
  switch (region.allocation.kind) {
    case Kind::kPool:
      break;
    case Kind::kHsaMemory:
      return RegionKind::kHsaMemory;
    case Kind::kVmem:
      return RegionKind::kVmem;
    case Kind::kSvm:
      return RegionKind::kSvm;
    case Kind::kLockedHost:
      return RegionKind::kLockedHost;
    case Kind::kIpc:
      return RegionKind::kIpc;
    case Kind::kInterop:
      return RegionKind::kInterop;
  }
  return region.on_host ? RegionKind::kHostPool : RegionKind::kDevicePool;
}

// Of the files with the hashes, so that the seal of capture.json covers them.
record::HashFiles seals_of(const CapturedRegion& region) {
  const auto seal = [](const std::vector<uint64_t>& hashes) -> std::optional<std::string> {
    if (hashes.empty()) return std::nullopt;
    return hex16(xxh3({reinterpret_cast<const std::byte*>(hashes.data()), hashes.size() * sizeof(uint64_t)}));
  };
  return {.pre = seal(region.before), .post = seal(region.after)};
}

std::optional<uint64_t> unless_zero(uint64_t value) {
  return value != 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<bool> CapturedRegion::changed() const {
  if (after.empty() || before.size() != after.size()) return std::nullopt;
  return before != after;
}

Snapshot::Snapshot(const hsa::ApiTables& api, const Settings& settings,
                   const std::vector<AgentDescription>& agents, hsa::Agent gpu)
    : api_(api),
      settings_(settings),
      agents_(agents),
      gpu_(gpu),
      reader_(api, agents, gpu, settings.drain_limit) {
  error_ = reader_.error();
}

bool Snapshot::fail(const std::string& reason) {
  if (error_.empty()) error_ = reason;
  return false;
}

// As errno says.
bool Snapshot::fail_to_write(const std::string& name) {
  no_space_ = no_space_ || is_full(errno);
  return fail(name + " could not be written: " + std::strerror(errno));
}

uint64_t Snapshot::needed() const {
  uint64_t bytes = 0;
  for (const CapturedRegion& region : regions_) {
    const bool twice = settings_.post == Post::kBytes && !region.variable;
    if (region.wanted && !region.unreadable) bytes += region.allocation.size * (twice ? 2 : 1);
  }
  return bytes;
}

void Snapshot::find_regions(MemoryMap& memory, const KernelRegistry& registry) {
  for (const Allocation& allocation : memory.reachable_by(gpu_.handle)) {
    CapturedRegion region;
    region.allocation = allocation;
    region.file = file_in(kMemoryFolder, region_name(allocation.base));
    region.allocation_base = allocation.base;
    region.allocation_size = allocation.size;
    if (is_reachable(region)) regions_.push_back(std::move(region));
  }
  cut_out_unreadable();
  size_t number = 0;
  for (const Variable& variable : registry.variables_of(gpu_.handle)) {
    CapturedRegion region;
    region.allocation.base = variable.address;
    region.allocation.size = variable.size;
    region.variable = variable.name;
    region.file = file_in(kVariablesFolder, std::to_string(number++));
    region.owner = gpu_;
    regions_.push_back(std::move(region));
  }
}

// Memory that the GPU can't reach is none of the kernel's, and copies of it would be faults.
bool Snapshot::is_reachable(CapturedRegion& region) const {
  const Kind kind = region.allocation.kind;
  if (kind == Kind::kSvm) {
    region.on_host = true;
    return true;
  }
  const Pointer pointer = look_up(api_, region.allocation.base);
  region.owner = pointer.info.owner;
  region.pool_flags = pointer.info.pool_flags;
  if (kind == Kind::kVmem && region.allocation.pool != 0) {
    region.owner = owner_of_pool(api_, agents_, region.allocation.pool);
    api_.original(hsa::amd::kPoolGetInfo)({region.allocation.pool}, hsa::kPoolFlags, &region.pool_flags);
  }
  for (const AgentDescription& agent : agents_) {
    if (agent.agent.handle == region.owner.handle) region.on_host = agent.device == hsa::kDeviceCpu;
  }
  if (kind == Kind::kVmem) return true;  // the memory map asked already
  if (kind == Kind::kLockedHost) region.on_host = true;
  if (is_shared_lock(region.allocation)) return true;
  if (pointer.info.type == hsa::kPointerUnknown) return false;
  if (pointer.info.bytes != 0 && kind != Kind::kLockedHost) {
    region.allocation_base = reinterpret_cast<uint64_t>(pointer.info.agent_base);
    region.allocation_size = pointer.info.bytes;
  }
  return std::ranges::any_of(pointer.accessible,
                             [this](hsa::Agent agent) { return agent.handle == gpu_.handle; });
}

// HIP keeps what it copied from locked, as a cache: programs free it all the same.
void Snapshot::cut_out_unreadable() {
  std::vector<CapturedRegion> found;
  for (const CapturedRegion& whole : regions_) {
    const Allocation& allocation = whole.allocation;
    const bool shared = allocation.kind == Kind::kSvm;
    const bool of_program = shared || (allocation.kind == Kind::kLockedHost && allocation.host != 0);
    const auto runs = of_program
                          ? MemoryReader::runs_of(shared ? allocation.base : allocation.host, allocation.size)
                          : std::vector<MemoryReader::Run>{{allocation.size, true}};
    uint64_t offset = 0;
    for (const MemoryReader::Run& run : runs) {
      CapturedRegion part = whole;
      part.allocation.base += offset;
      part.allocation.size = run.size;
      if (allocation.host != 0) part.allocation.host += offset;
      part.file = file_in(kMemoryFolder, region_name(part.allocation.base));
      part.unreadable = !run.readable;
      part.torn = runs.size() > 1;
      offset += run.size;
      found.push_back(std::move(part));
    }
  }
  regions_ = std::move(found);
}

void Snapshot::drop_unreadable() {
  for (const CapturedRegion& region : regions_) {
    if (!region.unreadable || !region.wanted) continue;
    const std::string packed = std::string(kBytesSuffix) + kPackedSuffix;
    for (const char* suffix : {kBytesSuffix, packed.c_str(), kBeforeHashesSuffix, kAfterHashesSuffix}) {
      unlink((path(region.file) + suffix).c_str());
      unlink((path(file_in(kAfterFolder, region_name(region.allocation.base))) + suffix).c_str());
    }
    left_out_.push_back(region);
  }
  std::erase_if(regions_, [](const CapturedRegion& region) { return region.unreadable; });
}

bool Snapshot::stream(CapturedRegion& region, const MemoryReader::Take& take) {
  const Allocation& allocation = region.allocation;
  const bool by_cpu = allocation.kind == Kind::kSvm || is_shared_lock(allocation) || region.torn;
  const uint64_t from = by_cpu && allocation.host != 0 ? allocation.host : allocation.base;
  const uint64_t size = allocation.size;
  if (by_cpu ? reader_.read_by_cpu(from, size, take) : reader_.read(from, size, take)) return true;
  if (error_.empty() && by_cpu) {  // given back since it was looked at
    region.unreadable = true;
    reader_.forget_error();
    return false;
  }
  return fail(reader_.error());
}

bool Snapshot::read(uint64_t base, uint64_t size, std::vector<std::byte>& bytes) {
  const bool read = reader_.read(base, size, [&bytes](Bytes block) {
    bytes.insert(bytes.end(), block.begin(), block.end());
    return true;
  });
  return read || fail(reader_.error());
}

bool Snapshot::write_before(Bytes roots) {
  const bool everything = settings_.mode == Mode::kFull;
  for (CapturedRegion& region : regions_) region.wanted = everything || region.variable.has_value();
  if (everything) {
    for (CapturedRegion& region : regions_) {
      if (!write_region(region, false)) return false;
    }
    drop_unreadable();
    return true;
  }
  scan(roots);
  for (CapturedRegion& region : regions_) {
    if (region.variable && !write_region(region, true)) return false;
  }
  for (; !to_visit_.empty(); to_visit_.pop_front()) {
    if (!write_region(regions_[to_visit_.front()], true)) return false;
  }
  std::erase_if(regions_, [](const CapturedRegion& region) { return !region.wanted; });
  drop_unreadable();
  return true;
}

// Words that are addresses in regions: those are wanted too.
void Snapshot::scan(Bytes bytes) {
  // Variables stand behind the regions, which are in the order of addresses.
  const auto last = std::ranges::partition_point(
      regions_, [](const CapturedRegion& region) { return !region.variable; });
  if (last == regions_.begin()) return;
  const uint64_t low = regions_.front().allocation.base;
  const uint64_t high = std::prev(last)->allocation.base + std::prev(last)->allocation.size;
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    if (word < low || word > high) continue;
    auto found = std::upper_bound(
        regions_.begin(), last, word,
        [](uint64_t address, const CapturedRegion& region) { return address < region.allocation.base; });
    if (found == regions_.begin()) continue;
    --found;
    // One behind the end counts: loops run up to it, and down from it.
    if (found->wanted || word > found->allocation.base + found->allocation.size) continue;
    found->wanted = true;
    to_visit_.push_back(static_cast<size_t>(found - regions_.begin()));
  }
}

bool Snapshot::write_region(CapturedRegion& region, bool scan_it) {
  if (region.unreadable) return true;
  const std::string name = path(region.file + kBytesSuffix);
  const auto file = RegionFile::create(name, region.variable ? Compression::kNone : settings_.compression);
  if (!file) return fail_to_write(name);
  ChunkHasher hasher;
  const bool hash = settings_.hash == Hash::kXxh3;
  const bool streamed = stream(region, [&](Bytes block) {
    if (hash) hasher.add(block);
    if (scan_it) scan(block);
    return file->append(block) || fail_to_write(name);
  });
  if (!streamed) return region.unreadable;
  if (!file->finish(region.stored)) return fail_to_write(name);
  region.before = hasher.hashes();
  return !hash || write_hashes(region, region.before, kBeforeHashesSuffix);
}

bool Snapshot::write_hashes(const CapturedRegion& region, const std::vector<uint64_t>& hashes,
                            const char* suffix) {
  const Bytes bytes(reinterpret_cast<const std::byte*>(hashes.data()), hashes.size() * sizeof(uint64_t));
  const std::string name = path(region.file + suffix);
  return write_file(name, bytes) || fail_to_write(name);
}

bool Snapshot::look_for_host_writers() {
  if (settings_.hash == Hash::kNone) return true;
  for (CapturedRegion& region : regions_) {
    if (!region.on_host) continue;
    ChunkHasher again;
    const bool read = stream(region, [&again](Bytes block) { return again.add(block), true; });
    if (!read && !region.unreadable) return false;
    region.written_by_host = again.hashes() != region.before;
  }
  drop_unreadable();
  return true;
}

bool Snapshot::write_after() {
  if (settings_.post == Post::kNone) return true;
  const bool hash = settings_.hash == Hash::kXxh3;
  for (CapturedRegion& region : regions_) {
    ChunkHasher hasher;
    const std::string name = path(file_in(kAfterFolder, region_name(region.allocation.base) + kBytesSuffix));
    std::unique_ptr<RegionFile> file;
    if (settings_.post == Post::kBytes && !region.variable) {
      file = RegionFile::create(name, settings_.compression);
      if (!file) return fail_to_write(name);
    }
    const bool streamed = stream(region, [&](Bytes block) {
      if (hash) hasher.add(block);
      return !file || file->append(block) || fail_to_write(name);
    });
    if (!streamed && region.unreadable) continue;
    uint64_t stored = 0;
    if (!streamed) return false;
    if (file && !file->finish(stored)) return fail_to_write(name);
    region.after = hasher.hashes();
    if (hash && !write_hashes(region, region.after, kAfterHashesSuffix)) return false;
  }
  drop_unreadable();
  return true;
}

record::MemoryRegion told_region(const CapturedRegion& region, const std::vector<AgentDescription>& agents) {
  const Allocation& allocation = region.allocation;
  const bool vmem = allocation.kind == Kind::kVmem;
  return {
      .base = allocation.base,
      .size = allocation.size,
      .kind = kind_of(region),
      .agent = agent_at(agents, region.owner),
      .pool_flags = region.pool_flags,
      .allocation_base = region.allocation_base,
      .allocation_size = region.allocation_size,
      .reservation_base = vmem ? unless_zero(allocation.reservation) : std::nullopt,
      .reservation_size = vmem ? unless_zero(allocation.reserved_size) : std::nullopt,
      .in_offset = vmem ? std::optional(allocation.in_offset) : std::nullopt,
      .permissions = vmem ? std::optional(allocation.permissions) : std::nullopt,
      .host_address = unless_zero(allocation.host),
      .changed_by_launch = region.changed(),
      .written_by_host = region.written_by_host,
      .hashes = seals_of(region),
  };
}

record::ModuleVariable told_variable(const CapturedRegion& variable) {
  return {
      .name = variable.variable.value_or(""),
      .address = variable.allocation.base,
      .size = variable.allocation.size,
      .file = variable.file + kBytesSuffix,
      .changed_by_launch = variable.changed(),
      .hashes = seals_of(variable),
  };
}

record::Region listed(const CapturedRegion& region, uint64_t kernarg_address) {
  const Allocation& allocation = region.allocation;
  const bool vmem = allocation.kind == Kind::kVmem;
  return {
      .base = allocation.base,
      .size = allocation.size,
      .is_pool = allocation.kind == Kind::kPool || allocation.kind == Kind::kHsaMemory,
      .is_vmem = vmem,
      .contains_kernarg = kernarg_address - allocation.base < allocation.size,
      .handle = vmem ? allocation.handle : 0,
      .access = vmem ? allocation.permissions : 0,
  };
}

}  // namespace rpl::isolate
