// What drawn kernels (random_kernels.py) are made of, on gfx942 and on x86: defined for all operands, and rounded once or not at all.
#pragma once
#include "kernels.h"

DEVICE u32 leading_zeros(u32 x) { return x ? u32(__builtin_clz(x)) : 32; }
DEVICE u32 trailing_zeros(u64 x) { return x ? u32(__builtin_ctzll(x)) : 64; }
DEVICE u32 high_half(u32 a, u32 b) { return u32(u64(a) * b >> 32); }
DEVICE u64 high_half(u64 a, u64 b) { return u64((unsigned __int128)(a) * b >> 64); }
template <class T> DEVICE T least(T a, T b) { return a < b ? a : b; }
template <class T> DEVICE T most(T a, T b) { return a > b ? a : b; }
// Which NaN an operation makes is left open by IEEE 754, so none lives longer than the operation.
template <class F> DEVICE F fine(F x) { return x == x ? x : F(1); }
DEVICE float root(float x) { return fine(__builtin_sqrtf(x)); }
DEVICE double root(double x) { return fine(__builtin_sqrt(x)); }
DEVICE float fused(float a, float b, float c) { return fine(__builtin_fmaf(a, b, c)); }
DEVICE double fused(double a, double b, double c) { return fine(__builtin_fma(a, b, c)); }
// A conversion of what the integer can't hold is undefined. 2^bits is exact in both types.
template <class T, class F> DEVICE T whole(F x) {
  const F limit = F(T(~T(0)) > T(0) ? 2 : 1) * F(u64(1) << (sizeof(T) * 8 - 1));
  return x < limit && x > (T(~T(0)) > T(0) ? F(-1) : -limit) ? T(x) : T(7);
}
DEVICE u64 bits(half x) { return __builtin_bit_cast(u16, x); }
DEVICE u64 bits(float x) { return __builtin_bit_cast(u32, x); }
DEVICE u64 bits(double x) { return __builtin_bit_cast(u64, x); }
template <class T> DEVICE u64 bits(T x) { return u64(x); }
DEVICE u64 mixed(u64 hash, u64 word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}
// The last wave of a workgroup may have fewer lanes than 64.
#define LANES u32(BLOCK - (THREAD & ~63) < 64 ? BLOCK - (THREAD & ~63) : 64)
