#include "launch.h"
__device__ float more(float x) { return 2.0f * x; }
