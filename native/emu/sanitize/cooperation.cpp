#include "sanitize/cooperation.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "opcodes/table.h"

namespace rpl_emu {
namespace {

constexpr uint64_t kPrime = 0x9e3779b97f4a7c15, kBarrier = 1, kLds = uint64_t{1} << 63;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * kPrime;
  return hash ^ hash >> 29;
}

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0;
  for (const char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

// The same operation has several names: by address space, and by whether its old value is wanted.
uint64_t operation(const Instruction& i) {
  std::string_view name = i.row->name;
  for (const std::string_view space : {"global_", "flat_", "buffer_"})
    if (name.starts_with(space)) name.remove_prefix(space.size());
  std::string plain(name);
  if (const size_t at = plain.find("_rtn"); at != std::string::npos) plain.erase(at, 4);
  return hash_of(plain);
}

bool is_fence(const Instruction& i) {
  const std::string_view name = i.row ? i.row->name : "";
  return name.starts_with("buffer_wb") || name.starts_with("buffer_inv");
}

std::string place(uint64_t wave) {
  return "wave " + std::to_string(wave & 0xffffffff) + " of workgroup " + std::to_string(wave >> 32);
}

}  // namespace

uint64_t Cooperation::place_of(uint64_t address) const {
  for (const Named& n : named_)
    if (address >= n.begin && address < n.end) return n.name + (address - n.begin);
  return address;
}

Cooperation::WaveTrace& Cooperation::trace_of(const Wave& w) { return waves_[uint64_t{w.group->number} << 32 | w.index]; }

void Cooperation::add(LaneTrace& lane, uint64_t event) {
  lane.hash = mix(lane.hash, event);
  lane.last_fence = 0;
  ++lane.events;
}

void Cooperation::group_started(const Workgroup& group, uint32_t waves) {
  groups_[group.number] = {waves, 0};
  for (uint32_t k = 0; k < waves; ++k) waves_[uint64_t{group.number} << 32 | k];
}

void Cooperation::group_ended(const Workgroup& group) {
  const auto found = lds_.find(group.number);
  if (found == lds_.end()) return;
  for (auto& [at, word] : found->second) settle(word);
}

void Cooperation::launch_ended() {
  for (auto& [at, word] : memory_) settle(word);
}

uint32_t Cooperation::now_at(uint64_t place) {
  uint32_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(place), sizeof value);
  return value;
}

void Cooperation::settle(Word& word) {
  if (word.open && now_at(word.place) != word.before) {
    ++word.changed;
    word.changed_writes = mix(word.changed_writes, word.writer + 1);
  }
  word.open = false;
}

void Cooperation::touch(Word& word, const Wave& w, uint64_t place, bool write) const {
  const uint32_t group = w.group->number, epoch = groups_.at(group).epoch;
  if (word.group == ~0U) word.group = group;
  word.several_groups |= word.group != group;
  if (word.first_wave == ~0U) word.first_wave = w.index;
  word.several_waves |= word.first_wave != w.index;
  word.place = place;
  if (write) {
    word.written = true;
    if (word.writer == w.index && word.epoch == epoch) return;
    settle(word);
    word.before = now_at(place);
    word.open = true;
    ++word.version;
    word.writes = mix(word.writes, w.index + 1);
    word.writer = w.index;
    word.epoch = epoch;
    return;
  }
  if (word.writer == w.index && word.epoch == epoch) return;  // a compiler may keep it in a register
  const auto note = [&w](std::vector<uint32_t>& reads, uint32_t version) {
    const uint32_t read = w.index << 16 | (version & 0xffff);
    const auto at = std::ranges::lower_bound(reads, read);
    if (at == reads.end() || *at != read) reads.insert(at, read);
  };
  note(word.reads, word.version);
  note(word.changed_reads, word.changed + (word.open && now_at(place) != word.before ? 1 : 0));
}

void Cooperation::access(const Wave& w, const Instruction& i, unsigned lane, uint64_t address, unsigned bytes, bool write, bool atomic, bool lds) {
  if (atomic) {
    ++atomics_;
    const uint64_t where = lds ? kLds | (lds_places_ ? address : 0) : place_of(address);
    const uint64_t event = mix(mix(operation(i), where), bytes);
    WaveTrace& trace = trace_of(w);
    add(trace.lanes[lane], event);
    if (trace.seen.insert(event).second) trace.epochs.back() = mix(trace.epochs.back(), event);
    return;
  }
  Words& words = lds ? lds_[w.group->number] : memory_;
  const uint64_t begin = lds ? reinterpret_cast<uint64_t>(w.group->lds) : 0;
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) touch(words[lds ? word : place_of(4 * word)], w, begin + 4 * word, write);
}

void Cooperation::execute(const Wave& w, const Instruction& i) {
  const auto pc = static_cast<size_t>(&i - w.code);
  if (pc >= fence_at_.size()) fence_at_.resize(std::max<size_t>(pc + 1, 2 * fence_at_.size()));
  if (fence_at_[pc] == 0) fence_at_[pc] = is_fence(i) ? 2 : 1;
  if (fence_at_[pc] == 1) return;
  const uint64_t event = hash_of(i.row->name);
  WaveTrace& trace = trace_of(w);
  trace.fences = true;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!(w.exec() >> lane & 1) || trace.lanes[lane].last_fence == event) continue;
    add(trace.lanes[lane], event);
    trace.lanes[lane].last_fence = event;
  }
  if (trace.seen.insert(event).second) trace.epochs.back() = mix(trace.epochs.back(), event);
}

// A workgroup of one wave needs no barrier, and compilers leave it out.
void Cooperation::barrier(const Wave& w) {
  if (groups_.at(w.group->number).waves < 2) return;
  ++barriers_;
  WaveTrace& trace = trace_of(w);
  ++trace.barriers;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (w.full_exec >> lane & 1) add(trace.lanes[lane], kBarrier);
  trace.epochs.push_back(0);
  trace.seen.clear();
}

void Cooperation::barrier_passed(const Workgroup& group) { ++groups_.at(group.number).epoch; }

std::vector<uint64_t> Cooperation::histories(const Words& words) {
  std::vector<uint64_t> out;
  for (const auto& [at, word] : words) {
    if (!conflicts(word)) continue;
    uint64_t hash = mix(word.writes, word.reads.size());
    for (const uint32_t read : word.reads) hash = mix(hash, read);
    out.push_back(hash);
  }
  std::ranges::sort(out);
  return out;
}

// Reads may be fewer, or more of what the wave does not read in `a`: values that nobody needs. What the wave reads in
// both must be of a version that it reads in `a`. Where the writers are others, those writes count that change something.
std::optional<std::string> Cooperation::words_differ(const Words& a, const Words& b, const std::string& where) {
  std::vector<uint64_t> places;
  for (const auto& [at, word] : a) if (conflicts(word)) places.push_back(at);
  for (const auto& [at, word] : b) if (conflicts(word) && !a.contains(at)) places.push_back(at);
  std::ranges::sort(places);
  for (const uint64_t at : places) {
    static const Word kUntouched;
    const auto found_a = a.find(at), found_b = b.find(at);
    const Word& x = found_a == a.end() ? kUntouched : found_a->second;
    const Word& y = found_b == b.end() ? kUntouched : found_b->second;
    const std::string name = "word " + std::to_string(at) + " of " + where;
    const bool same_writers = x.writes == y.writes;
    if (!same_writers && x.changed_writes != y.changed_writes) return name + " is written by other waves, or in another order, between the barriers";
    const std::vector<uint32_t>& usual_reads = same_writers ? x.reads : x.changed_reads;
    for (const uint32_t read : same_writers ? y.reads : y.changed_reads) {
      if (std::ranges::binary_search(usual_reads, read)) continue;
      const auto same_wave = [&](uint32_t one) { return one >> 16 == read >> 16; };
      const auto usual = std::ranges::find_if(usual_reads, same_wave);
      if (usual == usual_reads.end()) continue;
      return "wave " + std::to_string(read >> 16) + " reads version " + std::to_string(read & 0xffff) + " of " + name + ", the baseline reads version " + std::to_string(*usual & 0xffff);
    }
  }
  return std::nullopt;
}

bool Cooperation::lds_unlike(const Cooperation& a, const Cooperation& b) {
  if (a.lds_places_) return false;
  const bool barriers = std::ranges::any_of(a.waves_, [&b](const auto& wave) {
    const auto other = b.waves_.find(wave.first);
    return other == b.waves_.end() || other->second.barriers != wave.second.barriers;
  });
  return barriers || std::ranges::any_of(a.lds_, [&b](const auto& of_group) {
    const auto other = b.lds_.find(of_group.first);
    return histories(of_group.second) != (other == b.lds_.end() ? std::vector<uint64_t>{} : histories(other->second));
  });
}

std::optional<std::string> Cooperation::difference(const Cooperation& a, const Cooperation& b) {
  for (const auto& [wave, x] : a.waves_) {
    const auto found = b.waves_.find(wave);
    if (found == b.waves_.end()) return place(wave) + " does not run";
    const WaveTrace& y = found->second;
    if (a.lds_places_ && x.barriers != y.barriers) return place(wave) + " passes " + std::to_string(y.barriers) + " barriers, the baseline " + std::to_string(x.barriers);
    // Without fences, atomics order nothing but themselves: what they do shows in the results, and plain accesses in
    // their place race.
    if (!x.fences && !y.fences) continue;
    const auto same = [&](unsigned lane) { return x.lanes[lane].hash == y.lanes[lane].hash; };
    unsigned lane = 0;
    while (lane < kLanes && same(lane)) ++lane;
    // Unrolling may take turns of lanes together otherwise; each wave's own order of kinds and places remains.
    if (lane < kLanes && x.epochs != y.epochs)
      return place(wave) + " has another sequence of barriers, atomics and fences: " + std::to_string(y.lanes[lane].events) + " of lane " + std::to_string(lane) + ", the baseline " + std::to_string(x.lanes[lane].events);
  }
  if (auto found = words_differ(a.memory_, b.memory_, "memory")) return found;
  if (!a.lds_places_) return std::nullopt;
  static const Words kNone;
  for (const auto& [group, words] : a.lds_) {
    const auto other = b.lds_.find(group);
    const Words& theirs = other == b.lds_.end() ? kNone : other->second;
    auto found = words_differ(words, theirs, "the LDS of workgroup " + std::to_string(group));
    if (found && histories(words) != histories(theirs)) return found;  // else words have changed their places
  }
  return std::nullopt;
}

}  // namespace rpl_emu
