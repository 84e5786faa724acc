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

constexpr const char* kSchemaVersion = "1.0";

json or_null(const std::string& text) { return text.empty() ? json() : json(text); }
json triple(const auto& sizes) { return {sizes[0], sizes[1], sizes[2]}; }

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
  [[nodiscard]] json dispatch_document() const;
  json regions_document(Snapshot& snapshot) const;
  json capture_document(Snapshot& snapshot) const;
  [[nodiscard]] json launch_part() const;
  [[nodiscard]] json runtime_part() const;
  [[nodiscard]] json agent_part() const;
  json memory_part(Snapshot& snapshot) const;
  [[nodiscard]] json drain_part() const;

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
  json code_part_, kernel_part_, files_ = json::object();
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
  for (const Drained& one : drained_) {
    if (one.drained) continue;
    if (one.single_producer) {
      warnings_.push_back("queue " + std::to_string(one.queue_id) +
                          " has one producer: whether its work had ended could not be asked");
      continue;
    }
    return give_up("not_drained", "work in queue " + std::to_string(one.queue_id) + " did not end in time");
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
  for (const char* part : {"memory", "module_variables"}) {
    if (!error) fs::create_directory(fs::path(settings_.output) / part, error);
  }
  if (!error && settings_.post == Post::kBytes)
    fs::create_directory(settings_.output + "/memory_after", error);
  return !error || failed(settings_.output + ": " + error.message());
}

bool Session::put(const std::string& name, Bytes bytes) {
  files_[name] = {{"size", bytes.size()}, {"xxh3", hex16(xxh3(bytes))}};
  return write_file(settings_.output + "/" + name, bytes) || failed_to_write(name);
}

bool Session::write_arguments(Snapshot& snapshot) {
  if (launch_.packet.kernarg_address == 0 || launch_.kernel->kernarg_size == 0)
    return put("kernarg.bin", Bytes{});
  if (!snapshot.read(launch_.packet.kernarg_address, launch_.kernel->kernarg_size, arguments_))
    return failed(snapshot);
  return put("kernarg.bin", Bytes(arguments_));
}

bool Session::write_code() {
  const CodeObject& code = *launch_.kernel->code;
  const MappedFile file = process_.registry.bytes_of(code);
  if (file.bytes().empty()) return failed("the code object of the kernel could not be read back");
  if (!put("kernel.hsaco", file.bytes())) return false;
  code_part_ = {{"size", code.size},
                {"source", code.from_file ? "file" : "memory"},
                {"xxh3", files_["kernel.hsaco"]["xxh3"]},
                {"kernels", code.kernels},
                {"load_base", nullptr}};
  const auto elf = Elf::open(file.bytes());
  kernel_part_ = metadata_of(elf ? elf->metadata() : Bytes{}, launch_.kernel->name);
  const std::string symbol = launch_.kernel->name + ".kd";
  kernel_part_["symbol"] = symbol;
  if (const auto address = elf ? elf->address_of(symbol) : std::nullopt) {
    code_part_["load_base"] = launch_.packet.kernel_object - *address;
  }
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
    const Allocation& one = left[i].allocation;
    std::ostringstream text;
    text << one.size << " bytes of host memory at 0x" << std::hex << one.base
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
  return put("dispatch.json", dispatch_document()) &&
         put("memory_regions.json", regions_document(snapshot)) &&
         put("capture.json", capture_document(snapshot)) &&
         (write_file(settings_.output + "/rpl_capture_complete",
                     text_of({{"schema_version", kSchemaVersion}, {"files", files_}})) ||
          failed_to_write("rpl_capture_complete"));
}

const AgentDescription& Session::agent() const {
  for (const AgentDescription& one : agents_) {
    if (one.agent.handle == launch_.queue->agent.handle) return one;
  }
  return agents_.front();
}

json Session::dispatch_document() const {
  const Kernel& kernel = *launch_.kernel;
  return {{"mangled_name", kernel.name + ".kd"},
          {"demangled_name", kernel.readable},
          {"agent_name", agent().name},
          {"isa_name", agent().isa},
          {"wavefront_size", agent().wavefront_size},
          {"kernel_object", launch_.packet.kernel_object},
          {"grid", triple(launch_.packet.grid)},
          {"block", triple(launch_.packet.workgroup)},
          {"group_segment_size", launch_.packet.group_segment_size},
          {"private_segment_size", launch_.packet.private_segment_size},
          {"kernarg_size", arguments_.size()},
          {"dispatch_index", launch_.match_index}};
}

json Session::regions_document(Snapshot& snapshot) const {
  json regions = json::array();
  for (const CapturedRegion& one : snapshot.regions()) {
    if (!one.variable) regions.push_back(listed(one, launch_.packet.kernarg_address));
  }
  return {{"regions", regions}};
}

json Session::launch_part() const {
  const hsa::DispatchPacket& packet = launch_.packet;
  const Kernel& kernel = *launch_.kernel;
  return {{"header", packet.header},
          {"setup", packet.setup},
          {"kernarg_address", packet.kernarg_address},
          {"completion_signal", packet.completion_signal.handle},
          {"reserved2", packet.reserved2},
          {"queue_id", launch_.queue->id},
          {"packet_index", launch_.packet_index},
          {"batch_position", launch_.batch_position},
          {"batch_size", launch_.batch_size},
          {"match_index", launch_.match_index},
          {"launch_index", launch_.launch_index},
          {"group_segment", {{"fixed", kernel.group_segment_size}, {"launched", packet.group_segment_size}}},
          {"private_segment",
           {{"fixed", kernel.private_segment_size}, {"launched", packet.private_segment_size}}},
          {"start_ns", has_time_ ? json(time_.start) : json()},
          {"end_ns", has_time_ ? json(time_.end) : json()},
          {"duration_ns", has_time_ ? json(time_.end - time_.start) : json()}};
}

json Session::runtime_part() const {
  const auto get = api_.original(hsa::core::kSystemGetInfo);
  uint16_t major = 0;
  uint16_t minor = 0;
  get(hsa::kSystemVersionMajor, &major);
  get(hsa::kSystemVersionMinor, &minor);
  const char* build = nullptr;
  if (get(hsa::kSystemBuildVersion, static_cast<void*>(&build)) != hsa::kSuccess) build = nullptr;
  const auto told = [](const hsa::TableVersion& version) {
    return json::array({version.major, version.minor, version.step});
  };
  return {{"interface_version", std::to_string(major) + "." + std::to_string(minor)},
          {"build", build == nullptr ? json() : json(build)},
          {"library", or_null(library_of(reinterpret_cast<const void*>(get)))},
          {"core_table", told(api_.core_version())},
          {"amd_table", told(api_.amd_version())},
          {"low_addresses", settings_.low_addresses}};
}

json Session::agent_part() const {
  const AgentDescription& one = agent();
  return {{"name", one.name},
          {"product", or_null(one.product)},
          {"uuid", or_null(one.uuid)},
          {"node", one.node},
          {"bdf", one.bdf},
          {"isa", one.isa},
          {"features", one.features()},
          {"compute_units", one.compute_units},
          {"number", one.number}};
}

json Session::memory_part(Snapshot& snapshot) const {
  json regions = json::array();
  uint64_t bytes = 0;
  uint64_t stored = 0;
  for (const CapturedRegion& one : snapshot.regions()) {
    if (one.variable) continue;
    bytes += one.allocation.size;
    stored += one.stored;
    regions.push_back(told(one, agents_));
  }
  json left_out = json::array();
  for (const CapturedRegion& one : snapshot.left_out()) left_out.push_back(told(one, agents_));
  constexpr std::array kPosts = {"hashes", "bytes", "none"};
  return {{"mode", settings_.regions == Regions::kFull ? "full" : "referenced"},
          {"hash", settings_.hash == Hash::kXxh3 ? "xxh3" : "none"},
          {"compression", settings_.compression == Compression::kZstd ? "zstd" : "none"},
          {"post", kPosts.at(static_cast<size_t>(settings_.post))},
          {"chunk_bytes", kChunkBytes},
          {"bytes", bytes},
          {"bytes_stored", stored},
          {"copy_ns", copy_ns_},
          {"left_out", left_out},
          {"regions", regions}};
}

json Session::drain_part() const {
  json others = json::array();
  bool undrained = false;
  for (const Drained& one : drained_) {
    others.push_back({{"queue_id", one.queue_id}, {"drained", one.drained}, {"ns", one.nanoseconds}});
    undrained = undrained || !one.drained;
  }
  return {{"own_queue_ns", own_queue_ns_}, {"other_queues", others}, {"undrained", undrained}};
}

json Session::capture_document(Snapshot& snapshot) const {
  json variables = json::array();
  bool host_writers = false;
  for (const CapturedRegion& one : snapshot.regions()) {
    if (one.variable) variables.push_back(told(one, agents_));
    host_writers = host_writers || one.written_by_host.value_or(false);
  }
  return {{"schema_version", kSchemaVersion},
          {"tool", {{"name", "librpl_isolate"}, {"version", RPL_VERSION}}},
          {"process", {{"pid", getpid()}, {"program", or_null(program_name())}}},
          {"runtime", runtime_part()},
          {"agent", agent_part()},
          {"dispatch", launch_part()},
          {"kernel", kernel_part_},
          {"code_object", code_part_},
          {"drain", drain_part()},
          {"memory", memory_part(snapshot)},
          {"module_variables", variables},
          {"host_writers", host_writers},
          {"warnings", warnings_}};
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
