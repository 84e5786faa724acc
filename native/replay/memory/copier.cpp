#include "memory/copier.h"

#include <algorithm>
#include <cstring>

#include "capture/chunk.h"
#include "plan/failure.h"

namespace rpl::replay {
namespace {

using isolate::kChunkBytes;
// A copy engine that takes longer for a chunk is stuck.
constexpr uint64_t kLongestCopyNs = 60'000'000'000;

}  // namespace

Copier::Copier(const HsaLibrary& hsa, const Gpus& gpus, const Events& events)
    : hsa_(hsa), gpus_(gpus), events_(events) {
  staging_ = static_cast<std::byte*>(pinned(kChunkBytes));
  zeros_ = static_cast<std::byte*>(pinned(kChunkBytes));
  std::memset(zeros_, 0, kChunkBytes);
  hsa_.require(hsa_.signal_create(1, 0, nullptr, &done_), "copy_failed", "the runtime gives no signal");
}

Copier::~Copier() {
  hsa_.signal_destroy(done_);
  if (elsewhere_ != nullptr) hsa_.pool_free(elsewhere_);
  hsa_.pool_free(zeros_);
  hsa_.pool_free(staging_);
}

void* Copier::pinned(size_t size) const {
  void* memory = nullptr;
  hsa_.require(hsa_.pool_allocate(gpus_.host_pool(), size, 0, &memory), "copy_failed",
               "there is no pinned memory");
  const std::vector<hsa::Agent> agents = gpus_.agents();
  hsa_.require(hsa_.allow_access(static_cast<uint32_t>(agents.size()), agents.data(), nullptr, memory),
               "copy_failed", "the GPUs get no access to pinned memory");
  return memory;
}

void Copier::copy(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t size) {
  const std::string during = "while captured memory was copied";
  hsa_.signal_store(done_, 1);
  hsa_.require(hsa_.async_copy(to, to_agent, from, from_agent, size, 0, nullptr, done_), "copy_failed",
               "the runtime does not copy captured memory");
  if (!wait_for(hsa_, done_, events_, kLongestCopyNs, "copy_failed", during)) {
    throw Failure("copy_failed", "a copy engine did not end");
  }
}

void Copier::write(const Content& content, uint64_t address) {
  ContentFile file(content.file);
  for (uint64_t offset = 0; offset < content.range.size; offset += kChunkBytes) {
    write_chunk(file, content, offset, address);
  }
}

void Copier::write(const Content& content, const std::vector<bool>& chunks) {
  ContentFile file(content.file);
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    if (chunks[chunk]) write_chunk(file, content, chunk * kChunkBytes, content.range.address);
  }
}

void Copier::write_chunk(ContentFile& file, const Content& content, uint64_t offset, uint64_t address) {
  const size_t size = std::min<uint64_t>(kChunkBytes, content.range.size - offset);
  const bool data = file.read(offset, {staging_, size});
  auto* to = reinterpret_cast<void*>(address + offset);
  copy(to, gpus_.at(content.gpu).agent, data ? staging_ : zeros_, gpus_.cpu(), size);
}

void Copier::flush(uint32_t gpu, uint64_t bytes) {
  if (elsewhere_ == nullptr) {
    hsa_.require(hsa_.pool_allocate(gpus_.at(gpu).pool, bytes, 0, &elsewhere_), "map_failed",
                 "there is no memory to flush caches with");
  }
  for (uint64_t offset = 0; offset < bytes; offset += kChunkBytes) {
    copy(static_cast<std::byte*>(elsewhere_) + offset, gpus_.at(gpu).agent, zeros_, gpus_.cpu(),
         std::min<uint64_t>(kChunkBytes, bytes - offset));
  }
}

void Copier::read(const Range& range, uint32_t gpu,
                  const std::function<void(std::span<const std::byte>)>& sink) {
  for (uint64_t offset = 0; offset < range.size; offset += kChunkBytes) {
    const size_t size = std::min<uint64_t>(kChunkBytes, range.size - offset);
    copy(staging_, gpus_.cpu(), reinterpret_cast<const void*>(range.address + offset), gpus_.at(gpu).agent,
         size);
    sink({staging_, size});
  }
}

}  // namespace rpl::replay
