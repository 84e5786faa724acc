// Loads a file with device code: `loader FILE VALUE`.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

int main(int, char** words) {
  hipModule_t module;
  hipFunction_t grow;
  float host[64], *device;
  if (hipModuleLoad(&module, words[1]) != hipSuccess) return 1;
  if (hipModuleGetFunction(&grow, module, "grow") != hipSuccess) return 2;
  for (float& one : host) one = float(std::atof(words[2]));
  hipMalloc(&device, sizeof host);
  hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice);
  void* arguments[] = {&device};
  hipModuleLaunchKernel(grow, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr);
  hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost);
  std::printf("%g\n", host[1]);
}
