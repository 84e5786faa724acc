// The driver of this process, made when it is first asked for.
#pragma once

#include <string>

#include "driver/kfd.h"

namespace softkfd {

// A child of fork gets a driver of its own, as it would get from the kernel: open files of the parent's
// device do not work there. Never destroyed: threads of the runtime use it until the process is gone.
Kfd& process_driver();
// Null when nobody has asked for it yet in this process.
Kfd* existing_driver();

// Where the files of /sys that describe the GPUs lie (SOFTKFD_GPUS: how many).
const std::string& topology_folder();

}  // namespace softkfd
