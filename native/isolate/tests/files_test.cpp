#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "capture/chunk.h"
#include "capture/region_file.h"
#include "capture/settings.h"

using namespace rpl::isolate;

namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/rpl-isolate-test-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

std::vector<char> content(const std::string& name) {
  std::ifstream stream(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Settings settings_of(const std::map<std::string, std::string>& variables, bool leads = true) {
  return Settings::from(
      [&variables](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      4, leads);
}

}  // namespace

TEST_CASE("zeros are holes, everything else is as it was") {
  const Folder folder;
  const std::string name = folder.path + "/region";
  std::vector<std::byte> bytes(8 << 20);
  bytes[5 << 20] = std::byte{1};
  bytes.push_back(std::byte{2});
  auto file = RegionFile::create(name, Compression::kNone);
  REQUIRE(file);
  CHECK(file->append(Bytes(bytes).first(3 << 20)));
  CHECK(file->append(Bytes(bytes).subspan(3 << 20)));
  uint64_t stored = 0;
  CHECK(file->finish(stored));
  CHECK(stored <= 256 << 10);
  const auto found = content(name);
  REQUIRE(found.size() == bytes.size());
  CHECK(std::memcmp(found.data(), bytes.data(), bytes.size()) == 0);
  CHECK(RegionFile::create(name, Compression::kNone) == nullptr);  // nothing is written over
}

TEST_CASE("hashes are those of whole chunks, of zeros too") {
  std::vector<std::byte> bytes(2 * kChunkBytes + 10);
  bytes[kChunkBytes] = std::byte{1};
  ChunkHasher hasher;
  hasher.add(bytes);
  REQUIRE(hasher.hashes().size() == 3);
  CHECK(hasher.hashes()[0] == xxh3(std::vector<std::byte>(kChunkBytes)));
  CHECK(hasher.hashes()[1] == xxh3(Bytes(bytes).subspan(kChunkBytes, kChunkBytes)));
  CHECK(hasher.hashes()[2] == xxh3(std::vector<std::byte>(10)));
  CHECK(hex16(xxh3({})) == "2d06800538d394c2");  // the library's own value for nothing
}

TEST_CASE("settings are read from variables, and a value that can't be used is named") {
  const Settings plain = settings_of({});
  CHECK(plain.output.empty());
  CHECK(plain.drain_limit == std::chrono::seconds(30));
  const Settings given = settings_of({{"RPL_ISOLATE_OUTPUT", "/out"},
                                      {"RPL_ISOLATE_PID", "5"},
                                      {"RPL_ISOLATE_DISPATCH", "3"},
                                      {"RPL_ISOLATE_REGIONS", "referenced"},
                                      {"RPL_ISOLATE_DRAIN_TIMEOUT_S", "0.25"},
                                      {"HSA_RESERVE_SVM", "1"}});
  CHECK(given.output == "/out_4");
  CHECK(given.dispatch == 3);
  CHECK(given.mode == Mode::kReferenced);
  CHECK(given.drain_limit == std::chrono::milliseconds(250));
  CHECK(given.low_addresses);
  CHECK(given.error.empty());
  CHECK(settings_of({{"RPL_ISOLATE_OUTPUT", "/out"}, {"RPL_ISOLATE_PID", "session"}}).output == "/out");
  CHECK(settings_of({{"RPL_ISOLATE_OUTPUT", "/out"}, {"RPL_ISOLATE_PID", "session"}}, false).output ==
        "/out_4");
  for (const char* name : {"RPL_ISOLATE_DISPATCH", "RPL_ISOLATE_POST", "RPL_ISOLATE_KERNEL_TIMEOUT_S"}) {
    CHECK(settings_of({{name, "-1"}}).error == std::string(name) + "='-1' can't be used");
  }
}
