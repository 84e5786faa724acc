#include "memory/shared_buffers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <new>
#include <span>
#include <string>
#include <utility>

namespace softkfd {
namespace {

constexpr uint32_t kMagic = 0x66736864;
enum Word : size_t { kMagicWord, kProcess, kFile, kEntry };

}  // namespace

SharedBuffers::SharedBuffers(BackingStore& store, Allocations& allocations)
    : store_(store), allocations_(allocations) {
  const auto place = store.allocate(kEntries * sizeof(Entry), 0);
  if (!place) throw std::bad_alloc();
  entries_ = reinterpret_cast<Entry*>(store.at(*place));
}

std::optional<ShareToken> SharedBuffers::publish(uint64_t handle) {
  const auto buffer = allocations_.find(handle);
  if (buffer == nullptr || !buffer->offset) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  const std::span entries(entries_, kEntries);
  for (uint32_t index = 0; index < kEntries; ++index) {
    Entry& entry = entries[index];
    if (entry.handle != 0 && entry.handle != handle) continue;
    entry = {handle, *buffer->offset, buffer->bytes};
    return ShareToken{kMagic, static_cast<uint32_t>(getpid()), static_cast<uint32_t>(store_.file()), index};
  }
  return std::nullopt;
}

std::shared_ptr<Buffer> SharedBuffers::open(const ShareToken& token) const {
  if (token[kMagicWord] != kMagic || token[kEntry] >= kEntries) return nullptr;
  if (std::cmp_equal(token[kProcess], getpid())) return allocations_.find(entries_[token[kEntry]].handle);
  return open_of_process(token);
}

std::shared_ptr<Buffer> SharedBuffers::open_of_process(const ShareToken& token) {
  const std::string path = "/proc/" + std::to_string(token[kProcess]) + "/fd/" + std::to_string(token[kFile]);
  std::error_code failed;
  const auto target = std::filesystem::read_symlink(path, failed).string();
  if (failed || !target.starts_with("/memfd:softkfd "))
    return nullptr;  // the process is gone, or the file is
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  Entry entry{};
  // The list is what a driver allocates first.
  const auto place = static_cast<off_t>(token[kEntry] * sizeof(Entry));
  std::shared_ptr<Buffer> buffer;
  if (pread(file, &entry, sizeof(entry), place) == sizeof(entry) && entry.handle != 0) {
    void* bytes = mmap(nullptr, entry.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                       static_cast<off_t>(entry.offset));
    if (bytes != MAP_FAILED) {
      buffer = std::make_shared<Buffer>();
      buffer->kind = Kind::kForeign;
      buffer->bytes = entry.bytes;
      buffer->host = static_cast<std::byte*>(bytes);
      buffer->file = file;
      buffer->file_offset = entry.offset;
    }
  }
  if (buffer == nullptr) close(file);
  return buffer;
}

std::optional<uint64_t> SharedBuffers::window(const std::shared_ptr<Buffer>& buffer) {
  if (buffer->offset) return buffer->offset;  // of this process itself
  const auto place = store_.allocate(buffer->bytes, 0);
  if (!place) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  windows_.assign(*place, *place + buffer->bytes, {buffer, 0});
  return place;
}

std::optional<SharedBuffers::Place> SharedBuffers::foreign(uint64_t offset) const {
  const std::scoped_lock lock(mutex_);
  const auto found = windows_.find(offset);
  if (!found) return std::nullopt;
  const Window& window = found->value;
  return Place{window.buffer->file, window.buffer->file_offset + window.passed};
}

}  // namespace softkfd
