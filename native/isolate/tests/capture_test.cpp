#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "capture/memory_reader.h"
#include "made_up_code.h"
#include "made_up_runtime.h"
#include "tool/hooks.h"

using namespace rpl;
using nlohmann::json;

namespace {

constexpr uint64_t kAdd = 0x5000;
constexpr uint64_t kOther = 0x6000;

// A program with one kernel that adds 4 to an array, under the tool.
class Program {
 public:
  using Variables = std::map<std::string, std::string>;
  explicit Program(Variables variables = {}) {
    char name[] = "/tmp/rpl-isolate-test-XXXXXX";
    folder_ = mkdtemp(name);
    output = folder_ + "/out";
    variables.merge(std::map<std::string, std::string>{
        {"OUTPUT", folder_ + "/out"}, {"STATUS", folder_}, {"KERNEL", "^add"}, {"DISPATCH", "1"}});
    for (const auto& [key, value] : variables) {
      setenv(("RPL_ISOLATE_" + key).c_str(), value.c_str(), 1);
      names_.push_back("RPL_ISOLATE_" + key);
    }
    runtime.symbols = {{"add.kd", hsa::kSymbolKernel, kAdd, 16},
                       {"other.kd", hsa::kSymbolKernel, kOther, 16},
                       {"table", hsa::kSymbolVariable, reinterpret_cast<uint64_t>(&variable), 8}};
    runtime.kernels[kAdd] = [this](const hsa::DispatchPacket&) { *values += 4; };
    REQUIRE(isolate::load(runtime.tables()));
    hsa::Queue* queue = nullptr;
    runtime.table(hsa::core::kQueueCreate)(made_up::kGpu, 64, 0, nullptr, nullptr, 0, 0, &queue);
    load_code();
    values = allocate<uint64_t>(made_up::kDevicePool);
    *values = 100;
    arguments = allocate<uint64_t>(made_up::kHostPool, 2 * sizeof(uint64_t));
    *arguments = reinterpret_cast<uint64_t>(values);
  }
  ~Program() {
    for (const std::string& name : names_) unsetenv(name.c_str());
    isolate::unload();
    isolate::forget();
    std::filesystem::remove_all(folder_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  hsa::DispatchPacket packet(uint64_t kernel, hsa::Signal signal = {0}) const {
    hsa::DispatchPacket one{};
    one.header = hsa::kPacketDispatch;
    one.setup = 1;
    one.workgroup[0] = one.workgroup[1] = one.workgroup[2] = 1;
    one.grid[0] = one.grid[1] = one.grid[2] = 1;
    one.group_segment_size = 512;
    one.kernel_object = kernel;
    one.kernarg_address = reinterpret_cast<uint64_t>(arguments);
    one.completion_signal = signal;
    return one;
  }
  json document(const std::string& name) const { return json::parse(std::ifstream(folder_ + "/" + name)); }
  json status() const { return document(std::to_string(getpid()) + ".json"); }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_ + "/out/" + name); }
  std::vector<char> bytes(const std::string& name) const {
    std::ifstream stream(folder_ + "/out/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  uint64_t captured_value() const {
    std::array<char, 40> name{};
    std::snprintf(name.data(), name.size(), "memory/region_%lx.bin", reinterpret_cast<uint64_t>(values));
    const auto found = bytes(name.data());
    uint64_t value = 0;
    REQUIRE(found.size() == sizeof(value));
    std::memcpy(&value, found.data(), sizeof(value));
    return value;
  }
  template <typename T>
  T* allocate(hsa::Pool pool, size_t bytes = sizeof(T)) {
    void* pointer = nullptr;
    runtime.table(hsa::amd::kPoolAllocate)(pool, bytes, 0, &pointer);
    std::memset(pointer, 0, bytes);
    return static_cast<T*>(pointer);
  }

  made_up::Runtime runtime;
  uint64_t* values = nullptr;
  uint64_t* arguments = nullptr;
  uint64_t variable = 42;
  std::string output;

 private:
  void load_code() {
    // The program's own bytes are gone before the capture.
    const made_up::CodeObject code("add");
    hsa::CodeObjectReader reader{};
    runtime.table(hsa::core::kReaderFromMemory)(code.bytes.data(), code.bytes.size(), &reader);
    runtime.table(hsa::core::kLoadAgentCodeObject)({3}, made_up::kGpu, reader, nullptr, nullptr);
    runtime.table(hsa::core::kReaderDestroy)(reader);
    runtime.table(hsa::core::kExecutableFreeze)({3}, nullptr);
    code_bytes = code.bytes.size();
  }
  std::string folder_;
  std::vector<std::string> names_;

 public:
  size_t code_bytes = 0;
};

}  // namespace

TEST_CASE("one launch of a batch is captured between those before and behind it") {
  Program program;
  const hsa::Signal signal = made_up::make_signal(1);
  program.runtime.submit({program.packet(kOther), program.packet(kAdd), program.packet(kAdd, signal),
                          program.packet(kAdd), program.packet(kOther)});
  CHECK(program.runtime.kernels_run == std::vector<uint64_t>{kOther, kAdd, kAdd, kAdd, kOther});
  CHECK(*program.values == 112);
  CHECK(made_up::value_of(signal) == 0);
  CHECK(reinterpret_cast<hsa::SignalMemory*>(signal.handle)->end_ticks == 1500);
  CHECK(program.status()["state"] == "captured");
  CHECK(program.captured_value() == 104);
  CHECK(program.has("rpl_capture_complete"));
  CHECK(program.bytes("kernel.hsaco").size() == program.code_bytes);
  const json dispatch = program.document("out/dispatch.json");
  CHECK(dispatch["mangled_name"] == "add.kd");
  CHECK(dispatch["dispatch_index"] == 1);
  CHECK(dispatch["kernarg_size"] == 16);
  const json capture = program.document("out/capture.json");
  CHECK(capture["dispatch"]["batch_position"] == 2);
  CHECK(capture["dispatch"]["batch_size"] == 5);
  CHECK(capture["dispatch"]["launch_index"] == 2);
  CHECK(capture["dispatch"]["duration_ns"] == 500);
  CHECK(capture["dispatch"]["group_segment"] == json{{"fixed", 0}, {"launched", 512}});
  CHECK(capture["code_object"]["load_base"] == kAdd - made_up::CodeObject::kDescriptorAddress);
  CHECK(capture["module_variables"][0]["name"] == "table");
  CHECK(capture["module_variables"][0]["changed_by_launch"] == false);
  for (const json& region : capture["memory"]["regions"]) {
    const bool is_values = region["base"] == reinterpret_cast<uint64_t>(program.values);
    CHECK(region["kind"] == (is_values ? "device_pool" : "host_pool"));
    CHECK(region["changed_by_launch"] == is_values);
    CHECK(region["written_by_host"] == (is_values ? json() : json(false)));
  }
  CHECK(program.runtime.live_signals == 0);
  CHECK(program.runtime.blocks.size() == 2);  // the tool's own memory was given back
  delete reinterpret_cast<hsa::SignalMemory*>(signal.handle);
}

TEST_CASE("a launch that can't be captured runs all the same, once") {
  const hsa::Signal signal = made_up::make_signal(1);
  const auto run = [signal](Program& program) {
    made_up::runtime().submit({program.packet(kAdd), program.packet(kAdd, signal)});
    CHECK(program.runtime.kernels_run == std::vector<uint64_t>{kAdd, kAdd});
    CHECK_FALSE(program.has("rpl_capture_complete"));
    CHECK(program.runtime.live_signals <= 2);
  };
  SUBCASE("its queue can't be drained") {
    Program program(Program::Variables{{"DRAIN_TIMEOUT_S", "0.05"}});
    program.runtime.loses_barriers = true;
    run(program);
    CHECK(program.status()["state"] == "not_drained");
    CHECK(made_up::value_of(signal) == 0);
  }
  SUBCASE("the folder holds something") {
    Program program;
    std::filesystem::create_directories(program.output + "/memory");
    run(program);
    CHECK(program.status()["state"] == "failed");
    CHECK(std::string(program.status()["reason"]).ends_with("is not empty"));
  }
  SUBCASE("its memory can't be copied") {
    Program program;
    program.runtime.fails_copies = true;
    run(program);
    CHECK(program.status()["state"] == "failed");
    CHECK(program.status()["reason"] == "a copy was refused with status 4096");
    CHECK(made_up::value_of(signal) == 0);
  }
  delete reinterpret_cast<hsa::SignalMemory*>(signal.handle);
}

TEST_CASE("a launch that nobody asked for is only counted") {
  Program program(Program::Variables{{"DISPATCH", "7"}});
  program.runtime.submit({program.packet(kAdd), program.packet(kOther), program.packet(kAdd)});
  CHECK(program.runtime.kernels_run.size() == 3);
  isolate::unload();
  const json status = program.status();
  CHECK(status["state"] == "ended");
  CHECK(status["matches"] == 2);
  CHECK(status["launches"] == 3);
  CHECK_FALSE(program.has(""));
}

TEST_CASE("referenced memory is what the arguments lead to, also through memory and one behind the end") {
  Program program(Program::Variables{{"REGIONS", "referenced"}, {"POST", "bytes"}, {"COMPRESS", "none"}});
  auto* const unused = program.allocate<uint64_t>(made_up::kDevicePool);
  auto* const last = program.allocate<uint64_t>(made_up::kDevicePool);
  auto* const link = program.allocate<uint64_t>(made_up::kDevicePool);
  *link = reinterpret_cast<uint64_t>(last + 1);
  program.arguments[1] = reinterpret_cast<uint64_t>(link);
  program.runtime.submit({program.packet(kAdd), program.packet(kAdd)});
  std::vector<uint64_t> bases;
  const json capture = program.document("out/capture.json");
  for (const json& region : capture["memory"]["regions"]) bases.push_back(region["base"]);
  const auto listed = [&bases](const void* pointer) {
    return std::count(bases.begin(), bases.end(), reinterpret_cast<uint64_t>(pointer)) == 1;
  };
  CHECK(listed(program.values));
  CHECK(listed(link));
  CHECK(listed(last));
  CHECK_FALSE(listed(unused));
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), "memory_after/region_%lx.bin",
                reinterpret_cast<uint64_t>(program.values));
  CHECK(program.bytes(name.data())[0] == 108);
}

TEST_CASE("memory that was freed before the launch is not read") {
  Program program;
  auto* const gone = program.allocate<uint64_t>(made_up::kDevicePool);
  program.runtime.table(hsa::amd::kPoolFree)(gone);
  CHECK(program.runtime.table(hsa::amd::kPoolFree)(gone) == hsa::kError);
  program.runtime.submit({program.packet(kAdd), program.packet(kAdd)});
  CHECK(program.document("out/memory_regions.json")["regions"].size() == 2);
}

TEST_CASE("memory of the program is cut where pages of it are gone") {
  constexpr uint64_t kPage = 4096;
  constexpr uint64_t kPages = 3000;  // more than are asked for at once
  auto* const memory = static_cast<char*>(
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto base = reinterpret_cast<uint64_t>(memory);
  for (const uint64_t gone : {0, 1, 1023, 1024, 2500, 2999}) munmap(memory + gone * kPage, kPage);
  struct {
    uint64_t pages;
    bool readable;
  } const expected[] = {{2, false}, {1021, true}, {2, false}, {1475, true}, {1, false}, {498, true}, {1, false}};
  const auto runs = isolate::MemoryReader::runs_of(base, kPages * kPage);
  REQUIRE(runs.size() == std::size(expected));
  for (size_t i = 0; i < runs.size(); ++i) {
    CHECK(runs[i].size == expected[i].pages * kPage);
    CHECK(runs[i].readable == expected[i].readable);
  }
  const auto inside = isolate::MemoryReader::runs_of(base + 2 * kPage + 100, 1021 * kPage + 50);
  REQUIRE(inside.size() == 2);
  CHECK(inside[0].size == 1021 * kPage - 100);
  CHECK(inside[1].size == 150);
  munmap(memory, kPages * kPage);
}

TEST_CASE("a setting that can't be used stops captures, not programs") {
  Program program(Program::Variables{{"POST", "some"}});
  program.runtime.submit({program.packet(kAdd), program.packet(kAdd)});
  CHECK(program.runtime.kernels_run.size() == 2);
  CHECK(program.status()["state"] == "failed");
  CHECK(program.status()["reason"] == "RPL_ISOLATE_POST='some' can't be used");
}

TEST_CASE("other threads wait at the gate until it opens, and bring the barrier of their queue") {
  Program program;
  isolate::Queues queues(isolate::process()->api);
  hsa::Queue queue{};
  isolate::QueueRecord* const record = queues.add(&queue, made_up::kGpu, false);
  const hsa::Signal signal = made_up::make_signal(1);
  queues.close();
  record->drain_signal = signal.handle;
  std::atomic<bool> passed{false};
  std::thread other([&] {
    queues.pass(record, [](const void* packet, uint64_t) {
      const auto& barrier = *static_cast<const hsa::BarrierPacket*>(packet);
      --reinterpret_cast<hsa::SignalMemory*>(barrier.completion_signal.handle)->value;
    });
    passed = true;
  });
  while (made_up::value_of(signal) != 0) std::this_thread::yield();
  CHECK_FALSE(passed);
  queues.pass(record, nullptr);  // who closed it passes
  queues.open();
  other.join();
  CHECK(passed);
  delete reinterpret_cast<hsa::SignalMemory*>(signal.handle);
}
