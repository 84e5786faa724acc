// Which addresses a replay needs, and keeping them free until they are asked of the runtime.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace rpl::replay {

inline constexpr uint64_t kPageBytes = 4096;

// Runtimes were seen to refuse 64 GiB in one piece.
inline constexpr uint64_t kLargestPiece = 16ULL << 30;

// Whole pages of one GPU. Contents that share a page, or follow each other on one GPU, are together, in
// pieces.
struct Pages {
  Range range;
  uint32_t gpu = 0;

  [[nodiscard]] uint64_t end() const { return range.address + range.size; }
};
Range rounded(const Range& range);  // to whole pages
std::vector<Pages> pages_of(std::vector<Content> contents);

// Holds the pages by mappings without access, so that nothing else gets there.
class HeldPages {
 public:
  // The first range that is taken already ends it; see `taken`.
  explicit HeldPages(const std::vector<Pages>& pages);
  ~HeldPages();
  HeldPages(const HeldPages&) = delete;
  HeldPages& operator=(const HeldPages&) = delete;

  [[nodiscard]] const std::optional<Range>& taken() const { return taken_; }
  // Just before the runtime is asked for them.
  void release(const Range& range);

 private:
  std::vector<Range> held_;
  std::optional<Range> taken_;
};

// The line of /proc/self/maps that lies there, or nothing.
std::string occupant_of(const Range& range);

}  // namespace rpl::replay
