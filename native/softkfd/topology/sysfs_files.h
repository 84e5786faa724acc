// The files under /sys/devices/virtual/kfd/kfd/topology that describe a machine of `gpus` GPUs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace softkfd {

constexpr const char* kTopologyPath = "/sys/devices/virtual/kfd/kfd/topology";

// Paths below the topology folder, with their text.
std::map<std::string, std::string> topology_files(uint32_t gpus, uint64_t host_bytes, uint32_t host_cores);

}  // namespace softkfd
