// Every opcode of gfx942 that LLVM's disassembler knows, and whether it is offered: all values of the opcode's field in
// each encoding of the CDNA3 ISA (section 13), with operands that fit most of them.
#include <cstdio>
#include <map>
#include <set>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/lane_library.h"
#include "decode/decode.h"

namespace rpl_emu {
namespace {

struct Encoding {
  const char* name;
  unsigned opcodes;  // values of the field
  unsigned shift;    // of the field in the first word
  uint64_t fixed;    // both words: what tells the encoding, and the operands
};

constexpr uint64_t words(uint32_t first, uint32_t second = 0) { return first | uint64_t{second} << 32; }
// Registers: v4 and s8 are results, v6, v8, v10, s4 and s6 sources, each the first of an aligned tuple.
constexpr uint32_t kVop3 = 0x106 | 0x108 << 9 | 0x10a << 18;
constexpr uint32_t kVop3Scalar = 0x106 | 4 << 9 | 6 << 18;
constexpr uint32_t kOff = 0x7f << 16;  // no scalar base
constexpr Encoding kEncodings[] = {
    {"SOP2", 0x60, 23, words(0x80000000 | 8 << 16 | 6 << 8 | 4, 0x3f812345)},
    {"SOPK", 32, 23, words(0xb0000000 | 8 << 16 | 4)},
    {"SOPK", 32, 23, words(0xb0000000 | 8 << 16 | 0xf801)},              // all bits of MODE
    {"SOPK", 32, 23, words(0xb0000000 | 8 << 16 | 0x1901, 0xf0)},       // its denormal bits
    {"SOP1", 256, 8, words(0xbe800000 | 8 << 16 | 4)},
    {"SOPC", 128, 16, words(0xbf000000 | 6 << 8 | 4)},
    {"SOPP", 128, 16, words(0xbf800000)},
    {"SOPP", 128, 16, words(0xbf800001)},  // as a message: the interrupt
    {"SMEM", 256, 18, words(0xc0000000 | 1 << 17 | 8 << 6 | 2, 16)},
    {"SMEM", 256, 18, words(0xc0000000 | 8 << 6)},
    {"SMEM", 256, 18, words(0xc0000000)},
    {"VOP2", 64, 25, words(4 << 17 | 8 << 9 | 0x106, 0x3f812345)},
    {"VOP1", 256, 9, words(0x7e000000 | 4 << 17 | 0x106)},
    {"VOP1", 256, 9, words(0x7e000000)},
    {"VOPC", 256, 17, words(0x7c000000 | 8 << 9 | 0x106)},
    {"VOP3", 1024, 16, words(0xd0000000 | 4, kVop3)},
    {"VOP3", 1024, 16, words(0xd0000000 | 8, kVop3Scalar)},
    {"VOP3", 1024, 16, words(0xd0000000 | 4, 4 | 6 << 9)},
    {"VOP3", 1024, 16, words(0xd0000000 | 4 | 8 << 8, kVop3)},  // with a scalar result beside
    {"VOP3P", 128, 16, words(0xd3800000 | 4 | 1 << 14, kVop3 | 3 << 27)},
    {"DS", 256, 17, words(0xd8000000 | 16, 2 | 4 << 8 | 6 << 16 | 8 << 24)},
    {"DS", 256, 17, words(0xd8000000 | 16, 8U << 24)},           // without an address
    {"DS", 256, 17, words(0xd8000000 | 16, 2 | 4 << 8 | 8 << 24)},
    {"DS", 256, 17, words(0xd8000000)},
    {"DS", 256, 17, words(0xd8010000 | 16, 2)},                 // of the GPU, not of LDS
    {"FLAT", 128, 18, words(0xdc000000, 2 | 4 << 8 | 8 << 24)},
    {"SCRATCH", 128, 18, words(0xdc004000, kOff | 2 | 4 << 8 | 8 << 24)},
    {"SCRATCH", 128, 18, words(0xdc006000, kOff | 2 | 4 << 8 | 8 << 24)},
    {"GLOBAL", 128, 18, words(0xdc008000, kOff | 2 | 4 << 8 | 8 << 24)},
    {"MUBUF", 128, 18, words(0xe0000000 | 4, 4 | 6 << 8 | 2 << 16 | 128U << 24)},
    {"MUBUF", 128, 18, words(0xe0000000)},
    {"MTBUF", 16, 15, words(0xe8000000 | 2 << 19 | 7 << 23 | 4, 4 | 6 << 8 | 2 << 16 | 128U << 24)},
};

struct Known {
  std::set<std::string> encodings;
  bool offered = false;
  std::string why;
  const Row* row = nullptr;
};

std::string base_name(std::string name) {
  for (const std::string_view suffix : {"_e32", "_e64"})
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

void look(std::map<std::string, Known>& known, const Encoding& encoding, unsigned opcode, const Disassembler& disassembler, const OpcodeTable& table) {
  const uint64_t value = encoding.fixed | uint64_t{opcode} << encoding.shift;
  std::vector<uint8_t> code(12);
  for (unsigned k = 0; k < 8; ++k) code[k] = static_cast<uint8_t>(value >> (8 * k));
  const Disassembler::Line line = disassembler.at(code, 0);
  if (line.bytes == 0) return;
  Known& one = known[base_name(parse_instruction(line.text).mnemonic)];
  one.encodings.insert(encoding.name);
  Program program;
  program.code.resize(4);
  try {
    Decoder(disassembler, table).decode_one(program, code, 0, RegisterFile{});
    one.offered = true;
    one.row = program.code[0].row;
  } catch (const Unavailable& refusal) {
    const std::string why = refusal.what();
    one.why = why.substr(0, why.find(": "));
  }
}

}  // namespace

int coverage_command(const Options& options, const OpcodeTable& table) {
  const Disassembler disassembler(options.one("--llvm", ""));
  std::map<std::string, Known> known;
  for (const Encoding& encoding : kEncodings)
    for (unsigned opcode = 0; opcode < encoding.opcodes; ++opcode) look(known, encoding, opcode, disassembler, table);
  Json json;
  json.open('{').key("disassembler").string(disassembler.version()).key("opcodes").open('[');
  for (const auto& [name, one] : known) {
    json.open('{').key("opcode").string(name).key("encodings").open('[');
    for (const std::string& encoding : one.encodings) json.string(encoding);
    json.close(']').key("offered").boolean(one.offered).key("why");
    if (one.offered) json.null();
    else json.string(one.why);
    json.key("note");
    if (one.row && *one.row->note) json.string(one.row->note);
    else json.null();
    json.close('}');
  }
  json.close(']').close('}');
  std::puts(json.text().c_str());
  return kOk;
}

}  // namespace rpl_emu
