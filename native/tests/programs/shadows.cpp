// What the kernels of kernels.hip do, for the software KFD.
#include <cstdint>
#include <cstring>

#include "executor/shadow.h"

namespace {

template <typename Arguments>
Arguments arguments_of(const softkfd_launch* launch) {
  Arguments arguments{};
  std::memcpy(&arguments, launch->kernarg, sizeof(arguments));
  return arguments;
}

template <typename T>
T* at(const softkfd_memory* memory, uint64_t address, uint32_t count, bool writes) {
  return static_cast<T*>(memory->at(memory, address, count * sizeof(T), writes ? 1 : 0));
}

void add_arrays(const softkfd_launch* launch, const softkfd_memory* memory) {
  struct Arguments {
    uint64_t left, right, sum;
    uint32_t count;
  };
  const auto given = arguments_of<Arguments>(launch);
  const int* left = at<int>(memory, given.left, given.count, false);
  const int* right = at<int>(memory, given.right, given.count, false);
  int* sum = at<int>(memory, given.sum, given.count, true);
  if (left == nullptr || right == nullptr || sum == nullptr) return;
  for (uint32_t i = 0; i < given.count && i < launch->grid[0]; ++i) sum[i] = left[i] + right[i];
}

void add_in_place(const softkfd_launch* launch, const softkfd_memory* memory) {
  struct Arguments {
    uint64_t values;
    uint32_t count;
    int32_t amount;
  };
  const auto given = arguments_of<Arguments>(launch);
  int* values = at<int>(memory, given.values, given.count, true);
  if (values == nullptr) return;
  for (uint32_t i = 0; i < given.count && i < launch->grid[0]; ++i) values[i] += given.amount;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const softkfd_shadow softkfd_shadows[] = {
    {"add_arrays", add_arrays}, {"add_in_place", add_in_place}, {nullptr, nullptr}};
