// Instructions on a state that is given: what models written by others are compared with.
//
// Each line of the standard input is one case, words separated by spaces:
//   code=HEX            bytes of one instruction or several, in order; none: nothing runs
//   keep                the state that the line before left stays; else it is zeros, and EXEC all lanes
//   v3=HEX[,HEX...]     a vector register: 64 words of hex digits, or one for all lanes; a3= an accumulator
//   s4=HEX  vcc=HEX exec=HEX (64 bits)  m0=HEX  scc=0|1  mode=HEX
//   lds=HEXBYTES        content of LDS, from address 0
//   memory=HEXBYTES     content of memory at 0x200000000000
//   out=v0,s2,vcc,scc,exec,lds,memory
// The answer is a line of JSON with what `out` names, or {"refused": why}, or {"fault": why}.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/lane_library.h"
#include "machine/launch.h"

namespace rpl_emu {
namespace {

constexpr uint64_t kMemoryAt = 0x200000000000;
constexpr uint64_t kMemoryBytes = 1 << 16;
constexpr unsigned kVectors = 512, kAccumulators = 256;

std::vector<uint8_t> parse_bytes(const std::string& text) {
  std::vector<uint8_t> out;
  for (size_t k = 0; k + 1 < text.size(); k += 2) out.push_back(static_cast<uint8_t>(std::stoul(text.substr(k, 2), nullptr, 16)));
  return out;
}

class Stepper {
 public:
  Stepper(const Decoder& decoder, const RowLists& lanes) : decoder_(decoder), lanes_(lanes), lds_(65536), rows_((kVectors + kTemporaryRows) * kLanes + 16) {
    void* place = mmap(reinterpret_cast<void*>(kMemoryAt), kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (place != reinterpret_cast<void*>(kMemoryAt)) throw std::runtime_error("cannot map memory at 0x200000000000");
    memory_ = static_cast<uint8_t*>(place);
    reset();
  }

  std::string run(const std::string& line) {
    try {
      return answer(line);
    } catch (const Unavailable& e) {
      return Json().open('{').key("refused").string(e.what()).close('}').text();
    }
  }

 private:
  const Decoder& decoder_;
  const RowLists& lanes_;
  std::vector<uint8_t> lds_;
  std::vector<uint32_t> rows_;
  uint8_t* memory_ = nullptr;
  Wave w_;
  Workgroup group_;
  const Range range_{kMemoryAt, kMemoryAt + kMemoryBytes, true};

  [[nodiscard]] uint32_t* row(unsigned index) const { return w_.v[index]; }

  void set(const std::string& name, const std::string& value) {
    if (name == "lds" || name == "memory") {
      const auto bytes = parse_bytes(value);
      if (bytes.size() > (name == "lds" ? lds_.size() : kMemoryBytes)) throw UsageError("too many bytes of " + name);
      std::memcpy(name == "lds" ? lds_.data() : memory_, bytes.data(), bytes.size());
      return;
    }
    if (name == "vcc" || name == "exec") {
      w_.set64(name == "vcc" ? kVcc : kExec, std::stoull(value, nullptr, 16));
      return;
    }
    const auto number = static_cast<uint32_t>(std::stoul(value, nullptr, 16));
    if (name == "scc") w_.scc = number;
    else if (name == "mode") w_.mode = number;
    else if (name == "m0") w_.s[kM0] = number;
    else if (name[0] == 's') w_.s[std::stoul(name.substr(1)) % kScalars] = number;
    else if (name[0] == 'v' || name[0] == 'a') set_row(row(static_cast<unsigned>(std::stoul(name.substr(1))) % 256 + (name[0] == 'a' ? kAccumulators : 0)), value);
    else throw UsageError("unknown register " + name);
  }
  static void set_row(uint32_t* to, const std::string& value) {
    std::istringstream parts(value);
    std::string part;
    unsigned k = 0;
    for (; k < kLanes && std::getline(parts, part, ','); ++k) to[k] = static_cast<uint32_t>(std::stoul(part, nullptr, 16));
    for (; k > 0 && k < kLanes; ++k) to[k] = to[0];
  }
  void get(Json& json, const std::string& name) {
    json.key(name);
    if (name == "lds" || name == "memory") {
      std::string text;
      char digits[4];
      for (unsigned k = 0; k < 4096; ++k) {
        std::snprintf(digits, sizeof digits, "%02x", name == "lds" ? lds_[k] : memory_[k]);
        text += digits;
      }
      json.string(text);
    } else if (name == "vcc" || name == "exec") {
      json.number(w_.get64(name == "vcc" ? kVcc : kExec));
    } else if (name == "scc") {
      json.number(w_.scc);
    } else if (name == "mode") {
      json.number(w_.mode);
    } else if (name == "m0" || name[0] == 's') {
      json.number(name == "m0" ? w_.s[kM0] : w_.s[std::stoul(name.substr(1)) % kScalars]);
    } else {
      const uint32_t* from = row(static_cast<unsigned>(std::stoul(name.substr(1))) % 256 + (name[0] == 'a' ? kAccumulators : 0));
      json.open('[');
      for (unsigned j = 0; j < kLanes; ++j) json.number(from[j]);
      json.close(']');
    }
  }

  void reset() {
    w_ = Wave{};
    auto address = reinterpret_cast<uintptr_t>(rows_.data());
    w_.v = reinterpret_cast<uint32_t(*)[kLanes]>((address + 63) & ~uintptr_t{63});
    std::ranges::fill(rows_, 0U);
    std::ranges::fill(lds_, uint8_t{0});
    std::memset(memory_, 0, kMemoryBytes);
    w_.set_exec(~uint64_t{0});
    w_.mode = 0x3f0;
    group_.lds = lds_.data();
    group_.lds_bytes = static_cast<uint32_t>(lds_.size());
    w_.group = &group_;
    w_.ranges = {&range_, 1};
  }
  void execute(const std::vector<uint8_t>& code) {
    const size_t words = code.size() / 4;
    Program program;
    program.code.resize(words + 2);
    RegisterFile file;
    file.may_flush = (w_.mode & 0xf0) != 0xf0;
    file.may_round = (w_.mode & 15) != 0;
    if (file.may_round) *lanes_.round_halves = true;
    decoder_.decode(program, code, 0, words, file);
    uint64_t instructions = 0;
    for (size_t at = 0; at < words; at += program.code[at].size) ++instructions;
    for (Instruction& i : program.code) if (!i.run) i.run = [](Wave&, const Instruction&) {};
    w_.pc = 0;
    w_.code = program.code.data();
    w_.code_words = program.code.size() - 1;
    mark_straight_runs(program);
    std::vector<Count> counts(program.code.size() + 1);
    lanes_.run_wave(w_, counts.data(), instructions);
  }

  std::string answer(const std::string& line) {
    std::vector<uint8_t> code;
    std::vector<std::string> wanted;
    std::istringstream words(line);
    bool first = true;
    for (std::string word; words >> word; first = false) {
      if (first && word == "keep") continue;
      if (first) reset();
      const size_t equals = word.find('=');
      if (equals == std::string::npos) throw UsageError("no value: " + word);
      const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
      if (name == "code") code = parse_bytes(value);
      else if (name == "out") { std::istringstream parts(value); for (std::string part; std::getline(parts, part, ',');) wanted.push_back(part); }
      else set(name, value);
    }
    if (!code.empty()) execute(code);
    Json json;
    json.open('{');
    if (w_.stop == Stop::unsupported) json.key("refused").string(w_.reason);
    if (w_.stop == Stop::fault) json.key("fault").string(w_.reason).key("address").number(w_.fault_address).key("lane").number(w_.fault_lane);
    for (const std::string& name : wanted) get(json, name);
    return json.close('}').text();
  }
};

}  // namespace

int step_command(int count, char** words) {
  const Options options(count, words, {"--llvm", "--cpu"}, {"--json"});
  const LaneLibrary lanes = load_lanes(options.one("--cpu", ""));
  const OpcodeTable table(lanes.lists);
  const Disassembler disassembler(options.one("--llvm", ""));
  const Decoder decoder(disassembler, table, true);
  Stepper stepper(decoder, lanes.lists);
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    std::puts(stepper.run(line).c_str());
    std::fflush(stdout);
  }
  return kOk;
}

}  // namespace rpl_emu
