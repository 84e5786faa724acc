// The transpose of a square matrix by tiles in shared memory, whose columns all lie in one bank.
#include "checked.h"

constexpr int kTile = 32, kRows = 8;

__global__ void __launch_bounds__(256) transpose(const float* in, float* out, int side) {
    __shared__ float tile[kTile][kTile];
    const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
#pragma unroll
    for (int row = 0; row < kTile; row += kRows) {
        tile[threadIdx.y + row][threadIdx.x] = in[(top + threadIdx.y + row) * side + left + threadIdx.x];
    }
    __syncthreads();
#pragma unroll
    for (int row = 0; row < kTile; row += kRows) {
        out[(left + threadIdx.y + row) * side + top + threadIdx.x] = tile[threadIdx.x][threadIdx.y + row];
    }
}

int main(int, char** words) {
    const int side = 8192, launches = words[1] == nullptr ? 20 : std::atoi(words[1]);
    const uint32_t count = side * side;
    float *in = filled(count, 1), *out = poisoned(count);
    for (int i = 0; i < launches; ++i) transpose<<<dim3(side / kTile, side / kTile), dim3(kTile, kRows)>>>(in, out, side);
    CHECK(cudaGetLastError());
    return compared(fetched(out, count), 61, 0.f, [&](uint32_t i) { return value_at(i % side * side + i / side + 1); });
}
