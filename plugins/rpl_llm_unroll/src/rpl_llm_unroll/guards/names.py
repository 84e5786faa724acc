"""Device functions by what they do: HIP, CUDA, clang and OpenCL spellings.

Sources: HIP's "C++ language extensions" and "HIP math API", clang's ``BuiltinsAMDGPU`` and "Language
Extensions" (atomic builtins), CUDA C++ Programming Guide appendix B for spellings that HIP shares.
"""

from __future__ import annotations

import re

BARRIERS = re.compile(
    r"__syncthreads\w*|__syncwarp|__barrier\w*|barrier|work_group_barrier|__work_group_barrier"
    r"|__builtin_amdgcn_(?:s_|wave_|sched_|sched_group_)?barrier\w*|__builtin_amdgcn_(?:iglp_opt|s_sleep)"
    r"|__builtin_amdgcn_s_wait\w*|__builtin_amdgcn_ds_gws_\w+|__named_sync|__bar_\w+"
)
#: Methods of cooperative groups and barrier objects; refused whatever the object is.
BARRIER_METHODS = re.compile(r"sync|arrive\w*|wait\w*|barrier_arrive|barrier_wait")
FENCES = re.compile(
    r"__threadfence\w*|__builtin_amdgcn_fence|__(?:atomic|c11_atomic|scoped_atomic)_(?:thread|signal)_fence"
    r"|(?:__)?atomic_(?:thread_|signal_|work_item_)?fence|__atomic_work_item_fence|(?:read_|write_)?mem_fence"
    r"|__builtin_amdgcn_(?:buffer_wbinvl1\w*|s_dcache_\w+)|__memory_barrier|__sync_synchronize"
)
ATOMICS = re.compile(
    r"atomic[A-Z]\w*|unsafeAtomic\w*|safeAtomic\w*|atomic_\w+|atomic|atomic_ref"
    r"|__(?:hip|c11|opencl|scoped)_atomic_\w+|__atomic_\w+|__sync_(?!threads|warp)\w+"
    r"|__builtin_amdgcn_\w*atomic\w*|__builtin_amdgcn_ds_(?:f?add|fmin|fmax|append|consume)\w*"
)
ATOMIC_METHODS = re.compile(r"fetch_\w+|compare_exchange\w*|exchange|test_and_set")
CROSS_LANE = re.compile(
    r"__shfl\w*|__ballot\w*|__any\w*|__all\w*|__activemask|__match_\w+|__reduce_\w+"
    r"|__builtin_amdgcn_(?:ds_b?permute|ds_swizzle|ds_bpermute|mov_dpp\w*|update_dpp|read\w*lane|writelane"
    r"|permlane\w*|ballot\w*|[fsu]?[if]?cmp\w*|wave_reduce\w*|set_inactive\w*|wqm\w*|strict_w\w+)"
)
CROSS_LANE_METHODS = re.compile(r"shfl\w*|ballot|any|all|match_\w+")
EXITS = re.compile(
    r"__builtin_trap|__trap|abort|assert|__assert\w*|__builtin_unreachable|exit|__builtin_amdgcn_endpgm"
)
WAVE_SIZE = re.compile(
    r"warpSize|__AMDGCN_WAVEFRONT_SIZE(?:__)?|__builtin_amdgcn_wavefrontsize|WARP_SIZE|WAVE_SIZE"
)
DYNAMIC_LDS = re.compile(
    r"HIP_DYNAMIC_SHARED\w*|__amdgcn_get_dynamicgroupbaseptr|__get_dynamicgroup_baseptr"
    r"|__builtin_amdgcn_groupstaticsize"
)
