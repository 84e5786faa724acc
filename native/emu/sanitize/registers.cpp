#include "sanitize/registers.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "opcodes/scalar.h"
#include "opcodes/table.h"

namespace rpl_emu {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};
constexpr uint64_t kWord = 0xffffffff;

std::string_view inputs_of(const Row& row) {
  const std::string_view signature = row.signature;
  return signature.substr(signature.find(':') + 1);
}
std::string_view outputs_of(const Row& row) {
  const std::string_view signature = row.signature;
  return signature.substr(0, signature.find(':'));
}
bool has(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}
bool begins(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.starts_with(part); });
}
// The result's low word knows nothing of the sources' high words; of packed floats each word is by itself.
bool rises(std::string_view name) { return begins(name, {"v_mad_u64", "v_mad_i64", "v_lshl_add_u64", "v_lshlrev_b64"}); }
bool leaves_scc(std::string_view name) {
  return begins(name, {"s_mov", "s_cselect", "s_mul", "s_cmov", "s_pack", "s_bfm", "s_brev", "s_sext", "s_getpc", "s_ff", "s_flbit", "s_bitset"});
}

}  // namespace

void RegisterShadow::start(const Wave& w, uint32_t rows, const std::array<bool, kScalars>& scalars) {
  rows_.assign(rows, {});
  rows_[0].known = w.full_exec;
  for (unsigned k = 0; k < kScalars; ++k) scalars_[k] = {scalars[k] ? kWord : 0, kNowhere};
  scc_ = {1, kNowhere};
}

// A word of a scalar or constant operand: known bits. Garbage without an origin is read here first.
RegisterShadow::Register RegisterShadow::word_of(const Operand& from, unsigned word) const {
  if (from.place == Place::scc) return {scc_.known ? kWord : 0, scc_.origin};
  if (from.place != Place::scalar || from.index + word >= kScalars) return {kWord, kNowhere};
  Register r = scalars_[from.index + word];
  if (r.known != kWord && r.origin == kNowhere) r.origin = pc_;
  return r;
}
RegisterShadow::Register RegisterShadow::pair_of(const Operand& from) const {
  const Register low = word_of(from, 0);
  if (from.words < 2) return {low.known | ~kWord, low.origin};
  const Register high = word_of(from, 1);
  return {low.known | high.known << 32, low.origin != kNowhere ? low.origin : high.origin};
}
// The lanes that know a word of an operand. A mask has a bit for each lane.
RegisterShadow::Register RegisterShadow::lanes_read(const Operand& from, unsigned word, bool mask) const {
  if (from.place == Place::vector) {
    const size_t at = size_t{from.index} + word;
    Register r = at < rows_.size() ? rows_[at] : Register{kAll, kNowhere};
    if (r.known != kAll && r.origin == kNowhere) r.origin = pc_;
    return r;
  }
  if (mask) return pair_of(from);
  const Register r = word_of(from, word);
  return {r.known == kWord ? kAll : 0, r.origin};
}

void RegisterShadow::set_scalar(const Operand& to, const Register& value) {
  for (unsigned word = 0; word < to.words && to.place == Place::scalar && to.index + word < kScalars; ++word)
    scalars_[to.index + word] = {value.known >> (word == 1 ? 32 : 0) & kWord, value.origin};
}
void RegisterShadow::set_lanes(const Operand& to, unsigned word, uint64_t lanes, const Register& value) {
  const size_t at = size_t{to.index} + word;
  if (to.place != Place::vector || at >= rows_.size()) return;
  Register& r = rows_[at];
  r.known = (r.known & ~lanes) | (value.known & lanes);
  if ((value.known & lanes) != lanes) r.origin = value.origin;
}
void RegisterShadow::all_known(const Operand& to, uint64_t lanes) {
  if (to.place == Place::scalar) {
    for (unsigned word = 0; word < to.words && to.index + word < kScalars; ++word) scalars_[to.index + word].known = kWord;
    return;
  }
  for (unsigned word = 0; word < to.words; ++word) set_lanes(to, word, lanes, {kAll, kNowhere});
}

// The operand takes effect.
void RegisterShadow::uses(const Operand& from, uint64_t lanes) {
  if (lanes == 0) return;
  for (unsigned word = 0; word < from.words; ++word) {
    const Register r = from.place == Place::vector ? lanes_read(from, word, false) : word_of(from, word);
    const uint64_t unknown = from.place == Place::vector ? lanes & ~r.known : ~r.known & kWord;
    if (unknown == 0) continue;
    const bool scalar = from.place != Place::vector;
    found_->push_back({r.origin, scalar ? 0U : static_cast<unsigned>(std::countr_zero(unknown)), from.index + word, scalar});
    return;
  }
}

void RegisterShadow::branch(const Instruction& i) {
  const std::string_view name = i.row->name;
  if (name.starts_with("s_cbranch_scc") && scc_.known == 0) found_->push_back({scc_.origin, 0, 0, true});
  if (!name.starts_with("s_cbranch_vcc")) return;
  Operand vcc;
  vcc.place = Place::scalar;
  vcc.index = kVcc;
  vcc.words = 2;
  uses(vcc, 1);
}
void RegisterShadow::check_exec() {
  for (const unsigned k : {kExec, kExec + 1}) {
    if (scalars_[k].known == kWord) continue;
    found_->push_back({scalars_[k].origin, 0, k, true});
    scalars_[k] = {kWord, kNowhere};
  }
}

void RegisterShadow::scalar(const Wave& w, const Instruction& i) {
  const std::string_view name = i.row->name;
  if (name.starts_with("s_movrel")) {  // which register, M0 says
    Operand to = i.to[0];
    if (name.starts_with("s_movreld")) to.index = static_cast<uint16_t>(to.index + w.s[kM0]);
    all_known(to, kAll);
    return;
  }
  const Register a = pair_of(i.from[0]);
  const Register b = pair_of(i.from[1]);
  const bool saves = has(name, {"saveexec"});
  const uint64_t x = i.from[0].words == 2 ? w.scalar64(i.from[0]) : w.scalar(i.from[0]);
  const uint64_t y = saves ? w.exec() : i.from[1].words == 2 ? w.scalar64(i.from[1]) : w.scalar(i.from[1]);
  const uint64_t origin = a.known != kAll ? a.origin : b.known != kAll ? b.origin : scc_.origin;
  const uint64_t bk = saves ? kAll : b.known;
  uint64_t known = a.known == kAll && b.known == kAll ? kAll : 0;
  const bool zeros = begins(name, {"s_and_", "s_nand_"});
  if (zeros) known = (a.known & bk) | (a.known & ~x) | (bk & ~y);
  else if (begins(name, {"s_or_", "s_nor_"})) known = (a.known & bk) | (a.known & x) | (bk & y);
  else if (name.starts_with("s_andn2_")) known = (a.known & bk) | (a.known & ~x) | (bk & y);
  else if (name.starts_with("s_orn2_")) known = (a.known & bk) | (a.known & x) | (bk & ~y);
  else if (begins(name, {"s_xor_", "s_xnor_", "s_mov_", "s_not_", "s_andn1_", "s_orn1_"})) known = a.known & bk;
  else if (name.starts_with("s_cselect_")) known = scc_.known == 0 ? 0 : w.scc ? a.known : b.known;
  else if (has(name, {"addc", "subb"}) && scc_.known == 0) known = 0;
  if (!leaves_scc(name)) scc_ = {known == kAll ? 1U : 0U, origin};
  if (saves) {
    set_scalar(i.to[0], {kAll, kNowhere});
    scalars_[kExec] = {known & kWord, origin};
    scalars_[kExec + 1] = {known >> 32, origin};
  } else {
    set_scalar(i.to[0], {known, origin});
  }
}

void RegisterShadow::vector(const Wave& w, const Instruction& i) {
  const std::string_view name = i.row->name;
  const std::string_view in = inputs_of(*i.row);
  const std::string_view out = outputs_of(*i.row);
  const uint64_t exec = w.exec();
  const bool onto = in.size() == 2 && has(name, {"fmac", "dot2c", "dot4c", "dot8c"});
  const size_t count = std::min<size_t>(in.size() + (onto ? 1 : 0), i.from.size());
  const bool dpp = i.changes && i.changes->dpp;
  const bool packed = !out.empty() && out[0] == 'P';
  for (unsigned word = 0; word < std::max<unsigned>(1, i.to[0].words); ++word) {
    Register all{kAll, kNowhere};
    for (size_t k = dpp ? 1 : 0; k < count; ++k) {
      const Operand& from = i.from[k];
      const bool mask = k < in.size() && in[k] == 'b';
      for (unsigned part = 0; part < (mask ? 1U : from.words); ++part) {
        if (from.words > 1 && !mask && ((packed && part != (i.flags >> (k + 3 * word) & 1)) || (rises(name) && part > word))) continue;
        const Register r = lanes_read(from, part, mask);
        if ((r.known & exec) != exec) all.origin = r.origin;
        all.known &= r.known;
      }
    }
    set_lanes(i.to[0], word, exec, all);
    for (size_t k = 0; k < out.size(); ++k)
      if (i.to[k].place == Place::scalar && word == 0) set_scalar(i.to[k], {all.known | ~exec, all.origin});
    if (name.starts_with("v_cmpx") && word == 0) {
      scalars_[kExec] = {(all.known | ~exec) & kWord, all.origin};
      scalars_[kExec + 1] = {(all.known | ~exec) >> 32, all.origin};
    }
  }
}

// Instructions that mix lanes: what they give counts as known, but for single lanes.
void RegisterShadow::lanes_of(const Wave& w, const Instruction& i) {
  const std::string_view name = i.row->name;
  const uint64_t exec = w.exec();
  if (name == "v_writelane_b32") {
    const unsigned lane = w.scalar(i.from[1]) & 63;
    // Spilled masks may be known in part: that is not followed into vector registers.
    const Register from = word_of(i.from[0], 0);
    set_lanes(i.to[0], 0, uint64_t{1} << lane, {from.known != 0 ? kAll : 0, from.origin});
    return;
  }
  const unsigned lane = name == "v_readlane_b32" ? w.scalar(i.from[1]) & 63 : exec == 0 ? 0 : static_cast<unsigned>(std::countr_zero(exec));
  const Register r = lanes_read(i.from[0], 0, false);
  set_scalar(i.to[0], {r.known >> lane & 1 ? kAll : 0, r.origin});
}

void RegisterShadow::memory(const Wave& w, const Instruction& i) {
  const uint64_t exec = w.exec();
  const std::string_view kind = i.row->counter;
  const bool lds = i.row->form == Form::lds;
  uses(i.from[0], i.row->form == Form::scalar_memory ? 1 : exec);
  if (kind != "lds.permute" && kind != "scratch.write") uses(i.from[1], exec);
  if (i.from[2].place != Place::none) uses(i.from[2], lds ? exec : 1);
  for (const Operand& to : i.to) all_known(to, exec);
}

void RegisterShadow::execute(const Wave& w, const Instruction& i, std::vector<UnwrittenUse>& found) {
  if (!i.row) return;
  found_ = &found;
  pc_ = static_cast<uint64_t>(&i - w.code);
  const std::string_view name = i.row->name;
  if (i.run == run_indexed) {  // which register, M0 says
    for (Register& r : rows_) r.known |= w.exec();
    return;
  }
  switch (i.row->form) {
    case Form::scalar: scalar(w, i); break;
    case Form::program:
      branch(i);
      all_known(i.to[0], 0);
      break;
    case Form::scalar_memory:
    case Form::lds:
    case Form::global:
    case Form::buffer: memory(w, i); break;
    case Form::matrix:
      for (const Operand& from : i.from) if (from.place == Place::vector) uses(from, w.exec());
      all_known(i.to[0], kAll);
      break;
    case Form::vector:
    case Form::packed:
    case Form::accumulator:
      if (name == "v_readlane_b32" || name == "v_readfirstlane_b32" || name == "v_writelane_b32") lanes_of(w, i);
      else vector(w, i);
      break;
  }
  check_exec();
}

}  // namespace rpl_emu
