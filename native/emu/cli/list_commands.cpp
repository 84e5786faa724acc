#include <algorithm>
#include <bit>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/lane_library.h"
#include "machine/launch.h"
#include "model/issue.h"

namespace rpl_emu {
namespace {

const char* name_of(Form form) {
  static constexpr const char* kNames[] = {"scalar", "program", "scalar_memory", "vector", "packed", "matrix", "accumulator", "lds", "global", "buffer"};
  return kNames[static_cast<size_t>(form)];
}

}  // namespace

// The table, as data: what documentation and tests are made of. With --known every opcode that LLVM knows.
int opcodes_command(int count, char** words) {
  const Options options(count, words, {"--cpu", "--llvm"}, {"--json", "--known"});
  const LaneLibrary lanes = load_lanes(options.one("--cpu", ""));
  const OpcodeTable table(lanes.lists);
  if (options.flag("--known")) return coverage_command(options, table);
  Json json;
  json.open('[');
  for (const auto& [name, row] : table.rows()) {
    const Issue issue = issue_of(*row);
    json.open('{').key("opcode").string(name).key("form").string(name_of(row->form)).key("signature").string(row->signature).key("class").string(row->counter).key("note").string(row->note);
    json.key("unit");
    if (issue.unit == Unit::none) json.null();
    else json.string(kUnitNames[static_cast<size_t>(issue.unit)]);
    json.key("passes").number(issue.passes).close('}');
  }
  json.close(']');
  std::puts(json.text().c_str());
  return kOk;
}

namespace {

// "v4", "s8:2" of two words, "0x1f" of a constant.
std::string name_of(const Operand& o, const RegisterFile& file) {
  std::ostringstream out;
  if (o.place == Place::constant) out << "0x" << std::hex << o.value;
  else if (o.place == Place::scc) out << "scc";
  else if (o.place == Place::scalar) out << 's' << o.index;
  else if (o.place == Place::vector) out << (o.index < file.accumulator_at ? 'v' : 'a') << (o.index < file.accumulator_at ? o.index : o.index - file.accumulator_at);
  if (o.words > 1 && (o.place == Place::scalar || o.place == Place::vector)) out << ':' << unsigned{o.words};
  return out.str();
}

// Each line of the standard input is the hex bytes of one instruction; each answer what it is decoded to, or why not.
int decode_lines(const OpcodeTable& table, const Disassembler& disassembler) {
  const RegisterFile file;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<uint8_t> code(12);
    for (size_t k = 0; k < code.size() && 2 * k + 1 < line.size(); ++k) code[k] = static_cast<uint8_t>(std::stoul(line.substr(2 * k, 2), nullptr, 16));
    Program program;
    program.code.resize(4);
    Json json;
    json.open('{').key("bytes").number(disassembler.at(code, 0).bytes);
    try {
      Decoder(disassembler, table).decode_one(program, code, 0, file);
      const Instruction& i = program.code[0];
      json.key("opcode").string(i.row->name).key("form").string(name_of(i.row->form));
      const auto list = [&](const char* key, const auto& operands) {
        json.key(key).open('[');
        for (const Operand& o : operands)
          if (o.place != Place::none && o.place != Place::off) json.string(name_of(o, file));
        json.close(']');
      };
      list("to", i.to);
      list("from", i.from);
    } catch (const Unavailable& e) {
      json.key("refused").string(e.what());
    }
    json.close('}');
    std::puts(json.text().c_str());
  }
  return kOk;
}

}  // namespace

// Static: every instruction of every kernel, whether it could run or not. With --lines single instructions.
int decode_command(int count, char** words) {
  const Options options(count, words, {"--llvm", "--cpu", "--kernel"}, {"--json", "--lines"});
  if (options.plain().size() != (options.flag("--lines") ? 0 : 1)) throw UsageError("usage: rpl-emu decode FILE [--kernel K], or rpl-emu decode --lines");
  if (options.flag("--lines")) return decode_lines(OpcodeTable(load_lanes(options.one("--cpu", "")).lists), Disassembler(options.one("--llvm", "")));
  const auto file = read_file(options.plain()[0]);
  const CodeObject object = read_code_object(file);
  const LaneLibrary lanes = load_lanes(options.one("--cpu", ""));
  const OpcodeTable table(lanes.lists);
  const Disassembler disassembler(options.one("--llvm", ""));
  const std::string only = options.one("--kernel", "");
  Json json;
  json.open('{');
  for (const Function& f : object.functions) {
    if (!only.empty() && f.name != only) continue;
    const auto kernel = object.kernels.find(f.name);
    RegisterFile registers;
    json.key(f.name).open('{').key("kernel").boolean(kernel != object.kernels.end());
    json.key("instructions").open('[');
    if (kernel != object.kernels.end()) registers = register_file(kernel->second.descriptor, false);
    for (const Segment& s : object.segments) {
      if (!s.executable || f.begin < s.address || f.begin - s.address > s.file.size() || f.begin % 4 != 0) continue;
      const auto code = s.file.subspan(f.begin - s.address, (s.file.size() - (f.begin - s.address)) / 4 * 4);
      const size_t words = std::min<size_t>(code.size(), f.bytes) / 4;
      Program program;
      program.begin = f.begin;
      program.code.resize(words + 1);
      for (size_t at = 0; at < words;) {
        const Disassembler::Line line = disassembler.at(code.subspan(4 * at), f.begin + 4 * at);
        const InstructionText text = parse_instruction(line.text);
        std::string refused, name = text.mnemonic, kind;
        int64_t target = 0;
        const size_t size = std::max<size_t>(1, line.bytes / 4);
        try {
          Decoder(disassembler, table).decode_one(program, code, at, registers);
          const Instruction& i = program.code[at];
          name = i.row->name;
          kind = i.row->counter;
          target = i.target ? static_cast<int64_t>(f.begin) + 4 * (static_cast<int64_t>(at) + i.target) : 0;
        } catch (const Unavailable& e) {
          refused = e.what();
        }
        std::string plain = line.text;
        plain.erase(0, plain.find_first_not_of(" \t"));
        json.open('{').key("at").number(f.begin + 4 * at).key("opcode").string(name).key("class").string(kind).key("text").string(plain);
        if (target) json.key("target").number(static_cast<uint64_t>(target));
        if (!refused.empty()) json.key("refused").string(refused);
        json.close('}');
        at += size;
      }
    }
    json.close(']').close('}');
  }
  json.close('}');
  std::puts(json.text().c_str());
  return kOk;
}

int doctor_command(int count, char** words) {
  const Options options(count, words, {"--llvm", "--cpu"}, {"--json"});
  const LaneLibrary lanes = load_lanes(options.one("--cpu", ""));
  const OpcodeTable table(lanes.lists);
  const Disassembler disassembler(options.one("--llvm", ""));
  const uint8_t end[] = {0, 0, 0x81, 0xbf};
  if (disassembler.at(end, 0).text.find("s_endpgm") == std::string::npos) throw Unavailable(disassembler.library() + " does not decode gfx942. Next: give another by --llvm PATH");
  Json json;
  json.open('{').key("cpu").string(lanes.name).key("disassembler").string(disassembler.version()).key("library").string(disassembler.library()).key("opcodes").number(table.rows().size()).close('}');
  std::puts(json.text().c_str());
  return kOk;
}

}  // namespace rpl_emu
