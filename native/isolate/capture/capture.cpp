#include "capture/capture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "capture/chunk.h"
#include "capture/json_text.h"
#include "capture/region_file.h"
#include "capture/snapshot.h"
#include "code/kernel_metadata.h"

namespace rpl::isolate {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}
std::array<uint32_t, 3> triple(const auto& sizes) { return {sizes[0], sizes[1], sizes[2]}; }

std::string program_name() {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = readlink("/proc/self/exe", text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<size_t>(length)) : "";
}

// Everything about one capture; its methods are its steps, in order.
class Session {
 public:
  Session(Process& process, const Launch& launch)
      : process_(process),
        api_(process.api),
        settings_(process.settings),
        launch_(launch),
        agents_(describe_agents(process.api)),
        finished_(process.api, 1),
        timed_(process.api, 1) {}

  // The packet was submitted, so that its end has to be told.
  [[nodiscard]] bool submitted() const { return submitted_; }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] hsa::DispatchTime time() const { return time_; }
  [[nodiscard]] hsa::Signal timed() const { return timed_.get(); }

  // True when the capture is whole; else the status says why not.
  bool run();

 private:
  bool give_up(const std::string& state, const std::string& reason) {
    process_.status.set(state, reason);
    return false;
  }
  bool failed(const std::string& reason) { return give_up("failed", reason); }
  bool failed(const Snapshot& snapshot) {
    return snapshot.no_space() ? full(snapshot.error(), snapshot.needed()) : failed(snapshot.error());
  }
  // As errno says.
  bool failed_to_write(const std::string& name);
  bool full(const std::string& reason, uint64_t needed);
  bool drain();
  bool make_folder();
  bool write_arguments(Snapshot& snapshot);
  bool write_code();
  bool submit();
  void warn_of_left_out(const Snapshot& snapshot);
  bool write_documents(Snapshot& snapshot);
  bool put(const std::string& name, Bytes bytes);
  bool put(const std::string& name, const json& document) {
    const std::string text = text_of(document);
    return put(name, Bytes(reinterpret_cast<const std::byte*>(text.data()), text.size()));
  }
  [[nodiscard]] const AgentDescription& agent() const;
  [[nodiscard]] record::Dispatch dispatch_document() const;
  record::Regions regions_document(Snapshot& snapshot) const;
  record::Extras capture_document(Snapshot& snapshot) const;
  [[nodiscard]] record::Launch launch_part() const;
  [[nodiscard]] record::Runtime runtime_part() const;
  [[nodiscard]] record::Agent agent_part() const;
  record::Memory memory_part(Snapshot& snapshot) const;
  [[nodiscard]] record::Drain drain_part() const;

  Process& process_;
  const hsa::ApiTables& api_;
  const Settings& settings_;
  const Launch& launch_;
  std::vector<AgentDescription> agents_;
  TimedSignal finished_, timed_;
  bool submitted_ = false, ended_ = false;
  bool has_time_ = false;
  hsa::DispatchTime time_{};
  uint64_t own_queue_ns_ = 0;
  std::vector<Drained> drained_;
  std::vector<std::byte> arguments_;
  uint64_t copy_ns_ = 0;
  record::CodeObject code_part_{};
  record::Kernel kernel_part_{};
  std::map<std::string, record::HashedFile> files_;
  std::vector<std::string> warnings_;
};

bool Session::run() {
  if (!settings_.error.empty()) return failed(settings_.error);
  if (!launch_.kernel->code) return failed("the code object of the kernel was not seen when it was loaded");
  if (process_.memory.exhausted()) return failed("there was no memory to keep track of all allocations");
  if (settings_.compression == Compression::kZstd && !can_compress()) return failed("this build has no zstd");
  if (!drain() || !make_folder()) return false;
  Snapshot snapshot(api_, settings_, agents_, launch_.queue->agent);
  if (!snapshot.error().empty()) return failed(snapshot);
  snapshot.find_regions(process_.memory, process_.registry);
  if (!write_arguments(snapshot)) return false;
  const auto start = Clock::now();
  if (!snapshot.write_before(arguments_)) return failed(snapshot);
  copy_ns_ = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
  if (!write_code()) return false;
  if (!snapshot.look_for_host_writers()) return failed(snapshot);
  if (!submit()) return give_up("not_finished", "the launch did not end in time");
  if (!snapshot.write_after()) return failed(snapshot);
  return write_documents(snapshot);
}

bool Session::failed_to_write(const std::string& name) {
  const int why = errno;
  const std::string reason = settings_.output + "/" + name + " could not be written: " + std::strerror(why);
  return is_full(why) ? full(reason, 0) : failed(reason);
}

bool Session::full(const std::string& reason, uint64_t needed) {
  std::error_code error;
  const auto space = std::filesystem::space(settings_.output, error);
  process_.status.set_full(reason, needed, error ? 0 : space.available);
  return false;
}

bool Session::drain() {
  if (!process_.queues.drain_own(launch_.writer, settings_.drain_limit, own_queue_ns_)) {
    return give_up("not_drained", "work that was before the launch in its queue did not end in time");
  }
  process_.queues.close();
  drained_ = process_.queues.drain_others(*launch_.queue, settings_.drain_limit);
  for (const Drained& queue : drained_) {
    if (queue.drained) continue;
    if (queue.single_producer) {
      warnings_.push_back("queue " + std::to_string(queue.queue_id) +
                          " has one producer: whether its work had ended could not be asked");
      continue;
    }
    return give_up("not_drained", "work in queue " + std::to_string(queue.queue_id) + " did not end in time");
  }
  return true;
}

bool Session::make_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(settings_.output, error);
  if (!error && !fs::is_empty(settings_.output, error) && !error) {
    return failed(settings_.output + " is not empty");
  }
  for (const char* part : {kMemoryFolder, kVariablesFolder}) {
    if (!error) fs::create_directory(fs::path(settings_.output) / part, error);
  }
  if (!error && settings_.post == Post::kBytes)
    fs::create_directory(fs::path(settings_.output) / kAfterFolder, error);
  return !error || failed(settings_.output + ": " + error.message());
}

bool Session::put(const std::string& name, Bytes bytes) {
  files_[name] = {.size = bytes.size(), .xxh3 = hex16(xxh3(bytes))};
  return write_file(settings_.output + "/" + name, bytes) || failed_to_write(name);
}

bool Session::write_arguments(Snapshot& snapshot) {
  if (launch_.packet.kernarg_address == 0 || launch_.kernel->kernarg_size == 0)
    return put(kKernarg, Bytes{});
  if (!snapshot.read(launch_.packet.kernarg_address, launch_.kernel->kernarg_size, arguments_))
    return failed(snapshot);
  return put(kKernarg, Bytes(arguments_));
}

bool Session::write_code() {
  const CodeObject& code = *launch_.kernel->code;
  const MappedFile file = process_.registry.bytes_of(code);
  if (file.bytes().empty()) return failed("the code object of the kernel could not be read back");
  if (!put(kCodeObject, file.bytes())) return false;
  const auto elf = Elf::open(file.bytes());
  const std::string symbol = launch_.kernel->name + ".kd";
  const auto address = elf ? elf->address_of(symbol) : std::nullopt;
  code_part_ = {
      .size = code.size,
      .source = code.from_file ? "file" : "memory",
      .xxh3 = files_[kCodeObject].xxh3,
      .kernels = code.kernels,
      .load_base = address ? std::optional(launch_.packet.kernel_object - *address) : std::nullopt,
  };
  json metadata = metadata_of(elf ? elf->metadata() : Bytes{}, launch_.kernel->name);
  kernel_part_ = {.symbol = symbol, .arguments = metadata["arguments"], .metadata = metadata["metadata"]};
  return true;
}

bool Session::submit() {
  // The runtime writes times only for queues that are profiled.
  const auto profile = api_.original(hsa::amd::kSetProfilerEnabled);
  const bool was_profiled = launch_.queue->profiled;
  if (!was_profiled) profile(launch_.queue->queue, 1);
  hsa::DispatchPacket packet = launch_.packet;
  packet.completion_signal = timed_.give();
  // The barrier's release makes what the kernel wrote visible to copies, whatever the launch itself asks for.
  const hsa::BarrierPacket barrier = barrier_packet(finished_.give());
  launch_.writer(&packet, 1);
  submitted_ = true;
  launch_.writer(&barrier, 1);
  const auto deadline = Clock::now() + settings_.kernel_limit;
  ended_ = finished_.wait_until(deadline) && timed_.wait_until(deadline);
  if (!ended_) return false;
  const auto get = api_.original(hsa::amd::kGetDispatchTime);
  has_time_ = get(launch_.queue->agent, timed_.get(), &time_) == hsa::kSuccess && time_.end > time_.start;
  if (!was_profiled) profile(launch_.queue->queue, 0);
  return true;
}

void Session::warn_of_left_out(const Snapshot& snapshot) {
  constexpr size_t kMostNamed = 8;
  const auto& left = snapshot.left_out();
  for (size_t i = 0; i < std::min(left.size(), kMostNamed); ++i) {
    const Allocation& allocation = left[i].allocation;
    std::ostringstream text;
    text << allocation.size << " bytes of host memory at 0x" << std::hex << allocation.base
         << " are left out: they could not be read, the program gave them back while the GPU kept access;"
            " a launch that reaches them faults when it is replayed";
    warnings_.push_back(text.str());
  }
  if (left.size() > kMostNamed) {
    warnings_.push_back("so are " + std::to_string(left.size() - kMostNamed) +
                        " more ranges, which memory.left_out of capture.json names");
  }
}

bool Session::write_documents(Snapshot& snapshot) {
  if (!has_time_) warnings_.emplace_back("the runtime gave no times of the launch");
  warn_of_left_out(snapshot);
  return put(kDispatch, dispatch_document()) && put(kRegions, regions_document(snapshot)) &&
         put(kExtras, capture_document(snapshot)) &&
         (write_file(settings_.output + "/" + kSentinel,
                     text_of(record::Sentinel{.schema_version = kSchemaVersion, .files = files_})) ||
          failed_to_write(kSentinel));
}

const AgentDescription& Session::agent() const {
  for (const AgentDescription& agent : agents_) {
    if (agent.agent.handle == launch_.queue->agent.handle) return agent;
  }
  return agents_.front();
}

record::Dispatch Session::dispatch_document() const {
  const Kernel& kernel = *launch_.kernel;
  return {
      .mangled_name = kernel.name + ".kd",
      .demangled_name = kernel.readable,
      .agent_name = agent().name,
      .isa_name = agent().isa,
      .wavefront_size = agent().wavefront_size,
      .kernel_object = launch_.packet.kernel_object,
      .grid = triple(launch_.packet.grid),
      .block = triple(launch_.packet.workgroup),
      .group_segment_size = launch_.packet.group_segment_size,
      .private_segment_size = launch_.packet.private_segment_size,
      .kernarg_size = arguments_.size(),
      .dispatch_index = launch_.match_index,
  };
}

record::Regions Session::regions_document(Snapshot& snapshot) const {
  record::Regions document{};
  for (const CapturedRegion& region : snapshot.regions()) {
    if (!region.variable) document.regions.push_back(listed(region, launch_.packet.kernarg_address));
  }
  return document;
}

record::Launch Session::launch_part() const {
  const hsa::DispatchPacket& packet = launch_.packet;
  const Kernel& kernel = *launch_.kernel;
  const auto if_timed = [this](uint64_t time) { return has_time_ ? std::optional(time) : std::nullopt; };
  return {
      .header = packet.header,
      .setup = packet.setup,
      .kernarg_address = packet.kernarg_address,
      .completion_signal = packet.completion_signal.handle,
      .reserved2 = packet.reserved2,
      .queue_id = launch_.queue->id,
      .packet_index = launch_.packet_index,
      .batch_position = launch_.batch_position,
      .batch_size = launch_.batch_size,
      .match_index = launch_.match_index,
      .launch_index = launch_.launch_index,
      .group_segment = {.fixed = kernel.group_segment_size, .launched = packet.group_segment_size},
      .private_segment = {.fixed = kernel.private_segment_size, .launched = packet.private_segment_size},
      .start_ns = if_timed(time_.start),
      .end_ns = if_timed(time_.end),
      .duration_ns = if_timed(time_.end - time_.start),
  };
}

record::Runtime Session::runtime_part() const {
  const auto get = api_.original(hsa::core::kSystemGetInfo);
  uint16_t major = 0;
  uint16_t minor = 0;
  get(hsa::kSystemVersionMajor, &major);
  get(hsa::kSystemVersionMinor, &minor);
  const char* build = nullptr;
  if (get(hsa::kSystemBuildVersion, static_cast<void*>(&build)) != hsa::kSuccess) build = nullptr;
  const auto told = [](const hsa::TableVersion& version) {
    return std::array<uint32_t, 3>{version.major, version.minor, version.step};
  };
  return {
      .interface_version = std::to_string(major) + "." + std::to_string(minor),
      .build = build == nullptr ? std::nullopt : std::optional<std::string>(build),
      .library = unless_empty(library_of(reinterpret_cast<const void*>(get))),
      .core_table = told(api_.core_version()),
      .amd_table = told(api_.amd_version()),
      .low_addresses = settings_.low_addresses,
  };
}

record::Agent Session::agent_part() const {
  const AgentDescription& gpu = agent();
  return {
      .name = gpu.name,
      .product = unless_empty(gpu.product),
      .uuid = unless_empty(gpu.uuid),
      .node = gpu.node,
      .bdf = gpu.bdf,
      .isa = gpu.isa,
      .features = gpu.features(),
      .compute_units = gpu.compute_units,
      .number = gpu.number,
  };
}

record::Memory Session::memory_part(Snapshot& snapshot) const {
  record::Memory part{
      .mode = settings_.mode,
      .hash = settings_.hash,
      .compression = settings_.compression,
      .post = settings_.post,
      .chunk_bytes = kChunkBytes,
      .bytes = 0,
      .bytes_stored = 0,
      .copy_ns = copy_ns_,
      .left_out = {},
      .regions = {},
  };
  for (const CapturedRegion& region : snapshot.regions()) {
    if (region.variable) continue;
    part.bytes += region.allocation.size;
    part.bytes_stored += region.stored;
    part.regions.push_back(told_region(region, agents_));
  }
  for (const CapturedRegion& region : snapshot.left_out()) {
    part.left_out.push_back(told_region(region, agents_));
  }
  return part;
}

record::Drain Session::drain_part() const {
  record::Drain part{.own_queue_ns = own_queue_ns_, .other_queues = {}, .undrained = false};
  for (const Drained& other : drained_) {
    part.other_queues.push_back(
        {.queue_id = other.queue_id, .drained = other.drained, .ns = other.nanoseconds});
    part.undrained = part.undrained || !other.drained;
  }
  return part;
}

record::Extras Session::capture_document(Snapshot& snapshot) const {
  std::vector<record::ModuleVariable> variables;
  bool host_writers = false;
  for (const CapturedRegion& region : snapshot.regions()) {
    if (region.variable) variables.push_back(told_variable(region));
    host_writers = host_writers || region.written_by_host.value_or(false);
  }
  return {
      .schema_version = kSchemaVersion,
      .tool = {.name = "librpl_isolate", .version = RPL_VERSION},
      .process = {.pid = static_cast<uint32_t>(getpid()), .program = unless_empty(program_name())},
      .runtime = runtime_part(),
      .agent = agent_part(),
      .dispatch = launch_part(),
      .kernel = kernel_part_,
      .code_object = code_part_,
      .drain = drain_part(),
      .memory = memory_part(snapshot),
      .module_variables = variables,
      .host_writers = host_writers,
      .warnings = warnings_,
  };
}

// The program's own signal, as the packet processor would have told it.
void tell_end(const hsa::ApiTables& api, hsa::Signal signal, hsa::Signal timed) {
  if (signal.handle == 0) return;
  auto* const theirs = reinterpret_cast<hsa::SignalMemory*>(signal.handle);
  const auto* const ours = reinterpret_cast<const hsa::SignalMemory*>(timed.handle);
  theirs->start_ticks = ours->start_ticks;
  theirs->end_ticks = ours->end_ticks;
  api.original(hsa::core::kSignalSubtract)(signal, 1);
}

}  // namespace

std::string Process::spool_folder(const std::string& output) {
  return std::filesystem::path(output).parent_path().string();
}

void capture_launch(Process& process, const Launch& launch) {
  process.began = true;
  process.status.set("capturing");
  Session session(process, launch);
  bool whole = false;
  try {
    whole = session.run();
  } catch (const std::exception& error) {
    process.status.set("failed", error.what());
  }
  if (!session.submitted()) {
    launch.writer(&launch.packet, 1);
  } else if (session.ended()) {
    tell_end(process.api, launch.packet.completion_signal, session.timed());
  } else if (launch.packet.completion_signal.handle != 0) {
    // It may still end: the packet processor tells it then.
    const hsa::BarrierPacket barrier = barrier_packet(launch.packet.completion_signal);
    launch.writer(&barrier, 1);
  }
  process.queues.open();
  if (whole) process.status.set("captured");
}

}  // namespace rpl::isolate
