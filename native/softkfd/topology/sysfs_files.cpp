#include "topology/sysfs_files.h"

#include <initializer_list>
#include <utility>

#include "topology/device.h"

namespace softkfd {
namespace {

using Properties = std::initializer_list<std::pair<const char*, uint64_t>>;

std::string text(const Properties& properties) {
  std::string lines;
  for (const auto& [name, value] : properties)
    lines += std::string(name) + " " + std::to_string(value) + "\n";
  return lines;
}

// Bits of `capability` (HSA_CAPABILITY of hsakmttypes.h): 64-bit doorbells, SRAM ECC, shared virtual memory.
constexpr uint64_t kDoorbells64 = 2ULL << 12;
constexpr uint64_t kSramEcc = 1ULL << 26;
constexpr uint64_t kSvm = 1ULL << 27;

constexpr uint64_t kLinkPcie = 2;
constexpr uint64_t kLinkXgmi = 11;
constexpr uint64_t kHeapSystem = 0;
constexpr uint64_t kHeapVramVisible = 1;

std::string cpu_properties(uint32_t gpus, uint32_t cores) {
  return text({{"cpu_cores_count", cores},
               {"simd_count", 0},
               {"mem_banks_count", 1},
               {"caches_count", 0},
               {"io_links_count", gpus},
               {"p2p_links_count", 0},
               {"cpu_core_id_base", 0},
               {"simd_id_base", 0},
               {"max_waves_per_simd", 0},
               {"lds_size_in_kb", 0},
               {"gds_size_in_kb", 0},
               {"num_gws", 0},
               {"wave_front_size", 0},
               {"array_count", 0},
               {"simd_arrays_per_engine", 0},
               {"cu_per_simd_array", 0},
               {"simd_per_cu", 0},
               {"max_slots_scratch_cu", 0},
               {"gfx_target_version", 0},
               {"vendor_id", 0},
               {"device_id", 0},
               {"location_id", 0},
               {"domain", 0},
               {"drm_render_minor", 0},
               {"hive_id", 0},
               {"num_sdma_engines", 0},
               {"num_sdma_xgmi_engines", 0},
               {"num_sdma_queues_per_engine", 0},
               {"num_cp_queues", 0},
               {"max_engine_clk_ccompute", 3000}});
}

std::string gpu_properties(uint32_t gpu, uint32_t gpus) {
  return text({{"cpu_cores_count", 0},
               {"simd_count", Mi300x::kSimds},
               {"mem_banks_count", 1},
               {"caches_count", 3},
               {"io_links_count", gpus},
               {"p2p_links_count", 0},
               {"cpu_core_id_base", 0},
               {"simd_id_base", 0x80001000 + 0x1000 * gpu},
               {"max_waves_per_simd", 8},
               {"lds_size_in_kb", 64},
               {"gds_size_in_kb", 0},
               {"num_gws", 64},
               {"wave_front_size", 64},
               {"array_count", 32},
               {"simd_arrays_per_engine", 1},
               {"cu_per_simd_array", 10},
               {"simd_per_cu", 4},
               {"max_slots_scratch_cu", 32},
               {"gfx_target_version", Mi300x::kGfxTargetVersion},
               {"vendor_id", Mi300x::kVendorId},
               {"device_id", Mi300x::kDeviceId},
               {"location_id", 0x500 + 0x100 * gpu},
               {"domain", 0},
               {"drm_render_minor", kFirstRenderMinor + gpu},
               {"hive_id", gpus > 1 ? 0x5af7ULL : 0},
               {"num_sdma_engines", 2},
               {"num_sdma_xgmi_engines", 14},
               {"num_sdma_queues_per_engine", 8},
               {"num_cp_queues", 24},
               {"max_engine_clk_fcompute", 2100},
               {"local_mem_size", 0},
               {"fw_version", 166},
               {"capability", kDoorbells64 | kSramEcc | kSvm},
               {"debug_prop", 0},
               {"sdma_fw_version", 22},
               {"unique_id", 0x50f7000000000000 + gpu + 1},
               {"num_xcc", Mi300x::kXccs},
               {"max_engine_clk_ccompute", 3000}});
}

std::string memory_bank(uint64_t heap, uint64_t bytes, uint64_t width, uint64_t clock_mhz) {
  return text({{"heap_type", heap},
               {"size_in_bytes", bytes},
               {"flags", 0},
               {"width", width},
               {"mem_clk_max", clock_mhz}});
}

std::string cache(uint64_t level, uint64_t kilobytes, uint64_t line) {
  return text({{"processor_id_low", 0x80001000},
               {"level", level},
               {"size", kilobytes},
               {"cache_line_size", line},
               {"cache_lines_per_tag", 1},
               {"association", 16},
               {"latency", 0},
               {"type", 9}}) +
         "sibling_map 1\n";
}

std::string link(uint64_t type, uint32_t from, uint32_t to) {
  return text({{"type", type},
               {"version_major", 0},
               {"version_minor", 0},
               {"node_from", from},
               {"node_to", to},
               {"weight", type == kLinkXgmi ? 15ULL : 20ULL},
               {"min_latency", 0},
               {"max_latency", 0},
               {"min_bandwidth", 312},
               {"max_bandwidth", 50000},
               {"recommended_transfer_size", 0},
               {"flags", 1}});
}

void add_gpu(std::map<std::string, std::string>& files, uint32_t gpu, uint32_t gpus) {
  const uint32_t number = gpu + 1;
  const std::string node = "nodes/" + std::to_string(number) + "/";
  files[node + "gpu_id"] = std::to_string(gpu_id(gpu)) + "\n";
  files[node + "name"] = "ip discovery\n";
  files[node + "properties"] = gpu_properties(gpu, gpus);
  files[node + "mem_banks/0/properties"] = memory_bank(kHeapVramVisible, Mi300x::kMemoryBytes, 8192, 2600);
  files[node + "caches/0/properties"] = cache(1, 32, 128);
  files[node + "caches/1/properties"] = cache(2, 4096, 128);
  files[node + "caches/2/properties"] = cache(3, 262144, 64);
  files[node + "io_links/0/properties"] = link(kLinkPcie, number, 0);
  uint32_t index = 1;
  for (uint32_t peer = 0; peer < gpus; ++peer) {
    if (peer == gpu) continue;
    files[node + "io_links/" + std::to_string(index++) + "/properties"] = link(kLinkXgmi, number, peer + 1);
  }
}

}  // namespace

std::map<std::string, std::string> topology_files(uint32_t gpus, uint64_t host_bytes, uint32_t host_cores) {
  std::map<std::string, std::string> files;
  files["generation_id"] = "2\n";
  files["system_properties"] = text({{"platform_oem", 0}, {"platform_id", 0}, {"platform_rev", 0}});
  files["nodes/0/gpu_id"] = "0\n";
  files["nodes/0/name"] = "\n";
  files["nodes/0/properties"] = cpu_properties(gpus, host_cores);
  files["nodes/0/mem_banks/0/properties"] = memory_bank(kHeapSystem, host_bytes, 64, 4800);
  for (uint32_t gpu = 0; gpu < gpus; ++gpu) {
    files["nodes/0/io_links/" + std::to_string(gpu) + "/properties"] = link(kLinkPcie, 0, gpu + 1);
    add_gpu(files, gpu, gpus);
  }
  return files;
}

}  // namespace softkfd
