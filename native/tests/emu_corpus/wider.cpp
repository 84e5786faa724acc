// Vectors, structures, control flow, calls, private memory.
#include "kernels.h"

typedef float f2 __attribute__((ext_vector_type(2)));
typedef float f4 __attribute__((ext_vector_type(4)));
typedef u32 v2 __attribute__((ext_vector_type(2)));
typedef u32 v4 __attribute__((ext_vector_type(4)));
typedef half h2 __attribute__((ext_vector_type(2)));
typedef half h4 __attribute__((ext_vector_type(4)));
typedef u16 s2 __attribute__((ext_vector_type(2)));
typedef i16 t2 __attribute__((ext_vector_type(2)));
typedef u16 s8 __attribute__((ext_vector_type(8)));
#define ALL(type, field, count, expression)                                    \
  {                                                                            \
    const int g = ITEM;                                                        \
    const type* a = (const type*)in->field;                                    \
    type* to = (type*)out->u;                                                  \
    if (g < n / (count)) to[g] = (expression);                                 \
  }
KERNEL(copy_x1) ALL(u32, u, 1, a[g])
KERNEL(copy_x2) ALL(v2, u, 2, a[g])
KERNEL(copy_x4) ALL(v4, u, 4, a[g])
KERNEL(add_f2) ALL(f2, f, 2, a[g] + a[COUNT / 2 - 1 - g])
KERNEL(mul_f2) ALL(f2, f, 2, a[g] * a[COUNT / 2 - 1 - g] * 3.0f)
KERNEL(fma_f2) ALL(f2, f, 2, __builtin_elementwise_fma(a[g], a[COUNT / 2 - 1 - g], a[g / 2]))
KERNEL(fma_f4) ALL(f4, f, 4, __builtin_elementwise_fma(a[g], a[COUNT / 4 - 1 - g], a[g / 2]) - 1.0f)
KERNEL(swap_f2) ALL(f2, f, 2, (a[g] * a[g].yx + a[g].xx * -a[g / 2].yy))
KERNEL(add_h2) ALL(h2, h, 2, a[g] + a[COUNT / 2 - 1 - g])
KERNEL(mul_h2) ALL(h2, h, 2, a[g] * a[COUNT / 2 - 1 - g].yx)
KERNEL(fma_h2) ALL(h2, h, 2, __builtin_elementwise_fma(a[g], -a[COUNT / 2 - 1 - g], a[g / 2].yx))
KERNEL(min_h4) ALL(h4, h, 4, __builtin_elementwise_min(a[g], a[COUNT / 4 - 1 - g]))
KERNEL(add_s2) ALL(s2, u, 2, a[g] + a[COUNT / 2 - 1 - g])
KERNEL(mul_s2) ALL(s2, u, 2, a[g] * a[COUNT / 2 - 1 - g] + a[g / 2])
KERNEL(shift_s2) ALL(s2, u, 2, (s2)((a[g] << (a[g / 2] & (u16)15)) ^ (a[g] >> (u16)3)))
KERNEL(shift_t2) ALL(t2, u, 2, a[g] >> (a[g / 2] & (i16)15))
KERNEL(min_s2) ALL(s2, u, 2, __builtin_elementwise_min(a[g], a[COUNT / 2 - 1 - g]))
KERNEL(max_t2) ALL(t2, u, 2, __builtin_elementwise_max(a[g], a[COUNT / 2 - 1 - g]))
KERNEL(sat_s2) ALL(s2, u, 2, __builtin_elementwise_add_sat(a[g], a[COUNT / 2 - 1 - g]))
KERNEL(sat_t2) ALL(t2, u, 2, __builtin_elementwise_sub_sat(a[g], a[COUNT / 2 - 1 - g]))
KERNEL(shuffle_s8) ALL(s8, u, 4, a[g % 128].s71604253 + a[127 - g % 128])

KERNEL(divergent) {
  const int g = ITEM;
  if (g >= n) return;
  u32 x = in->u[g];
  if (x & 1) {
    x = x * 3 + 1;
    if (x & 2) x ^= 0xdeadbeef; else x += 17;
  } else if (x & 4) {
    for (u32 k = 0; k < (x >> 4 & 15); ++k) x = x * 1664525 + 1013904223;
  } else {
    x = ~x;
  }
  out->u[g] = x;
}
KERNEL(switch_cases) {
  const int g = ITEM;
  if (g >= n) return;
  u32 x = in->u[g];
  switch (in->small[g] % 9) {
    case 0: x += 5; break;
    case 1: x *= 7; break;
    case 2: x ^= x >> 3; [[fallthrough]];
    case 3: x -= 100; break;
    case 4: x = __builtin_popcount(x); break;
    case 6: x = x << 5 | x >> 27; break;
    case 7: for (int k = 0; k < 5; ++k) x += x >> k; break;
    default: x = 1; break;
  }
  out->u[g] = x;
}
KERNEL(break_continue) {
  const int g = ITEM;
  if (g >= n) return;
  u32 sum = 0;
  for (int k = 0; k < 100; ++k) {
    const u32 x = in->u[(g + k) % COUNT];
    if (x % 7 == 0) continue;
    if (x % 31 == 0) break;
    sum += x >> (k & 7);
  }
  out->u[g] = sum;
}
KERNEL(nested_loops) {
  const int g = ITEM;
  if (g >= n) return;
  u32 sum = 0;
  for (u32 i = 0; i < in->small[g] / 8; ++i)
    for (u32 k = i; k < 8; ++k) sum = sum * 31 + in->u[(i * 8 + k + g) % COUNT];
  out->u[g] = sum;
}
KERNEL(private_array) {
  const int g = ITEM;
  if (g >= n) return;
  u32 a[32];
  for (int k = 0; k < 32; ++k) a[k] = in->u[(g + k) % COUNT];
  for (int k = 0; k < 31; ++k) { const u32 j = a[k] % 32; const u32 t = a[k]; a[k] = a[j]; a[j] = t; }
  u32 x = 0;
  for (int k = 0; k < 32; ++k) x = x * 5 + a[k];
  out->u[g] = x;
}
KERNEL(private_bytes) {
  const int g = ITEM;
  if (g >= n) return;
  u8 a[64];
  u16 b[16];
  for (int k = 0; k < 64; ++k) a[k] = u8(in->u[(g + k) % COUNT]);
  for (int k = 0; k < 16; ++k) b[k] = u16(in->u[(g * 3 + k) % COUNT]);
  const u32 i = in->small[g];
  a[i] ^= 0x55;
  b[i / 4] += 3;
  u32 x = 0;
  for (int k = 0; k < 64; ++k) x = x * 3 + a[(k + i) % 64] + b[k / 4];
  out->u[g] = x;
}
KERNEL(insertion_sort) {
  const int g = ITEM;
  if (g >= n) return;
  float a[16];
  for (int k = 0; k < 16; ++k) a[k] = in->f[(g * 16 + k) % COUNT];
  for (int i = 1; i < 16; ++i) {
    const float x = a[i];
    int k = i - 1;
    for (; k >= 0 && a[k] > x; --k) a[k + 1] = a[k];
    a[k + 1] = x;
  }
  out->f[g] = a[in->small[g] % 16] + a[0] * 2;
}
DEVICE_CALL u32 called(u32 x, u32 y) { return x * 31 + (y ^ x >> 5); }
DEVICE_CALL float called_float(float x, int k) { return k ? x * 1.5f : x - 2.0f; }
DEVICE_CALL u32 fibonacci(u32 k) { return k < 2 ? k : fibonacci(k - 1) + fibonacci(k - 2); }
KERNEL(calls) {
  const int g = ITEM;
  if (g >= n) return;
  u32 x = in->u[g];
  for (int k = 0; k < 4; ++k) x = called(x, u32(k));
  out->u[g] = x + u32(i32(called_float(in->f[g], int(x & 1))));
}
KERNEL(recursion) {
  const int g = ITEM;
  if (g < n) out->u[g] = fibonacci(in->small[g] % 9);
}
static __attribute__((device)) const u32 kTable[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
KERNEL(constant_table) {
  const int g = ITEM;
  if (g < n) out->u[g] = kTable[in->small[g] % 16] * in->u[g];
}
struct Particle { float x, y, z, mass; u32 id; u16 kind; u8 flag, other; };
KERNEL(structures) {
  const int g = ITEM;
  if (g >= n / 8) return;
  Particle p = ((const Particle*)in->f)[g];
  p.x += p.y * p.z;
  p.id ^= 0xff;
  p.kind += 7;
  p.flag = u8(p.kind);
  ((Particle*)out->u)[g] = p;
}
KERNEL(matrix_vector) {
  const int g = ITEM;
  if (g >= 16) return;
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += in->f[g * 64 + k] * in->f[k];
  out->f[g] = sum;
}
KERNEL(stencil) {
  const int g = ITEM;
  if (g < 1 || g >= n - 1) return;
  out->f[g] = 0.25f * in->f[g - 1] + 0.5f * in->f[g] + 0.25f * in->f[g + 1];
}
KERNEL(strided) {
  const int g = ITEM;
  if (g < n) out->u[g * 17 % COUNT] = in->u[g * 5 % COUNT];
}
KERNEL(mandelbrot) {
  const int g = ITEM;
  if (g >= n) return;
  const float cx = float(g % 32) / 16 - 1.5f, cy = float(g / 32) / 16 - 1;
  float x = 0, y = 0;
  u32 k = 0;
  for (; k < 64 && x * x + y * y < 4; ++k) { const float t = x * x - y * y + cx; y = 2 * x * y + cy; x = t; }
  out->u[g] = k;
}
KERNEL(nbody) {
  const int g = ITEM;
  if (g >= n) return;
  float ax = 0;
  for (int k = 0; k < 32; ++k) { const float d = in->f[k] - in->f[g]; ax += d / (d * d + 0.5f); }
  out->f[g] = ax;
}
KERNEL(crc32) {
  const int g = ITEM;
  if (g >= n) return;
  u32 c = ~in->u[g];
  for (int k = 0; k < 32; ++k) c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
  out->u[g] = ~c;
}
KERNEL(long_division) {
  const int g = ITEM;
  if (g >= n / 2) return;
  u64 x = in->l[g];
  u32 digits = 0;
  while (x) { x /= 10; ++digits; }
  out->l[g] = digits;
}
KERNEL(horner_double) {
  const int g = ITEM;
  if (g >= n / 2) return;
  double y = 0;
  for (int k = 0; k < 12; ++k) y = y * in->d[g] * 1e-3 + double(k);
  out->d[g] = y;
}
