// What the kernels of reductions.hip see on either side.
#pragma once

struct In {
  float f[4096];
  double d[4096];
  unsigned u[4096];
  long long l[4096];
};
struct Out {
  union { float f[4096]; double d[4096]; unsigned u[4096]; long long l[4096]; };
};

#if defined(__HIP__)
#include <hip/hip_runtime.h>
#define DYNAMIC_LONGS(name) extern __shared__ long long name[]
#else
#include <cstddef>
#define __global__
#define __device__
#define __shared__ static
#define DYNAMIC_LONGS(name) static long long name[1024]
extern "C" int corpus_thread(void);
extern "C" int corpus_group(void);
extern "C" int corpus_block(void);
extern "C" void corpus_barrier(void);
struct Place { unsigned x, y, z; };
#define threadIdx (Place{unsigned(corpus_thread()), 0, 0})
#define blockIdx (Place{unsigned(corpus_group()), 0, 0})
#define blockDim (Place{unsigned(corpus_block()), 1, 1})
#define __syncthreads corpus_barrier
#endif
