// What rpl's stand-in for hipcc offers of HIP. Not AMD's header: just enough for tests without ROCm.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../rpl_hip/types.h"
#include "../rpl_hip/launch.h"
#ifdef RPL_HIP_CPU
#include "../rpl_hip/cpu_items.h"
#else
#include "../rpl_hip/amdgpu_items.h"
#endif
#include "../rpl_hip/device.h"
#include "../rpl_hip/arithmetic.h"
#include "../rpl_hip/runtime_api.h"
