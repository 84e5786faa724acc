#include "device.h"

// How often each key is there; keys are below 256. 1000 of them, four workgroups.
KERNEL void histogram(const unsigned* keys, unsigned* bins, unsigned count) {
  const unsigned i = GROUP * kItems + ITEM;
  if (version(101)) count -= 1;
  if (version(102)) count = count / kItems * kItems;
  if (version(1) || (VERSION >= 103 && VERSION <= 106)) {
    SHARED unsigned own[kItems];
    own[ITEM] = 0;
    if (!version(103)) meet();
    if (i < count) {
      const unsigned key = keys[i] % 256;
      if (version(105)) own[key] = own[key] + 1;
      else __hip_atomic_fetch_add(&own[key], 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    }
    if (!version(104)) meet();
    if (own[ITEM] != 0 && !(version(106) && ITEM == 255)) added(&bins[ITEM], own[ITEM]);
    return;
  }
  if (version(2)) {
    for (unsigned k = i; k < count; k += groups() * kItems) added(&bins[keys[k] % 256], 1U);
    return;
  }
  if (version(3)) {  // four neighbours by one work-item
    for (unsigned k = 4 * i; k < 4 * i + 4 && k < count; ++k) added(&bins[keys[k] % 256], 1U);
    return;
  }
  if (version(4)) {  // two tables, one for each half of the workgroup
    SHARED unsigned own[2][kItems];
    own[0][ITEM] = own[1][ITEM] = 0;
    meet();
    if (i < count) __hip_atomic_fetch_add(&own[ITEM / 128][keys[i] & 255], 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    meet();
    added(&bins[ITEM], own[0][ITEM] + own[1][ITEM]);
    return;
  }
  if (version(5)) {  // one add for all lanes of a wave that have the same key
    bool open = i < count;
    const unsigned key = open ? keys[i] & 255 : 0;
    while (__builtin_amdgcn_ballot_w64(open)) {
      if (!open) continue;
      const unsigned first = __builtin_amdgcn_readfirstlane(key);
      const unsigned long alike = __builtin_amdgcn_ballot_w64(key == first);
      if (key == first) {
        if (lane() == (unsigned)__builtin_ctzl(alike)) added(&bins[first], (unsigned)__builtin_popcountl(alike));
        open = false;
      }
    }
    return;
  }
  if (i < count) {
    const unsigned key = keys[i] % 256;
    if (version(107)) added(&bins[(key + 1) % 256], 1U);
    else if (version(108)) bins[key] = bins[key] + 1;
    else added(&bins[key], 1U);
  }
}
