// Reductions by halves as people write them, for gfx942 and for x86. Each hands out its whole shared array, so that
// nothing in it may differ behind the loop, and does one thing of its own.
#include "reductions.h"

#define ITEM (blockIdx.x * blockDim.x + threadIdx.x)
#define HAND_OUT(what) __syncthreads(); out->what[ITEM] = a[threadIdx.x]

extern "C" __global__ void sum(const In* in, Out* out, int n) {
  __shared__ float a[1024];
  const unsigned t = threadIdx.x;
  a[t] = in->f[ITEM];
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) a[t] += a[t + s];
    __syncthreads();
  }
  HAND_OUT(f);
}
extern "C" __global__ void sum_of_ints(const In* in, Out* out, int n) {
  __shared__ int a[1024];
  int t = threadIdx.x;
  a[t] = in->u[ITEM];
  __syncthreads();
  for (int s = blockDim.x >> 1; s != 0; s /= 2) { if (t < s) { a[t] = a[s + t] + a[t]; } __syncthreads(); }
  HAND_OUT(u);
}
extern "C" __global__ void difference(const In* in, Out* out, int n) {
  __shared__ double a[1024];
  a[threadIdx.x] = in->d[ITEM];
  for (int s = blockDim.x / 2; s >= 1; s = s / 2) {
    __syncthreads();  // in front: behind the loop nobody waits
    if (s > threadIdx.x) a[threadIdx.x] = a[threadIdx.x + s] - a[threadIdx.x];
  }
  HAND_OUT(d);
}
extern "C" __global__ void larger(const In* in, Out* out, int n) {
  __shared__ float a[1024];
  const unsigned t = threadIdx.x;
  a[t] = in->f[ITEM];
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s; s >>= 1) {
    if (t < s) a[t] = a[t] > a[t + s] ? a[t] : a[t + s];
    __syncthreads();
  }
  HAND_OUT(f);
}
__device__ long long chosen(const long long& x, const long long& y) { return (x ^ y) & 1 ? 3 * x + y : x - 5 * y; }
extern "C" __global__ void of_two(const In* in, Out* out, int n) {
  DYNAMIC_LONGS(a);
  const size_t t = threadIdx.x;
  a[t] = in->l[ITEM];
  __syncthreads();
  for (size_t s = blockDim.x / 2; 0 < s; s >>= 1) {
    // the pairs
    if (t < s)
      a[t] = chosen(a[t],
                    a[t + s]);  // in turn
    __syncthreads();
  }
  HAND_OUT(l);
}
#define WIDTH 256
extern "C" __global__ void constant(const In* in, Out* out, int n) {
  __shared__ unsigned a[1024];
  const unsigned t = threadIdx.x, more = 7;
  a[t] = in->u[ITEM];
  if (blockDim.x >= WIDTH) {
    a[t] ^= more;
  }
  __syncthreads();
  for (int s = WIDTH / 2; s > 0; s >>= 1) {
    if (t < s) a[t] ^= a[t + s] * more;
    __syncthreads();
  }
  HAND_OUT(u);
}
extern "C" __global__ void by_size(const In* in, Out* out, int n) {
  __shared__ int a[2048];
  const int t = threadIdx.x;
  for (int k = t; k < 2048; k += blockDim.x) a[k] = in->u[k];
  __syncthreads();
  {
    for (int s = n / 2; s > 0; s /= 2) {
      if (t < s) a[t] |= a[t + s];
      __syncthreads();
    }
  }
  HAND_OUT(u);
}
extern "C" __global__ void twice(const In* in, Out* out, int n) {
  __shared__ float a[1024];
  const unsigned t = threadIdx.x;
  a[t] = in->f[ITEM];
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) a[t] += a[t + s];
    __syncthreads();
  }
  float whole = a[0];
  __syncthreads();
  a[t] = whole * in->f[ITEM];
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) a[t] *= a[t + s];
    __syncthreads();
  }
  HAND_OUT(f);
}
extern "C" __global__ void rows(const In* in, Out* out, int n) {
  __shared__ unsigned a[1024];
  const unsigned t = threadIdx.x;
  a[t] = in->u[ITEM];
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) a[t] |= a[t + s];  // the same by each row
    __syncthreads();
  }
  __syncthreads();
  out->u[threadIdx.y * 1024 + ITEM] = a[t];
}
struct Plus { template <class T> __device__ T operator()(T x, T y) const { return x + y; } };
template <class T, class F> __global__ void general(const In* in, Out* out, int n) {
  __shared__ T a[1024];
  F f;
  auto taken = [&](unsigned k) { if (k > 4000) return T(0); return T(in->f[k]); };
  const unsigned t = threadIdx.x;
  a[t] = taken(ITEM);
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s != 0; s /= 2) {
    if (t < s)
      a[t] = f(a[t], a[t + s]);
    __syncthreads();
  }
  if (t == 0) out->f[blockIdx.x] = float(a[0]);
}
template __global__ void general<float, Plus>(const In*, Out*, int);
template __global__ void general<double, Plus>(const In*, Out*, int);
template __global__ void general<int, Plus>(const In*, Out*, int);
