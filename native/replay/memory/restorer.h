// Captured regions before each launch: all of them, or only the chunks that a launch changes, where the end
// proves that no other chunk was changed.
#pragma once

#include <vector>

#include "memory/copier.h"

namespace rpl::replay {

class Restorer {
 public:
  Restorer(const Plan& plan, Copier& copier) : plan_(plan), copier_(copier) {}

  void restore();
  // Behind a launch: what it left otherwise than it was captured, what was found so before, and what is
  // edited, is all that later calls of `restore` write. Returns how many bytes that is.
  uint64_t keep_to_what_changed();
  // Behind the last launch: whether every other chunk is as it was captured. Then they always were.
  [[nodiscard]] bool rest_is_untouched();
  // Everything again.
  void forget() { changed_.clear(); }

 private:
  using Chunks = std::vector<bool>;
  // Those of a region that are not as captured; of chunks in `skipped` that is not looked at.
  Chunks compare(const Content& region, const Chunks& skipped);
  [[nodiscard]] Chunks edited(const Content& region) const;

  const Plan& plan_;
  Copier& copier_;
  std::vector<Chunks> changed_;  // region by region; empty: nothing is known
};

}  // namespace rpl::replay
