// An array that grows by mmap: hooks of allocation functions may be called from inside of an allocator.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rpl::isolate {

template <typename T>
class MappedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit MappedArray(size_t most) : most_(most) {}
  ~MappedArray() {
    if (items_ != nullptr) munmap(items_, capacity_ * sizeof(T));
  }
  MappedArray(const MappedArray&) = delete;
  MappedArray& operator=(const MappedArray&) = delete;

  // False when there is no memory for it, or it would be more than the most.
  bool insert(size_t place, const T& item) {
    if (count_ == capacity_ && !grow()) return false;
    std::copy_backward(items_ + place, items_ + count_, items_ + count_ + 1);
    items_[place] = item;
    ++count_;
    return true;
  }
  bool append(const T& item) { return insert(count_, item); }
  void erase(size_t place) {
    std::copy(items_ + place + 1, items_ + count_, items_ + place);
    --count_;
  }
  T& operator[](size_t place) { return items_[place]; }
  const T& operator[](size_t place) const { return items_[place]; }
  [[nodiscard]] T* begin() { return items_; }
  [[nodiscard]] T* end() { return items_ + count_; }
  [[nodiscard]] const T* begin() const { return items_; }
  [[nodiscard]] const T* end() const { return items_ + count_; }
  [[nodiscard]] size_t size() const { return count_; }

 private:
  static constexpr size_t kStepBytes = 64 << 10;

  bool grow() {
    const size_t wanted = std::min(most_, std::max(kStepBytes / sizeof(T), capacity_ * 2));
    if (wanted <= capacity_) return false;
    constexpr int kProtection = PROT_READ | PROT_WRITE;
    void* const grown =
        items_ == nullptr
            ? mmap(nullptr, wanted * sizeof(T), kProtection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            : mremap(static_cast<void*>(items_), capacity_ * sizeof(T), wanted * sizeof(T), MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) return false;
    items_ = static_cast<T*>(grown);
    capacity_ = wanted;
    return true;
  }

  size_t most_;
  T* items_ = nullptr;
  size_t count_ = 0;
  size_t capacity_ = 0;
};

}  // namespace rpl::isolate
