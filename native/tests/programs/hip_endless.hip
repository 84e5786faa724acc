// A kernel that never ends, "kernel", or a program that waits without one.
#include <hip/hip_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

__global__ void endless(volatile int* value) {
  while (*value == 0) {
  }
}

int main(int, char** words) {
  int* value = nullptr;
  if (hipMalloc(&value, 4) != hipSuccess || hipMemset(value, 0, 4) != hipSuccess) return 70;
  if (std::strcmp(words[1], "kernel") == 0) endless<<<1, 64>>>(value);
  std::puts("begun");
  std::fflush(stdout);
  if (std::strcmp(words[1], "kernel") == 0) return hipDeviceSynchronize();
  pause();
  return 0;
}
