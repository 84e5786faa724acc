// The runtime's functions. Device memory is host memory and everything is synchronous.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ihipStream_t { unsigned flags; };
struct ihipEvent_t { double seconds; };

extern "C" {
extern hipError_t rpl_hip_last_error;
// Where the device code keeps the variable that the host knows by `symbol`; null for one that it lacks.
void* rpl_hip_variable(const void* symbol);
}

namespace rpl_hip {
// Every byte is set, so that a program that reads what it never wrote does the same in each run.
inline hipError_t allocate(void** place, size_t bytes) {
  *place = malloc(bytes ? bytes : 1);
  if (!*place) return hipErrorOutOfMemory;
  memset(*place, 0xCD, bytes);
  return hipSuccess;
}
inline double now_s() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}
inline hipError_t release(void* place) {
  free(place);
  return hipSuccess;
}
}  // namespace rpl_hip

template <class T> inline hipError_t hipMalloc(T** place, size_t bytes) {
  return rpl_hip::allocate((void**)place, bytes);
}
template <class T> inline hipError_t hipHostMalloc(T** place, size_t bytes, unsigned = hipHostMallocDefault) {
  return rpl_hip::allocate((void**)place, bytes);
}
template <class T> inline hipError_t hipMallocManaged(T** place, size_t bytes, unsigned = 1) {
  return rpl_hip::allocate((void**)place, bytes);
}
template <class T> inline hipError_t hipMallocAsync(T** place, size_t bytes, hipStream_t) {
  return rpl_hip::allocate((void**)place, bytes);
}
inline hipError_t hipFree(void* place) { return rpl_hip::release(place); }
inline hipError_t hipHostFree(void* place) { return rpl_hip::release(place); }
inline hipError_t hipFreeAsync(void* place, hipStream_t) { return rpl_hip::release(place); }

inline hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind) {
  memmove(to, from, bytes);
  return hipSuccess;
}
inline hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t = nullptr) {
  return hipMemcpy(to, from, bytes, kind);
}
inline hipError_t hipMemset(void* place, int value, size_t bytes) {
  memset(place, value, bytes);
  return hipSuccess;
}
inline hipError_t hipMemsetAsync(void* place, int value, size_t bytes, hipStream_t = nullptr) {
  return hipMemset(place, value, bytes);
}
inline hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset = 0,
                                    hipMemcpyKind = hipMemcpyHostToDevice) {
  char* place = (char*)rpl_hip_variable(symbol);
  if (!place) return hipErrorInvalidSymbol;
  memcpy(place + offset, from, bytes);
  return hipSuccess;
}
inline hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset = 0,
                                      hipMemcpyKind = hipMemcpyDeviceToHost) {
  const char* place = (const char*)rpl_hip_variable(symbol);
  if (!place) return hipErrorInvalidSymbol;
  memcpy(to, place + offset, bytes);
  return hipSuccess;
}
inline hipError_t hipGetSymbolAddress(void** place, const void* symbol) {
  *place = rpl_hip_variable(symbol);
  return *place ? hipSuccess : hipErrorInvalidSymbol;
}

inline hipError_t hipDeviceSynchronize() { return rpl_hip_last_error; }
inline hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  *stream = new ihipStream_t{flags};
  return hipSuccess;
}
inline hipError_t hipStreamCreate(hipStream_t* stream) { return hipStreamCreateWithFlags(stream, hipStreamDefault); }
inline hipError_t hipStreamSynchronize(hipStream_t) { return rpl_hip_last_error; }
inline hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned = 0) { return hipSuccess; }
inline hipError_t hipStreamDestroy(hipStream_t stream) {
  delete stream;
  return hipSuccess;
}
inline hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned) {
  *event = new ihipEvent_t{0.0};
  return hipSuccess;
}
inline hipError_t hipEventCreate(hipEvent_t* event) { return hipEventCreateWithFlags(event, hipEventDefault); }
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t = nullptr) {
  event->seconds = rpl_hip::now_s();
  return hipSuccess;
}
inline hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
inline hipError_t hipEventElapsedTime(float* ms, hipEvent_t start, hipEvent_t stop) {
  *ms = float(1e3 * (stop->seconds - start->seconds));
  return hipSuccess;
}
inline hipError_t hipEventDestroy(hipEvent_t event) {
  delete event;
  return hipSuccess;
}

inline hipError_t hipGetLastError() {
  hipError_t found = rpl_hip_last_error;
  rpl_hip_last_error = hipSuccess;
  return found;
}
inline hipError_t hipPeekAtLastError() { return rpl_hip_last_error; }
inline const char* hipGetErrorName(hipError_t error) {
  switch (error) {
    case hipSuccess: return "hipSuccess";
    case hipErrorInvalidValue: return "hipErrorInvalidValue";
    case hipErrorOutOfMemory: return "hipErrorOutOfMemory";
    case hipErrorInvalidConfiguration: return "hipErrorInvalidConfiguration";
    case hipErrorInvalidSymbol: return "hipErrorInvalidSymbol";
    case hipErrorInvalidDeviceFunction: return "hipErrorInvalidDeviceFunction";
    case hipErrorInvalidDevice: return "hipErrorInvalidDevice";
    case hipErrorFileNotFound: return "hipErrorFileNotFound";
    case hipErrorNotFound: return "hipErrorNotFound";
  }
  return "hipErrorUnknown";
}
inline const char* hipGetErrorString(hipError_t error) { return hipGetErrorName(error); }

inline hipError_t hipGetDeviceCount(int* count) {
  *count = 1;
  return hipSuccess;
}
inline hipError_t hipSetDevice(int device) { return device == 0 ? hipSuccess : hipErrorInvalidDevice; }
inline hipError_t hipGetDevice(int* device) {
  *device = 0;
  return hipSuccess;
}
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int) {
  *properties = hipDeviceProp_t{};
  snprintf(properties->name, sizeof(properties->name), "CPU emulation (synthetic)");
  snprintf(properties->gcnArchName, sizeof(properties->gcnArchName), "gfx942");
  properties->totalGlobalMem = size_t(192) << 30;
  properties->sharedMemPerBlock = 65536;
  properties->warpSize = 64;
  properties->maxThreadsPerBlock = 1024;
  properties->multiProcessorCount = 304;
  properties->clockRate = 2100000;
  properties->major = 9;
  properties->minor = 4;
  return hipSuccess;
}
