// Each lane follows a chain through memory: every address depends on the load before. Argument: length of the chain.
#include "check.h"

__global__ void pointer_chase(const unsigned* next, unsigned* last, unsigned steps) {
  unsigned place = threadIdx.x;
  for (unsigned i = 0; i < steps; ++i) place = next[place];
  last[threadIdx.x] = place;
}

int main(int count, char** words) {
  constexpr unsigned kLanes = 64, kPlaces = 1U << 14;
  const unsigned steps = size_argument(count, words, 2000);
  std::vector<unsigned> next(kPlaces), expected(kLanes);
  for (unsigned i = 0; i < kPlaces; ++i) next[i] = (i * 5 + 1237) % kPlaces;  // one cycle through all of them
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    expected[lane] = lane;
    for (unsigned i = 0; i < steps; ++i) expected[lane] = next[expected[lane]];
  }
  unsigned* last = on_device(std::vector<unsigned>(kLanes));
  pointer_chase<<<1, kLanes>>>(on_device(next), last, steps);
  const std::vector<unsigned> found = on_host(last, kLanes);
  unsigned wrong = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) wrong += found[lane] != expected[lane];
  std::printf("pointer_chase wrong %u of %u\n", wrong, kLanes);
  return wrong != 0;
}
