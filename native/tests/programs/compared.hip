// Kernels of which other versions are compared with the captured one: -DVERSION=... chooses. Version 0 is the one
// that is captured; shadows.cpp does the same on the host.
#ifndef VERSION
#define VERSION 0
#endif
enum { kCaptured, kOptimized, kOffByOne, kDroppedRemainder, kNoBarrier, kReordered, kOtherArguments, kWritesBeyond, kStaleRead, kLuckyRace };

#define KERNEL __attribute__((global))
#define ITEM __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
constexpr unsigned kItems = 256;

__attribute__((device)) inline void meet() {
  if (VERSION == kNoBarrier) return;
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  __builtin_amdgcn_s_barrier();
}

__attribute__((device)) inline unsigned counted(unsigned long count) {
  if (VERSION == kOffByOne) return count - 1;
  if (VERSION == kDroppedRemainder) return count / kItems * kItems;
  return count;
}

// Of the same name with every layout.
struct Count {
#if VERSION == 6
  unsigned long value;
#else
  unsigned value;
#endif
};

// One sum for each workgroup, by halves; `rounds` counts how often it was called.
KERNEL void block_sums(const float* values, float* sums, unsigned* rounds, Count count) {
  __attribute__((shared)) static float part[kItems];
  const unsigned i = GROUP * kItems + ITEM;
  part[ITEM] = i < counted(count.value) ? values[i] : 0.0f;
  // Of another wave, and from before the barrier.
  const float early = VERSION == kStaleRead ? part[(ITEM + kItems / 2) % kItems] : 0.0f;
  meet();
  if (VERSION == kStaleRead && ITEM < kItems / 2) part[ITEM + kItems / 2] = early;
  if (VERSION == kReordered) {
    if (ITEM == 0)
      for (unsigned k = 1; k < kItems; ++k) part[0] += part[k];
  } else {
#pragma unroll VERSION == kOptimized ? 8 : 1
    for (unsigned step = kItems / 2; step != 0; step /= 2) {
      if (ITEM < step) part[ITEM] += part[ITEM + step];
      meet();
    }
  }
  // All waves store the same, so that results never tell.
  __attribute__((shared)) static unsigned last;
  if (VERSION == kLuckyRace) *(volatile __attribute__((address_space(3))) unsigned*)&last = GROUP;
  if (ITEM == 0) sums[GROUP] = part[0];
  if (i == 0) ++*rounds;
  if (VERSION == kWritesBeyond && i == 0) sums[64] = 1.0f;
}

// All sums together, in the order in which the workgroups come.
KERNEL void total(const float* values, float* sum, Count count) {
  const unsigned i = GROUP * kItems + ITEM;
  if (i < counted(count.value)) __builtin_amdgcn_global_atomic_fadd_f32((__attribute__((address_space(1))) float*)sum, values[i]);
}
