// What clang's host code of `<<<>>>` calls; the runtime (runtime/cpu_runtime.cpp) has it.
#pragma once

extern "C" {
unsigned __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds = 0, hipStream_t stream = nullptr);
hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* lds, hipStream_t* stream);
hipError_t hipModuleLoad(hipModule_t* module, const char* path);
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned x,
                                 unsigned y, unsigned z, unsigned lds, hipStream_t stream, void** arguments,
                                 void** extra);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t lds, hipStream_t stream);
}
#define hipLaunchKernelGGL(kernel, grid, block, lds, stream, ...) \
  kernel<<<(grid), (block), (lds), (stream)>>>(__VA_ARGS__)
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
