// Kernels of the test programs, for gfx942. shadows.cpp does the same on the host.
#define KERNEL extern "C" __attribute__((global))
#define ID (__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x())

KERNEL void add_arrays(const int* left, const int* right, int* sum, unsigned count) {
  if (ID < count) sum[ID] = left[ID] + right[ID];
}

KERNEL void add_in_place(int* values, unsigned count, int amount) {
  if (ID < count) values[ID] += amount;
}
