#pragma once

__global__ void add(float* values) { values[threadIdx.x] = values[threadIdx.x] + 1.0f; }
