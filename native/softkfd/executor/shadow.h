/* What a library of shadow functions gives to the software KFD (SOFTKFD_SHADOWS=FILE[:FILE...]).
 *
 * A shadow function does on the host what the kernel of its name does on a GPU. It reaches memory by
 * GPU address only, so that a wrong pointer is the fault that it would be on hardware. */
#ifndef SOFTKFD_SHADOW_H
#define SOFTKFD_SHADOW_H

/* C, so that a library needs no C++ library of its own. NOLINTBEGIN(modernize-use-using) */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct softkfd_launch {
  uint32_t gpu;
  uint32_t grid[3]; /* work-items */
  uint32_t workgroup[3];
  uint32_t group_bytes; /* LDS of one workgroup, static and dynamic */
  uint32_t private_bytes;
  const void* kernarg; /* as it was at launch */
  uint32_t kernarg_bytes;
} softkfd_launch;

typedef struct softkfd_memory {
  /* The host's pointer to `bytes` bytes at a GPU address, or NULL after a fault: the function then returns
   * at once. */
  void* (*at)(const struct softkfd_memory* memory, uint64_t address, uint64_t bytes, int writes);
} softkfd_memory;

typedef struct softkfd_shadow {
  const char* kernel;
  void (*run)(const softkfd_launch* launch, const softkfd_memory* memory);
} softkfd_shadow;

/* Defined by the library; ends with an entry whose `kernel` is NULL. */
extern const softkfd_shadow softkfd_shadows[];

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif /* SOFTKFD_SHADOW_H */
