// Each iteration loads sixteen values that all stay live until its end. Copies of the body let the compiler
// load for several iterations at once: more registers, fewer waves.
extern "C" __global__ __launch_bounds__(1024) void wide(float* __restrict__ out, const float* __restrict__ in, int n) {
  int t = threadIdx.x;
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
  float t0 = 0, t1 = 0, t2 = 0, t3 = 0, t4 = 0, t5 = 0, t6 = 0, t7 = 0;
  const float* p0 = in + t;
  const float* p1 = p0 + n;
  const float* p2 = p1 + n;
  const float* p3 = p2 + n;
  // The loop in question:
  for (int i = 0; i < n; ++i) {
    int k = i * 1024;
    s0 += p0[k]; s1 += p0[k + 64]; s2 += p0[k + 128]; s3 += p0[k + 192];
    s4 += p1[k]; s5 += p1[k + 64]; s6 += p1[k + 128]; s7 += p1[k + 192];
    t0 += p2[k]; t1 += p2[k + 64]; t2 += p2[k + 128]; t3 += p2[k + 192];
    t4 += p3[k]; t5 += p3[k + 64]; t6 += p3[k + 128]; t7 += p3[k + 192];
  }
  out[t] = s0 * s1 + s2 * s3 + s4 * s5 + s6 * s7 + t0 * t1 + t2 * t3 + t4 * t5 + t6 * t7;
}
