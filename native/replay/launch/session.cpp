#include "launch/session.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "capture/chunk.h"
#include "memory/content_file.h"
#include "plan/failure.h"

namespace rpl::replay {
namespace {

// Preloaded where tests stand in for a GPU's driver.
bool over_software_kfd() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/libsoftkfd.so") != std::string::npos) return true;
  }
  return false;
}

bool contains(const Range& range, uint64_t address, uint64_t size) {
  return range.address <= address && address - range.address <= range.size &&
         size <= range.size - (address - range.address);
}

std::vector<char> bytes_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

Session::Session(Plan plan, Result& result) : plan_(std::move(plan)), result_(result) {}

void Session::start() {
  hsa_ = std::make_unique<HsaLibrary>();
  result_.software_kfd = over_software_kfd();
  refuse_what_shadows_would_run();
  const hsa::Status status = hsa_->init();
  if (status != hsa::kSuccess) {
    throw Failure("no_device", "the runtime does not start", hsa_->text_of(status),
                  "rpl doctor shows whether there is a GPU and whether you may use it");
  }
  started_ = true;
  events_.watch(*hsa_);
  gpus_ = std::make_unique<Gpus>(*hsa_);
  gpu_ = gpus_->choose(plan_);
  gpus_->describe(gpu_, result_);
  for (auto* contents : {&plan_.regions, &plan_.edits}) {
    for (Content& one : *contents) {
      if (one.gpu >= gpus_->size()) one.gpu = gpu_;
    }
  }
  constexpr uint32_t kVirtualMemorySupported = 0x205;  // HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED
  bool supported = true;
  if (hsa_->system_get_info(kVirtualMemorySupported, &supported) == hsa::kSuccess && !supported) {
    throw Failure("no_virtual_memory", "the driver can't place memory at given addresses",
                  "its interface is older than 1.15", "use a driver of ROCm 6.0 or later");
  }
}

void Session::refuse_what_shadows_would_run() const {
  const char* shadows = std::getenv("SOFTKFD_SHADOWS");
  if (!plan_.reserve_only && result_.software_kfd && !plan_.kernel.captured_code && shadows != nullptr &&
      *shadows != '\0') {
    throw Failure("undecidable", "the software KFD would run a function of the host in place of the code",
                  "kernels are known to it by their names there", "let the emulator run the code");
  }
}

void Session::reserve(const std::vector<Pages>& pages, HeldPages& held) {
  start();
  std::vector<Pages> there = pages;
  for (Pages& one : there) {
    if (one.gpu >= gpus_->size()) one.gpu = gpu_;
  }
  memory_ = std::make_unique<PlacedMemory>(*hsa_, *gpus_);
  memory_->reserve(there, held, result_, plan_.reserve_only);
}

uint64_t Session::place_kernarg() {
  if (const auto address = plan_.kernel.kernarg_address) return *address;
  const std::vector<char> bytes = bytes_of(plan_.kernel.kernarg_file);
  result_.notes.emplace_back("the arguments lie elsewhere than in the captured process");
  const size_t size = std::max<size_t>(bytes.size(), 1);
  hsa_->require(hsa_->pool_allocate(gpus_->host_pool(), size, 0, &kernarg_), "map_failed",
                "there is no memory for the arguments");
  const hsa::Agent agent = gpus_->at(gpu_).agent;
  hsa_->require(hsa_->allow_access(1, &agent, nullptr, kernarg_), "map_failed",
                "the GPU gets no access to the arguments");
  std::memcpy(kernarg_, bytes.data(), bytes.size());
  return reinterpret_cast<uint64_t>(kernarg_);
}

void Session::restore() {
  // Programs allocate less than the hidden arguments take: what lies behind is in no region.
  const Kernel& kernel = plan_.kernel;
  if (kernel.kernarg_address) {
    copier_->write({{*kernel.kernarg_address, kernel.kernarg_bytes}, kernel.kernarg_file, gpu_});
  }
  for (const Content& region : plan_.regions) copier_->write(region);
  for (const Variable& variable : plan_.variables) {
    const uint64_t address = code_->address_of(variable);
    const Content content{{address, variable.size}, variable.file, gpu_};
    if (address != 0) copier_->write(content);
    if (variable.address) copier_->write(content, *variable.address);
  }
  for (const Content& edit : plan_.edits) copier_->write(edit);
}

void Session::replay() {
  memory_->map();
  copier_ = std::make_unique<Copier>(*hsa_, *gpus_, events_);
  const uint64_t kernarg = place_kernarg();
  for (const Content& region : plan_.regions) copier_->write(region);
  code_ = std::make_unique<LoadedCode>(*hsa_, gpus_->at(gpu_).agent, plan_.kernel.code_object);
  const hsa::DispatchPacket packet = code_->packet_of(plan_.kernel, kernarg);
  launcher_ = std::make_unique<Launcher>(*hsa_, gpus_->at(gpu_).agent, events_);
  const uint32_t launches = plan_.warm_ups + plan_.iterations;
  for (uint32_t i = 0; i < launches; ++i) {
    if (i == 0 || plan_.recopy) restore();
    auto& times = i < plan_.warm_ups ? result_.warm_up_ns : result_.times_ns;
    times.push_back(launcher_->launch(packet, plan_.time_limit_ns));
  }
  look_at_memory();
}

void Session::look_at_memory() {
  if (!plan_.hash_folder.empty()) {
    for (const Content& region : plan_.regions) {
      isolate::ChunkHasher hasher;
      copier_->read(region.range, region.gpu, [&](auto bytes) { hasher.add(bytes); });
      std::ofstream stream(plan_.hash_folder + "/" + std::to_string(region.range.address), std::ios::binary);
      const auto& hashes = hasher.hashes();
      stream.write(reinterpret_cast<const char*>(hashes.data()),
                   static_cast<std::streamsize>(hashes.size() * sizeof(uint64_t)));
      if (!stream.flush()) throw Failure("internal", "hashes can't be written");
    }
  }
  std::ofstream kept(plan_.keep_file, std::ios::binary);
  for (const Range& range : plan_.keep) {
    copier_->read(range, gpu_of(range), [&](auto bytes) {
      kept.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    });
  }
  if (!kept.flush()) throw Failure("internal", "memory that was asked for can't be written");
  for (const Variable& variable : plan_.variables) {
    const uint64_t address = code_->address_of(variable);
    const bool own = address != 0 && differs(variable, address);
    result_.variables.push_back(
        {variable.name, own || (variable.address && differs(variable, *variable.address))});
  }
}

bool Session::differs(const Variable& variable, uint64_t address) {
  ContentFile before(variable.file);
  std::vector<std::byte> chunk(isolate::kChunkBytes);
  uint64_t offset = 0;
  bool found = false;
  copier_->read({address, variable.size}, gpu_, [&](std::span<const std::byte> bytes) {
    const std::span<std::byte> expected(chunk.data(), bytes.size());
    if (!before.read(offset, expected)) std::ranges::fill(expected, std::byte{0});
    found = found || !std::ranges::equal(expected, bytes);
    offset += bytes.size();
  });
  return found;
}

uint32_t Session::gpu_of(const Range& range) const {
  const auto holds = [&](const Content& one) { return contains(one.range, range.address, range.size); };
  const auto found = std::ranges::find_if(plan_.regions, holds);
  return found == plan_.regions.end() ? gpu_ : found->gpu;
}

Session::~Session() {
  launcher_.reset();
  code_.reset();
  if (kernarg_ != nullptr) hsa_->pool_free(kernarg_);
  copier_.reset();
  memory_.reset();
  gpus_.reset();
  if (started_) hsa_->shut_down();
}

}  // namespace rpl::replay
