// One configuration of a float GEMM, C = A B, all of one size; the parameters are macros.
// Prints the times of its launches by CUDA events in milliseconds, or "wrong" with the first element that is.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        const cudaError_t status = (call);                                                   \
        if (status != cudaSuccess) {                                                         \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));             \
            std::exit(1);                                                                    \
        }                                                                                    \
    } while (0)

constexpr int kSize = 2048, kLaunches = 15, kUnroll = UNROLL;
constexpr int kColumns = BLOCK_N / THREAD_N, kRows = BLOCK_M / THREAD_M, kThreads = kColumns * kRows;

__global__ void __launch_bounds__(kThreads) gemm(const float* a, const float* b, float* c) {
    __shared__ float left[BLOCK_K][BLOCK_M + PAD], right[BLOCK_K][BLOCK_N];
    const int thread = threadIdx.x, column = thread % kColumns, row = thread / kColumns;
    float sums[THREAD_M][THREAD_N] = {};
    for (int k = 0; k < kSize; k += BLOCK_K) {
        for (int i = thread; i < BLOCK_M * BLOCK_K; i += kThreads)
            left[i % BLOCK_K][i / BLOCK_K] = a[(blockIdx.y * BLOCK_M + i / BLOCK_K) * kSize + k + i % BLOCK_K];
        for (int i = thread; i < BLOCK_K * BLOCK_N; i += kThreads)
            right[i / BLOCK_N][i % BLOCK_N] = b[(k + i / BLOCK_N) * kSize + blockIdx.x * BLOCK_N + i % BLOCK_N];
        __syncthreads();
#pragma unroll kUnroll
        for (int inner = 0; inner < BLOCK_K; ++inner) {
            float across[THREAD_N];
#pragma unroll
            for (int n = 0; n < THREAD_N; ++n) across[n] = right[inner][n * kColumns + column];
#pragma unroll
            for (int m = 0; m < THREAD_M; ++m) {
                const float down = left[inner][m * kRows + row];
#pragma unroll
                for (int n = 0; n < THREAD_N; ++n) sums[m][n] += down * across[n];
            }
        }
        __syncthreads();
    }
    for (int m = 0; m < THREAD_M; ++m)
        for (int n = 0; n < THREAD_N; ++n)
            c[(blockIdx.y * BLOCK_M + m * kRows + row) * kSize + blockIdx.x * BLOCK_N + n * kColumns + column] = sums[m][n];
}

int main() {
    const size_t bytes = size_t{kSize} * kSize * sizeof(float);
    std::vector<float> a(kSize * kSize), b(kSize * kSize), c(kSize * kSize);
    for (int i = 0; i < kSize * kSize; ++i) {
        a[i] = static_cast<float>(i * 2654435761u % 17) - 8.f;  // small whole numbers: every order of adding gives the same
        b[i] = static_cast<float>(i * 2246822519u % 13) - 6.f;
    }
    float *da, *db, *dc;
    CHECK(cudaMalloc(&da, bytes));
    CHECK(cudaMalloc(&db, bytes));
    CHECK(cudaMalloc(&dc, bytes));
    CHECK(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dc, 0xFF, bytes));
    const dim3 grid(kSize / BLOCK_N, kSize / BLOCK_M);
    cudaEvent_t events[kLaunches + 1];
    for (auto& event : events) CHECK(cudaEventCreate(&event));
    for (int i = 0; i < 3; ++i) gemm<<<grid, kThreads>>>(da, db, dc);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventRecord(events[0]));
    for (int i = 0; i < kLaunches; ++i) {
        gemm<<<grid, kThreads>>>(da, db, dc);
        CHECK(cudaEventRecord(events[i + 1]));
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
    for (int sample = 0; sample < 512; ++sample) {
        const int row = sample * 797 % kSize, column = sample * 1327 % kSize;
        double expected = 0;
        for (int k = 0; k < kSize; ++k) expected += static_cast<double>(a[row * kSize + k]) * b[k * kSize + column];
        if (std::abs(expected - c[row * kSize + column]) > 0.5) {
            std::printf("wrong %d %d %g %g\n", row, column, expected, c[row * kSize + column]);
            return 0;
        }
    }
    for (int i = 0; i < kLaunches; ++i) {
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, events[i], events[i + 1]));
        std::printf("%.6f%s", milliseconds, i + 1 < kLaunches ? " " : "\n");
    }
    return 0;
}
