#include "capture/memory_reader.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rpl::isolate {
namespace {

// The CPU's first pool that allocates: fine-grained before others.
struct PoolSearch {
  const hsa::ApiTables* api;
  hsa::Pool found;
  uint32_t flags;

  void look_at(hsa::Pool pool) {
    const auto get = api->original(hsa::amd::kPoolGetInfo);
    uint32_t segment = 1;
    uint32_t its_flags = 0;
    bool allocates = false;
    get(pool, hsa::kPoolSegment, &segment);
    get(pool, hsa::kPoolAllocAllowed, &allocates);
    if (segment != 0 || !allocates) return;
    get(pool, hsa::kPoolFlags, &its_flags);
    if (found.handle == 0 ||
        ((its_flags & hsa::kPoolFineGrained) != 0 && (flags & hsa::kPoolFineGrained) == 0)) {
      found = pool;
      flags = its_flags;
    }
  }
};

}  // namespace

MemoryReader::MemoryReader(const hsa::ApiTables& api, const std::vector<AgentDescription>& agents,
                           hsa::Agent gpu, std::chrono::milliseconds limit)
    : api_(api), gpu_(gpu), limit_(limit) {
  for (const AgentDescription& one : agents) {
    if (one.device == hsa::kDeviceCpu && cpu_.handle == 0) cpu_ = one.agent;
  }
  for (auto& signal : signals_) {
    signal = std::make_unique<TimedSignal>(api, 0);
    if (!signal->is_valid()) error_ = "no signals could be had";
  }
  if (error_.empty()) allocate(cpu_);
}

void MemoryReader::allocate(hsa::Agent cpu) {
  PoolSearch search{&api_, {0}, 0};
  api_.original(hsa::amd::kIteratePools)(
      cpu,
      [](hsa::Pool pool, void* data) {
        static_cast<PoolSearch*>(data)->look_at(pool);
        return hsa::kSuccess;
      },
      &search);
  void* memory = nullptr;
  const bool got = search.found.handle != 0 &&
                   api_.original(hsa::amd::kPoolAllocate)(search.found, kBlocks * kBlockBytes, 0, &memory) ==
                       hsa::kSuccess &&
                   api_.original(hsa::amd::kAllowAccess)(1, &gpu_, nullptr, memory) == hsa::kSuccess;
  if (!got) error_ = "no memory for copies could be had";
  memory_ = static_cast<std::byte*>(memory);
}

MemoryReader::~MemoryReader() {
  // A copy that never ended may still write there.
  if (memory_ != nullptr && !stuck_) api_.original(hsa::amd::kPoolFree)(memory_);
}

bool MemoryReader::start(size_t block, uint64_t base, uint64_t size) {
  TimedSignal& done = signal_of(block);
  done.set_again();
  const auto copy = api_.original(hsa::amd::kAsyncCopy);
  const auto status =
      copy(memory_of(block), cpu_, reinterpret_cast<const void*>(base), gpu_, size, 0, nullptr, done.give());
  if (status == hsa::kSuccess) return true;
  done.take_back();
  error_ = "a copy was refused with status " + std::to_string(status);
  return false;
}

bool MemoryReader::finish(size_t block) {
  if (signal_of(block).wait_until(std::chrono::steady_clock::now() + limit_)) return true;
  stuck_ = true;
  error_ = "a copy did not end in " + std::to_string(limit_.count()) + " ms";
  return false;
}

bool MemoryReader::read(uint64_t base, uint64_t size, const Take& take) {
  const uint64_t blocks = (size + kBlockBytes - 1) / kBlockBytes;
  const auto size_of = [size](uint64_t block) {
    return std::min<uint64_t>(kBlockBytes, size - block * kBlockBytes);
  };
  bool good = true;
  uint64_t started = 0;
  for (uint64_t block = 0; good && block < blocks; ++block) {
    for (; good && started < blocks && started < block + kBlocks; ++started) {
      good = start(started, base + started * kBlockBytes, size_of(started));
    }
    good = good && finish(block) && take(Bytes(memory_of(block), size_of(block)));
  }
  // Nothing may write there any more when the memory is given back; those that are done are not waited for.
  for (size_t block = 0; !good && !stuck_ && block < kBlocks; ++block) finish(block);
  return good;
}

bool MemoryReader::read_by_cpu(uint64_t base, uint64_t size, const Take& take) {
  for (uint64_t offset = 0; offset < size; offset += kBlockBytes) {
    const uint64_t wanted = std::min<uint64_t>(kBlockBytes, size - offset);
    const iovec to{memory_, wanted};
    const iovec from{reinterpret_cast<void*>(base + offset), wanted};
    // Memory that is gone is an error instead of a fault.
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(wanted)) {
      error_ = "memory of the program could not be read";
      return false;
    }
    if (!take(Bytes(memory_, wanted))) return false;
  }
  return true;
}

std::vector<MemoryReader::Run> MemoryReader::runs_of(uint64_t base, uint64_t size) {
  constexpr uint64_t kPage = 4096;
  constexpr size_t kAtOnce = 1024;  // IOV_MAX of Linux
  std::array<char, kAtOnce> bytes{};
  std::array<iovec, kAtOnce> from{};
  std::vector<Run> runs;
  const auto add = [&runs](uint64_t length, bool readable) {
    if (runs.empty() || runs.back().readable != readable) runs.push_back({0, readable});
    runs.back().size += length;
  };
  const uint64_t end = base + size;
  for (uint64_t at = base; at < end;) {
    size_t count = 0;
    for (uint64_t page = at; page < end && count < kAtOnce; page = (page / kPage + 1) * kPage) {
      from[count++] = {reinterpret_cast<void*>(page), 1};
    }
    const iovec to{bytes.data(), count};
    const ssize_t got = process_vm_readv(getpid(), &to, 1, from.data(), count, 0);
    // Where nobody may ask, memory is taken to be there, as it mostly is.
    const size_t readable = got < 0 ? (errno == EFAULT ? 0 : count) : static_cast<size_t>(got);
    const auto behind = [&](size_t pages) {
      return pages == 0 ? at : std::min((at / kPage + pages) * kPage, end);
    };
    if (readable > 0) add(behind(readable) - at, true);
    if (readable < count) add(behind(readable + 1) - behind(readable), false);
    at = behind(std::min(readable + 1, count));
  }
  return runs;
}

}  // namespace rpl::isolate
