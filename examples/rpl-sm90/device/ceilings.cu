// What this card reaches of its data sheet: bytes of device memory, of shared memory, and FP32 and FP64 operations.
//   ceilings REPEATS    one JSON object per ceiling: the work of a launch and its times by CUDA events
#include <cmath>

#include "kernels/checked.h"

constexpr int kThreads = 256, kSteps = 4096, kChains = 8;

__global__ void copy(const float4* in, float4* out, size_t count) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) out[i] = in[i];
}

__global__ void read(const float4* in, float* out, size_t count) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
        const float4 one = in[i];
        sum += one.x + one.y + one.z + one.w;
    }
    if (sum == 12345.678f) out[0] = sum;  // never: the loads must stay
}

template <typename T>
__global__ void multiply_add(T* out, T factor) {
    T x[kChains];
    for (int k = 0; k < kChains; ++k) x[k] = static_cast<T>(threadIdx.x + k);
    for (int i = 0; i < kSteps; ++i) {
#pragma unroll
        for (int k = 0; k < kChains; ++k) x[k] = x[k] * factor + static_cast<T>(0.5);
    }
    T sum = 0;
    for (int k = 0; k < kChains; ++k) sum += x[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void shared_loads(float* out) {
    __shared__ float4 words[kThreads];
    words[threadIdx.x] = make_float4(threadIdx.x, 1, 2, 3);
    __syncthreads();
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 16
    for (int i = 0; i < kSteps; ++i) {
        const float4 one = words[(threadIdx.x + i) % kThreads];
        sum.x += one.x, sum.y += one.y, sum.z += one.z, sum.w += one.w;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum.x + sum.y + sum.z + sum.w;
}

template <typename Launch>
void timed(const char* ceiling, const char* unit, double work, int repeats, Launch launch) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (int i = 0; i < 3; ++i) launch();
    std::printf("{\"ceiling\": \"%s\", \"unit\": \"%s\", \"work\": %.0f, \"ms\": [", ceiling, unit, work);
    for (int i = 0; i < repeats; ++i) {
        CHECK(cudaEventRecord(begin));
        launch();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        std::printf("%s%.5f", i > 0 ? ", " : "", milliseconds);
    }
    CHECK(cudaGetLastError());
    std::printf("]}\n");
}

int main(int count, char** words) {
    const int repeats = count > 1 ? std::atoi(words[1]) : 50;
    int units = 0;
    CHECK(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, 0));
    const uint32_t floats = 1u << 30;  // 4 GiB each: far beyond the caches
    float *a = filled(floats, 1), *b = filled(floats, 2);
    double* d = reinterpret_cast<double*>(b);
    const size_t vectors = floats / 4;
    const int blocks = units * 16;
    const double threads = static_cast<double>(blocks) * kThreads;
    timed("copy", "B", 8.0 * floats, repeats, [&] { copy<<<blocks, kThreads>>>(reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(b), vectors); });
    timed("read", "B", 4.0 * floats, repeats, [&] { read<<<blocks, kThreads>>>(reinterpret_cast<float4*>(a), b, vectors); });
    timed("fma_f32", "FLOP", threads * kSteps * kChains * 2, repeats, [&] { multiply_add<float><<<blocks, kThreads>>>(b, 0.999f); });
    timed("fma_f64", "FLOP", threads * kSteps * kChains * 2, repeats, [&] { multiply_add<double><<<blocks, kThreads>>>(d, 0.999); });
    timed("shared", "B", threads * kSteps * 16, repeats, [&] { shared_loads<<<blocks, kThreads>>>(b); });
    return 0;
}
