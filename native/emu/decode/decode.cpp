#include "decode/decode.h"

#include <bit>
#include <cstring>
#include <sstream>

#include "machine/wave.h"
#include "opcodes/memory_flags.h"
#include "opcodes/scalar.h"

namespace rpl_emu {
namespace {

using Kind = TextOperand::Kind;

bool is_wide(char type) { return type == 'U' || type == 'I' || type == 'F' || type == 'P' || type == 'b' || type == 'S'; }

uint32_t half_of(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t rest = bits & 0x7fffffff;
  // Inline constants are exact in a half but for 1/(2 pi), which the ISA gives as 0x3118.
  if (rest == 0x3e22f983) return sign | 0x3118;
  return rest == 0 ? sign : sign | ((rest >> 13) - 0x1c000);
}

// A constant as an operand of a type sees it. ISA: integers are sign extended, floats take the operand's
// format, a literal of a double is its upper half. Two packed integers see the 32 bits of a float, as
// LLVM has it (isInlinableLiteralV2I16).
uint64_t constant_value(const TextOperand& operand, char type) {
  if (operand.kind == Kind::real) {
    if (type == 'F' || type == 'I' || type == 'U')
      return operand.real == 0.15915494309189532 || operand.real == 0.15915494 ? 0x3fc45f306dc9c882
                                                                                : std::bit_cast<uint64_t>(operand.real);
    if (type == 'h' || type == 'H' || type == 'w' || type == 'W' || type == 'q') return half_of(operand.real);
    return std::bit_cast<uint32_t>(static_cast<float>(operand.real));
  }
  if (operand.hexadecimal && type == 'F') return operand.integer << 32;
  if (operand.hexadecimal && type == 'I') return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(operand.integer)));
  return operand.integer;
}

// Decoding of one instruction. What it cannot express it refuses.
class One {
 public:
  One(Program& program, std::span<const uint8_t> bytes, size_t at, const RegisterFile& file, const OpcodeTable& table,
      const InstructionTexts::Line& line)
      : program_(program), file_(file), table_(table), text_(parse_instruction(line.text)), at_(at) {
    raw_ = text_.mnemonic;
    i_.size = static_cast<uint8_t>(line.bytes / 4);
    for (unsigned k = 0; k < 2 && 4 * (at + k) + 4 <= bytes.size(); ++k) std::memcpy(&words_[k], &bytes[4 * (at + k)], 4);
  }

  Instruction decode() {
    strip();
    i_.row = table_.find(name_);
    if (!i_.row) refuse("unknown instruction");
    i_.run = i_.row->run;
    switch (i_.row->form) {
      case Form::scalar: scalar(); break;
      case Form::program: program(); break;
      case Form::scalar_memory: scalar_memory(); break;
      case Form::vector:
      case Form::accumulator: vector(); break;
      case Form::packed: packed(); break;
      case Form::matrix: matrix(); break;
      case Form::lds: lds(); break;
      case Form::global: global(); break;
      case Form::buffer: buffer(); break;
    }
    return i_;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    std::ostringstream message;
    message << what << ": " << raw_;
    for (size_t k = 0; k < text_.operands.size(); ++k) message << (k ? ", " : " ") << text_.operands[k].text;
    for (const std::string& m : text_.modifiers) message << " " << m;
    message << " at 0x" << std::hex << program_.begin + 4 * at_;
    throw Unavailable(message.str());
  }

 private:
  Program& program_;
  const RegisterFile& file_;
  const OpcodeTable& table_;
  InstructionText text_;
  size_t at_;
  std::string raw_, name_;
  uint32_t words_[2] = {0, 0};
  Instruction i_;
  bool dpp_ = false, sdwa_ = false;

  void strip() {
    name_ = text_.mnemonic;
    for (const std::string_view suffix : {"_e32", "_e64", "_dpp", "_sdwa"}) {
      if (!name_.ends_with(suffix) || name_[0] != 'v') continue;
      name_.resize(name_.size() - suffix.size());
      dpp_ = suffix == "_dpp";
      sdwa_ = suffix == "_sdwa";
      break;
    }
  }

  std::string_view outputs() const { return std::string_view(i_.row->signature).substr(0, std::string_view(i_.row->signature).find(':')); }
  std::string_view inputs() const { return std::string_view(i_.row->signature).substr(std::string_view(i_.row->signature).find(':') + 1); }

  void expect(size_t operands) const {
    if (text_.operands.size() != operands) refuse("operands that are not understood");
  }
  // Everything else that stands behind the operands is unknown.
  void allow(std::initializer_list<std::string_view> names) const {
    for (const std::string& m : text_.modifiers) {
      bool known = false;
      for (const std::string_view name : names) known |= m == name || (m.size() > name.size() && m.starts_with(name) && m[name.size()] == ':');
      if (!known) refuse("unknown modifier " + m);
    }
  }

  Operand vector_row(const TextOperand& t, unsigned words) const {
    if (t.kind != Kind::vector && t.kind != Kind::accumulator) refuse("operand " + t.text + " is no vector register");
    if (words != 0 && t.words != words) refuse("operand " + t.text + " has another width than its opcode");
    const unsigned first = t.kind == Kind::vector ? t.index : file_.accumulator_at + t.index;
    const unsigned end = t.kind == Kind::vector ? std::min(file_.accumulator_at, file_.vectors) : file_.vectors;
    if (first + t.words > end) refuse("register " + t.text + " is beyond those that the kernel allocates");
    Operand o;
    o.place = Place::vector;
    o.words = static_cast<uint8_t>(t.words);
    o.index = static_cast<uint16_t>(first);
    return o;
  }
  Operand scalar_register(const TextOperand& t, unsigned words) const {
    if (t.kind != Kind::scalar) refuse("operand " + t.text + " is no scalar register");
    if (t.words != words) refuse("operand " + t.text + " has another width than its opcode");
    if (t.index + words > kScalars) refuse("operand " + t.text + " does not exist");
    Operand o;
    o.place = Place::scalar;
    o.words = static_cast<uint8_t>(words);
    o.index = static_cast<uint16_t>(t.index);
    return o;
  }
  Operand constant(uint64_t value) const {
    Operand o;
    o.place = Place::constant;
    o.value = value;
    const uint32_t*& known = program_.rows_of[value];
    if (known) {
      o.rows = known;
      return o;
    }
    auto& rows = program_.constants.emplace_back();
    for (unsigned j = 0; j < kLanes; ++j) {
      rows[j] = static_cast<uint32_t>(value);
      rows[kLanes + j] = static_cast<uint32_t>(value >> 32);
    }
    o.rows = known = rows.data();
    return o;
  }
  // A source that may be anything.
  Operand source(const TextOperand& t, char type, bool allow_vector) const {
    if (type == 'V') return vector_row(t, 4);
    const unsigned words = is_wide(type) ? 2 : 1;
    switch (t.kind) {
      case Kind::vector:
      case Kind::accumulator:
        if (!allow_vector) refuse("operand " + t.text + " is no scalar");
        return vector_row(t, words);
      case Kind::scalar: return scalar_register(t, words);
      case Kind::integer:
        // The compiler has literals of unsigned operands extended by zeros; of signed ones it emits none.
        if (type == 'I' && t.hexadecimal && t.integer >> 31 == 1) refuse("64-bit use of literal " + t.text + " is not offered");
        return constant(constant_value(t, type));
      case Kind::real: return constant(constant_value(t, type));
      case Kind::aperture: return constant(words == 2 ? t.integer : 0);
      case Kind::scc: {
        Operand o;
        o.place = Place::scc;
        return o;
      }
      default: refuse("operand " + t.text + " is not offered");
    }
  }

  void scalar() {
    const std::string_view out = outputs(), in = inputs();
    expect(out.size() + in.size());
    allow({});
    for (size_t k = 0; k < out.size(); ++k) i_.to[k] = scalar_register(text_.operands[k], out[k] == 'S' ? 2 : 1);
    for (size_t k = 0; k < in.size(); ++k) i_.from[k] = source(text_.operands[out.size() + k], in[k], false);
  }

  void program() {
    const std::string_view out = outputs(), in = inputs();
    const auto immediate = static_cast<uint16_t>(words_[0]);
    if (in == "x") return;  // waits and hints
    size_t next = 0;
    for (size_t k = 0; k < out.size(); ++k) i_.to[k] = scalar_register(text_.operands.at(next++), out[k] == 'S' ? 2 : 1);
    for (const char type : in) {
      if (type == 'i') {
        i_.extra = words_[0] >> 8 & 15;  // SOPC: the second source's field
      } else if (type == 'g') {
        i_.from[0] = vector_row(text_.operands.at(next++), 1);
        i_.extra = immediate;
      } else if (type == 'n') {
        i_.extra = immediate;
      } else if (type == 't') {
        i_.target = static_cast<int16_t>(immediate) + i_.size;
      } else if (type == 'r') {
        hardware_register(immediate);
        ++next;
      } else {
        if (next >= text_.operands.size()) refuse("operands that are not understood");
        i_.from[0] = source(text_.operands[next++], type, false);
      }
    }
  }
  // MODE and, to read, XCC_ID. Of MODE rounding and denormals can be written.
  void hardware_register(uint16_t how) {
    i_.extra = how;
    const unsigned id = how & 63, first = how >> 6 & 31, last = first + (how >> 11);
    const bool writes = name_.starts_with("s_setreg");
    if (writes ? id != 1 || last > 7 : id != 1 && id != 20) refuse("hardware register that is not offered");
    program_.sets_mode |= writes;
    program_.sets_rounding |= writes && first < 4;
  }

  void scalar_memory() {
    const std::string_view out = outputs(), in = inputs();
    allow({"offset", "glc"});
    const unsigned words = out.empty() ? 0 : out[0] == 'x' ? 16 : static_cast<unsigned>(out[0] - '0');
    if (words) i_.to[0] = scalar_register(text_.operands.at(0), words);
    if (in.empty()) return;
    expect(3);
    i_.from[0] = scalar_register(text_.operands[1], in == "d" ? 4 : 2);
    const TextOperand& offset = text_.operands[2];
    if (offset.kind == Kind::integer) i_.offset = static_cast<int64_t>(offset.integer);
    else i_.from[1] = scalar_register(offset, 1);
    if (const auto extra = text_.modifier("offset")) i_.offset += std::strtoll(extra->c_str(), nullptr, 0);
  }

  // ---- vector -------------------------------------------------------------------------------------------
  Operand destination(const TextOperand& t, char type) const {
    if (type == 'b' || type == 'S') return scalar_register(t, 2);
    if (type == 's') return scalar_register(t, 1);
    return vector_row(t, type == 'V' ? 4 : is_wide(type) ? 2 : 1);
  }

  void vector() {
    if (text_.modifier("clamp") && !float_result()) clamp_row();
    const std::string_view out = outputs(), in = inputs();
    expect(out.size() + in.size());
    for (size_t k = 0; k < out.size(); ++k) i_.to[k] = destination(text_.operands[k], out[k]);
    for (size_t k = 0; k < in.size(); ++k) i_.from[k] = source(text_.operands[out.size() + k], in[k], true);
    if (in.size() == 2 && i_.to[0].place == Place::vector) i_.from[2] = i_.to[0];
    if (name_ == "v_swap_b32" && i_.from[0].place != Place::vector) refuse("operand that is not offered");
    if (name_.starts_with("v_cvt_") && name_.find('8') != std::string::npos && (name_.ends_with("fp8_f32") || name_.ends_with("bf8_f32") || name_.ends_with("fp8") || name_.ends_with("bf8"))) {
      eight_bit_selection();
      return;
    }
    change();
  }
  char result_type() const { return outputs().empty() ? 0 : outputs()[0]; }
  bool float_result() const { return std::strchr("fFhHP", result_type()) && result_type(); }
  void clamp_row() {
    i_.row = table_.find(name_ + ".clamp");
    if (!i_.row) refuse("modifier clamp is not offered for this opcode");
    i_.run = i_.row->run;
    std::erase(text_.modifiers, "clamp");
  }
  // Which byte or half the 8-bit float conversions read or write.
  void eight_bit_selection() {
    allow({"op_sel", "src0_sel"});
    for (const TextOperand& t : text_.operands)
      if (t.negate || t.absolute) refuse("negation is not offered for this opcode");
    if (dpp_) refuse("DPP is not offered for this opcode");
    const auto selects = text_.modifier("op_sel");
    const auto from = text_.modifier("src0_sel");
    if (from) {
      const unsigned s = selection(*from);
      i_.extra = static_cast<uint16_t>(s < 4 ? s : s == 5 ? 2 : 0);
    }
    if (!selects) return;
    const std::vector<unsigned> bits = parse_list(*selects);
    if (name_.starts_with("v_cvt_pk_fp8") || name_.starts_with("v_cvt_pk_bf8")) {
      for (size_t k = 0; k + 1 < bits.size(); ++k) if (bits[k]) refuse("op_sel of a source is not offered for this opcode");
      i_.extra = bits.back() ? 2 : 0;
    } else if (name_.starts_with("v_cvt_sr") && bits.size() == 4 && !bits[0] && !bits[1]) {
      i_.extra = static_cast<uint16_t>(bits[2] + 2 * bits[3]);
    } else {
      refuse("op_sel is not offered for this opcode");
    }
  }

  static unsigned selection_or(const std::string& name, unsigned otherwise) {
    static constexpr const char* kNames[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
    for (unsigned k = 0; k < 7; ++k) if (name == kNames[k]) return k;
    return otherwise;
  }
  unsigned selection(const std::string& name) const {
    const unsigned s = selection_or(name, 99);
    if (s == 99) refuse("unknown selection " + name);
    return s;
  }

  // Modifiers of sources and result: the plain operation runs on temporary rows.
  void change() {
    const std::string_view out = outputs(), in = inputs();
    allow({"clamp", "op_sel", "quad_perm", "row_shl", "row_shr", "row_ror", "wave_shl", "wave_rol", "wave_shr", "wave_ror",
           "row_mirror", "row_half_mirror", "row_bcast", "row_newbcast", "row_mask", "bank_mask", "bound_ctrl", "dst_sel",
           "dst_unused", "src0_sel", "src1_sel"});
    Changes c;
    bool any = false;
    for (size_t k = 0; k < in.size() && k < 3; ++k) any |= source_change(c.source[k], text_.operands[out.size() + k], in[k]);
    for (size_t k = 0; k < in.size(); ++k) {
      const TextOperand& t = text_.operands[out.size() + k];
      if ((t.negate || t.absolute || t.sign_extend) && (k >= 3 || !c.source[k].type)) refuse("sign modifier is not offered here");
    }
    if (dpp_) any |= dpp(c);
    if (sdwa_) any |= sdwa(c);
    c.result_type = result_type();
    c.result_is_mask = c.result_type == 'b' || c.result_type == 's' || c.result_type == 'S';
    if (text_.modifier("clamp")) {
      if (!float_result() || !file_.dx10_clamp) refuse("modifier clamp is not offered here");
      c.clamp = any = true;
    }
    any |= half_selection(c, in.size());
    // Classes of numbers tell denormals from zeros whatever the mode (LLVM maps is_fpclass to them).
    if (file_.may_flush && name_.find("_class_") == std::string::npos) any |= flushes(c, in);
    if (file_.may_round) any |= rounds(c, in);
    if (any) through_temporaries(c, out, in);
  }
  // Floats have a mode, doubles and halves another one, which is that of a double's conversion to a float, too
  // (LLVM, SIModeRegister.cpp: what it writes for llvm.fptrunc.round.f32.f64).
  static bool rounds(Changes& c, std::string_view in) {
    if (!c.result_type || !std::strchr("fFhHqP", c.result_type)) return false;
    const bool single = c.result_type == 'f' || c.result_type == 'P';
    c.round = single && in.find('F') == std::string_view::npos ? 'f' : 'h';
    return true;
  }
  static bool flushes(Changes& c, std::string_view in) {
    c.flush = false;
    for (const char type : in) c.flush |= std::strchr("fFhHqP", type) != nullptr;
    c.flush |= c.result_type && std::strchr("fFhHqP", c.result_type);
    return c.flush;
  }
  bool source_change(SourceChange& s, const TextOperand& t, char type) const {
    s.type = type;
    s.negate = t.negate;
    s.absolute = t.absolute;
    s.sign_extend = t.sign_extend;
    if ((t.negate || t.absolute) && !std::strchr("fFhHuU", type)) refuse("sign modifier on an operand that is no float");
    if ((t.negate || t.absolute) && std::strchr("uU", type) && !sign_of_bits()) refuse("sign modifier on an operand that is no float");
    return t.negate || t.absolute || t.sign_extend;
  }
  // Moves of floats: v_cndmask takes sign modifiers of a float.
  bool sign_of_bits() const { return name_ == "v_cndmask_b32" || name_ == "v_mov_b32" || name_ == "v_mov_b64"; }

  bool half_selection(Changes& c, size_t sources) {
    const char type = result_type();
    const bool keeps = type == 'H' || type == 'W';
    const auto list = text_.modifier("op_sel");
    c.keep_other_half = keeps;
    if (!list) return keeps;
    const std::vector<unsigned> bits = parse_list(*list);
    if (bits.size() != sources + 1) refuse("op_sel is not understood");
    for (size_t k = 0; k < sources; ++k) {
      if (!bits[k]) continue;
      if (!std::strchr("hHwW", c.source[k].type)) refuse("op_sel on an operand that has no halves");
      c.source[k].high_half = true;
    }
    if (bits[sources] && !std::strchr("hHwW", type)) refuse("op_sel on a result that has no halves");
    c.result_high_half = bits[sources];
    if (bits[sources]) c.keep_other_half = true;
    return true;
  }

  bool dpp(Changes& c) const {
    const uint32_t d = words_[1];
    c.dpp = true;
    c.dpp_control = d >> 8 & 0x1ff;
    c.dpp_bound_ctrl = d >> 19 & 1;
    c.dpp_banks = d >> 24 & 15;
    c.dpp_rows = static_cast<uint8_t>(d >> 28);
    const unsigned k = c.dpp_control;
    const bool known = k <= 0xff || (k > 0x100 && k <= 0x12f && (k & 15) != 0) || k == 0x130 || k == 0x134 || k == 0x138 ||
                       k == 0x13c || (k >= 0x140 && k <= 0x143) || (k >= 0x150 && k <= 0x15f);
    if (!known || name_.starts_with("v_cmpx") || name_ == "v_readfirstlane_b32" || name_ == "v_swap_b32") refuse("DPP control that is not offered");
    if (i_.from[0].place != Place::vector) refuse("DPP of an operand that is no vector register");
    return true;
  }
  bool sdwa(Changes& c) const {
    if (name_.starts_with("v_cmpx") || name_ == "v_readfirstlane_b32" || name_ == "v_swap_b32") refuse("SDWA is not offered for this opcode");
    for (unsigned k = 0; k < 2; ++k)
      if (const auto s = text_.modifier(k ? "src1_sel" : "src0_sel")) c.source[k].select = static_cast<uint8_t>(selection(*s));
    for (const SourceChange& s : c.source)
      if (s.select != 6 && is_wide(s.type)) refuse("SDWA of a 64-bit operand");
    if (const auto s = text_.modifier("dst_sel")) c.result_select = static_cast<uint8_t>(selection(*s));
    if (const auto s = text_.modifier("dst_unused")) {
      if (*s == "UNUSED_PAD") c.result_unused = 0;
      else if (*s == "UNUSED_SEXT") c.result_unused = 1;
      else if (*s == "UNUSED_PRESERVE") c.result_unused = 2;
      else refuse("unknown dst_unused");
    }
    return true;
  }

  void through_temporaries(const Changes& c, std::string_view out, std::string_view in) {
    Changes& kept = program_.changes.emplace_back(c);
    Instruction& plain = program_.plain.emplace_back(i_);
    for (size_t k = 0; k < in.size() && k < 3; ++k) {
      if (in[k] == 'b' || i_.from[k].place == Place::none) continue;
      plain.from[k] = Operand{};
      plain.from[k].place = Place::vector;
      plain.from[k].index = static_cast<uint16_t>(file_.vectors + 2 * k);
    }
    if (!out.empty() && out[0] != 'b' && out[0] != 's' && out[0] != 'S') {
      plain.to[0].index = static_cast<uint16_t>(file_.vectors + 8);
      if (in.size() == 2) plain.from[2] = plain.to[0];
    }
    kept.plain = &plain;
    i_.changes = &kept;
    i_.run = table_.modified();
  }

  // ---- packed -------------------------------------------------------------------------------------------
  unsigned list_bits(std::string_view name, size_t count, unsigned otherwise) const {
    const auto list = text_.modifier(name);
    if (!list) return otherwise;
    unsigned bits = 0;
    const std::vector<unsigned> values = parse_list(*list);
    if (values.size() < count) refuse(std::string(name) + " is not understood");
    for (size_t k = 0; k < count; ++k) bits |= values[k] << k;
    return bits;
  }
  void packed() {
    if (sdwa_) refuse("SDWA is not offered for this opcode");
    const bool clamp = text_.modifier("clamp").has_value();
    const bool halves = outputs() == "q" || outputs() == "P" || inputs() == "mmm";
    if (clamp && !halves) clamp_row();
    if (clamp && halves && !file_.dx10_clamp) refuse("modifier clamp is not offered here");
    allow({"op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp", "quad_perm", "row_shl", "row_shr", "row_ror", "wave_shl", "wave_rol",
           "wave_shr", "wave_ror", "row_mirror", "row_half_mirror", "row_bcast", "row_newbcast", "row_mask", "bank_mask", "bound_ctrl"});
    const std::string_view out = outputs(), in = inputs();
    expect(out.size() + in.size());
    i_.to[0] = destination(text_.operands[0], out[0]);
    const bool mixed = in == "mmm";
    const unsigned select = list_bits("op_sel", in.size(), 0);
    const unsigned select_high = list_bits("op_sel_hi", in.size(), mixed ? 0 : (1U << in.size()) - 1);
    unsigned negate = list_bits("neg_lo", in.size(), 0), negate_high = list_bits("neg_hi", in.size(), 0);
    for (size_t k = 0; k < in.size(); ++k) {
      const TextOperand& t = text_.operands[1 + k];
      if (t.negate || t.absolute) {
        if (!mixed || t.sign_extend) refuse("sign modifier is not offered here");
        negate |= t.negate ? 1U << k : 0;
        negate_high |= t.absolute ? 1U << k : 0;
      }
      const bool number = t.kind == Kind::integer || t.kind == Kind::real;
      i_.from[k] = source(t, mixed ? (select_high >> k & 1 ? 'h' : 'f') : in[k], true);
      if (number && in[k] == 'P' && i_.from[k].value != 0) {
        // One word is known, the other only if the low word is used for both.
        if ((select >> k & 1) || (select_high >> k & 1)) refuse("op_sel_hi of a constant is not offered here");
        i_.from[k] = constant(constant_value(t, 'f'));
      }
    }
    if (std::string_view(i_.row->name).starts_with("v_dot") || std::string_view(i_.row->name) == "v_pk_mov_b32") {
      const bool plain_dot = select == 0 && select_high == (1U << in.size()) - 1;
      if (negate || negate_high || (clamp && halves)) refuse("modifier is not offered for this opcode");
      if (std::string_view(i_.row->name).starts_with("v_dot") && !plain_dot) refuse("op_sel is not offered for this opcode");
    }
    const unsigned in_place = in.size() == 2 ? 4 : 0;  // what is accumulated onto
    i_.flags = select | (select_high | in_place) << 3 | negate << 6 | negate_high << 9 | (clamp && halves ? 1U << 12 : 0);
    change_packed(select_high);
  }
  // DPP, and what MODE does to packed floats. The operation itself has the modifiers.
  void change_packed(unsigned select_high) {
    const std::string_view out = outputs(), in = inputs();
    const std::string_view name = i_.row->name;
    const bool mixed = in == "mmm", sum = name.starts_with("v_dot") || (mixed && out == "h");
    Changes c;
    for (size_t k = 0; k < in.size(); ++k) c.source[k].type = !mixed ? in[k] : select_high >> k & 1 ? 'q' : 'f';
    c.result_type = out[0];
    bool any = dpp_ && dpp(c);
    std::string types;
    for (size_t k = 0; k < in.size(); ++k) types += c.source[k].type;
    if (file_.may_flush && name != "v_pk_mov_b32" && flushes(c, types)) {
      if (name.starts_with("v_dot")) refuse("dot products of floats with flushed denormals are not offered");
      any = true;
    }
    if (file_.may_round && name != "v_pk_mov_b32" && rounds(c, in)) {
      if (sum) c.round = '?';
      any = true;
    }
    if (!any) return;
    if (name == "v_fma_mixhi_f16") {  // a result for the upper half is one for the lower, moved
      i_.run = table_.find("v_fma_mixlo_f16")->run;
      c.result_high_half = true;
    }
    c.keep_other_half = mixed && out == "h";
    through_temporaries(c, out, in);
  }

  // ---- matrix -------------------------------------------------------------------------------------------
  void matrix() {
    allow({"cbsz", "abid", "blgp", "neg"});
    const std::string_view in = inputs();
    const bool sparse = in.size() == 4;
    expect(4);
    const auto words = [](char letter) -> unsigned { return letter == 'x' ? 16 : letter == 'y' ? 32 : static_cast<unsigned>(letter - '0'); };
    i_.to[0] = vector_row(text_.operands[0], words(outputs()[0]));
    for (unsigned k = 0; k < 2; ++k) i_.from[k] = vector_row(text_.operands[1 + k], words(in[k]));
    const TextOperand& c = text_.operands[3];
    if (sparse) {
      i_.from[3] = vector_row(c, 1);
      i_.from[2] = i_.to[0];
    } else if (c.kind == Kind::vector || c.kind == Kind::accumulator) {
      i_.from[2] = vector_row(c, words(in[2]));
    } else if (c.kind == Kind::integer || c.kind == Kind::real) {
      const std::string_view name = i_.row->name;
      i_.from[2] = constant(constant_value(c, name.starts_with("v_mfma_f64") ? 'F' : name.starts_with("v_mfma_i32") ? 'u' : 'f'));
    } else {
      refuse("operand " + c.text + " is not offered");
    }
    for (const TextOperand& t : text_.operands) if (t.negate || t.absolute) refuse("sign modifier is not offered here");
    const auto number = [&](std::string_view name) { const auto m = text_.modifier(name); return m ? static_cast<uint32_t>(std::strtoul(m->c_str(), nullptr, 0)) : 0U; };
    if (const auto negations = text_.modifier("neg")) {
      i_.flags = list_bits("neg", 3, 0) << 12;
    }
    i_.flags |= number("cbsz") | number("abid") << 4 | number("blgp") << 8;
    const bool f64 = std::string_view(i_.row->name).starts_with("v_mfma_f64");
    if (!f64 && i_.flags >> 12) refuse("modifier neg is not offered for this opcode");
    if ((i_.flags >> 8 & 15) == 3) refuse("blgp:3 is not offered");
    if (f64 && (i_.flags & 0xfff)) refuse("broadcast modifiers are not offered for this opcode");
    if (file_.may_flush || file_.may_round) i_.flags |= 1U << 15;
  }

  // ---- memory -------------------------------------------------------------------------------------------
  void lds() {
    const std::string_view out = outputs(), in = inputs();
    allow({"offset", "offset0", "offset1"});
    expect(out.size() + in.size());
    size_t next = 0;
    for (const char c : out) i_.to[0] = vector_row(text_.operands[next++], static_cast<unsigned>(c - '0'));
    for (size_t k = 0; k < in.size(); ++k) i_.from[k] = vector_row(text_.operands[next++], in[k] == 'a' ? 1 : static_cast<unsigned>(in[k] - '0'));
    const auto field = static_cast<uint16_t>(words_[0]);
    const bool two = name_.find("2_b") != std::string::npos || name_.find("2_rtn") != std::string::npos || name_.find("2st64_") != std::string::npos;
    i_.offset = two ? field & 0xff : field;
    i_.extra = two ? field >> 8 : 0;
  }

  void global() {
    allow({"offset", "sc0", "sc1", "nt"});
    const bool atomic = name_.find("_atomic_") != std::string::npos;
    const bool returns = atomic && text_.modifier("sc0").has_value();
    const bool flat = name_.starts_with("flat_"), scratch = name_.starts_with("scratch_");
    const bool coherent = text_.modifier("sc0") || text_.modifier("sc1");
    i_.flags = (returns ? kReturns : 0U) | (flat ? kFlat : 0U) | (scratch ? kScratch : 0U) | (coherent ? kCoherent : 0U);
    const std::string_view out = outputs(), in = inputs();
    const bool has_result = !out.empty() && (!atomic || returns);
    size_t next = 0;
    expect((has_result ? 1U : 0U) + in.size() + (flat ? 0U : 1U));
    if (has_result) i_.to[0] = vector_row(text_.operands[next++], static_cast<unsigned>(out[0] - '0'));
    const TextOperand& address = text_.operands[next++];
    if (in.size() > 1) i_.from[1] = vector_row(text_.operands[next++], static_cast<unsigned>(in[1] - '0'));
    if (!flat) {
      const TextOperand& base = text_.operands[next];
      if (base.kind != Kind::off) i_.from[2] = scalar_register(base, scratch ? 1 : 2);
    }
    const bool has_base = i_.from[2].place == Place::scalar;
    if (scratch && address.kind == Kind::off) i_.from[0].place = Place::off;
    else i_.from[0] = vector_row(address, scratch || has_base ? 1 : 2);
    if (const auto offset = text_.modifier("offset")) i_.offset = std::strtoll(offset->c_str(), nullptr, 0);
  }

  void buffer() {
    if (text_.modifier("lds")) {
      i_.row = table_.find(name_ + ".lds");
      if (!i_.row) refuse("a load to LDS that is not offered");
      i_.run = i_.row->run;
      text_.operands.insert(text_.operands.begin(), TextOperand{});  // the place of the result
    }
    const std::string_view out = outputs(), in = inputs();
    if (out.empty() && in.empty()) return;  // cache maintenance: memory is coherent here
    allow({"offset", "sc0", "sc1", "nt", "offen", "idxen", "lds"});
    const bool atomic = name_.find("_atomic_") != std::string::npos;
    const bool returns = atomic && text_.modifier("sc0").has_value();
    expect(4);
    // Loads name the result, stores and atomics the datum: an atomic's datum is overwritten.
    const TextOperand& data = text_.operands[0];
    if (in.size() > 1) i_.from[1] = vector_row(data, static_cast<unsigned>(in[1] - '0'));
    if (!out.empty()) {
      i_.to[0] = atomic ? i_.from[1] : vector_row(data, static_cast<unsigned>(out[0] - '0'));
      i_.to[0].words = static_cast<uint8_t>(out[0] - '0');
    }
    const bool offset = text_.modifier("offen").has_value(), index = text_.modifier("idxen").has_value();
    if (text_.operands[1].kind == Kind::off) { if (offset || index) refuse("operands that are not understood"); }
    else i_.from[0] = vector_row(text_.operands[1], offset && index ? 2 : 1);
    i_.from[2] = scalar_register(text_.operands[2], 4);
    i_.from[3] = source(text_.operands[3], 'u', false);
    const bool coherent = text_.modifier("sc0") || text_.modifier("sc1");
    i_.flags = (returns ? kReturns : 0U) | (offset ? kOffset : 0U) | (index ? kIndexed : 0U) | (coherent ? kCoherent : 0U);
    i_.offset = words_[0] & 0xfff;
  }
};

}  // namespace

OpcodeTable::OpcodeTable(const RowLists& lanes) : modified_(lanes.modified) {
  const RowList fixed[] = {scalar_rows(), scalar_memory_rows(), program_rows()};
  for (const RowList& list : fixed)
    for (size_t k = 0; k < list.count; ++k) rows_.emplace(list.first[k].name, &list.first[k]);
  for (size_t n = 0; n < lanes.count; ++n)
    for (size_t k = 0; k < lanes.first[n].count; ++k) rows_.emplace(lanes.first[n].first[k].name, &lanes.first[n].first[k]);
}
const Row* OpcodeTable::find(const std::string& name) const {
  const auto found = rows_.find(name);
  return found == rows_.end() ? nullptr : found->second;
}

void Decoder::decode_one(Program& program, std::span<const uint8_t> bytes, size_t at, const RegisterFile& file) const {
  const uint64_t address = program.begin + 4 * at;
  const InstructionTexts::Line line = texts_.at(bytes.subspan(4 * at), address);
  if (line.bytes < 4 || line.bytes % 4 != 0 || line.bytes > 12) {
    std::ostringstream message;
    message << "bytes that are no gfx942 instruction at 0x" << std::hex << address;
    throw Unavailable(message.str());
  }
  program.texts[at] = line.text;
  program.code[at].size = static_cast<uint8_t>(line.bytes / 4);  // also of what is refused: the next one begins behind it
  One one(program, bytes, at, file, table_, line);
  try {
    program.code[at] = one.decode();
  } catch (const std::out_of_range&) {
    one.refuse("operands that are not understood");
  }
}

namespace {
// Vector instructions between S_SET_GPR_IDX_ON, which is `on`, and OFF have relative registers. Only moves in straight code
// are offered; gives why the instruction at this word is not.
std::string relative_registers(Program& program, size_t at, const Instruction*& on, const RegisterFile& file) {
  Instruction& i = program.code[at];
  if (!i.row) return {};
  const std::string_view name = i.row->name;
  if (name == "s_set_gpr_idx_on") on = &i;
  else if (name == "s_set_gpr_idx_off") on = nullptr;
  else if (on && (i.row->form == Form::vector || i.row->form == Form::packed) && !i.changes && name == "v_mov_b32") {
    Changes& changes = program.changes.emplace_back();
    changes.plain = &program.plain.emplace_back(i);
    i.changes = &changes;
    i.extra = on->extra;
    i.offset = std::min(file.accumulator_at, file.vectors);
    i.run = run_indexed;
  } else if (on && (i.row->form == Form::vector || i.target != 0 || name == "s_set_gpr_idx_idx" || i.row->form == Form::packed)) {
    return "relative registers are not offered here: " + program.texts[at];
  }
  return {};
}

bool ends_run(const Instruction& i) {
  if (!i.row || i.row->reads_clock) return true;
  return i.row->form == Form::program && i.run != nothing;
}
}  // namespace

void mark_straight_runs(Program& program) {
  constexpr uint32_t kLongest = 1024;  // a part of a turn; longer ones are cut
  constexpr unsigned kLongestStep = 255;
  std::vector<Instruction>& code = program.code;
  for (size_t at = code.size(); at-- > 0;) {
    Instruction& i = code[at];
    const size_t behind = at + i.size;
    // Counters take the words of a run together: code that hides in this instruction's words must not lie inside of one.
    bool hides = false;
    for (size_t word = at + 1; word < std::min(behind, code.size()); ++word) hides |= code[word].row != nullptr;
    if (behind >= code.size() || ends_run(i) || hides || code[behind].left >= kLongest) continue;
    i.last = false;
    i.left = code[behind].left + 1;
    const Instruction& next = code[behind];
    const bool skips = next.run == nothing && !next.last && unsigned{i.size} + next.step <= kLongestStep;
    i.step = static_cast<uint8_t>(i.size + (skips ? next.step : 0));
  }
}

void Decoder::leave_out(Program& program, size_t at, const std::string& why) {
  const uint8_t size = program.code[at].size;
  program.code[at] = {};
  program.code[at].size = size;
  program.code[at].run = not_offered;
  program.refused[at] = why;
}

void Decoder::decode(Program& program, std::span<const uint8_t> bytes, size_t first, size_t last, const RegisterFile& file, bool reached) const {
  const bool throws = strict_ && reached;
  for (size_t at = first; at < last; at += program.code[at].size) {
    if (program.code[at].run) continue;
    try {
      decode_one(program, bytes, at, file);
    } catch (const Unavailable& refusal) {
      if (throws) throw;
      leave_out(program, at, refusal.what());
    }
  }
  const Instruction* on = nullptr;
  for (size_t at = first; at < last; at += program.code[at].size) {
    const std::string why = relative_registers(program, at, on, file);
    if (why.empty()) continue;
    if (throws) throw Unavailable(why);
    leave_out(program, at, why);
  }
}

}  // namespace rpl_emu
