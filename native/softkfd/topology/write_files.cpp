// `softkfd-topology FOLDER GPUS`: writes the topology folder that the preloaded library shows for /sys.
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "topology/device.h"
#include "topology/sysfs_files.h"

namespace {

// The host is the same on every machine, so that results do not depend on where they were made.
constexpr uint64_t kHostBytes = 64ULL << 30;
constexpr uint32_t kHostCores = 8;

void write(const std::filesystem::path& folder, uint32_t gpus) {
  for (const auto& [name, text] : softkfd::topology_files(gpus, kHostBytes, kHostCores)) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const auto gpus = count == 3 ? static_cast<uint32_t>(std::stoul(arguments[2])) : 0;
    if (gpus < 1 || gpus > softkfd::kMaxGpus) {
      std::cerr << "usage: softkfd-topology FOLDER 1|2\n";
      return 64;
    }
    write(arguments[1], gpus);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "softkfd-topology: " << error.what() << "\n";
    return 70;
  }
}
