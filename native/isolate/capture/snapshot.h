// The memory of a launch: which regions there are, their bytes before it, their hashes before and after.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/memory_reader.h"
#include "capture/records.h"
#include "capture/settings.h"
#include "code/kernel_registry.h"
#include "memory/memory_map.h"

namespace rpl::isolate {

// One region, or one variable of a module.
struct CapturedRegion {
  Allocation allocation;
  std::string file;  // below the capture folder, without the suffix of a compression
  std::optional<std::string> variable;
  hsa::Agent owner{};
  uint32_t pool_flags = 0;
  uint64_t allocation_base = 0;
  uint64_t allocation_size = 0;
  bool on_host = false;
  bool wanted = true;
  bool unreadable = false;  // host memory that the program gave back while it was locked or shared
  bool torn = false;        // its neighbours are: a copy engine could not read it either
  uint64_t stored = 0;
  std::vector<uint64_t> before, after;
  std::optional<bool> written_by_host;

  [[nodiscard]] std::optional<bool> changed() const;
};

class Snapshot {
 public:
  Snapshot(const hsa::ApiTables& api, const Settings& settings, const std::vector<AgentDescription>& agents,
           hsa::Agent gpu);

  // Why it can't go on; empty while all is well.
  [[nodiscard]] const std::string& error() const { return error_; }
  // It is for want of space; `needed` bytes are the most that the capture takes.
  [[nodiscard]] bool no_space() const { return no_space_; }
  [[nodiscard]] uint64_t needed() const;

  void find_regions(MemoryMap& memory, const KernelRegistry& registry);
  // The arguments, as the GPU would read them.
  bool read(uint64_t base, uint64_t size, std::vector<std::byte>& bytes);
  // Writes all bytes, or those to which `roots` lead.
  bool write_before(Bytes roots);
  // Reads host memory once more: what differs is written by the CPU all the while.
  bool look_for_host_writers();
  bool write_after();

  [[nodiscard]] std::vector<CapturedRegion>& regions() { return regions_; }
  // Of those that would have been captured.
  [[nodiscard]] const std::vector<CapturedRegion>& left_out() const { return left_out_; }

 private:
  [[nodiscard]] bool is_reachable(CapturedRegion& region) const;
  void cut_out_unreadable();
  void drop_unreadable();
  // False: `error` says why, or it is the region that became unreadable.
  bool stream(CapturedRegion& region, const MemoryReader::Take& take);
  bool write_region(CapturedRegion& region, bool scan);
  bool write_hashes(const CapturedRegion& region, const std::vector<uint64_t>& hashes, const char* suffix);
  void scan(Bytes bytes);
  bool fail(const std::string& reason);
  bool fail_to_write(const std::string& name);
  [[nodiscard]] std::string path(const std::string& name) const { return settings_.output + "/" + name; }

  const hsa::ApiTables& api_;
  const Settings& settings_;
  const std::vector<AgentDescription>& agents_;
  hsa::Agent gpu_;
  MemoryReader reader_;
  std::string error_;
  bool no_space_ = false;
  std::vector<CapturedRegion> regions_;
  std::vector<CapturedRegion> left_out_;
  std::deque<size_t> to_visit_;  // regions that were found by a pointer
};

// As capture.json and memory_regions.json tell them.
record::MemoryRegion told_region(const CapturedRegion& region, const std::vector<AgentDescription>& agents);
record::ModuleVariable told_variable(const CapturedRegion& variable);
record::Region listed(const CapturedRegion& region, uint64_t kernarg_address);

}  // namespace rpl::isolate
