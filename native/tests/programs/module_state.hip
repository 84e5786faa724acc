// Kernels that write a variable of their module, and one that shows a hidden argument: -DVERSION=... chooses.
#ifndef VERSION
#define VERSION 0
#endif
enum { kCaptured, kOtherwiseSpelt, kWrongVariable, kNoVariable, kOtherVariable };

#define KERNEL __attribute__((global))
#define ITEM (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x())

#if VERSION != 3
__attribute__((device)) unsigned calls = 7;
#endif
__attribute__((device)) unsigned untouched = 9;

KERNEL void tally(const unsigned* values, unsigned* results, unsigned count) {
  const unsigned i = ITEM;
  if (i >= count) return;
  const unsigned value = values[i];
  results[i] = VERSION == kOtherwiseSpelt ? 3 * value + (value << 2) - (i ^ 5) : 7 * value - (i ^ 5);
  if (i != 0) return;
#if VERSION != 3
  calls += VERSION == kWrongVariable ? count - 1 : count;
#endif
  if (VERSION == kOtherVariable) untouched = 1;
}

// The pointer to the buffer for calls of the host (https://llvm.org/docs/AMDGPUUsage.html, code object V5).
KERNEL void show_hostcall(unsigned long* shown) {
  *shown = ((const __attribute__((address_space(4))) unsigned long*)__builtin_amdgcn_implicitarg_ptr())[10];
}
