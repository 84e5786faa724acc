// Accelerations of bodies by all others: tiles of bodies in shared memory, one inner loop.
#include "checked.h"

constexpr int kBodies = 256;

__global__ void __launch_bounds__(kBodies) nbody(const float* place, float* pull, int bodies) {
    __shared__ float x[kBodies], y[kBodies], z[kBodies], mass[kBodies];
    const int own = blockIdx.x * kBodies + threadIdx.x;
    const float own_x = place[own], own_y = place[bodies + own], own_z = place[2 * bodies + own];
    float sum_x = 0, sum_y = 0, sum_z = 0;
    for (int begin = 0; begin < bodies; begin += kBodies) {
        const int other = begin + threadIdx.x;
        x[threadIdx.x] = place[other];
        y[threadIdx.x] = place[bodies + other];
        z[threadIdx.x] = place[2 * bodies + other];
        mass[threadIdx.x] = place[3 * bodies + other];
        __syncthreads();
        for (int i = 0; i < kBodies; ++i) {
            const float to_x = x[i] - own_x, to_y = y[i] - own_y, to_z = z[i] - own_z;
            const float inverse = rsqrtf(to_x * to_x + to_y * to_y + to_z * to_z + 0.01f);
            const float weight = mass[i] * inverse * inverse * inverse;
            sum_x += weight * to_x;
            sum_y += weight * to_y;
            sum_z += weight * to_z;
        }
        __syncthreads();
    }
    pull[own] = sum_x;
    pull[bodies + own] = sum_y;
    pull[2 * bodies + own] = sum_z;
}

int main(int, char** words) {
    const int bodies = 132 * kBodies * 2, launches = words[1] == nullptr ? 5 : std::atoi(words[1]);
    float *place = filled(4u * bodies, 3), *pull = poisoned(3u * bodies);
    for (int i = 0; i < launches; ++i) nbody<<<bodies / kBodies, kBodies>>>(place, pull, bodies);
    CHECK(cudaGetLastError());
    return compared(fetched(pull, 3u * bodies), 16, 5.f, [&](uint32_t i) {
        const uint32_t own = i % bodies, axis = i / bodies;
        double sum = 0;
        for (int other = 0; other < bodies; ++other) {
            double to[3], square = 0.01;
            for (uint32_t k = 0; k < 3; ++k) {
                to[k] = double{value_at(k * bodies + other + 3)} - value_at(k * bodies + own + 3);
                square += to[k] * to[k];
            }
            sum += value_at(3 * bodies + other + 3) * to[axis] / (square * __builtin_sqrt(square));
        }
        return static_cast<float>(sum);
    });
}
