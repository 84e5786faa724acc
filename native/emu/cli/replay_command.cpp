// `rpl-emu replay PLAN`: one captured launch again, alone, at its own addresses.
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/lane_library.h"
#include "cli/launch_report.h"
#include "machine/access_log.h"
#include "replay/captured_memory.h"
#include "replay/plan.h"

namespace rpl_emu {
namespace {

using Bytes = std::vector<unsigned char>;

// FOLDER/NAME.ranges holds pairs of address and size, 8 bytes each; FOLDER/NAME.bytes what is there.
std::vector<AddressRange> read_ranges(const std::string& path) {
  const Bytes raw = read_file(path);
  std::vector<AddressRange> out(raw.size() / sizeof(AddressRange));
  std::memcpy(out.data(), raw.data(), out.size() * sizeof(AddressRange));
  return out;
}

std::vector<Edit> edits_of(const std::vector<AddressRange>& ranges, const Bytes& bytes) {
  std::vector<Edit> out;
  uint64_t at = 0;
  for (const AddressRange& range : ranges) {
    if (range.bytes > bytes.size() - at) throw BadFile("edits with fewer bytes than their ranges say");
    out.push_back({range, bytes.data() + at});
    at += range.bytes;
  }
  return out;
}

void write_file(const std::string& path, const void* bytes, size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void write_ranges(const std::string& path, const std::vector<AddressRange>& ranges) {
  write_file(path, ranges.data(), ranges.size() * sizeof(AddressRange));
}

void write_written(const std::string& folder, const std::vector<AddressRange>& ranges) {
  write_ranges(folder + "/written.ranges", ranges);
  std::ofstream file(folder + "/written.bytes", std::ios::binary);
  for (const AddressRange& range : ranges)
    file.write(reinterpret_cast<const char*>(range.begin), static_cast<std::streamsize>(range.bytes));
  if (!file.flush()) throw std::runtime_error("cannot write " + folder + "/written.bytes");
}

struct PlacedVariable {
  std::string name;
  AddressRange range;
  Bytes bytes;
};

// Variables of the module, by name, where this code object has them.
std::vector<PlacedVariable> place_variables(const ReplayPlan& plan, const LoadedObject& loaded) {
  std::vector<PlacedVariable> out;
  for (const PlannedVariable& v : plan.variables) {
    const auto& known = loaded.object().variables;
    const auto found = std::ranges::find(known, v.name, &Function::name);
    if (found == known.end() || found->bytes < v.bytes) continue;
    out.push_back({v.name, {loaded.base() + found->begin, v.bytes}, read_file(v.file)});
    if (out.back().bytes.size() != v.bytes) throw BadFile(v.file + " is not a file of " + std::to_string(v.bytes) + " bytes");
  }
  return out;
}

// The runtime's own places, which are of another process.
bool is_stale(const std::string& kind) {
  static constexpr const char* kKinds[] = {"hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_multigrid_sync_arg", "hidden_heap_v1",
                                           "hidden_default_queue", "hidden_completion_action", "hidden_queue_ptr"};
  return std::ranges::find(kKinds, kind) != std::end(kKinds);
}

std::vector<std::string> stale_arguments(const Kernel& kernel, Bytes& kernarg, bool zero) {
  std::vector<std::string> out;
  for (const Argument& a : kernel.arguments) {
    if (!is_stale(a.kind) || a.size > 8 || a.offset > kernarg.size() || kernarg.size() - a.offset < a.size) continue;
    const auto first = kernarg.begin() + static_cast<std::ptrdiff_t>(a.offset);
    const auto last = first + static_cast<std::ptrdiff_t>(a.size);
    if (std::all_of(first, last, [](unsigned char b) { return b == 0; })) continue;
    out.push_back(a.kind);
    if (zero) std::fill(first, last, static_cast<unsigned char>(0));
  }
  return out;
}

const Kernel& kernel_of(const CodeObject& object, std::string name) {
  if (name.ends_with(".kd")) name.resize(name.size() - 3);
  const auto found = object.kernels.find(name);
  if (found == object.kernels.end()) throw BadFile("the code object has no kernel " + name);
  return found->second;
}

// What is dynamic in the captured launch comes on top of what this kernel asks for itself.
LaunchSizes sizes_of(const ReplayPlan& plan, const Kernel& captured) {
  LaunchSizes sizes;
  sizes.grid = plan.grid;
  sizes.block = plan.block;
  const uint64_t items = uint64_t{plan.block[0]} * plan.block[1] * plan.block[2];
  if (items == 0 || items > 1024 || std::ranges::count(plan.grid, 0U) != 0) throw BadFile("a launch of impossible size");
  sizes.dynamic_lds = plan.lds - std::min(plan.lds, captured.descriptor.group_bytes);
  sizes.stack = plan.scratch - std::min(plan.scratch, captured.descriptor.private_bytes);
  return sizes;
}

struct Settings {
  std::string out, llvm, cpu;
  uint64_t iterations = 1;
  bool recopy = true, sanitize = false, patch = false;
  Limits limits;
  std::vector<AddressRange> edit_ranges;
  Bytes edit_bytes;
};

Rounding rounding_of(const std::string& name) {
  static constexpr const char* kNames[] = {"nearest", "up", "down", "zero", "drawn"};
  const auto* const found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) throw UsageError("--rounding takes nearest, up, down, zero or drawn");
  return static_cast<Rounding>(found - std::begin(kNames));
}

Settings settings_of(const Options& options) {
  Settings s;
  s.out = options.one("--out", "");
  s.llvm = options.one("--llvm", "");
  s.cpu = options.one("--cpu", "");
  s.iterations = std::max(1ULL, parse_number(options.one("--iterations", "1"), "--iterations"));
  s.recopy = !options.flag("--no-recopy");
  s.sanitize = options.flag("--sanitize");
  s.patch = options.flag("--patch-hidden-args");
  s.limits.instructions = parse_number(options.one("--max-instructions", "0"), "--max-instructions");
  s.limits.seconds = std::strtod(options.one("--timeout", "0").c_str(), nullptr);
  s.limits.seed = parse_number(options.one("--seed", "1"), "--seed");
  s.limits.rounding = rounding_of(options.one("--rounding", "nearest"));
  s.limits.round_halves = !options.flag("--keep-halves");
  s.limits.order = parse_number(options.one("--order", "0"), "--order");
  if (const std::string edits = options.one("--edits", ""); !edits.empty()) {
    s.edit_ranges = read_ranges(edits + ".ranges");
    s.edit_bytes = read_file(edits + ".bytes");
  }
  return s;
}

// A code object to be launched, and the bytes of the captured one's file that it may be.
struct Objects {
  Bytes captured_file, file;
  CodeObject captured, object;

  Objects(const std::string& captured_path, const std::string& path)
      : captured_file(read_file(captured_path)), file(path.empty() ? captured_file : read_file(path)), captured(read_code_object(captured_file)), object(read_code_object(file)) {}
};

class Replay {
 public:
  Replay(const ReplayPlan& plan, const Settings& settings, CapturedMemory& captured, const std::string& other_code)
      : settings_(settings), captured_(captured), objects_(plan.code, other_code), kernel_(kernel_of(objects_.object, plan.kernel)), lanes_(load_lanes(settings.cpu)), table_(lanes_.lists), disassembler_(settings.llvm),
        loaded_(prepared(), memory_, plan.code_at), program_(loaded_.decode(kernel_, Decoder(disassembler_, table_))), variables_(place_variables(plan, loaded_)), original_(loaded_.bytes().begin(), loaded_.bytes().end()),
        kernarg_(read_file(plan.kernarg)), sizes_(sizes_of(plan, kernel_of(objects_.captured, plan.kernel))), edits_(edits_of(settings.edit_ranges, settings.edit_bytes)) {
    if (plan.pinned && loaded_.base() != plan.code_at) throw LayoutClash("captured pointers lead to the code, which can't be where it was");
    if (kernarg_.size() < kernel_.kernarg_bytes) throw BadFile("the kernel takes " + std::to_string(kernel_.kernarg_bytes) + " bytes of arguments, the capture has " + std::to_string(kernarg_.size()));
    stale_ = stale_arguments(kernel_, kernarg_, settings.patch);
    place_arguments(plan);
    if (settings.out.empty()) return;
    for (const PlannedRegion& r : plan.regions) log_.watch({r.base, r.bytes});
    log_.watch({loaded_.base(), loaded_.object().end});
  }

  int run() {
    Findings findings;
    LaunchResult result;
    uint64_t done = 0;
    double seconds = 0;
    for (; done < settings_.iterations && result.outcome == Outcome::ended; ++done) {
      if (done == 0 || settings_.recopy) prepare();
      Limits limits = settings_.limits;
      if (limits.seconds > 0) limits.seconds = std::max(1e-3, limits.seconds - seconds);
      result = launch(loaded_, kernel_, program_, lanes_.lists, sizes_, kernarg_, memory_, limits, settings_.sanitize ? &findings : nullptr, settings_.out.empty() ? nullptr : &log_);
      seconds += result.seconds;
    }
    describe_stop(result, program_, loaded_);
    const std::vector<Finding> found = findings.all();
    describe_findings(found, program_, loaded_);
    if (!settings_.out.empty()) {
      write_written(settings_.out, log_.written());
      write_ranges(settings_.out + "/read_first.ranges", log_.read_first());
    }
    report(result, found, done, seconds);
    return status_of(result, found);
  }

 private:
  const Settings& settings_;
  CapturedMemory& captured_;
  Objects objects_;
  const Kernel& kernel_;
  LaneLibrary lanes_;
  OpcodeTable table_;
  Disassembler disassembler_;
  GuestMemory memory_;
  LoadedObject loaded_;
  Program program_;
  std::vector<PlacedVariable> variables_;
  Bytes original_;  // of the loaded code object, before the first launch
  Bytes kernarg_;
  LaunchSizes sizes_;
  std::vector<Edit> edits_;
  std::vector<std::string> stale_;
  AccessLog log_;

  const CodeObject& prepared() {
    captured_.add_to(memory_);
    return objects_.object;
  }
  void place_arguments(const ReplayPlan& plan) {
    sizes_.kernarg_at = plan.kernarg_at;
    if (sizes_.kernarg_at == 0 || !captured_.holds({sizes_.kernarg_at, kernarg_.size()}))
      sizes_.kernarg_at = reinterpret_cast<uint64_t>(memory_.allocate(kernarg_.size(), true, plan.kernarg_at));
  }
  void prepare() {
    captured_.restore();
    captured_.apply(edits_);
    std::memcpy(reinterpret_cast<void*>(loaded_.base()), original_.data(), original_.size());
    for (const PlacedVariable& v : variables_) std::memcpy(reinterpret_cast<void*>(v.range.begin), v.bytes.data(), v.bytes.size());
    log_.clear();
  }
  void report(const LaunchResult& result, const std::vector<Finding>& found, uint64_t done, double seconds) const {
    Json json;
    json.open('{').key("kernel").string(kernel_.name).key("device").string("gfx942-emu").key("origin").string("modelled");
    json.key("outcome").string(name_of(result.outcome)).key("iterations").number(done).key("workgroups").number(result.groups).key("waves").number(result.waves);
    json.key("seconds").real(seconds).key("cpu").string(lanes_.name).key("disassembler").string(disassembler_.version());
    json.key("code_at").hex(loaded_.base());
    json.key("kernarg_at").hex(sizes_.kernarg_at);
    json.key("stale_arguments").open('[');
    for (const std::string& kind : stale_) json.string(kind);
    json.close(']').key("variables").open('[');
    for (const PlacedVariable& v : variables_) json.open('{').key("name").string(v.name).key("address").number(v.range.begin).key("size").number(v.range.bytes).close('}');
    json.close(']').key("rounded").boolean(result.rounded);
    write_counts(json, program_, loaded_.base(), result, false);
    write_findings(json, found, program_, loaded_);
    json.close('}');
    std::puts(json.text().c_str());
  }
};

}  // namespace

int replay_command(int count, char** words) {
  const Options options(count, words, {"--hsaco", "--out", "--edits", "--iterations", "--max-instructions", "--timeout", "--seed", "--order", "--rounding", "--llvm", "--cpu", "--memory-limit"},
                        {"--no-recopy", "--sanitize", "--patch-hidden-args", "--keep-halves", "--json"});
  if (options.plain().size() != 1) throw UsageError("usage: rpl-emu replay PLAN [--hsaco FILE] [--out FOLDER] ...");
  if (const std::string most = options.one("--memory-limit", ""); !most.empty()) {
    const rlimit limit{parse_number(most, "--memory-limit"), parse_number(most, "--memory-limit")};
    setrlimit(RLIMIT_AS, &limit);
  }
  const ReplayPlan plan = read_plan(options.plain()[0]);
  CapturedMemory captured(plan.regions);  // before libraries are loaded that could take its places
  const Settings settings = settings_of(options);
  return Replay(plan, settings, captured, options.one("--hsaco", "")).run();
}

}  // namespace rpl_emu
