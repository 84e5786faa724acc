// Open device files of the driver: /dev/kfd and one render node for each GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace softkfd {

constexpr std::string_view kKfdDevice = "/dev/kfd";
constexpr std::string_view kRenderDevice = "/dev/dri/renderD";

// The GPU whose render node `path` is.
std::optional<uint32_t> render_node(std::string_view path);

// All device files are the same file, so that an offset for mmap means the same in each; which GPU a
// descriptor was opened for is remembered here.
int open_device_file(std::optional<uint32_t> gpu);
std::optional<uint32_t> gpu_of_file(int descriptor);
bool is_device_file(int descriptor);

}  // namespace softkfd
