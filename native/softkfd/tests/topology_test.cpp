#include <doctest/doctest.h>

#include "topology/device.h"
#include "topology/sysfs_files.h"

namespace softkfd {
namespace {

bool says(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST_CASE("a machine of one GPU is a CPU node and a GPU node that are linked") {
  const auto files = topology_files(1, 1ULL << 30, 4);
  CHECK(files.at("nodes/0/gpu_id") == "0\n");
  CHECK(files.at("nodes/1/gpu_id") == std::to_string(gpu_id(0)) + "\n");
  const std::string& gpu = files.at("nodes/1/properties");
  CHECK(says(gpu, "gfx_target_version 90402"));
  CHECK(says(gpu, "simd_count 1216"));
  CHECK(says(gpu, "io_links_count 1"));
  CHECK(says(files.at("nodes/1/io_links/0/properties"), "node_to 0"));
  CHECK_FALSE(files.contains("nodes/2/gpu_id"));
}

TEST_CASE("every count of links, banks and caches is that of the files") {
  const auto files = topology_files(2, 1ULL << 30, 4);
  for (int node = 0; node < 3; ++node) {
    for (const char* kind : {"io_links", "mem_banks", "caches"}) {
      const std::string folder = "nodes/" + std::to_string(node) + "/" + kind + "/";
      int count = 0;
      while (files.contains(folder + std::to_string(count) + "/properties")) ++count;
      const std::string line = std::string(kind) + "_count " + std::to_string(count);
      CHECK_MESSAGE(says(files.at("nodes/" + std::to_string(node) + "/properties"), line), line);
    }
  }
  CHECK(says(files.at("nodes/2/io_links/1/properties"), "node_to 1"));
}

}  // namespace
}  // namespace softkfd
