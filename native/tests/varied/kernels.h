// What the kernels of this folder are written with.
#define KERNEL __attribute__((global)) void
#define SHARED __attribute__((shared)) static
#define T int(__builtin_amdgcn_workitem_id_x())
#define B int(__builtin_amdgcn_workgroup_id_x())
#define D int(__builtin_amdgcn_workgroup_size_x())
#define I (B * D + T)
#define ALL int(__builtin_amdgcn_grid_size_x())
#define SYNC() (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
template <class V> __attribute__((device)) inline V least(V a, V b) { return a < b ? a : b; }
template <class V> __attribute__((device)) inline V most(V a, V b) { return a < b ? b : a; }
#define ADD(place, value) __hip_atomic_fetch_add(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
