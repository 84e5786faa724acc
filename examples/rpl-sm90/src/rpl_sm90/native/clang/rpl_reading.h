// CUDA 13 no longer declares what clang 22 looks up at each launch in the device pass of a release that it does not know.
#if defined(__CUDA_ARCH__) && CUDART_VERSION >= 13000
extern "C" __attribute__((host)) int cudaConfigureCall(dim3, dim3, size_t = 0, void* = nullptr);
#endif
