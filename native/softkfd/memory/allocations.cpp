#include "memory/allocations.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "memory/backing_store.h"

namespace softkfd {
namespace {

constexpr uint64_t kLargePage = 2ULL << 20;

}  // namespace

Buffer::~Buffer() {
  if (file >= 0) {
    munmap(host, bytes);
    close(file);
  }
  if (store != nullptr && offset) store->release(*offset, bytes);
}

std::optional<uint64_t> Allocations::create(Buffer&& wanted, std::optional<uint64_t> shared_offset) {
  auto buffer = std::make_shared<Buffer>();
  std::swap(*buffer, wanted);
  if (shared_offset) {
    buffer->host = store_.at(*shared_offset);
  } else if (buffer->kind != Kind::kUserPointer && buffer->original == nullptr) {
    buffer->offset = store_.allocate(buffer->bytes, buffer->bytes >= kLargePage ? kLargePage : 0);
    if (!buffer->offset) return std::nullopt;
    buffer->store = &store_;
    buffer->host = store_.at(*buffer->offset);
  }
  const std::scoped_lock lock(mutex_);
  const uint64_t handle = (static_cast<uint64_t>(buffer->gpu) << 32) | next_++;
  buffers_.emplace(handle, std::move(buffer));
  return handle;
}

std::shared_ptr<Buffer> Allocations::find(uint64_t handle) const {
  const std::scoped_lock lock(mutex_);
  const auto found = buffers_.find(handle);
  return found == buffers_.end() ? nullptr : found->second;
}

bool Allocations::free(uint64_t handle) {
  std::shared_ptr<Buffer> last;  // given back after the lock
  const std::scoped_lock lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return false;
  last = std::move(found->second);
  buffers_.erase(found);
  return true;
}

uint64_t Allocations::used_vram(uint32_t gpu) const {
  const std::scoped_lock lock(mutex_);
  uint64_t sum = 0;
  for (const auto& [handle, buffer] : buffers_) {
    if (buffer->kind == Kind::kVram && buffer->gpu == gpu) sum += buffer->bytes;
  }
  return sum;
}

}  // namespace softkfd
