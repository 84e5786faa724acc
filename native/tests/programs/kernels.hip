// Kernels of the test programs, for gfx942. shadows.cpp does the same on the host.
#include "linked_list.h"

#define KERNEL extern "C" __attribute__((global))
// From the dispatch packet: plain HSA programs fill in no hidden arguments.
#define PACKET ((const unsigned short*)__builtin_amdgcn_dispatch_ptr())
#define ID (__builtin_amdgcn_workgroup_id_x() * PACKET[2] + __builtin_amdgcn_workitem_id_x())

KERNEL void add_arrays(const int* left, const int* right, int* sum, unsigned count) {
  if (ID < count) sum[ID] = left[ID] + right[ID];
}

KERNEL void add_in_place(int* values, unsigned count, int amount) {
  if (ID < count) values[ID] += amount;
}

KERNEL void accumulate(const int* values, unsigned count, int* sum) {
  if (ID == 0)
    for (unsigned i = 0; i < count; ++i) *sum += values[i];
}

KERNEL void follow_list(Node* node, int amount) {
  if (ID == 0)
    for (; node != nullptr; node = node->next) {
      node->value += amount;
      ++node->visits;
    }
}

// A variable of the module; the program puts a node of its list there.
__attribute__((device)) __attribute__((used)) Node node_of_module = {nullptr, 7, 0};
