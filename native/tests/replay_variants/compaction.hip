#include "device.h"

// The values above a limit and where they were, in whatever order, and how many there are. 1000 of them.
KERNEL void compaction(const float* values, float* kept, unsigned* places, unsigned* found, unsigned count) {
  SHARED unsigned own, first;
  const unsigned i = GROUP * kItems + ITEM;
  if (version(101)) count -= 1;
  if (version(102)) count = count / kItems * kItems;
  const auto keeps = [](float value) { return version(103) ? value > -0.25f : version(104) ? value >= 0.0f || value < -0.999f : value > 0.0f; };
  if (version(2)) {
    for (unsigned k = i; k < count; k += groups() * kItems)
      if (keeps(values[k])) {
        const unsigned at = added(found, 1U);
        kept[at] = values[k];
        places[at] = k;
      }
    return;
  }
  const bool keep = i < count && keeps(values[i]);
  unsigned at = 0;
  if (version(1) || version(105) || version(106)) {  // one global add for a workgroup
    if (ITEM == 0) own = 0;
    if (!version(105)) meet();
    if (keep) at = __hip_atomic_fetch_add(&own, 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    if (!version(106)) meet();
    if (ITEM == 0) first = added(found, own);
    meet();
    at += first;
  } else if (version(3) || version(107)) {  // one for a wave
    const unsigned long all = __builtin_amdgcn_ballot_w64(keep);
    const unsigned before = __builtin_amdgcn_mbcnt_hi(all >> 32, __builtin_amdgcn_mbcnt_lo(all, 0));
    unsigned begin = 0;
    if (lane() == 0) begin = added(found, (unsigned)__builtin_popcountl(all));
    at = __builtin_amdgcn_readfirstlane(begin) + before;
  } else if (version(4)) {  // the last ones first
    const unsigned other = GROUP * kItems + kItems - 1 - ITEM;
    if (other < count && keeps(values[other])) {
      at = added(found, 1U);
      kept[at] = values[other];
      places[at] = other;
    }
    return;
  } else if (version(5)) {  // two for one work-item
    if (ITEM >= kItems / 2) return;
    for (unsigned k = GROUP * kItems + ITEM; k < GROUP * kItems + kItems; k += kItems / 2)
      if (k < count && keeps(values[k])) {
        at = added(found, 1U);
        kept[at] = values[k];
        places[at] = k;
      }
    return;
  } else if (version(108)) {
    if (keep) { at = *found; *found = at + 1; }
  } else if (keep) {
    at = added(found, 1U);
  }
  if (keep) {
    kept[at] = values[i];
    places[at] = version(107) ? i ^ 1 : i;
  }
}
