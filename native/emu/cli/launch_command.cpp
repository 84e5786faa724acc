#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/lane_library.h"
#include "cli/launch_report.h"

namespace rpl_emu {
namespace {

// --arg TYPE:VALUE. Buffers: zeros:BYTES, file:PATH, either with ",out=PATH".
struct Buffer {
  uint8_t* place;
  uint64_t bytes;
  std::string out;
};

template <class T>
std::vector<uint8_t> bytes_of(T value) {
  std::vector<uint8_t> out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

class Arguments {
 public:
  Arguments(const Kernel& kernel, GuestMemory& memory) : kernel_(kernel), memory_(memory) {}

  std::vector<uint8_t> pack(const std::vector<std::string>& given) {
    std::vector<const Argument*> wanted;
    for (const Argument& a : kernel_.arguments) if (!a.kind.starts_with("hidden_")) wanted.push_back(&a);
    if (wanted.size() != given.size())
      throw UsageError("kernel " + kernel_.name + " takes " + std::to_string(wanted.size()) + " arguments, " + std::to_string(given.size()) + " were given");
    std::vector<uint8_t> kernarg(kernel_.kernarg_bytes + 16);
    for (size_t k = 0; k < given.size(); ++k) {
      const std::vector<uint8_t> value = parse(given[k], *wanted[k]);
      const Argument& a = *wanted[k];
      if (value.size() != a.size)
        throw UsageError("argument " + std::to_string(k + 1) + " (" + a.name + ") has " + std::to_string(a.size) + " bytes, --arg " + given[k] + " gives " + std::to_string(value.size()));
      if (a.offset > kernarg.size() || kernarg.size() - a.offset < value.size()) throw BadFile("an argument outside of the kernel's arguments");
      std::memcpy(&kernarg[a.offset], value.data(), value.size());
    }
    return kernarg;
  }
  void write_outputs() const {
    for (const Buffer& b : buffers_) {
      if (b.out.empty()) continue;
      std::ofstream file(b.out, std::ios::binary);
      file.write(reinterpret_cast<const char*>(b.place), static_cast<std::streamsize>(b.bytes));
      if (!file.flush()) throw std::runtime_error("cannot write " + b.out);
    }
  }

 private:
  const Kernel& kernel_;
  GuestMemory& memory_;
  std::vector<Buffer> buffers_;

  std::vector<uint8_t> parse(const std::string& text, const Argument& argument) {
    const size_t colon = text.find(':');
    if (colon == std::string::npos) throw UsageError("--arg " + text + " has no type. Next: for example i32:5, f32:1.5, zeros:4096, file:data.bin,out=result.bin");
    const std::string type = text.substr(0, colon);
    const std::string value = text.substr(colon + 1);
    if (type == "zeros" || type == "file") return buffer(type, value);
    if (type == "raw") {
      const auto raw = read_file(value);
      return {raw.begin(), raw.end()};
    }
    (void)argument;
    char* end = nullptr;
    std::vector<uint8_t> out;
    if (type == "f32") out = bytes_of(std::strtof(value.c_str(), &end));
    else if (type == "f64") out = bytes_of(std::strtod(value.c_str(), &end));
    else if (type == "i64") out = bytes_of(static_cast<int64_t>(std::strtoll(value.c_str(), &end, 0)));
    else if (type == "u64" || type == "ptr") out = bytes_of(static_cast<uint64_t>(std::strtoull(value.c_str(), &end, 0)));
    else if (type == "i32" || type == "u32") out = bytes_of(static_cast<uint32_t>(std::strtoll(value.c_str(), &end, 0)));
    else if (type == "i16" || type == "u16") out = bytes_of(static_cast<uint16_t>(std::strtoll(value.c_str(), &end, 0)));
    else if (type == "i8" || type == "u8") out = bytes_of(static_cast<uint8_t>(std::strtoll(value.c_str(), &end, 0)));
    else throw UsageError("--arg " + text + ": unknown type " + type);
    if (value.empty() || *end != 0) throw UsageError("--arg " + text + ": no value of type " + type);
    return out;
  }
  std::vector<uint8_t> buffer(const std::string& type, std::string value) {
    Buffer b{};
    const size_t out = value.find(",out=");
    if (out != std::string::npos) {
      b.out = value.substr(out + 5);
      value.resize(out);
    }
    if (type == "zeros") {
      b.bytes = parse_number(value, "the size of a buffer");
      b.place = memory_.allocate(b.bytes);
    } else {
      const auto content = read_file(value);
      b.bytes = content.size();
      b.place = memory_.allocate(b.bytes);
      if (!content.empty()) std::memcpy(b.place, content.data(), content.size());
    }
    buffers_.push_back(b);
    return bytes_of(reinterpret_cast<uint64_t>(b.place));
  }
};

}  // namespace

int launch_command(int count, char** words) {
  const Options options(count, words, {"--kernel", "--grid", "--block", "--arg", "--lds", "--stack", "--threads", "--max-instructions", "--timeout", "--seed", "--llvm", "--cpu", "--memory-limit"},
                        {"--json", "--sanitize", "--places", "--no-memory-counters", "--model-caches", "--strict-decode"});
  if (options.plain().size() != 1) throw UsageError("usage: rpl-emu launch FILE --kernel K --grid X[,Y[,Z]] --block X[,Y[,Z]] --arg TYPE:VALUE ...");
  if (const std::string most = options.one("--memory-limit", ""); !most.empty()) {
    const rlimit limit{parse_number(most, "--memory-limit"), parse_number(most, "--memory-limit")};
    setrlimit(RLIMIT_AS, &limit);
  }
  const auto file = read_file(options.plain()[0]);
  const CodeObject object = read_code_object(file);
  const Kernel& kernel = find_kernel(object, options.one("--kernel", ""));
  LaunchSizes sizes;
  sizes.grid = parse_sizes(options.one("--grid", "1"), "--grid");
  sizes.block = parse_sizes(options.one("--block", "64"), "--block");
  if (uint64_t{sizes.block[0]} * sizes.block[1] * sizes.block[2] > 1024) throw UsageError("a workgroup has at most 1024 work-items");
  sizes.dynamic_lds = static_cast<uint32_t>(parse_number(options.one("--lds", "0"), "--lds"));
  sizes.stack = static_cast<uint32_t>(parse_number(options.one("--stack", "0"), "--stack"));
  Limits limits;
  limits.threads = static_cast<unsigned>(std::min(256ULL, parse_number(options.one("--threads", "1"), "--threads")));
  limits.instructions = parse_number(options.one("--max-instructions", "0"), "--max-instructions");
  limits.seconds = std::strtod(options.one("--timeout", "0").c_str(), nullptr);
  limits.seed = parse_number(options.one("--seed", "1"), "--seed");
  limits.model_caches = options.flag("--model-caches");
  limits.count_memory = !options.flag("--no-memory-counters");
  const LaneLibrary lanes = load_lanes(options.one("--cpu", ""));
  const OpcodeTable table(lanes.lists);
  const Disassembler disassembler(options.one("--llvm", ""));
  GuestMemory memory;
  const LoadedObject loaded(object, memory);
  const Program program = loaded.decode(kernel, Decoder(disassembler, table, options.flag("--strict-decode")));
  Arguments arguments(kernel, memory);
  std::vector<uint8_t> kernarg = arguments.pack(options.all("--arg"));
  Findings findings;
  const bool sanitize = options.flag("--sanitize");
  if (sanitize || limits.model_caches) limits.threads = 1;
  const LaunchResult result = launch(loaded, kernel, program, lanes.lists, sizes, std::move(kernarg), memory, limits, sanitize ? &findings : nullptr);
  describe_stop(result, program, loaded);
  const std::vector<Finding> found = findings.all();
  if (result.outcome == Outcome::ended) arguments.write_outputs();
  describe_findings(found, program, loaded);
  Json json;
  json.open('{').key("kernel").string(kernel.name).key("device").string("gfx942-emu").key("origin").string("modelled");
  json.key("outcome").string(name_of(result.outcome)).key("workgroups").number(result.groups).key("waves").number(result.waves);
  json.key("seconds").real(result.seconds).key("cpu_seconds").real(result.cpu_seconds).key("cpu").string(lanes.name).key("threads").number(limits.threads).key("disassembler").string(disassembler.version());
  write_counts(json, program, loaded.base(), result, options.flag("--places"));
  write_modelled(json, program, result, limits);
  write_findings(json, found, program, loaded);
  json.close('}');
  if (options.flag("--json")) std::puts(json.text().c_str());
  else std::printf("%s: %s, %llu waves, %.3f s\n", kernel.name.c_str(), name_of(result.outcome), static_cast<unsigned long long>(result.waves), result.seconds);
  return status_of(result, found);
}

}  // namespace rpl_emu
