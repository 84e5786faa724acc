// Program flow, waits, hardware registers, and scalar memory. CDNA3 ISA, section 12 (SOPP, SOP1, SOPK, SMEM).
#include <bit>
#include <cstring>

#include "machine/touched_lines.h"
#include "machine/traffic.h"
#include "opcodes/scalar.h"

namespace rpl_emu {

void nothing(Wave&, const Instruction&) {}
void not_offered(Wave& w, const Instruction&) { w.refuse("an instruction that is not offered"); }

namespace {

void end(Wave& w, const Instruction&) { w.stop = Stop::ended; }
void barrier(Wave& w, const Instruction&) { w.stop = Stop::barrier; }
void sleep(Wave& w, const Instruction&) { w.stop = Stop::yield; }
void trap(Wave& w, const Instruction&) {
  w.stop = Stop::trap;
  w.reason = "the kernel stopped itself (s_trap)";
}
// CDNA3 ISA, S_SENDMSG: of the messages of the table only the interrupt is one that a compute kernel sends; M0 is its data.
void send_message(Wave& w, const Instruction& i) {
  constexpr u32 kInterrupt = 1;
  if ((i.extra & 15) != kInterrupt) w.refuse("a message that is not offered (s_sendmsg)");
  else if (!w.group->interrupt) w.refuse("an interrupt, which nobody takes here (s_sendmsg): run the program by rpl emu run");
  else (*w.group->interrupt)(w.s[kM0]);
}
// CDNA3 ISA, section 12 (DS_GWS_INIT, DS_GWS_BARRIER): the value is that of the first lane that is on, and one less than
// the number of waves; a barrier brings the count of the next one.
unsigned sync_resource(const Wave& w, const Instruction& i) { return ((w.s[kM0] >> 16 & 63) + (i.extra & 63)) % 64; }
u32 sync_value(const Wave& w, const Instruction& i) { return w.v[i.from[0].index][std::countr_zero(w.exec() | u64{1} << 63)]; }
void sync_init(Wave& w, const Instruction& i) {
  const std::scoped_lock guard(w.group->sync->lock);
  w.group->sync->resources[sync_resource(w, i)] = {sync_value(w, i), false};
}
void sync_barrier(Wave& w, const Instruction& i) {
  const std::scoped_lock guard(w.group->sync->lock);
  GlobalSync::Resource& resource = w.group->sync->resources[sync_resource(w, i)];
  if (resource.counter == 0) {
    resource = {sync_value(w, i), !resource.flag};
    return;
  }
  --resource.counter;
  w.sync_resource = static_cast<uint8_t>(sync_resource(w, i));
  w.sync_flag = resource.flag;
  w.stop = Stop::resource;
}
// Targets count from the instruction itself; `pc` is behind it by now.
void jump(Wave& w, const Instruction& i) {
  w.pc = static_cast<u64>(static_cast<int64_t>(w.pc) - i.size + i.target);
}
template <auto F>
void branch(Wave& w, const Instruction& i) { if (F(w)) jump(w, i); }

u64 here(const Wave& w) { return w.code_begin + 4 * w.pc; }
void go_to(Wave& w, u64 address) {
  const u64 word = (address - w.code_begin) / 4;
  if (address < w.code_begin || word >= w.code_words || w.code[word].run == nullptr)
    w.fault(address, 0, false, "a jump to where there is no decoded code");
  else w.pc = word;
}
void get_pc(Wave& w, const Instruction& i) { w.set64(i.to[0].index, here(w)); }
void set_pc(Wave& w, const Instruction& i) { go_to(w, w.scalar64(i.from[0])); }
void swap_pc(Wave& w, const Instruction& i) {
  const u64 to = w.scalar64(i.from[0]);
  w.set64(i.to[0].index, here(w));
  go_to(w, to);
}
void call(Wave& w, const Instruction& i) {
  w.set64(i.to[0].index, here(w));
  jump(w, i);
}

// The immediate: register in bits 0-5, first bit in 6-10, number of bits less one in 11-15.
constexpr u32 kMode = 1, kXccId = 20;
void get_register(Wave& w, const Instruction& i) {
  const u32 value = (i.extra & 63) == kMode ? w.mode : w.xcc;
  const u32 width = (i.extra >> 11) + 1U;
  w.s[i.to[0].index] = value >> (i.extra >> 6 & 31) & (width >= 32 ? ~0U : (1U << width) - 1);
}
void set_register(Wave& w, const Instruction& i) {
  const u32 width = (i.extra >> 11) + 1U;
  const u32 at = i.extra >> 6 & 31;
  const u32 mask = (width >= 32 ? ~0U : (1U << width) - 1) << at;
  w.mode = (w.mode & ~mask) | (w.scalar(i.from[0]) << at & mask);
}

// Relative registers (CDNA3 ISA, S_SET_GPR_IDX_ON): M0 holds the distance and, in bits 12-15, for whom.
void index_on(Wave& w, const Instruction& i) {
  w.s[kM0] = (w.s[kM0] & ~0xf0ffU) | (w.scalar(i.from[0]) & 0xff) | u32{i.extra} << 12;
}
void index_set(Wave& w, const Instruction& i) { w.s[kM0] = (w.s[kM0] & ~0xffU) | (w.scalar(i.from[0]) & 0xff); }

template <unsigned Words>
void load(Wave& w, const Instruction& i) {
  const u64 offset = static_cast<u64>(i.offset) + (i.from[1].place == Place::none ? 0 : w.scalar(i.from[1]));
  const u64 address = (w.get64(i.from[0].index) + offset) & ~u64{3};
  const Range* range = w.ranges.find(address, address + 4 * Words, false, w.hint);
  if (!range) {
    w.fault(address, 0, false, "scalar load outside of mapped memory");
    return;
  }
  std::memcpy(&w.s[i.to[0].index], reinterpret_cast<const void*>(address + range->shift), 4 * Words);
  if (w.group->traffic) w.group->traffic->scalar_access(w, address, 4 * Words);
  if (w.touched) w.touched->mark(address, uint64_t{4} * Words, true, false);
  if (w.memory_count) {
    MemoryCount& count = w.memory_count[&i - w.code];
    count.bytes += 4 * Words;
    count.lines64 += ((address + 4 * Words - 1) >> 6) - (address >> 6) + 1;
    count.lines128 += ((address + 4 * Words - 1) >> 7) - (address >> 7) + 1;
  }
}
// By a buffer descriptor: outside of its range loads give 0.
template <unsigned Words>
void load_buffer(Wave& w, const Instruction& i) {
  const u32* d = &w.s[i.from[0].index];
  const u64 base = d[0] | u64{d[1] & 0xffff} << 32;
  const u32 stride = d[1] >> 16 & 0x3fff;
  const u64 bytes = stride ? u64{stride} * d[2] : d[2];
  const u64 offset = (static_cast<u64>(i.offset) + (i.from[1].place == Place::none ? 0 : w.scalar(i.from[1]))) & ~u64{3};
  u32 out[Words];
  for (unsigned k = 0; k < Words; ++k) {
    out[k] = 0;
    if (offset + 4 * k + 4 > bytes) continue;
    const u64 address = base + offset + 4 * k;
    const Range* range = w.ranges.find(address, address + 4, false, w.hint);
    if (!range) {
      w.fault(address, 0, false, "scalar buffer load outside of mapped memory");
      return;
    }
    std::memcpy(&out[k], reinterpret_cast<const void*>(address + range->shift), 4);
    if (w.group->traffic) w.group->traffic->scalar_access(w, address, 4);
    if (w.touched) w.touched->mark(address, 4, true, false);
  }
  std::memcpy(&w.s[i.to[0].index], out, sizeof out);
}
void time(Wave& w, const Instruction& i) { w.set64(i.to[0].index, w.clock); }

#define RPL_P(name, signature, counter, ...) {#name, Form::program, signature, counter, __VA_ARGS__, ""}
#define RPL_BRANCH(name, test) RPL_P(name, ":t", "branch", (branch<[](const Wave& w) -> bool { return test; }>))

const Row kProgram[] = {
    RPL_P(s_nop, ":x", "internal", nothing), RPL_P(s_waitcnt, ":x", "internal", nothing),
    RPL_P(s_setprio, ":x", "internal", nothing), RPL_P(s_sethalt, ":x", "internal", trap),
    RPL_P(s_icache_inv, ":x", "internal", nothing), RPL_P(s_wakeup, ":x", "internal", nothing),
    RPL_P(s_ttracedata, ":x", "internal", nothing), RPL_P(s_incperflevel, ":x", "internal", nothing),
    RPL_P(s_decperflevel, ":x", "internal", nothing),
    RPL_P(s_sleep, ":x", "internal", sleep), RPL_P(s_endpgm, ":x", "internal", end),
    RPL_P(s_trap, ":x", "internal", trap), RPL_P(s_sendmsg, ":n", "internal", send_message),
    RPL_P(ds_gws_init, ":g", "gds", sync_init), RPL_P(ds_gws_barrier, ":g", "gds", sync_barrier), RPL_P(s_barrier, ":x", "barrier", barrier),
    RPL_BRANCH(s_branch, ((void)w, true)),
    RPL_BRANCH(s_cbranch_scc0, w.scc == 0), RPL_BRANCH(s_cbranch_scc1, w.scc != 0),
    RPL_BRANCH(s_cbranch_vccz, w.get64(kVcc) == 0), RPL_BRANCH(s_cbranch_vccnz, w.get64(kVcc) != 0),
    RPL_BRANCH(s_cbranch_execz, w.exec() == 0), RPL_BRANCH(s_cbranch_execnz, w.exec() != 0),
    RPL_P(s_set_gpr_idx_on, ":ui", "salu", index_on), RPL_P(s_set_gpr_idx_idx, ":u", "salu", index_set),
    RPL_P(s_set_gpr_idx_off, ":x", "salu", nothing),
    RPL_P(s_getpc_b64, "S:", "salu", get_pc), RPL_P(s_setpc_b64, ":U", "salu", set_pc),
    RPL_P(s_swappc_b64, "S:U", "salu", swap_pc), RPL_P(s_call_b64, "S:t", "salu", call),
    RPL_P(s_getreg_b32, "s:r", "salu", get_register), RPL_P(s_setreg_b32, ":ru", "salu", set_register),
    RPL_P(s_setreg_imm32_b32, ":ru", "salu", set_register),
};

#define RPL_M(name, signature, ...) {#name, Form::scalar_memory, signature, "smem", __VA_ARGS__, ""}
constexpr const char* kTime = "counts this wave's instructions, not time";
const Row kMemory[] = {
    RPL_M(s_load_dword, "1:a", load<1>), RPL_M(s_load_dwordx2, "2:a", load<2>), RPL_M(s_load_dwordx4, "4:a", load<4>),
    RPL_M(s_load_dwordx8, "8:a", load<8>), RPL_M(s_load_dwordx16, "x:a", load<16>),
    RPL_M(s_buffer_load_dword, "1:d", load_buffer<1>), RPL_M(s_buffer_load_dwordx2, "2:d", load_buffer<2>),
    RPL_M(s_buffer_load_dwordx4, "4:d", load_buffer<4>), RPL_M(s_buffer_load_dwordx8, "8:d", load_buffer<8>),
    RPL_M(s_buffer_load_dwordx16, "x:d", load_buffer<16>),
    RPL_M(s_dcache_inv, ":", nothing), RPL_M(s_dcache_wb, ":", nothing), RPL_M(s_dcache_inv_vol, ":", nothing),
    RPL_M(s_dcache_wb_vol, ":", nothing),
    {"s_memtime", Form::scalar_memory, "2:", "smem", time, kTime, true},
    {"s_memrealtime", Form::scalar_memory, "2:", "smem", time, kTime, true},
};

}  // namespace

void run_indexed(Wave& w, const Instruction& i) {
  Instruction moved = *i.changes->plain;
  const u32 by = w.s[kM0] & 0xff;
  const auto move = [&](Operand& o, unsigned bit) {
    if (o.place != Place::vector || !(i.extra >> bit & 1)) return true;
    const u32 end = o.index + by + o.words;
    if (end > static_cast<u64>(i.offset)) return false;
    o.index = static_cast<uint16_t>(o.index + by);
    return true;
  };
  if (!move(moved.from[0], 0) || !move(moved.from[1], 1) || !move(moved.from[2], 2) || !move(moved.to[0], 3)) {
    w.fault(by, 0, false, "a relative register beyond those that the kernel allocates");
    return;
  }
  moved.run(w, moved);
}

RowList program_rows() { return {kProgram, sizeof kProgram / sizeof *kProgram}; }
RowList scalar_memory_rows() { return {kMemory, sizeof kMemory / sizeof *kMemory}; }
}  // namespace rpl_emu
