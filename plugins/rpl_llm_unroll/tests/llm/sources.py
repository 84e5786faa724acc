"""Kernels that the tests of the language-model proposer ask about."""

from __future__ import annotations

from rpl_llm_unroll.reply import Target
from rpl_transforms.source_file import read_source_file

SOURCE = b"""#include <hip/hip_runtime.h>
#define TILE 64
#define SYNC() __syncthreads()
struct Pair { float a, b; };
__device__ float weigh(Pair p) { return p.a * p.b; }
__device__ int unrelated(int x) { return x + 1; }

template <typename T, int K>
__global__ __launch_bounds__(256) void blend(T* __restrict__ out, const T* in, int n) {
  __shared__ T tile[TILE];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x % TILE] = in[i];
  __syncthreads();
  // "}" in a comment, and a character:
  for (int k = 0; k < K; ++k) out[i] += tile[k % TILE] * weigh(Pair{1.0f, 2.0f});
  if (n > 7) atomicAdd(out, tile[0]);
}

__global__ void other(float* out) { out[0] = 1.0f; }
int main() { return 0; }
"""
KERNEL = SOURCE[SOURCE.index(b"template <") : SOURCE.index(b"\n\n__global__ void other")].decode()
#: A change that keeps everything that has to stay.
GOOD = KERNEL.replace("for (int k", "#pragma unroll 4\n  for (int k").replace(
    "out[i] +=", "out[i] = out[i] +"
)


def target(source: bytes = SOURCE, name: str = "blend") -> Target:
    file = read_source_file(source)
    return Target(file, next(kernel for kernel in file.kernels if kernel.name == name))


def fenced(code: str, fence: str = "```", language: str = "cpp") -> str:
    return f"{fence}{language}\n{code}\n{fence}\n"
