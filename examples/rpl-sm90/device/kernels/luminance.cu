// A picture of four channels to one of brightness: four neighbouring loads for each point.
#include "checked.h"

__global__ void luminance(const float* in, float* out, int points) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points) return;
    const float red = in[4 * i];
    const float green = in[4 * i + 1];
    const float blue = in[4 * i + 2];
    const float cover = in[4 * i + 3];
    out[i] = (0.2126f * red + 0.7152f * green + 0.0722f * blue) * cover;
}

int main(int, char** words) {
    const int launches = words[1] == nullptr ? 20 : std::atoi(words[1]);
    const int points = 1 << (launches > 100 ? 21 : 24);  // many launches: a picture that L2 holds
    float *in = filled(4u * points, 2), *out = poisoned(points);
    for (int i = 0; i < launches; ++i) luminance<<<points / 256, 256>>>(in, out, points);
    CHECK(cudaGetLastError());
    return compared(fetched(out, points), 17, 1e-5f, [](uint32_t i) {
        const float red = value_at(4 * i + 2), green = value_at(4 * i + 3), blue = value_at(4 * i + 4);
        return (0.2126f * red + 0.7152f * green + 0.0722f * blue) * value_at(4 * i + 5);
    });
}
