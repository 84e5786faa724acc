#include "executor/emulator.h"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "cli/counts_json.h"
#include "cli/lane_library.h"
#include "executor/instruction_texts.h"
#include "executor/kernel_name.h"
#include "executor/progress.h"
#include "machine/launch.h"
#include "queue/packets.h"
#include "sanitize/findings.h"

namespace softkfd {

// A code object as it lies in the GPU's memory, and what was decoded of one of its kernels.
struct Decoded {
  std::vector<uint8_t> text;
  rpl_emu::CodeObject object;
  rpl_emu::Kernel kernel;
  rpl_emu::Program program;
};

namespace {

// The widest access of a lane.
constexpr uint64_t kWidest = 16;
// Exit code of a program in whose kernels the sanitizer found something.
constexpr int kFound = 1;
// And of one that was ended at its time limit.
constexpr int kTimeLimitReached = 124;

std::vector<uint8_t> text_of(const LoadedCode& code, const PageTable& memory) {
  std::vector<uint8_t> text(code.text_bytes);
  memory.read(code.text, text.data(), text.size());
  return text;
}

// Functions of the code and, without names, what lies between them: only kernels are known by name once a code
// object is loaded.
std::vector<rpl_emu::Function> functions_of(const LoadedCode& code) {
  std::map<uint64_t, const LoadedCode::Function*> known;
  for (const auto& function : code.functions) known[function.begin] = &function;
  std::vector<rpl_emu::Function> all;
  uint64_t end = code.text;
  const auto gap_until = [&](uint64_t next) {
    if (next > end) all.push_back({"", end - code.base, next - end});
  };
  for (const auto& [begin, function] : known) {
    gap_until(begin);
    all.push_back({function->name, begin - code.base, function->bytes});
    end = std::max(end, (begin + function->bytes + 3) & ~uint64_t{3});
  }
  gap_until(code.text + code.text_bytes);
  return all;
}

rpl_emu::Kernel kernel_of(const Launch& launch, const LoadedCode& code, const PageTable& memory) {
  std::vector<uint8_t> bytes(sizeof(KernelDescriptor));
  memory.read(launch.kernel_object, bytes.data(), bytes.size());
  rpl_emu::Kernel kernel;
  kernel.name = launch.kernel;
  kernel.descriptor = rpl_emu::read_descriptor(bytes, launch.kernel_object - code.base);
  kernel.begin = kernel.descriptor.entry;
  kernel.kernarg_bytes = kernel.descriptor.kernarg_bytes;
  for (const auto& function : code.functions) {
    if (function.begin == code.base + kernel.begin) kernel.bytes = function.bytes;
  }
  return kernel;
}

rpl_emu::LaunchSizes sizes_of(const Launch& launch, const rpl_emu::Descriptor& descriptor) {
  const auto beyond = [](uint32_t whole, uint32_t fixed) { return whole > fixed ? whole - fixed : 0; };
  rpl_emu::LaunchSizes sizes;
  sizes.grid = launch.grid;
  sizes.block = launch.workgroup;
  sizes.dynamic_lds = beyond(launch.group_bytes, descriptor.group_bytes);
  sizes.stack = beyond(launch.private_bytes, descriptor.private_bytes);
  return sizes;
}

// What a kernel reaches: the GPU's mappings, and the dispatch packet in a copy, since the runtime may write the next
// one over it.
std::vector<rpl_emu::Range> ranges_of(const PageTable& memory, uint64_t packet) {
  std::vector<rpl_emu::Range> ranges;
  for (const auto& part : memory.mapped()) {
    const uint64_t shift = reinterpret_cast<uint64_t>(part.mapping.host) - part.begin;
    ranges.push_back({part.begin, part.end, part.mapping.writable, shift});
  }
  ranges.push_back({packet, packet + sizeof(Packet), false, 0});
  std::ranges::sort(ranges, {}, &rpl_emu::Range::begin);
  return ranges;
}

std::string text_at(const Decoded& decoded, uint64_t word) {
  const auto text = decoded.program.texts.find(word);
  std::string line = text == decoded.program.texts.end() ? "" : text->second;
  line.erase(0, line.find_first_not_of(" \t"));
  return line;
}

std::string group_of(std::span<const uint32_t> numbers) {
  std::string group;
  for (const uint32_t number : numbers) group += (group.empty() ? "" : ", ") + std::to_string(number);
  return "workgroup (" + group + ")";
}

// Where in the kernel, as a sentence's end.
std::string place_of(const Decoded& decoded, const rpl_emu::LaunchResult& result) {
  const std::string line = text_at(decoded, result.where.pc);
  return group_of(result.where.group) + ", wave " + std::to_string(result.where.wave) + ", lane " +
         std::to_string(result.lane) + (line.empty() ? "" : ", near \"" + line + "\"");
}

[[noreturn]] void end_process(const std::string& lines, int status) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, lines.data(), lines.size());
  _exit(status);
}

[[noreturn]] void stop(const Decoded& decoded, const rpl_emu::LaunchResult& result, const PageTable& memory) {
  if (result.outcome == rpl_emu::Outcome::fault) {
    const auto access = result.write ? Access::kWrite : Access::kRead;
    [[maybe_unused]] const auto* reachable = memory.at(result.address, kWidest, access);  // throws GpuFault
  }
  const std::string what = result.reason + ", " + place_of(decoded, result);
  if (result.outcome == rpl_emu::Outcome::limit) {
    end_process("softkfd: " + result.reason + " in the kernel '" + decoded.kernel.name + "', " + place_of(decoded, result) + "\n", kTimeLimitReached);
  }
  if (result.outcome == rpl_emu::Outcome::trap) throw KernelTrap(what);
  throw Refusal(what);
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

// Everything that was found in the launch, a line each; the program ends here.
[[noreturn]] void end_with(const std::vector<rpl_emu::Finding>& findings, const Decoded& decoded) {
  std::string lines;
  for (const auto& found : findings) {
    lines += "softkfd: " + found.kind + " in " + decoded.kernel.name + " at \"" + text_at(decoded, found.pc) + "\"";
    if (found.other_pc != found.pc) lines += " and \"" + text_at(decoded, found.other_pc) + "\"";
    lines += ", " + group_of(found.group) + ", " + std::to_string(found.times) + " times\n";
  }
  end_process(lines, kFound);
}

void write_launch(rpl_emu::Json& json, const Launch& launch, const Decoded& decoded) {
  const auto sizes = [&json](const char* name, const std::array<uint32_t, 3>& of) {
    json.key(name).open('[').number(of[0]).number(of[1]).number(of[2]).close(']');
  };
  Packet packet{};
  std::memcpy(&packet, launch.packet.data(), sizeof(packet));
  const auto& descriptor = decoded.kernel.descriptor;
  const auto registers = rpl_emu::register_file(descriptor, false);
  json.key("pid").number(static_cast<uint64_t>(getpid())).key("gpu").number(launch.gpu);
  json.key("queue").number(launch.queue_record).key("done_before").number(launch.done_before);
  json.key("completes").number(packet.kernel.completion_signal);
  json.key("symbol").string(launch.kernel).key("kernel").string(demangled(launch.kernel));
  json.key("kernel_object").number(launch.kernel_object);
  sizes("grid", launch.grid);
  sizes("workgroup", launch.workgroup);
  json.key("lds_bytes").number(launch.group_bytes).key("scratch_bytes").number(launch.private_bytes);
  json.key("static_lds_bytes").number(descriptor.group_bytes).key("kernarg_bytes").number(launch.kernarg_bytes);
  json.key("arch_vgpr").number(registers.accumulator_at);
  json.key("accum_vgpr").number(registers.vectors - registers.accumulator_at);
  // GRANULATED_WAVEFRONT_SGPR_COUNT, which gfx9 counts in halves of 16 (AMDGPU backend guide of LLVM).
  json.key("sgpr").number(((descriptor.rsrc1 >> 6 & 15) / 2 + 1) * uint64_t{16});
}

// "emulated {...}": one launch with its counts, by class, opcode and place, and what is modelled from them.
std::string line_of(const Launch& launch, const Decoded& decoded, uint64_t base,
                    const rpl_emu::LaunchResult& result, const rpl_emu::Limits& limits) {
  rpl_emu::Json json;
  json.open('{');
  write_launch(json, launch, decoded);
  json.key("waves").number(result.waves).key("workgroups").number(result.groups);
  rpl_emu::write_counts(json, decoded.program, base, result, true);
  rpl_emu::write_modelled(json, decoded.program, result, limits);
  json.close('}');
  return "emulated " + json.text();
}

}  // namespace

struct Emulator::Parts {
  Parts(Settings how, const Log& where, Events& waited)
      : settings(std::move(how)),
        log(where),
        events(waited),
        lanes(rpl_emu::load_lanes("", std::filesystem::path(settings.program).parent_path().string())),
        table(lanes.lists),
        disassembler(settings.program),
        progress(settings.progress) {}

  Settings settings;
  const Log& log;
  Events& events;
  rpl_emu::LaneLibrary lanes;
  rpl_emu::OpcodeTable table;
  DisassemblerProcess disassembler;
  Progress progress;
  std::mutex mutex;
  std::map<uint32_t, rpl_emu::GlobalSync> syncs;  // by GPU
  std::map<uint64_t, std::shared_ptr<const Decoded>> known;  // by address of the descriptor

  rpl_emu::GlobalSync* sync_of(uint32_t gpu) {
    const std::scoped_lock lock(mutex);
    return &syncs[gpu];
  }

  // 0: no limit.
  [[nodiscard]] double seconds_left() const {
    if (!settings.deadline) return 0;
    const std::chrono::duration<double> left = *settings.deadline - std::chrono::steady_clock::now();
    return std::max(left.count(), 1e-3);
  }

  std::shared_ptr<const Decoded> decode(const Launch& launch, const LoadedCode& code, const PageTable& memory) {
    const std::scoped_lock lock(mutex);
    std::vector<uint8_t> text = text_of(code, memory);
    auto& found = known[launch.kernel_object];
    if (found && found->text == text && found->kernel.name == launch.kernel) return found;
    auto decoded = std::make_shared<Decoded>();
    decoded->text = std::move(text);
    decoded->object.end = code.text - code.base + code.text_bytes;
    decoded->object.segments.push_back(
        {code.text - code.base, code.text_bytes, decoded->text, false, true});
    decoded->object.functions = functions_of(code);
    decoded->kernel = kernel_of(launch, code, memory);
    const InstructionTexts texts(disassembler);
    decoded->program = rpl_emu::LoadedObject(decoded->object, code.base)
                           .decode(decoded->kernel, rpl_emu::Decoder(texts, table, settings.strict_decode));
    found = decoded;
    return decoded;
  }
};

Emulator::Emulator(const Settings& settings, const Log& log, Events& events)
    : parts_(std::make_unique<Parts>(settings, log, events)) {}
Emulator::~Emulator() = default;

bool Emulator::run(const Launch& launch, const PageTable& memory) {
  const auto code = loaded_code(memory, launch.kernel_object);
  if (!code) return false;
  try {
    const auto decoded = parts_->decode(launch, *code, memory);
    const auto& descriptor = decoded->kernel.descriptor;
    rpl_emu::GuestMemory own;
    uint8_t* packet = own.allocate(launch.packet.size());
    std::memcpy(packet, launch.packet.data(), launch.packet.size());
    std::deque<std::vector<rpl_emu::Range>> ranges;  // older ones may be in use still
    const auto reachable = [&] {
      const auto& now = ranges.emplace_back(ranges_of(memory, reinterpret_cast<uint64_t>(packet)));
      return rpl_emu::Ranges{now.data(), static_cast<uint32_t>(now.size()), true};
    };
    rpl_emu::Placed placed;
    placed.entry = code->base + descriptor.entry;
    placed.kernarg = launch.kernarg;
    if (launch.kernarg_bytes > 0) {
      const auto* bytes = memory.at(launch.kernarg, launch.kernarg_bytes, Access::kRead);
      placed.kernarg_bytes = reinterpret_cast<const uint8_t*>(bytes);
    }
    placed.packet = reinterpret_cast<uint64_t>(packet);
    placed.queue = launch.queue_record;
    placed.ranges = reachable();
    placed.ranges_now = reachable;
    placed.sync = parts_->sync_of(launch.gpu);
    placed.interrupt = [this](uint32_t data) { parts_->events.interrupt(data); };
    rpl_emu::Limits limits;
    limits.count_memory = parts_->log.open();
    limits.seconds = parts_->seconds_left();
    limits.total = &parts_->progress.instructions();
    const auto findings = parts_->settings.sanitize ? std::make_unique<rpl_emu::Findings>() : nullptr;
    const auto result = rpl_emu::launch(placed, decoded->kernel, decoded->program, parts_->lanes.lists,
                                        sizes_of(launch, descriptor), limits, findings.get());
    parts_->progress.launch_ended();
    if (result.outcome != rpl_emu::Outcome::ended) stop(*decoded, result, memory);
    if (findings && !findings->all().empty()) end_with(findings->all(), *decoded);
    if (parts_->log.open()) parts_->log.done_line(line_of(launch, *decoded, code->base, result, limits));
  } catch (const rpl_emu::Unavailable& refusal) {
    throw Refusal(refusal.what());
  } catch (const rpl_emu::BadFile& refusal) {
    throw Refusal(refusal.what());
  }
  return true;
}

}  // namespace softkfd
