// Modifiers of vector instructions: DPP and SDWA, signs, halves, clamp, flushed denormals. The plain
// operation runs on temporary rows. CDNA3 ISA, sections 6.3 to 6.5.
#include <cfenv>

#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

// The lane that lane j reads, or 64 where there is none.
unsigned dpp_lane(unsigned control, unsigned j) {
  const unsigned row = j & ~15U, at = j & 15, by = control & 15;
  if (control <= 0xff) return (j & ~3U) | (control >> (2 * (j & 3)) & 3);
  if (control >= 0x150) return row | by;
  switch (control >> 4) {
    case 0x10: return at + by < 16 ? j + by : kLanes;
    case 0x11: return at >= by ? j - by : kLanes;
    case 0x12: return row | ((at - by) & 15);
    default: break;
  }
  switch (control) {
    case 0x130: return j + 1;
    case 0x134: return (j + 1) & 63;
    case 0x138: return j == 0 ? kLanes : j - 1;
    case 0x13c: return (j - 1) & 63;
    case 0x140: return row | (15 - at);
    case 0x141: return (j & ~7U) | (7 - (j & 7));
    case 0x142: return row == 0 ? kLanes : row - 1;
    case 0x143: return j < 32 ? kLanes : 31;
    default: return kLanes;
  }
}

u32 select_part(u32 a, const SourceChange& s) {
  if (s.select < 4) {
    a = a >> (8 * s.select) & 0xff;
    return s.sign_extend ? static_cast<u32>(static_cast<int32_t>(static_cast<int8_t>(a))) : a;
  }
  if (s.select < 6) {
    a = a >> (16 * (s.select - 4U)) & 0xffff;
    return s.sign_extend ? static_cast<u32>(static_cast<int32_t>(static_cast<int16_t>(a))) : a;
  }
  return a;
}

bool wide(char type) { return type == 'F' || type == 'U' || type == 'I' || type == 'P'; }
// What denormals are flushed of: one float or double, one half, two halves, two floats.
bool flushed(char type) { return type && std::strchr("fFhHqP", type); }

void change_source(const Wave& w, const SourceChange& s, u32* row) {
  const u32 sign = s.type == 'h' || s.type == 'H' ? 0x8000 : 0x80000000;
  u32* upper = wide(s.type) ? row + kLanes : row;  // where the sign is
  if (s.high_half) for (unsigned j = 0; j < kLanes; ++j) row[j] >>= 16;
  if (s.select != 6) for (unsigned j = 0; j < kLanes; ++j) row[j] = select_part(row[j], s);
  else if (s.sign_extend && s.type == 'w') for (unsigned j = 0; j < kLanes; ++j) row[j] = static_cast<u32>(static_cast<int32_t>(static_cast<int16_t>(row[j])));
  if (s.absolute) for (unsigned j = 0; j < kLanes; ++j) upper[j] &= ~sign;
  if (s.negate) for (unsigned j = 0; j < kLanes; ++j) upper[j] ^= sign;
  (void)w;
}

// MODE: bits 4-5 floats, 6-7 halves and doubles; bit 0 of a pair keeps denormal sources, bit 1 results.
void flush(const Wave& w, char type, bool result, u32* row) {
  const bool single = type == 'f' || type == 'P';
  const bool keep = w.mode >> ((single ? 4 : 6) + (result ? 1 : 0)) & 1;
  if (keep) return;
  for (unsigned j = 0; j < kLanes; ++j) {
    if (single && !(row[j] & 0x7f800000)) row[j] &= 0x80000000;
    if (type == 'P' && !(row[kLanes + j] & 0x7f800000)) row[kLanes + j] &= 0x80000000;
    if (std::strchr("hHq", type) && !(row[j] & 0x7c00)) row[j] &= 0xffff8000;
    if (type == 'q' && !(row[j] & 0x7c000000)) row[j] &= 0x8000ffff;
    if (type == 'F' && !(row[kLanes + j] & 0x7ff00000)) {
      row[j] = 0;
      row[kLanes + j] &= 0x80000000;
    }
  }
}

void clamp_unit(char type, u32* row) {
  for (unsigned j = 0; j < kLanes; ++j) {
    if (type == 'f') {
      const float x = float_of(row[j]);
      row[j] = x > 0 ? (x > 1 ? 0x3f800000 : row[j]) : 0;
    } else if (type == 'F') {
      const auto x = lane_get<double>(row, j);
      lane_put<double>(row, j, x > 0 ? (x > 1 ? 1.0 : x) : 0.0);
    } else {
      const u32 h = row[j] & 0xffff;
      row[j] = (row[j] & 0xffff0000) | ((h & 0x8000) || h > 0x7c00 ? 0 : h > 0x3c00 ? 0x3c00 : h);
    }
  }
}

u32 place_part(u32 old, u32 value, const Changes& c) {
  if (c.result_high_half) return (old & 0xffff) | value << 16;
  if (c.keep_other_half) return (old & 0xffff0000) | (value & 0xffff);
  if (c.result_select == 6) return value;
  const unsigned bits = c.result_select < 4 ? 8 : 16;
  const unsigned at = c.result_select < 4 ? 8U * c.result_select : 16U * (c.result_select - 4U);
  const u32 mask = ((1U << bits) - 1) << at;
  const u32 part = value << at & mask;
  if (c.result_unused == 2) return (old & ~mask) | part;
  if (c.result_unused == 0) return part;
  return static_cast<u32>(static_cast<int32_t>(value << (32 - bits)) >> (32 - bits - at) & static_cast<int32_t>(~((1U << at) - 1)));
}

// CDNA3 ISA, MODE: two bits for floats, two for doubles and halves. Halves go by the host's direction, too, since
// `round_halves` is on wherever a kernel may ask for another one.
void run_rounded(Wave& w, const Changes& c, const Instruction& plain) {
  constexpr int kDirections[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const u32 single = w.mode & 3, twice = w.mode >> 2 & 3;
  const u32 wanted = c.round == 'f' ? single : twice;
  if (c.round == '?' && (single | twice) != 0) {
    w.refuse("a dot product or a mixed sum of halves rounded otherwise than to the nearest, which is not offered");
    return;
  }
  if (wanted == 0) {
    plain.run(w, plain);
    return;
  }
  const int before = std::fegetround();
  std::fesetround(kDirections[wanted]);
  plain.run(w, plain);
  std::fesetround(before);
}

}  // namespace

void run_modified(Wave& w, const Instruction& i) {
  const Changes& c = *i.changes;
  const Instruction& plain = *c.plain;
  u64 on = w.exec();
  const u64 exec = on;
  for (unsigned k = 0; k < 3; ++k) {
    const SourceChange& s = c.source[k];
    if (!s.type || s.type == 'b' || i.from[k].place == Place::none) continue;
    u32* to = w.v[plain.from[k].index];
    Temporary space;
    const u32* from = wide(s.type) ? source_rows<u64>(w, i.from[k], space) : source_rows<u32>(w, i.from[k], space);
    const unsigned words = wide(s.type) ? 2 : 1;
    if (k == 0 && c.dpp) {
      for (unsigned j = 0; j < kLanes; ++j) {
        const unsigned lane = dpp_lane(c.dpp_control, j);
        const bool valid = lane < kLanes && (exec >> lane & 1);
        for (unsigned r = 0; r < words; ++r) to[r * kLanes + j] = valid ? from[r * kLanes + lane] : 0;
        if ((!valid && !c.dpp_bound_ctrl) || !(c.dpp_rows >> (j / 16) & 1) || !(c.dpp_banks >> (j / 4 % 4) & 1)) on &= ~(u64{1} << j);
      }
    } else {
      std::memcpy(to, from, sizeof(u32) * kLanes * words);
    }
    change_source(w, s, to);
    if (c.flush && flushed(s.type)) flush(w, s.type, false, to);
  }
  w.set_exec(on);
  if (c.result_is_mask) {
    plain.run(w, plain);
    if (on != exec) w.set_exec(exec);  // V_CMPX, of which there is no DPP form, writes EXEC itself
    return;
  }
  u32* d = w.v[i.to[0].index];
  u32* r = w.v[plain.to[0].index];
  const unsigned words = wide(c.result_type) ? 2 : 1;
  std::memcpy(r, d, sizeof(u32) * kLanes * words);
  // Of a destination that is a source too, only its half counts.
  if (c.result_high_half) for (unsigned j = 0; j < kLanes; ++j) r[j] >>= 16;
  const bool in_place = plain.from[2].place == Place::vector && plain.from[2].index == plain.to[0].index;
  if (c.flush && in_place && flushed(c.result_type)) flush(w, c.result_type, false, r);
  if (c.round) run_rounded(w, c, plain);
  else plain.run(w, plain);
  if (c.flush && flushed(c.result_type)) flush(w, c.result_type, true, r);
  if (c.clamp) clamp_unit(c.result_type, r);
  if (words == 1)
    for (unsigned j = 0; j < kLanes; ++j) r[j] = place_part(d[j], r[j], c);
  merge_rows(d, r, on, words);
  w.set_exec(exec);
}

}  // namespace rpl_emu::inline RPL_EMU_BUILD
