// What the three programs share: errors of CUDA, inputs that host and device make alike, a sample of the result.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const cudaError_t status = (call);                                                         \
        if (status != cudaSuccess) {                                                               \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));   \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

// One of 2^24 values in [-1, 1), well mixed: never zeros, which can run faster than data do.
__host__ __device__ inline float value_at(uint32_t at) {
    at = (at ^ 61u ^ (at >> 16)) * 9u;
    at = (at ^ (at >> 4)) * 0x27d4eb2du;
    at ^= at >> 15;
    return static_cast<float>(at >> 8) / 8388608.f - 1.f;
}

__global__ void fill(float* out, uint32_t count, uint32_t seed) {
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        out[i] = value_at(i + seed);
    }
}

inline float* filled(uint32_t count, uint32_t seed) {
    float* data = nullptr;
    CHECK(cudaMalloc(&data, count * sizeof(float)));
    fill<<<2112, 256>>>(data, count, seed);
    CHECK(cudaGetLastError());
    return data;
}

// The whole result, poisoned before: NaN where the kernel stored nothing.
inline float* poisoned(uint32_t count) {
    float* data = nullptr;
    CHECK(cudaMalloc(&data, count * sizeof(float)));
    CHECK(cudaMemset(data, 0xFF, count * sizeof(float)));
    return data;
}

inline std::vector<float> fetched(const float* data, uint32_t count) {
    std::vector<float> host(count);
    CHECK(cudaMemcpy(host.data(), data, count * sizeof(float), cudaMemcpyDeviceToHost));
    return host;
}

// Every `step`-th value to result.bin, and whether each is within `tolerance` of what `expected` says.
template <typename Expected>
int compared(const std::vector<float>& result, uint32_t step, float tolerance, Expected expected) {
    std::vector<float> sample;
    for (size_t i = 0; i < result.size(); i += step) sample.push_back(result[i]);
    std::FILE* file = std::fopen("result.bin", "wb");
    if (file == nullptr || std::fwrite(sample.data(), sizeof(float), sample.size(), file) != sample.size()) return 1;
    std::fclose(file);
    for (size_t i = 0; i < result.size(); i += size_t{step} * 97) {
        const float wanted = expected(static_cast<uint32_t>(i));
        const float off = result[i] > wanted ? result[i] - wanted : wanted - result[i];
        if (!(off <= tolerance)) {
            std::fprintf(stderr, "element %zu is %g, not %g\n", i, result[i], wanted);
            return 1;
        }
    }
    return 0;
}
