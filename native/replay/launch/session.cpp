#include "launch/session.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "capture/chunk.h"
#include "memory/steered_mapping.h"
#include "plan/failure.h"

namespace rpl::replay {
namespace {

bool contains(const Range& range, uint64_t address, uint64_t size) {
  return range.address <= address && address - range.address <= range.size &&
         size <= range.size - (address - range.address);
}

std::vector<char> bytes_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

bool over_software_kfd() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/libsoftkfd.so") != std::string::npos) return true;
  }
  return false;
}

Session::Session(Plan plan, Result& result, Deadline& deadline)
    : plan_(std::move(plan)), result_(result), deadline_(deadline) {}

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
  const bool captured = plan_.kernel.captured_code && (!plan_.other || plan_.other->captured_code);
  if (!plan_.reserve_only && result_.software_kfd && !captured && shadows != nullptr && *shadows != '\0') {
    throw Failure("undecidable", "the software KFD would run a function of the host in place of the code",
                  "kernels are known to it by their names there", "let the emulator run the code");
  }
}

void Session::load_code(const CodePlace& place, HeldPages& held) {
  deadline_.during("while the code was loaded");
  const Range pages = rounded(place.range);
  {
    held.release(pages);
    const SteeredMapping steered(pages);
    first_ = std::make_unique<LoadedCode>(*hsa_, gpus_->at(gpu_).agent, plan_.kernel.code_object);
  }
  if (place.kernel_object == 0 ||
      first_->packet_of(plan_.kernel, 0).kernel_object != place.kernel_object) {
    throw Failure("layout_clash", "captured pointers lead to " + place.pointers + ", and the code lies elsewhere",
                  "the runtime loads code where it likes, and the kernel may call what they lead to",
                  "replay it in the emulator: --device gfx942-emu", place.range.address);
  }
  code_in_place_ = place.range;
}

void Session::reserve(const std::vector<Pages>& pages, HeldPages& held) {
  deadline_.during("while addresses were reserved");
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

void Session::load(const Kernel& kernel, uint64_t kernarg) {
  Subject subject{std::move(first_), {}};
  if (!subject.code) {
    subject.code = std::make_unique<LoadedCode>(*hsa_, gpus_->at(gpu_).agent, kernel.code_object);
  }
  subject.packet = subject.code->packet_of(kernel, kernarg);
  subjects_.push_back(std::move(subject));
}

void Session::restore(const Subject& subject) {
  // Programs allocate less than the hidden arguments take: what lies behind is in no region.
  const Kernel& kernel = plan_.kernel;
  if (kernel.kernarg_address) {
    copier_->write({{*kernel.kernarg_address, kernel.kernarg_bytes}, kernel.kernarg_file, gpu_});
  }
  restorer_->restore();
  for (const Variable& variable : plan_.variables) {
    const uint64_t address = subject.code->address_of(variable);
    const Content content{{address, variable.size}, variable.file, gpu_};
    if (address != 0) copier_->write(content);
    if (variable.address && !in_code(*variable.address)) copier_->write(content, *variable.address);
  }
  for (const Content& edit : plan_.edits) copier_->write(edit);
}

uint64_t Session::launch(const Subject& subject) {
  if (result_.flushed_bytes > 0) copier_->flush(gpu_, result_.flushed_bytes);
  return launcher_->launch(subject.packet, plan_.time_limit_ns);
}

void Session::replay() {
  deadline_.during("while captured memory was put in its place");
  memory_->map();
  copier_ = std::make_unique<Copier>(*hsa_, *gpus_, events_);
  const uint64_t kernarg = place_kernarg();
  for (const Content& region : plan_.regions) copier_->write(region);
  restorer_ = std::make_unique<Restorer>(plan_, *copier_);
  deadline_.during("while the code was loaded");
  load(plan_.kernel, kernarg);
  if (plan_.other) load(*plan_.other, kernarg);
  launcher_ = std::make_unique<Launcher>(*hsa_, gpus_->at(gpu_).agent, events_);
  if (plan_.cold_caches) result_.flushed_bytes = gpus_->bytes_that_flush(gpu_);
  deadline_.during("while launches ran and memory was restored for them");
  launch_all();
  if (!restorer_->rest_is_untouched()) {
    restorer_->forget();
    deadline_.again();
    all_each_time_ = true;
    for (auto* times : {&result_.warm_up_ns, &result_.times_ns, &result_.other_times_ns}) times->clear();
    result_.restored_bytes.reset();
    result_.notes.emplace_back(
        "launches change different memory: for a second trial all was restored each time");
    launch_all();
  }
  deadline_.during("while it was looked at what launches left");
  if (!plan_.other) {
    look_at_memory();
    return;
  }
  // Once more, not timed: whether the kernels still compute what they did before.
  const std::array<const std::string*, 2> kept{&plan_.keep_file, &plan_.keep_other_file};
  const std::array<const std::string*, 2> variables{&plan_.variables_file, &plan_.variables_other_file};
  for (size_t i = 0; i < subjects_.size(); ++i) {
    restore(subjects_[i]);
    launch(subjects_[i]);
    keep_memory(*kept[i]);
    auto& changes = i == 0 ? result_.variables : result_.other_variables;
    changes = keep_variables(*subjects_[i].code, *variables[i]);
  }
}

void Session::launch_all() { plan_.other ? launch_pairs() : launch_alone(); }

void Session::launch_alone() {
  const Subject& subject = subjects_.front();
  const uint32_t launches = plan_.warm_ups + plan_.iterations;
  for (uint32_t i = 0; i < launches; ++i) {
    if (i == 0 || plan_.recopy) restore(subject);
    auto& times = i < plan_.warm_ups ? result_.warm_up_ns : result_.times_ns;
    times.push_back(launch(subject));
    // With fewer launches it would not earn what it costs to look at all memory twice.
    constexpr uint32_t kFewest = 4;
    if (i == 0 && plan_.recopy && launches >= kFewest) note_changes();
  }
}

void Session::launch_pairs() {
  for (uint32_t i = 0; i <= plan_.warm_ups; ++i) {
    for (const Subject& subject : subjects_) {
      restore(subject);
      result_.warm_up_ns.push_back(launch(subject));
      if (i == 0) note_changes();
    }
  }
  for (const bool other_first : plan_.other_first) {
    for (const bool other : {other_first, !other_first}) {
      const Subject& subject = subjects_[other ? 1 : 0];
      restore(subject);
      (other ? result_.other_times_ns : result_.times_ns).push_back(launch(subject));
    }
  }
}

void Session::note_changes() {
  if (!all_each_time_) result_.restored_bytes = restorer_->keep_to_what_changed();
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
  keep_memory(plan_.keep_file);
  result_.variables = keep_variables(*subjects_.front().code, plan_.variables_file);
}

void Session::keep_memory(const std::string& file) {
  std::ofstream kept(file, std::ios::binary);
  for (const Range& range : plan_.keep) {
    copier_->read(range, gpu_of(range), [&](auto bytes) {
      kept.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    });
  }
  if (!kept.flush()) throw Failure("internal", "memory that was asked for can't be written");
}

std::vector<VariableChange> Session::keep_variables(const LoadedCode& code, const std::string& file) {
  std::vector<VariableChange> changes;
  std::ofstream kept(file, std::ios::binary);
  for (const Variable& variable : plan_.variables) {
    std::vector<char> before = bytes_of(variable.file);
    before.resize(variable.size);
    const uint64_t address = code.address_of(variable);
    std::vector<char> own = address == 0 ? before : bytes_at(address, variable.size);
    // What was reached by a captured pointer lies at the old address.
    if (variable.address && !in_code(*variable.address)) {
      const std::vector<char> copy = bytes_at(*variable.address, variable.size);
      for (size_t i = 0; i < own.size(); ++i) own[i] = own[i] == before[i] ? copy[i] : own[i];
    }
    changes.push_back({variable.name, own != before, address == 0 ? std::nullopt : std::optional(address)});
    kept.write(own.data(), static_cast<std::streamsize>(own.size()));
  }
  if (!file.empty() && !kept.flush()) throw Failure("internal", "variables can't be written");
  return changes;
}

std::vector<char> Session::bytes_at(uint64_t address, uint64_t size) {
  std::vector<char> found;
  copier_->read({address, size}, gpu_, [&](std::span<const std::byte> bytes) {
    const auto* begin = reinterpret_cast<const char*>(bytes.data());
    found.insert(found.end(), begin, begin + bytes.size());
  });
  return found;
}

bool Session::in_code(uint64_t address) const {
  return code_in_place_ && contains(*code_in_place_, address, 1);
}

uint32_t Session::gpu_of(const Range& range) const {
  const auto holds = [&](const Content& one) { return contains(one.range, range.address, range.size); };
  const auto found = std::ranges::find_if(plan_.regions, holds);
  return found == plan_.regions.end() ? gpu_ : found->gpu;
}

Session::~Session() {
  launcher_.reset();
  subjects_.clear();
  first_.reset();
  restorer_.reset();
  if (kernarg_ != nullptr) hsa_->pool_free(kernarg_);
  copier_.reset();
  memory_.reset();
  gpus_.reset();
  if (started_) hsa_->shut_down();
}

}  // namespace rpl::replay
