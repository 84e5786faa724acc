// What rpl's stand-in for hipcc offers of HIP. Not AMD's header: just enough for tests without ROCm.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../rpl_hip/types.h"
#ifdef RPL_HIP_HOST
#include "../rpl_hip/host_kernels.h"
#include "../rpl_hip/host_lanes.h"
#else
#include "../rpl_hip/device.h"
#endif
#include "../rpl_hip/arithmetic.h"
#include "../rpl_hip/runtime_api.h"
