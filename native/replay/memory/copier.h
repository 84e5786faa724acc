// Bytes to and from the memory of GPUs, by their copy engines and through pinned memory of the host.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "memory/content_file.h"
#include "plan/plan.h"
#include "runtime/events.h"
#include "runtime/gpus.h"

namespace rpl::replay {

class Copier {
 public:
  // Everything throws Failure copy_failed.
  Copier(const HsaLibrary& hsa, const Gpus& gpus, const Events& events);
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  void write(const Content& content) { write(content, content.range.address); }
  // The content at another address.
  void write(const Content& content, uint64_t address);
  // Only these chunks of 1 MiB.
  void write(const Content& content, const std::vector<bool>& chunks);
  // Writes to memory that is nobody's, which is allocated for it: what caches held gives way.
  void flush(uint32_t gpu, uint64_t bytes);
  // Chunk by chunk, of 1 MiB from the beginning of the range.
  void read(const Range& range, uint32_t gpu, const std::function<void(std::span<const std::byte>)>& sink);

 private:
  [[nodiscard]] void* pinned(size_t size) const;
  void write_chunk(ContentFile& file, const Content& content, uint64_t offset, uint64_t address);
  void copy(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t size);

  const HsaLibrary& hsa_;
  const Gpus& gpus_;
  const Events& events_;
  std::byte* staging_ = nullptr;
  std::byte* zeros_ = nullptr;
  void* elsewhere_ = nullptr;
  hsa::Signal done_{};
};

}  // namespace rpl::replay
