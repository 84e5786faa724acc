#include <doctest/doctest.h>

#include "made_up_runtime.h"
#include "tool/hooks.h"

using namespace rpl;

namespace {

hsa::Status mine(void*) { return 77; }

}  // namespace

TEST_CASE("tables of an unknown major version are refused and left as they are") {
  made_up::Runtime runtime(1, 1016, 400);
  const auto before = runtime.table(hsa::core::kQueueCreate);
  CHECK_FALSE(isolate::load(runtime.tables()));
  CHECK((runtime.table(hsa::core::kQueueCreate) == before));
  hsa::ApiTables api;
  CHECK(api.adopt(runtime.tables()).find("major version 2") != std::string::npos);
  made_up::Runtime newer(3);
  CHECK_FALSE(isolate::load(newer.tables()));
}

TEST_CASE("tables that end before what a capture needs are refused") {
  hsa::ApiTables api;
  made_up::Runtime small_core(2, 900);
  CHECK(api.adopt(small_core.tables()).find("core table 2.900.0 is too small") == 0);
  made_up::Runtime small_amd(2, 1016, 300);
  CHECK(api.adopt(small_amd.tables()).find("AMD table 2.300.1 is too small") == 0);
  CHECK(api.adopt(nullptr) == "no tables were given");
}

TEST_CASE("a function behind the end of a table is absent, and its place is not written") {
  for (const uint32_t bytes : {456U, 560U, 592U, 608U, 624U}) {  // no virtual memory; ROCm 6.1, 6.4, 7.x
    made_up::Runtime runtime(2, 1016, bytes);
    hsa::ApiTables api;
    REQUIRE(api.adopt(runtime.tables()).empty());
    runtime.set(hsa::amd::kVmemUnmap, static_cast<hsa::Status (*)(void*, size_t)>(nullptr));
    CHECK_FALSE(api.hook(hsa::amd::kVmemAddressFree, static_cast<hsa::Status (*)(void*, size_t)>(nullptr)));
    CHECK(api.hook(hsa::amd::kPoolFree, &mine));
    CHECK(runtime.table(hsa::amd::kPoolFree)(nullptr) == 77);
    CHECK((api.original(hsa::amd::kPoolFree) != &mine));
  }
}

TEST_CASE("a table that is larger than any that is known is used") {
  made_up::Runtime runtime(2, 2000, 9000);
  hsa::ApiTables api;
  CHECK(api.adopt(runtime.tables()).empty());
  CHECK(api.has(hsa::amd::kPoolFree));
}
