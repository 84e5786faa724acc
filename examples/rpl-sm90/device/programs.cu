// Programs with known behaviour for the scripts of this folder. Each prints one JSON object per line.
//   programs times KERNEL LAUNCHES WORK   kernel times by CUDA events, one event pair around each launch
//   programs pair KERNEL LAUNCHES WORK    the same launches without events: what candidates are measured on
//   programs streams                      a structure whose critical path is known
//   programs many LAUNCHES                launches of an empty kernel, host time of the whole loop
// PADDING moves the kernels to other addresses: functions that nobody calls stand before them.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#ifndef PADDING
#define PADDING 0
#endif

#define CHECK(call)                                                                            \
    do {                                                                                       \
        const cudaError_t status = (call);                                                     \
        if (status != cudaSuccess) {                                                           \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)

#if PADDING > 0
template <int N>
__global__ void padding(float* out) {
    float x = out[threadIdx.x];
#pragma unroll
    for (int i = 0; i < PADDING; ++i) x = x * 1.0001f + static_cast<float>(i + N);
    out[threadIdx.x] = x;
}
template __global__ void padding<0>(float*);
#endif

__global__ void triad(const float* a, const float* b, float* c, size_t n) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) c[i] = a[i] + 2.f * b[i];
}

__global__ void fma_loop(float* out, int steps) {
    float x = threadIdx.x, y = 1.0001f;
    for (int i = 0; i < steps; ++i) x = x * y + 0.5f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void chase(const int* next, int* out, int steps) {
    int at = blockIdx.x * 977 % 65536 + threadIdx.x;
    for (int i = 0; i < steps; ++i) at = next[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

constexpr int kTile = 16;
__global__ void gemm(const float* a, const float* b, float* c, int n, int depth) {
    __shared__ float left[kTile][kTile], right[kTile][kTile + 1];
    const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < depth; k += kTile) {
        left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void reduce(const float* in, float* out, size_t n) {
    __shared__ float sums[256];
    float sum = 0;
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) sum += in[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

__global__ void spin(long long cycles) {
    const long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
}

__global__ void empty() {}

struct Data {
    size_t n = size_t{256} << 20;  // floats; 1 GiB each: far beyond the caches
    float *a = nullptr, *b = nullptr, *c = nullptr;
    int* next = nullptr;

    explicit Data(bool large) {
        if (!large) n = size_t{16} << 20;
        CHECK(cudaMalloc(&a, n * sizeof(float)));
        CHECK(cudaMalloc(&b, n * sizeof(float)));
        CHECK(cudaMalloc(&c, n * sizeof(float)));
        CHECK(cudaMalloc(&next, (size_t{1} << 20) * sizeof(int)));
        std::vector<int> links(size_t{1} << 20);
        for (size_t i = 0; i < links.size(); ++i) links[i] = static_cast<int>((i * 7919 + 13) % links.size());
        CHECK(cudaMemcpy(next, links.data(), links.size() * sizeof(int), cudaMemcpyHostToDevice));
        // 0.747 in each word: not zeros, which can run faster than data do, and there at once.
        CHECK(cudaMemset(a, 0x3F, n * sizeof(float)));
        CHECK(cudaMemset(b, 0x3F, n * sizeof(float)));
    }

    void launch(const std::string& kernel, double work, bool large) const {
        if (kernel == "triad") triad<<<2112, 256>>>(a, b, c, static_cast<size_t>(n * work));
        if (kernel == "fma") fma_loop<<<1056, 256>>>(c, static_cast<int>((large ? 200000 : 20000) * work));
        if (kernel == "chase") chase<<<132, 64>>>(next, reinterpret_cast<int*>(c), static_cast<int>((large ? 4000 : 400) * work));
        if (kernel == "gemm") gemm<<<dim3(128, 128), dim3(kTile, kTile)>>>(a, b, c, 2048, static_cast<int>((large ? 2048 : 1024) * work) / kTile * kTile);
        if (kernel == "reduce") reduce<<<2112, 256>>>(a, c, static_cast<size_t>(n * work));
    }
};

int run_times(const std::string& kernel, int launches, double work) {
    const Data data(true);
    std::vector<cudaEvent_t> events(2 * launches);
    for (auto& event : events) CHECK(cudaEventCreate(&event));
    data.launch(kernel, work, true);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < launches; ++i) {
        CHECK(cudaEventRecord(events[2 * i]));
        data.launch(kernel, work, true);
        CHECK(cudaEventRecord(events[2 * i + 1]));
    }
    CHECK(cudaDeviceSynchronize());
    std::printf("{\"kernel\": \"%s\", \"event_ms\": [", kernel.c_str());
    for (int i = 0; i < launches; ++i) {
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, events[2 * i], events[2 * i + 1]));
        std::printf("%s%.6f", i > 0 ? ", " : "", milliseconds);
    }
    std::printf("]}\n");
    return 0;
}

int run_pair(const std::string& kernel, int launches, double work) {
    const Data data(false);
    for (int i = 0; i < launches; ++i) data.launch(kernel, work, false);
    CHECK(cudaDeviceSynchronize());
    return 0;
}

// Stream 1: spin of 4 ms, an event. Stream 2: spin of 2 ms, waits for the event, spin of 3 ms. Stream 3: spin of 1 ms.
// The path is the first and the third kernel: 7 of 10 ms of kernel time; free of both, 5 ms of streams 2 and 3 are left.
int run_streams() {
    cudaStream_t streams[3];
    for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaEvent_t done;
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    int kilohertz = 0;
    CHECK(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0));
    CHECK(cudaDeviceSynchronize());
    spin<<<1, 1, 0, streams[0]>>>(4LL * kilohertz);
    CHECK(cudaEventRecord(done, streams[0]));
    spin<<<1, 1, 0, streams[1]>>>(2LL * kilohertz);
    CHECK(cudaStreamWaitEvent(streams[1], done, 0));
    spin<<<1, 1, 0, streams[1]>>>(3LL * kilohertz);
    spin<<<1, 1, 0, streams[2]>>>(1LL * kilohertz);
    CHECK(cudaDeviceSynchronize());
    std::printf("{\"clock_khz\": %d}\n", kilohertz);
    return 0;
}

int run_many(int launches) {
    empty<<<1, 32>>>();
    CHECK(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) empty<<<1, 32>>>();
    CHECK(cudaDeviceSynchronize());
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    std::printf("{\"launches\": %d, \"loop_s\": %.6f}\n", launches, passed.count());
    return 0;
}

int main(int count, char** words) {
    const std::string mode = count > 1 ? words[1] : "";
    if (mode == "times" && count == 5) return run_times(words[2], std::atoi(words[3]), std::atof(words[4]));
    if (mode == "pair" && count == 5) return run_pair(words[2], std::atoi(words[3]), std::atof(words[4]));
    if (mode == "streams") return run_streams();
    if (mode == "many" && count == 3) return run_many(std::atoi(words[2]));
    std::fprintf(stderr, "unknown arguments\n");
    return 64;
}
