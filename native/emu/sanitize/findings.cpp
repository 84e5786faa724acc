#include "sanitize/findings.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "opcodes/table.h"
#include "sanitize/cooperation.h"
#include "sanitize/registers.h"

namespace rpl_emu {
namespace {

constexpr size_t kMostFindings = 1000;
constexpr uint32_t kNobody = ~0U;

// Who touched four bytes last.
struct Touch {
  uint32_t group = kNobody, wave = 0, epoch = 0;
  uint64_t pc = 0;
  bool atomic = false;
};
struct Word {
  Touch writer, reader;
  uint32_t other_reader = kNobody;  // a second wave that read in the reader's epoch
  bool other_atomic = false;        // and whether by an atomic
  uint8_t written = 0;              // bytes of LDS that have been written
};

struct GroupShadow : Shadow {
  std::vector<Word> lds;
  std::vector<uint64_t> barrier_pc;
  std::vector<RegisterShadow> registers;  // by wave
  uint32_t rows = 0;
  uint32_t epoch = 0;
  uint32_t number = 0;
};

}  // namespace

struct Findings::Parts {
  std::mutex lock;
  std::map<std::tuple<std::string, uint64_t, uint64_t>, Finding> found;
  std::map<const Workgroup*, std::unique_ptr<Shadow>> groups;
  std::unordered_map<uint64_t, Word> memory;  // by address / 4, of all workgroups
  Cooperation* cooperation = nullptr;

  void add(const char* kind, const Wave& w, uint64_t pc, uint64_t other_pc, uint64_t address, unsigned lane, uint32_t other_wave) {
    const auto key = std::tuple(std::string(kind), pc, other_pc);
    const auto old = found.find(key);
    if (old != found.end()) {
      ++old->second.times;
      return;
    }
    if (found.size() >= kMostFindings) return;
    Finding f;
    f.kind = kind;
    f.pc = pc;
    f.other_pc = other_pc;
    f.address = address;
    for (unsigned k = 0; k < 3; ++k) f.group[k] = w.group->id[k];
    f.wave = w.index;
    f.other_wave = other_wave;
    f.lane = lane;
    found.emplace(key, f);
  }

  // Two accesses race when they are of different waves, one at least writes, not both are atomic, and no
  // barrier lies between them. Between workgroups nothing but atomics orders.
  static bool races(const Touch& old, const Wave& w, uint32_t epoch, bool atomic) {
    if (old.group == kNobody || (old.atomic && atomic)) return false;
    if (old.group != w.group->number) return true;
    return old.wave != w.index && old.epoch == epoch;
  }

  void check(Word& word, const Wave& w, uint32_t epoch, uint64_t pc, uint64_t address, unsigned lane, bool write, bool atomic, const char* kind, const char* between) {
    const auto name = [&](const Touch& t) { return t.group == w.group->number ? kind : between; };
    if (races(word.writer, w, epoch, atomic)) add(name(word.writer), w, pc, word.writer.pc, address, lane, word.writer.wave);
    const Touch now{w.group->number, w.index, epoch, pc, atomic};
    if (write) {
      if (races(word.reader, w, epoch, atomic)) add(name(word.reader), w, pc, word.reader.pc, address, lane, word.reader.wave);
      else if (word.other_reader != kNobody && word.reader.group == w.group->number && word.reader.epoch == epoch && word.other_reader != w.index && !(atomic && word.other_atomic))
        add(kind, w, pc, word.reader.pc, address, lane, word.other_reader);
      word.writer = now;
    }
    if (!write || atomic) {
      const bool same = word.reader.group == w.group->number && word.reader.epoch == epoch;
      if (same && word.reader.wave != w.index) {
        word.other_reader = word.reader.wave;
        word.other_atomic = word.reader.atomic;
      } else if (!same) {
        word.other_reader = kNobody;
      }
      word.reader = now;
    }
  }
};

namespace {

// The functions that lanes call know no object: the shadow carries it.
struct Carrier : GroupShadow {
  Findings::Parts* parts = nullptr;
};

// Volatile stores count as atomic, and read nothing.
bool only_stores(const Instruction& i) { return i.row && std::string_view(i.row->name).find("_store_") != std::string_view::npos; }

void touched(Wave& w, const Instruction& i, unsigned lane, uint64_t address, unsigned bytes, bool write, bool atomic, bool lds) {
  auto& shadow = static_cast<Carrier&>(*w.group->shadow);
  const auto pc = static_cast<uint64_t>(&i - w.code);
  const std::scoped_lock guard(shadow.parts->lock);
  if (shadow.parts->cooperation) shadow.parts->cooperation->access(w, i, lane, address, bytes, write, atomic, lds);
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    if (!lds) {
      shadow.parts->check(shadow.parts->memory[word], w, shadow.epoch, pc, address, lane, write, atomic, "memory-race", "memory-race-between-workgroups");
      continue;
    }
    if (word >= shadow.lds.size()) continue;
    Word& place = shadow.lds[word];
    const uint64_t low = std::max(address, 4 * word), high = std::min(address + bytes, 4 * word + 4);
    const auto mask = static_cast<uint8_t>(((1U << (high - low)) - 1) << (low - 4 * word));
    if ((!write || (atomic && !only_stores(i))) && (place.written & mask) != mask) {
      const bool partly = place.writer.group != kNobody;
      shadow.parts->add("lds-unwritten", w, pc, partly ? place.writer.pc : pc, address, lane, partly ? place.writer.wave : w.index);
    }
    if (write) place.written |= mask;
    shadow.parts->check(place, w, shadow.epoch, pc, address, lane, write, atomic, "lds-race", "lds-race");
  }
}

void executes(Wave& w, const Instruction& i) {
  auto& shadow = static_cast<Carrier&>(*w.group->shadow);
  if (shadow.parts->cooperation) shadow.parts->cooperation->execute(w, i);
  std::vector<UnwrittenUse> found;
  shadow.registers[w.index].execute(w, i, found);
  if (found.empty()) return;
  const auto pc = static_cast<uint64_t>(&i - w.code);
  const std::scoped_lock guard(shadow.parts->lock);
  for (const UnwrittenUse& one : found)
    shadow.parts->add(one.scalar ? "scalar-register-unwritten" : "register-unwritten", w, pc, one.read_pc, one.index, one.lane, w.index);
}

Carrier& of(Shadow* shadow) { return static_cast<Carrier&>(*shadow); }

}  // namespace

Findings::Findings(Cooperation* cooperation) : parts_(new Parts) { parts_->cooperation = cooperation; }
Findings::~Findings() { delete parts_; }

Shadow* Findings::open_group(const Workgroup& group, uint32_t lds_bytes, uint32_t waves, uint32_t rows) {
  auto shadow = std::make_unique<Carrier>();
  shadow->access = touched;
  shadow->execute = executes;
  shadow->registers.resize(waves);
  shadow->rows = rows;
  shadow->parts = parts_;
  shadow->lds.resize((lds_bytes + 3) / 4);
  shadow->barrier_pc.assign(waves, 0);
  shadow->number = group.number;
  const std::scoped_lock guard(parts_->lock);
  Shadow* plain = shadow.get();
  parts_->groups[&group] = std::move(shadow);
  if (parts_->cooperation) parts_->cooperation->group_started(group, waves);
  return plain;
}
void Findings::close_group(const Workgroup& group) {
  const std::scoped_lock guard(parts_->lock);
  if (parts_->cooperation) parts_->cooperation->group_ended(group);
  parts_->groups.erase(&group);
}
void Findings::wave_started(const Wave& w, const std::array<bool, kScalars>& scalars) {
  Carrier& shadow = of(w.group->shadow);
  shadow.registers[w.index].start(w, shadow.rows, scalars);
}

void Findings::wave_waits(const Wave& w) {
  const std::scoped_lock guard(parts_->lock);
  Carrier& shadow = of(w.group->shadow);
  const uint64_t pc = w.pc - 1;
  if (parts_->cooperation) parts_->cooperation->barrier(w);
  shadow.barrier_pc[w.index] = pc;
  if (w.exec() != w.full_exec) parts_->add("barrier-partial-exec", w, pc, pc, 0, 0, w.index);
  for (size_t k = 0; k < shadow.barrier_pc.size(); ++k)
    if (shadow.barrier_pc[k] != 0 && shadow.barrier_pc[k] != pc) parts_->add("barrier-different", w, pc, shadow.barrier_pc[k], 0, 0, static_cast<uint32_t>(k));
}
void Findings::wave_ended(const Wave&) {}

void Findings::barrier_passed(const Workgroup& group) {
  const std::scoped_lock guard(parts_->lock);
  Carrier& shadow = of(group.shadow);
  ++shadow.epoch;
  if (parts_->cooperation) parts_->cooperation->barrier_passed(group);
  std::ranges::fill(shadow.barrier_pc, 0);
}

std::vector<Finding> Findings::all() const {
  std::vector<Finding> out;
  out.reserve(parts_->found.size());
  for (const auto& [key, finding] : parts_->found) out.push_back(finding);
  return out;
}

}  // namespace rpl_emu
