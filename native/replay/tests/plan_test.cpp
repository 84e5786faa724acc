#include "plan/plan.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "plan/result.h"
#include "runtime/isa.h"

using namespace rpl::replay;
using nlohmann::json;

namespace {

struct File {
  explicit File(const std::string& text) { std::ofstream(name) << text; }
  ~File() { unlink(name); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  static constexpr const char* name = "plan-test.json";
};

}  // namespace

TEST_CASE("code runs on its processor with the features that it names") {
  const std::string gpu = "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-";
  CHECK(isa_difference("amdgcn-amd-amdhsa--gfx942", gpu).empty());
  CHECK(isa_difference("amdgcn-amd-amdhsa--gfx942:xnack-", gpu).empty());
  CHECK(isa_difference("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", gpu).empty());
  CHECK(isa_difference("amdgcn-amd-amdhsa--gfx942:xnack+", gpu) ==
        "the code needs xnack+, the GPU has xnack-");
  CHECK(isa_difference("amdgcn-amd-amdhsa--gfx90a", gpu) == "the code is for gfx90a, the GPU is gfx942");
  CHECK_FALSE(isa_difference("amdgcn-amd-amdhsa--gfx942:xnack-", "amdgcn-amd-amdhsa--gfx942").empty());
  CHECK(isa_difference("amdgcn-amd-amdhsa--gfx9-4-generic", "amdgcn-amd-amdhsa--gfx9-4-generic:xnack-")
            .empty());
}

TEST_CASE("a plan of addresses alone") {
  const File file(
      R"({"isa": "amdgcn-amd-amdhsa--gfx942", "reserve": [{"address": 4096, "size": 18446744073709551615}]})");
  const Plan plan = Plan::read(File::name);
  CHECK(plan.reserve_only);
  CHECK(plan.ranges.at(0).size == UINT64_MAX);
}

TEST_CASE("what is no plan is refused") {
  for (const char* text : {"", "{}", "[]", R"({"iterations": -1})", R"({"reserve": [{"address": "x"}]})"}) {
    const File file(text);
    CHECK_THROWS(Plan::read(File::name));
  }
  CHECK_THROWS(Plan::read("absent.json"));
}

TEST_CASE("a result is written whole, with its exit code") {
  Result result;
  CHECK(result.exit_code() == 0);
  result.failure = Failure("gpu_fault", "a \"quoted\" fact");
  result.failure->address = 4096;
  result.reservations = {{{4096, 8192}, std::nullopt}};
  const File file("");
  REQUIRE(result.write(File::name));
  std::ifstream stream(File::name);
  const json told = json::parse(stream);
  CHECK(told["failure"]["fact"] == "a \"quoted\" fact");
  CHECK(told["failure"]["address"] == 4096);
  CHECK(told["reservations"][0]["returned"].is_null());
  CHECK(told["environment"]["device"].is_null());
  CHECK(result.exit_code() == 4);
  CHECK_FALSE(result.write("no/such/folder"));
}
