// What the kernels of kernels.hip do, for the software KFD.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "executor/shadow.h"
#include "linked_list.h"

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
  // What a real kernel does that goes by the clock: the third and fourth launch of a process also change this.
  static int launches = 0;
  const char* also = std::getenv("ALSO_CHANGED");
  if (++launches != 3 && launches != 4) return;
  if (int* other = also ? at<int>(memory, std::strtoull(also, nullptr, 0), 1, true) : nullptr) ++*other;
}

void accumulate(const softkfd_launch* launch, const softkfd_memory* memory) {
  struct Arguments {
    uint64_t values;
    uint32_t count;
    uint64_t sum;
  };
  const auto given = arguments_of<Arguments>(launch);
  const int* values = at<int>(memory, given.values, given.count, false);
  int* sum = at<int>(memory, given.sum, 1, true);
  if (values == nullptr || sum == nullptr) return;
  for (uint32_t i = 0; i < given.count; ++i) *sum += values[i];
}

void follow_list(const softkfd_launch* launch, const softkfd_memory* memory) {
  struct Arguments {
    uint64_t first;
    int32_t amount;
  };
  const auto given = arguments_of<Arguments>(launch);
  for (uint64_t place = given.first; place != 0;) {
    Node* node = at<Node>(memory, place, 1, true);
    if (node == nullptr) return;
    node->value += given.amount;
    ++node->visits;
    place = reinterpret_cast<uint64_t>(node->next);
  }
}

// Of compared.hip: by halves, as the kernel adds.
void block_sums(const softkfd_launch* launch, const softkfd_memory* memory) {
  struct Arguments {
    uint64_t values, sums, rounds;
    uint32_t count;
  };
  constexpr uint32_t kItems = 256;
  const auto given = arguments_of<Arguments>(launch);
  const uint32_t groups = launch->grid[0] / kItems;
  const float* values = at<float>(memory, given.values, given.count, false);
  float* sums = at<float>(memory, given.sums, groups, true);
  uint32_t* rounds = at<uint32_t>(memory, given.rounds, 1, true);
  if (values == nullptr || sums == nullptr || rounds == nullptr) return;
  for (uint32_t group = 0; group < groups; ++group) {
    float part[kItems];
    for (uint32_t item = 0; item < kItems; ++item) {
      const uint32_t i = group * kItems + item;
      part[item] = i < given.count ? values[i] : 0;
    }
    for (uint32_t step = kItems / 2; step != 0; step /= 2)
      for (uint32_t item = 0; item < step; ++item) part[item] += part[item + step];
    sums[group] = part[0];
  }
  ++*rounds;
}

void total(const softkfd_launch* launch, const softkfd_memory* memory) {
  struct Arguments {
    uint64_t values, sum;
    uint32_t count;
  };
  const auto given = arguments_of<Arguments>(launch);
  const float* values = at<float>(memory, given.values, given.count, false);
  float* sum = at<float>(memory, given.sum, 1, true);
  if (values == nullptr || sum == nullptr) return;
  for (uint32_t i = 0; i < given.count; ++i) *sum += values[i];
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const softkfd_shadow softkfd_shadows[] = {
    {"add_arrays", add_arrays},   {"add_in_place", add_in_place},
    {"accumulate", accumulate},   {"follow_list", follow_list},
    {"_ZN4demo4walkIiEEvP4NodeT_", follow_list},  // demo::walk<int>(Node*, int)
    {"_Z10block_sumsPKfPfPj5Count", block_sums},   {"_Z5totalPKfPf5Count", total},
    {nullptr, nullptr}};
