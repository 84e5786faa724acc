#include <hip/hip_runtime.h>

__global__ void scale(float* values) { values[threadIdx.x] = values[threadIdx.x] + 1.0f; }

float scaled(float value) {
  float host[64], *device;
  for (float& one : host) one = value;
  hipMalloc(&device, sizeof host);
  hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice);
  scale<<<1, 64>>>(device);
  hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost);
  hipFree(device);
  return host[1];
}
