#include "launch.h"
__device__ float more(float);
__global__ void k(float* x) { *x = more(*x) + 1.0f; }
void run(float* x) { k<<<dim3{1, 1, 1}, dim3{1, 1, 1}>>>(x); }
