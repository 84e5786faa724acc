// Small kernels whose work is known in advance; `rpl ceilings measure` times them by a profiler.
//
//   ceilings WORKGROUPS ITERATIONS MEBIBYTES LAUNCHES KERNEL...
//
// Work of one launch, which ceilings.py computes from the same words (256 work-items are 4 waves of 64):
//   ceiling_copy    reads and writes every byte of a buffer:         2 x MEBIBYTES x 2^20 bytes
//   ceiling_read    reads every byte of a buffer:                    1 x MEBIBYTES x 2^20 bytes
//   ceiling_write   writes every byte of a buffer:                   1 x MEBIBYTES x 2^20 bytes
//   ceiling_l2, ceiling_lds  8 loads of 8 bytes in each work-item:   WORKGROUPS x 256 x ITERATIONS x 8 x 8 bytes
//   ceiling_fma_*   8 independent chains in each work-item:          WORKGROUPS x 256 x ITERATIONS x 8 x 2 FLOPs
//   ceiling_pk_fma_f32  the same with two values in each operation:  twice that
//   ceiling_mfma_*  4 independent chains in each wave of 64:         WORKGROUPS x 4 x ITERATIONS x 4 x 2MNK FLOPs
// A kernel whose instruction the GPU lacks is left out. A fused multiply-add counts as two. M x N x K of a matrix instruction is its name in the instruction set.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                          \
  do {                                                                                       \
    const hipError_t status_ = (call);                                                       \
    if (status_ != hipSuccess) {                                                             \
      std::fprintf(stderr, "ceilings: %s: %s\n", #call, hipGetErrorString(status_));         \
      return 70;                                                                             \
    }                                                                                        \
  } while (false)

// What an architecture may lack, as bits.
constexpr unsigned kMatrix = 1, kWideMatrix = 2;

using Chunk = __attribute__((ext_vector_type(4))) unsigned;

extern "C" __global__ void ceiling_write(Chunk* to, const Chunk*, unsigned long long count, unsigned seed) {
  const unsigned long long step = 1ull * gridDim.x * blockDim.x;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = Chunk{seed, seed + 1, seed + 2, seed + 3};
}

extern "C" __global__ void ceiling_copy(Chunk* to, const Chunk* from, unsigned long long count, unsigned) {
  const unsigned long long step = 1ull * gridDim.x * blockDim.x;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) to[i] = from[i];
}

// The sum is stored where it has a value that the host never lets it have: no load can be left out.
extern "C" __global__ void ceiling_read(Chunk* to, const Chunk* from, unsigned long long count, unsigned never) {
  const unsigned long long step = 1ull * gridDim.x * blockDim.x;
  Chunk sum{};
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) sum |= from[i];
  if (sum.x == never && sum.y == never && sum.z == never && sum.w == never) *to = sum;
}

using Word = unsigned long long;

// All workgroups read the same MiB, which every L2 holds after the first round. Loads of agent scope miss the
// first vector cache (LLVM, User Guide for AMDGPU Backend, "Memory Model": by the bits sc1 or glc), and a
// compiler leaves out no atomic load.
extern "C" __global__ void ceiling_l2(Word* to, const Word* from, unsigned iterations) {
  constexpr unsigned kWords = 1u << 17;
  Word sum = 0;
  unsigned place = (blockIdx.x * 2048 + threadIdx.x) & (kWords - 1);
  for (unsigned n = 0; n < iterations; ++n) {
    _Pragma("unroll") for (int i = 0; i < 8; ++i)
        sum |= __hip_atomic_load(from + place + i * 256, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    place = (place + 2048) & (kWords - 1);
  }
  if (sum == ~0ull) *to = sum;  // the host never writes such words
}

// The work-items of a wave read consecutive words, so that every pass can use all banks.
extern "C" __global__ void ceiling_lds(Word* to, const Word* from, unsigned iterations) {
  __shared__ Word tile[1024];
  for (unsigned i = threadIdx.x; i < 1024; i += 256) tile[i] = from[i];
  __syncthreads();
  Word sum = 0;
  for (unsigned n = 0; n < iterations; ++n)
    _Pragma("unroll") for (int i = 0; i < 8; ++i)
        sum |= __hip_atomic_load(tile + threadIdx.x + i * 96, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  if (sum == ~0ull) *to = sum;
}

// Written as instructions: a compiler may join two of them to a packed one, which is another ceiling.
#define FMA_KERNEL(NAME, TYPE, INSTRUCTION)                                                             \
  extern "C" __global__ void NAME(float* out, unsigned iterations, float start, float factor) {         \
    TYPE chain[8];                                                                                      \
    for (int i = 0; i < 8; ++i) chain[i] = static_cast<TYPE>(start + i);                                \
    const TYPE by = static_cast<TYPE>(factor), plus = static_cast<TYPE>(start);                         \
    for (unsigned n = 0; n < iterations; ++n)                                                           \
      _Pragma("unroll") for (int i = 0; i < 8; ++i)                                                     \
          asm volatile(INSTRUCTION " %0, %0, %1, %2" : "+v"(chain[i]) : "v"(by), "v"(plus));            \
    float sum = 0;                                                                                      \
    for (int i = 0; i < 8; ++i) sum += SUM_OF(chain[i]);                                                \
    if (sum == -1.0f) *out = sum;                                                                       \
  }

#if defined(__HIP_DEVICE_COMPILE__)
#define SUM_OF(value) static_cast<float>(value)
FMA_KERNEL(ceiling_fma_f16, _Float16, "v_fma_f16")
FMA_KERNEL(ceiling_fma_f32, float, "v_fma_f32")
FMA_KERNEL(ceiling_fma_f64, double, "v_fma_f64")
#undef SUM_OF
#else
#define HOST_KERNEL(NAME) \
  extern "C" __global__ void NAME(float*, unsigned, float, float) {}
HOST_KERNEL(ceiling_fma_f16)
HOST_KERNEL(ceiling_fma_f32)
HOST_KERNEL(ceiling_fma_f64)
HOST_KERNEL(ceiling_pk_fma_f32)
HOST_KERNEL(ceiling_mfma_f16)
HOST_KERNEL(ceiling_mfma_bf16)
HOST_KERNEL(ceiling_mfma_f32)
HOST_KERNEL(ceiling_mfma_f64)
HOST_KERNEL(ceiling_mfma_i8)
HOST_KERNEL(ceiling_mfma_f8)
extern "C" __global__ void ceilings_present(unsigned*) {}
#endif

#if defined(__HIP_DEVICE_COMPILE__)
using Pair = __attribute__((ext_vector_type(2))) float;
using Half4 = __attribute__((ext_vector_type(4))) _Float16;
using Short4 = __attribute__((ext_vector_type(4))) short;
using Double4 = __attribute__((ext_vector_type(4))) double;
using Float16 = __attribute__((ext_vector_type(16))) float;
using Int16 = __attribute__((ext_vector_type(16))) int;

#define MFMA_KERNEL(NAME, SUM, LEFT, RIGHT, CALL)                                                       \
  extern "C" __global__ void NAME(float* out, unsigned iterations, float start, float factor) {         \
    SUM chain[4] = {};                                                                                  \
    const auto left = LEFT;                                                                             \
    const auto right = RIGHT;                                                                           \
    for (unsigned n = 0; n < iterations; ++n)                                                           \
      _Pragma("unroll") for (int i = 0; i < 4; ++i) chain[i] = CALL(left, right, chain[i], 0, 0, 0);    \
    float sum = 0;                                                                                      \
    for (int i = 0; i < 4; ++i) sum += static_cast<float>(chain[i][0] + chain[i][3]);                   \
    if (sum == -1.0f) *out = sum;                                                                       \
  }
// Where the GPU has no such instruction the kernel is never launched: ceilings_present says which there are.
#define NO_KERNEL(NAME) \
  extern "C" __global__ void NAME(float*, unsigned, float, float) {}

#if __has_builtin(__builtin_amdgcn_mfma_f64_16x16x4f64)
#define PRESENT_MATRIX kMatrix
#else
#define PRESENT_MATRIX 0
#endif
#if __has_builtin(__builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8)
#define PRESENT_WIDE kWideMatrix
#else
#define PRESENT_WIDE 0
#endif
extern "C" __global__ void ceilings_present(unsigned* present) { *present = PRESENT_MATRIX | PRESENT_WIDE; }

#if __has_builtin(__builtin_amdgcn_mfma_f64_16x16x4f64)  // packed F32 came with it
extern "C" __global__ void ceiling_pk_fma_f32(float* out, unsigned iterations, float start, float factor) {
  Pair chain[8];
  for (int i = 0; i < 8; ++i) chain[i] = Pair{start + i, start - i};
  const Pair by{factor, factor}, plus{start, start};
  for (unsigned n = 0; n < iterations; ++n)
    _Pragma("unroll") for (int i = 0; i < 8; ++i)
        asm volatile("v_pk_fma_f32 %0, %0, %1, %2" : "+v"(chain[i]) : "v"(by), "v"(plus));
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += chain[i].x + chain[i].y;
  if (sum == -1.0f) *out = sum;
}
MFMA_KERNEL(ceiling_mfma_f16, Float16, Half4(static_cast<_Float16>(start)), Half4(static_cast<_Float16>(factor)),
            __builtin_amdgcn_mfma_f32_32x32x8f16)
MFMA_KERNEL(ceiling_mfma_bf16, Float16, Short4(static_cast<short>(start)), Short4(static_cast<short>(factor)),
            __builtin_amdgcn_mfma_f32_32x32x8bf16_1k)
MFMA_KERNEL(ceiling_mfma_f32, Float16, start, factor, __builtin_amdgcn_mfma_f32_32x32x2f32)
MFMA_KERNEL(ceiling_mfma_f64, Double4, static_cast<double>(start), static_cast<double>(factor),
            __builtin_amdgcn_mfma_f64_16x16x4f64)
#else
NO_KERNEL(ceiling_pk_fma_f32)
NO_KERNEL(ceiling_mfma_f16)
NO_KERNEL(ceiling_mfma_bf16)
NO_KERNEL(ceiling_mfma_f32)
NO_KERNEL(ceiling_mfma_f64)
#endif
#if __has_builtin(__builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8)  // and with it the wider I8
MFMA_KERNEL(ceiling_mfma_i8, Int16, static_cast<long>(start), static_cast<long>(factor),
            __builtin_amdgcn_mfma_i32_32x32x16_i8)
MFMA_KERNEL(ceiling_mfma_f8, Float16, static_cast<long>(start), static_cast<long>(factor),
            __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8)
#else
NO_KERNEL(ceiling_mfma_i8)
NO_KERNEL(ceiling_mfma_f8)
#endif
#endif

using MemoryKernel = void (*)(Chunk*, const Chunk*, unsigned long long, unsigned);
using CachedKernel = void (*)(Word*, const Word*, unsigned);
using ArithmeticKernel = void (*)(float*, unsigned, float, float);

struct Named {
  const char* name;
  MemoryKernel memory;
  CachedKernel cached;
  ArithmeticKernel arithmetic;
  unsigned needs;
};

static const Named kKernels[] = {
    {"ceiling_write", ceiling_write, nullptr, nullptr, 0},
    {"ceiling_copy", ceiling_copy, nullptr, nullptr, 0},
    {"ceiling_read", ceiling_read, nullptr, nullptr, 0},
    {"ceiling_l2", nullptr, ceiling_l2, nullptr, 0},
    {"ceiling_lds", nullptr, ceiling_lds, nullptr, 0},
    {"ceiling_fma_f16", nullptr, nullptr, ceiling_fma_f16, 0},
    {"ceiling_fma_f32", nullptr, nullptr, ceiling_fma_f32, 0},
    {"ceiling_fma_f64", nullptr, nullptr, ceiling_fma_f64, 0},
    {"ceiling_pk_fma_f32", nullptr, nullptr, ceiling_pk_fma_f32, kMatrix},
    {"ceiling_mfma_f16", nullptr, nullptr, ceiling_mfma_f16, kMatrix},
    {"ceiling_mfma_bf16", nullptr, nullptr, ceiling_mfma_bf16, kMatrix},
    {"ceiling_mfma_f32", nullptr, nullptr, ceiling_mfma_f32, kMatrix},
    {"ceiling_mfma_f64", nullptr, nullptr, ceiling_mfma_f64, kMatrix},
    {"ceiling_mfma_i8", nullptr, nullptr, ceiling_mfma_i8, kWideMatrix},
    {"ceiling_mfma_f8", nullptr, nullptr, ceiling_mfma_f8, kWideMatrix},
};

static const Named* find(const char* name) {
  for (const Named& one : kKernels)
    if (std::strcmp(one.name, name) == 0) return &one;
  return nullptr;
}

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: ceilings WORKGROUPS ITERATIONS MEBIBYTES LAUNCHES KERNEL...\n");
    return 64;
  }
  const unsigned workgroups = std::strtoul(argv[1], nullptr, 10), iterations = std::strtoul(argv[2], nullptr, 10);
  const unsigned long long bytes = std::strtoull(argv[3], nullptr, 10) << 20;
  const unsigned launches = std::strtoul(argv[4], nullptr, 10);
  Chunk *from = nullptr, *to = nullptr;
  CHECK(hipMalloc(&from, bytes));
  CHECK(hipMalloc(&to, bytes));
  CHECK(hipMemset(from, 1, bytes));
  unsigned present = 0;
  ceilings_present<<<1, 1>>>(reinterpret_cast<unsigned*>(to));
  CHECK(hipGetLastError());
  CHECK(hipMemcpy(&present, to, sizeof present, hipMemcpyDeviceToHost));
  for (int word = 5; word < argc; ++word) {
    const Named* kernel = find(argv[word]);
    if (kernel == nullptr) {
      std::fprintf(stderr, "ceilings: no kernel %s\n", argv[word]);
      return 64;
    }
    if ((kernel->needs & present) != kernel->needs) continue;
    for (unsigned n = 0; n < launches; ++n) {
      if (kernel->memory != nullptr)
        kernel->memory<<<workgroups, 256>>>(to, from, bytes / sizeof(Chunk), 0xffffffffu);
      else if (kernel->cached != nullptr)
        kernel->cached<<<workgroups, 256>>>(reinterpret_cast<Word*>(to), reinterpret_cast<const Word*>(from), iterations);
      else
        kernel->arithmetic<<<workgroups, 256>>>(reinterpret_cast<float*>(to), iterations, 1.0f, 0.5f);
      CHECK(hipGetLastError());
      CHECK(hipDeviceSynchronize());
    }
  }
  return 0;
}
