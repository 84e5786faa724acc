// HIP on a CPU, for run.py: what a program prints when its own text is compiled for x86 by g++ instead of for the GPU.
//
// A launch runs its workgroups one after the other, and the threads of one in order, each on a stack of its own
// until it ends or waits: at __syncthreads() for all others of its workgroup that have not ended, at a shuffle or a
// vote for the lanes of its wave of 64 that come to the same line. Device memory is memory; copies are memcpy. Of HIP
// there is what the programs need that are compared by it; what is absent does not compile, which is no result.
//
// The compiler beside this folder makes of `k<<<g, b>>>(a)` a call of x86::launch, of __shared__ static variables.
#pragma once
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>
#include <sys/mman.h>

#define __HIP_PLATFORM_AMD__ 1
#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(x) x

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

enum hipError_t { hipSuccess, hipErrorInvalidValue, hipErrorNotSupported = 801 };
enum hipMemcpyKind {
  hipMemcpyHostToHost,
  hipMemcpyHostToDevice,
  hipMemcpyDeviceToHost,
  hipMemcpyDeviceToDevice,
  hipMemcpyDefault
};
typedef struct hipStream_ *hipStream_t;
typedef struct hipEvent_ *hipEvent_t;

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

// Goes on on another stack; swapcontext would take two calls of the system for each. In each object, linked once.
extern "C" void x86_switch(void **stack, void *other);
asm(R"(
  .pushsection .text.x86_switch, "axG", @progbits, x86_switch, comdat
  .weak x86_switch
x86_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
  .popsection
)");

namespace x86 {
constexpr int wave_size = 64;
constexpr size_t stack_bytes = 256 << 10, lds_bytes = 64 << 10;

enum State { ready, at_barrier, at_exchange, ended };

struct Thread {
  void *stack;
  uint3 index;
  int number;
  State state;
  const void *place; // Of the exchange.
  int line;
  int yes; // At a barrier that counts.
  unsigned char given[16], seen[16];
};

struct Launch {
  dim3 grid, block;
};

inline std::vector<Thread> threads;
inline std::vector<uint64_t> active; // Of each wave, the lanes that took part in its last exchange.
inline int yeses, waited;       // Of the last barrier.
inline Thread *running;
inline void *scheduler;
inline std::function<void()> body;
inline char *stacks;
alignas(16) inline char lds[lds_bytes];

inline void *dynamic_lds() { return lds; }

inline void wait(State state) {
  running->state = state;
  x86_switch(&running->stack, scheduler);
}

inline void run_thread() {
  body();
  running->state = ended;
  x86_switch(&running->stack, scheduler);
}

// Lanes of a wave that wait at one line go on together when none of the wave can without.
inline bool exchanged(size_t wave) {
  size_t first = wave * wave_size, last = std::min(first + wave_size, threads.size());
  const Thread *leader = nullptr;
  for (size_t i = first; i < last; i++)
    if (threads[i].state == at_exchange && (!leader || threads[i].line < leader->line)) leader = &threads[i];
  if (!leader) return false;
  const void *place = leader->place;
  int line = leader->line;
  active[wave] = 0;
  for (size_t i = first; i < last; i++) {
    Thread &thread = threads[i];
    if (thread.state != at_exchange || thread.place != place || thread.line != line) continue;
    active[wave] |= uint64_t(1) << (i - first);
    memcpy(thread.seen, thread.given, sizeof thread.seen);
    thread.state = ready;
  }
  return true;
}

inline void run_block() {
  for (Thread &thread : threads) {
    thread.state = ready;
    void **top = (void **)(stacks + (thread.number + 1) * stack_bytes) - 8; // Six registers, then where to begin.
    top[6] = (void *)run_thread;
    thread.stack = top;
  }
  for (bool more = true; more;) {
    for (Thread &thread : threads) {
      if (thread.state != ready) continue;
      running = &thread;
      threadIdx = thread.index;
      x86_switch(&scheduler, thread.stack);
    }
    more = false;
    for (size_t wave = 0; wave < active.size(); wave++) more |= exchanged(wave);
    if (more) continue;
    yeses = waited = 0;
    for (Thread &thread : threads)
      if (thread.state == at_barrier) {
        thread.state = ready;
        yeses += thread.yes != 0;
        waited++;
        more = true;
      }
  }
}

inline Launch sizes(dim3 grid, dim3 block, size_t dynamic = 0, hipStream_t = nullptr) {
  if (dynamic > lds_bytes || block.x * block.y * block.z > 1024) {
    fprintf(stderr, "hip on x86: a launch is too large\n");
    exit(1);
  }
  return {grid, block};
}

inline void launch(Launch asked, std::function<void()> kernel) {
  gridDim = asked.grid;
  blockDim = asked.block;
  body = kernel;
  if (!stacks)
    stacks = (char *)mmap(nullptr, 1024 * stack_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  threads.assign(blockDim.x * blockDim.y * blockDim.z, Thread());
  active.assign((threads.size() + wave_size - 1) / wave_size, 0);
  for (unsigned i = 0; i < threads.size(); i++) {
    threads[i].number = i;
    threads[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
  }
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) run_block();
}

template <class T> void exchange(T value, int line, const char *file) {
  static_assert(sizeof(T) <= sizeof running->given);
  memcpy(running->given, &value, sizeof value);
  running->line = line;
  running->place = file;
  wait(at_exchange);
}

// What the lane gave; 0 of one that did not take part.
template <class T> T of_lane(int lane) {
  T value{};
  int wave = running->number / wave_size;
  if (active[wave] >> lane & 1) memcpy(&value, threads[wave * wave_size + lane].seen, sizeof value);
  return value;
}
} // namespace x86

constexpr int warpSize = x86::wave_size;
#define hipLaunchKernelGGL(kernel, grid, block, dynamic, stream, ...) \
  ::x86::launch(::x86::sizes(grid, block, dynamic), [&] { (kernel)(__VA_ARGS__); })

inline int __syncthreads_count(int yes) {
  x86::running->yes = yes;
  x86::wait(x86::at_barrier);
  return x86::yeses;
}
inline void __syncthreads() { __syncthreads_count(0); }
inline int __syncthreads_or(int yes) { return __syncthreads_count(yes) != 0; }
inline int __syncthreads_and(int yes) { return __syncthreads_count(yes) == x86::waited; }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

#define X86_LANES int line = __builtin_LINE(), const char *file = __builtin_FILE()
inline int x86_lane() { return x86::running->number % x86::wave_size; }
template <class T> T __shfl(T value, int from, int width = warpSize, X86_LANES) {
  x86::exchange(value, line, file);
  return x86::of_lane<T>((x86_lane() & -width) + (from & (width - 1)));
}
template <class T> T __shfl_up(T value, unsigned delta, int width = warpSize, X86_LANES) {
  x86::exchange(value, line, file);
  int lane = x86_lane(), from = lane - int(delta);
  return x86::of_lane<T>(from < (lane & -width) ? lane : from);
}
template <class T> T __shfl_down(T value, unsigned delta, int width = warpSize, X86_LANES) {
  x86::exchange(value, line, file);
  int lane = x86_lane();
  return x86::of_lane<T>((lane & (width - 1)) + int(delta) >= width ? lane : lane + int(delta));
}
template <class T> T __shfl_xor(T value, int mask, int width = warpSize, X86_LANES) {
  x86::exchange(value, line, file);
  int lane = x86_lane(), from = lane ^ mask;
  return x86::of_lane<T>(from >= ((lane + width) & -width) ? lane : from);
}
inline unsigned long long __ballot(int yes, X86_LANES) {
  x86::exchange(yes, line, file);
  unsigned long long votes = 0;
  for (int lane = 0; lane < x86::wave_size; lane++) votes |= (unsigned long long)(x86::of_lane<int>(lane) != 0) << lane;
  return votes;
}
inline int __any(int yes, X86_LANES) { return __ballot(yes, line, file) != 0; }
inline int __all(int yes, X86_LANES) { return __ballot(!yes, line, file) == 0; }

// Vectors.
#define X86_VECTOR(type, name, count, fields, list, adds, each)                     \
  struct name##count { type fields; };                                              \
  inline name##count make_##name##count list { return name##count adds; }           \
  each(name##count, type, +) each(name##count, type, -) each(name##count, type, *)
#define X86_EACH1(v, t, o)                                                          \
  inline v operator o(v a, v b) { return {(t)(a.x o b.x)}; }
#define X86_EACH2(v, t, o)                                                          \
  inline v operator o(v a, v b) { return {(t)(a.x o b.x), (t)(a.y o b.y)}; }            \
  inline v operator o(v a, t b) { return {(t)(a.x o b), (t)(a.y o b)}; }                \
  inline v &operator o##=(v &a, v b) { return a = a o b; }
#define X86_EACH3(v, t, o)                                                          \
  inline v operator o(v a, v b) { return {(t)(a.x o b.x), (t)(a.y o b.y), (t)(a.z o b.z)}; } \
  inline v operator o(v a, t b) { return {(t)(a.x o b), (t)(a.y o b), (t)(a.z o b)}; }    \
  inline v &operator o##=(v &a, v b) { return a = a o b; }
#define X86_EACH4(v, t, o)                                                          \
  inline v operator o(v a, v b) { return {(t)(a.x o b.x), (t)(a.y o b.y), (t)(a.z o b.z), (t)(a.w o b.w)}; } \
  inline v operator o(v a, t b) { return {(t)(a.x o b), (t)(a.y o b), (t)(a.z o b), (t)(a.w o b)}; } \
  inline v &operator o##=(v &a, v b) { return a = a o b; }
#define X86_3(...) __VA_ARGS__
#define X86_VECTORS(type, name, three)                                              \
  X86_VECTOR(type, name, 1, x, (type x), {x}, X86_EACH1)                            \
  X86_VECTOR(type, name, 2, X86_3(x, y), (type x, type y), X86_3({x, y}), X86_EACH2) \
  three                                                                             \
  X86_VECTOR(type, name, 4, X86_3(x, y, z, w), (type x, type y, type z, type w), X86_3({x, y, z, w}), X86_EACH4)
#define X86_THREE(type, name)                                                       \
  X86_VECTOR(type, name, 3, X86_3(x, y, z), (type x, type y, type z), X86_3({x, y, z}), X86_EACH3)
typedef unsigned char uchar;
X86_VECTORS(signed char, char, X86_THREE(signed char, char))
X86_VECTORS(unsigned char, uchar, X86_THREE(unsigned char, uchar))
X86_VECTORS(short, short, X86_THREE(short, short))
X86_VECTORS(unsigned short, ushort, X86_THREE(unsigned short, ushort))
X86_VECTORS(int, int, X86_THREE(int, int))
X86_VECTORS(unsigned, uint, )
X86_VECTORS(long, long, X86_THREE(long, long))
X86_VECTORS(float, float, X86_THREE(float, float))
X86_VECTORS(double, double, X86_THREE(double, double))
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

// Atomics: no other thread runs meanwhile.
#define X86_ATOMIC(name, result)                                                    \
  template <class T> T name(T *at, std::common_type_t<T> value) {                   \
    T old = *at;                                                                    \
    *at = result;                                                                   \
    return old;                                                                     \
  }
X86_ATOMIC(atomicAdd, old + value)
X86_ATOMIC(atomicSub, old - value)
X86_ATOMIC(atomicExch, value)
X86_ATOMIC(atomicMin, value < old ? value : old)
X86_ATOMIC(atomicMax, value > old ? value : old)
X86_ATOMIC(atomicAnd, old & value)
X86_ATOMIC(atomicOr, old | value)
X86_ATOMIC(atomicXor, old ^ value)
X86_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
X86_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
template <class T> T atomicCAS(T *at, std::common_type_t<T> expected, std::common_type_t<T> value) {
  T old = *at;
  if (old == expected) *at = value;
  return old;
}

// Numbers.
template <class A, class B> std::common_type_t<A, B> min(A a, B b) { return b < a ? b : a; }
template <class A, class B> std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
#define __expf expf
#define __logf logf
#define __powf powf
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline int __float2int_rn(float x) { return int(rintf(x)); }
inline float __int2float_rn(int x) { return float(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline int __mulhi(int a, int b) { return (long long)a * b >> 32; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned __int128)a * b >> 64;
}
inline unsigned __brev(unsigned x) {
  unsigned back = 0;
  for (int bit = 0; bit < 32; bit++) back |= (x >> bit & 1) << (31 - bit);
  return back;
}
template <class To, class From> To x86_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
inline int __float_as_int(float x) { return x86_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return x86_bits<unsigned>(x); }
inline float __int_as_float(int x) { return x86_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return x86_bits<float>(x); }
inline long long __double_as_longlong(double x) { return x86_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return x86_bits<double>(x); }

// The host's side.
struct hipDeviceProp_t {
  char name[256] = "x86";
  size_t totalGlobalMem = size_t(16) << 30, sharedMemPerBlock = x86::lds_bytes;
  int warpSize = x86::wave_size, maxThreadsPerBlock = 1024, multiProcessorCount = 304, major = 9, minor = 4;
  int maxThreadsDim[3] = {1024, 1024, 1024}, maxGridSize[3] = {INT_MAX, 65536, 65536};
  int clockRate = 2100000, maxThreadsPerMultiProcessor = 2048;
};
template <class T> hipError_t hipMalloc(T **at, size_t bytes) {
  return (*at = (T *)malloc(bytes ? bytes : 1)) ? hipSuccess : hipErrorInvalidValue;
}
template <class T> hipError_t hipHostMalloc(T **at, size_t bytes, unsigned = 0) { return hipMalloc(at, bytes); }
template <class T> hipError_t hipMallocManaged(T **at, size_t bytes, unsigned = 0) { return hipMalloc(at, bytes); }
inline hipError_t hipFree(const void *at) { return free((void *)at), hipSuccess; }
inline hipError_t hipHostFree(const void *at) { return hipFree(at); }
inline hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind) {
  return memmove(to, from, bytes), hipSuccess;
}
inline hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t = 0) {
  return hipMemcpy(to, from, bytes, kind);
}
inline hipError_t hipMemset(void *at, int byte, size_t bytes) { return memset(at, byte, bytes), hipSuccess; }
inline hipError_t hipMemsetAsync(void *at, int byte, size_t bytes, hipStream_t = 0) {
  return hipMemset(at, byte, bytes);
}
template <class T>
hipError_t hipMemcpyToSymbol(T &to, const void *from, size_t bytes, size_t at = 0, hipMemcpyKind = hipMemcpyDefault) {
  return memcpy((char *)&to + at, from, bytes), hipSuccess;
}
template <class T>
hipError_t hipMemcpyFromSymbol(void *to, const T &from, size_t bytes, size_t at = 0, hipMemcpyKind = hipMemcpyDefault) {
  return memcpy(to, (const char *)&from + at, bytes), hipSuccess;
}
inline hipError_t hipDeviceSynchronize() { return hipSuccess; }
inline hipError_t hipGetLastError() { return hipSuccess; }
inline hipError_t hipPeekAtLastError() { return hipSuccess; }
inline const char *hipGetErrorString(hipError_t error) { return error ? "error" : "no error"; }
inline hipError_t hipSetDevice(int) { return hipSuccess; }
inline hipError_t hipGetDevice(int *device) { return *device = 0, hipSuccess; }
inline hipError_t hipGetDeviceCount(int *count) { return *count = 1, hipSuccess; }
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int) {
  return *properties = hipDeviceProp_t(), hipSuccess;
}
inline hipError_t hipStreamCreate(hipStream_t *stream) { return *stream = nullptr, hipSuccess; }
inline hipError_t hipStreamDestroy(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
inline hipError_t hipEventCreate(hipEvent_t *event) { return *event = nullptr, hipSuccess; }
inline hipError_t hipEventDestroy(hipEvent_t) { return hipSuccess; }
inline hipError_t hipEventRecord(hipEvent_t, hipStream_t = 0) { return hipSuccess; }
inline hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
inline hipError_t hipEventElapsedTime(float *ms, hipEvent_t, hipEvent_t) { return *ms = 1, hipSuccess; }
