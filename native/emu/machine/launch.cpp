#include "machine/launch.h"

#include <atomic>
#include <bit>
#include <cfenv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "model/caches.h"
#include "sanitize/findings.h"

namespace rpl_emu {
namespace {

// MI300X, for the number of workgroups that are under way together (CDNA3 white paper, LLVM AMDGPUUsage).
constexpr uint32_t kComputeUnits = 304, kSimds = 4, kMostWavesPerSimd = 8, kLdsPerUnit = 65536, kXccs = 8;
constexpr uint32_t kVectorsPerSimdLane = 512;

void undecoded(Wave& w, const Instruction&) { w.fault(w.code_begin + 4 * (w.pc - 1), 0, false, "ran into bytes that were not decoded as code"); }

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

struct FreeAligned { void operator()(void* p) const { std::free(p); } };
template <class T>
std::unique_ptr<T[], FreeAligned> aligned(size_t count) {
  void* p = std::aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64);
  if (!p) throw std::bad_alloc();
  return std::unique_ptr<T[], FreeAligned>(static_cast<T*>(p));
}

constexpr size_t kGarbage = 8192;

// What all workgroups share.
struct Job {
  const Kernel& kernel;
  const Program& program;
  const RowLists& lanes;
  const LaunchSizes& sizes;
  const Limits& limits;
  Findings* findings;
  TrafficSink* log;
  CacheModel* caches = nullptr;
  RegisterFile file{};
  Ranges ranges{};
  const Placed* placed = nullptr;
  GlobalSync own_sync{};  // NOLINT(readability-redundant-member-init)
  uint64_t kernarg = 0, packet = 0, queue = 0;
  const uint8_t* kernarg_bytes = nullptr;
  uint32_t lds_bytes = 0, scratch_bytes = 0, mode = 0;
  std::array<uint32_t, 3> groups{};
  uint64_t total = 0;
  uint64_t start_pc = 0;
  std::array<uint8_t, kGarbage> garbage{};
  std::vector<uint32_t> ids{};  // NOLINT(readability-redundant-member-init): of a whole workgroup
  std::atomic<uint64_t> next{0}, instructions{0}, waves{0};
  std::atomic<bool> stop{false}, rounded{false};
  std::mutex lock{};  // NOLINT(readability-redundant-member-init): aggregates leave it out
  LaunchResult result{};
  std::chrono::steady_clock::time_point deadline{};  // NOLINT(readability-redundant-member-init)
};

// What v0 holds at the start: the place in the workgroup, ten bits for each axis that the kernel asks for. The
// compiler takes v0 for x, unmasked, where it asks for no y (LLVM AMDGPUUsage, ENABLE_VGPR_WORKITEM_ID).
void work_item_ids(const Job& job, const std::array<uint32_t, 3>& size, uint32_t first, uint32_t count, uint32_t* ids) {
  const uint32_t further_axes = job.kernel.descriptor.rsrc2 >> 11 & 3;
  const uint32_t asked = further_axes == 0 ? 0x3ff : further_axes == 1 ? 0xfffff : 0x3fffffff;
  uint32_t x = first % size[0], y = first / size[0] % size[1], z = first / size[0] / size[1];
  for (uint32_t j = 0; j < count; ++j) {
    ids[j] = (x | y << 10 | z << 20) & asked;
    if (++x < size[0]) continue;
    x = 0;
    if (++y < size[1]) continue;
    y = 0;
    ++z;
  }
}

// One workgroup under way.
class Group {
 public:
  explicit Group(Job& job) : job_(job), lds_(aligned<uint8_t>(job.lds_bytes + 64)) {
    const uint32_t items = job.sizes.block[0] * job.sizes.block[1] * job.sizes.block[2];
    most_waves_ = (items + kLanes - 1) / kLanes;
    rows_ = job.file.vectors + kTemporaryRows;
    vectors_ = aligned<uint32_t>(size_t{most_waves_} * rows_ * kLanes);
    if (job.scratch_bytes) scratch_ = aligned<uint8_t>(size_t{most_waves_} * kLanes * job.scratch_bytes);
    waves_ = std::make_unique<Wave[]>(most_waves_);
  }

  void start(uint64_t number, MemoryCount* memory, TouchedLines* touched) {
    state_ = {};
    state_.lds = lds_.get();
    state_.lds_bytes = job_.lds_bytes;
    state_.sync = job_.placed->sync ? job_.placed->sync : &job_.own_sync;
    if (job_.placed->interrupt) state_.interrupt = &job_.placed->interrupt;
    state_.traffic = job_.log ? job_.log : job_.caches;
    state_.number = static_cast<uint32_t>(number);
    state_.id[0] = static_cast<uint32_t>(number % job_.groups[0]);
    state_.id[1] = static_cast<uint32_t>(number / job_.groups[0] % job_.groups[1]);
    state_.id[2] = static_cast<uint32_t>(number / job_.groups[0] / job_.groups[1]);
    if (job_.findings) state_.shadow = job_.findings->open_group(state_, job_.lds_bytes, most_waves_, rows_);
    std::array<uint32_t, 3> size{};
    for (unsigned k = 0; k < 3; ++k)
      size[k] = std::min(job_.sizes.block[k], job_.sizes.grid[k] - state_.id[k] * job_.sizes.block[k]);
    const uint32_t items = size[0] * size[1] * size[2];
    count_ = (items + kLanes - 1) / kLanes;
    fill(lds_.get(), job_.lds_bytes, number * 2 + 1);
    for (uint32_t k = 0; k < count_; ++k)
      fill(vectors_.get() + size_t{k} * rows_ * kLanes, size_t{job_.file.vectors} * kLanes * 4, number * 2 + uint64_t{k} * 7919);
    if (scratch_) fill(scratch_.get(), size_t{count_} * kLanes * job_.scratch_bytes, number);
    for (uint32_t k = 0; k < count_; ++k) start_wave(k, size, items, memory, touched);
    live_ = count_;
    job_.waves += count_;
  }

  // Each wave goes on for a quantum, or to where it waits. True when all have ended.
  bool step(Count* counts, uint64_t& done) {
    for (uint32_t turn = 0; turn < count_; ++turn) {
      const uint32_t k = job_.limits.order % 2 == 0 ? turn : count_ - 1 - turn;
      Wave& w = waves_[k];
      if (w.stop == Stop::ended || w.stop == Stop::barrier) continue;
      if (w.stop == Stop::resource && state_.sync->flag(w.sync_resource) == w.sync_flag) continue;
      w.stop = Stop::none;
      done += job_.lanes.run_wave(w, counts, job_.limits.rounding == Rounding::drawn ? draw_rounding() : job_.limits.quantum);
      if (w.stop == Stop::fault && reaches_more(w)) {
        count_run(counts, w.pc, w.pc, -static_cast<uint64_t>(std::popcount(w.exec())), -1);
        continue;
      }
      if (w.stop >= Stop::fault) {
        report(w);
        return true;
      }
      if (w.stop == Stop::ended) {
        --live_;
        if (job_.findings) job_.findings->wave_ended(w);
      } else if (w.stop == Stop::barrier) {
        ++waiting_;
        if (job_.findings) job_.findings->wave_waits(w);
      }
    }
    if (live_ == 0) {
      if (job_.findings) job_.findings->close_group(state_);
      return true;
    }
    if (waiting_ == live_) release();
    return false;
  }

  [[nodiscard]] bool spins() const { return waiting_ != live_; }

 private:
  Job& job_;
  Workgroup state_;
  std::unique_ptr<uint8_t[], FreeAligned> lds_, scratch_;
  std::unique_ptr<uint32_t[], FreeAligned> vectors_;
  std::unique_ptr<Wave[]> waves_;
  uint32_t most_waves_ = 0, rows_ = 0, count_ = 0, live_ = 0, waiting_ = 0;
  uint64_t drawn_ = 0;

  // For how many instructions.
  uint64_t draw_rounding() {
    constexpr int kModes[] = {FE_UPWARD, FE_DOWNWARD, FE_TONEAREST, FE_TOWARDZERO};
    const uint64_t bits = mixed(job_.limits.seed << 40 ^ uint64_t{state_.number} << 20 ^ ++drawn_);
    std::fesetround(kModes[bits & 3]);
    return 1 + (bits >> 8) % 12;
  }

  // Whether memory was mapped meanwhile where the wave wants to go; then it takes the instruction again.
  bool reaches_more(Wave& w) {
    if (!job_.placed->ranges_now || w.fault_address == 0) return false;
    const std::scoped_lock guard(job_.lock);
    uint32_t hint = 0;
    const uint64_t last = w.fault_address + 1;
    if (w.ranges.find(w.fault_address, last, w.fault_write, hint)) return false;
    const Ranges now = job_.placed->ranges_now();
    hint = 0;
    if (!now.find(w.fault_address, last, w.fault_write, hint)) return false;
    job_.ranges = now;
    for (uint32_t k = 0; k < count_; ++k) {
      waves_[k].ranges = now;
      waves_[k].hint = 0;
    }
    w.stop = Stop::none;
    return true;
  }

  void release() {
    for (uint32_t k = 0; k < count_; ++k)
      if (waves_[k].stop == Stop::barrier) waves_[k].stop = Stop::none;
    waiting_ = 0;
    if (job_.findings) job_.findings->barrier_passed(state_);
  }

  // Seeded garbage: what hardware leaves there is not known either. A call of memmove is quicker than what the compiler
  // makes of memcpy.
  void fill(void* place, size_t bytes, uint64_t salt) const {
    const auto& block = job_.garbage;
    const size_t first = mixed(salt) % (block.size() / 2);
    constexpr size_t kPart = kGarbage / 2;
    for (size_t at = 0; at < bytes; at += kPart)
      std::memmove(static_cast<uint8_t*>(place) + at, block.data() + first, std::min(kPart, bytes - at));
  }

  void start_wave(uint32_t k, const std::array<uint32_t, 3>& size, uint32_t items, MemoryCount* memory, TouchedLines* touched) {
    Wave& w = waves_[k];
    w = Wave{};
    fill(w.s, sizeof w.s, state_.number * 4096 + k);
    w.v = reinterpret_cast<uint32_t(*)[kLanes]>(vectors_.get() + size_t{k} * rows_ * kLanes);
    w.code = job_.program.code.data();
    w.code_words = job_.program.code.size() - 1;
    w.code_begin = job_.program.begin;
    w.pc = job_.start_pc;
    w.mode = job_.mode;
    w.group = &state_;
    w.ranges = job_.ranges;
    w.scratch = scratch_.get() + (scratch_ ? size_t{k} * kLanes * job_.scratch_bytes : 0);
    w.scratch_bytes = job_.scratch_bytes;
    w.index = k;
    w.xcc = state_.number % kXccs;
    w.memory_count = memory;
    w.touched = touched;
    w.s[kM0] = 0;
    const uint32_t first = k * kLanes;
    const uint32_t lanes = std::min(kLanes, items - first);
    w.set_exec(lanes == kLanes ? ~uint64_t{0} : (uint64_t{1} << lanes) - 1);
    w.full_exec = w.exec();
    if (size == job_.sizes.block) std::memmove(w.v[0], &job_.ids[first], lanes * sizeof(uint32_t));
    else work_item_ids(job_, size, first, lanes, w.v[0]);
    std::array<bool, kScalars> set{};
    scalar_registers(w, set);
    if (job_.findings) Findings::wave_started(w, set);
  }

  // LLVM AMDGPUUsage, "Initial Kernel Execution State".
  void scalar_registers(Wave& w, std::array<bool, kScalars>& set) const {
    const Descriptor& d = job_.kernel.descriptor;
    unsigned at = 0;
    const auto put = [&](uint32_t value) {
      set[at] = true;
      w.s[at++] = value;
    };
    const auto pair = [&](unsigned bit, uint64_t value) {
      if (!(d.properties >> bit & 1)) return;
      put(static_cast<uint32_t>(value));
      put(static_cast<uint32_t>(value >> 32));
    };
    for (const unsigned k : {kFlatScratch, kFlatScratch + 1, kXnack, kXnack + 1, kM0, kExec, kExec + 1}) set[k] = true;
    if (d.properties & 1) at += 4;
    pair(1, job_.packet);
    pair(2, job_.queue);
    pair(3, job_.kernarg);
    pair(4, 1);
    pair(5, 0);
    if (d.properties >> 6 & 1) put(job_.scratch_bytes);
    const unsigned words = d.preload & 127, offset = d.preload >> 7;
    for (unsigned k = 0; k < words && at < 16; ++k) {
      uint32_t value = 0;
      std::memcpy(&value, job_.kernarg_bytes + uint64_t{4} * (offset + k), sizeof value);
      put(value);
    }
    at = d.rsrc2 >> 1 & 31;
    for (unsigned k = 0; k < 3; ++k)
      if (d.rsrc2 >> (7 + k) & 1) put(state_.id[k]);
  }

  void report(const Wave& w) const {
    const std::scoped_lock guard(job_.lock);
    job_.stop = true;
    LaunchResult& r = job_.result;
    if (r.outcome != Outcome::ended) return;
    r.outcome = w.stop == Stop::trap ? Outcome::trap : w.stop == Stop::unsupported ? Outcome::unsupported : Outcome::fault;
    r.reason = w.reason ? w.reason : "stopped";
    if (const auto refused = job_.program.refused.find(w.pc); refused != job_.program.refused.end()) r.reason = refused->second;
    r.where = {{state_.id[0], state_.id[1], state_.id[2]}, w.index, w.pc};
    r.address = w.fault_address;
    r.lane = w.fault_lane;
    r.write = w.fault_write;
  }

 public:
  void place_of_first(WavePlace& where) const {
    for (uint32_t k = 0; k < count_; ++k)
      if (waves_[k].stop != Stop::ended) {
        where = {{state_.id[0], state_.id[1], state_.id[2]}, k, waves_[k].pc};
        return;
      }
  }
};

// A thread: its workgroups take turns. New ones start when those under way do not end by themselves, as
// many as are there already, up to what the GPU holds together.
class Worker {
 public:
  Worker(Job& job, uint64_t most) : job_(job), most_(most), counts_(job.program.code.size() + 1), memory_(job.program.code.size()) {}

  void run() {
    constexpr int kModes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
    std::fesetround(kModes[static_cast<unsigned>(job_.limits.rounding)]);
    std::feclearexcept(FE_INEXACT);
    run_groups();
    if (std::fetestexcept(FE_INEXACT) != 0) job_.rounded = true;
    std::fesetround(FE_TONEAREST);
  }
  void run_groups() {
    try {
      while (!job_.stop) {
        if (groups_.empty() && !start_one()) break;
        turn();
        if (!groups_.empty()) grow();
      }
    } catch (const std::bad_alloc&) {
      const std::scoped_lock guard(job_.lock);
      job_.stop = true;
      job_.result.outcome = Outcome::limit;
      job_.result.reason = "no memory for the registers of another workgroup";
    }
  }
  void add_to(LaunchResult& result, TouchedLines& touched) const {
    touched.merge(touched_);
    Count now;
    for (size_t k = 0; k < memory_.size(); ++k) {
      now.executed += counts_[k].executed;
      now.lanes += counts_[k].lanes;
      result.counts[k].executed += now.executed;
      result.counts[k].lanes += now.lanes;
      result.memory[k].bytes += memory_[k].bytes;
      result.memory[k].lines64 += memory_[k].lines64;
      result.memory[k].lines128 += memory_[k].lines128;
      result.memory[k].conflicts += memory_[k].conflicts;
    }
  }

 private:
  Job& job_;
  uint64_t most_;
  std::vector<std::unique_ptr<Group>> groups_, spare_;
  std::vector<Count> counts_;
  std::vector<MemoryCount> memory_;
  TouchedLines touched_;

  // The steps of a stride without a common factor reach each workgroup once.
  [[nodiscard]] uint64_t in_order(uint64_t place) const {
    if (job_.limits.order == 0 || job_.total < 2) return place;
    uint64_t stride = mixed(job_.limits.order) % job_.total;
    while (std::gcd(stride, job_.total) != 1) stride = (stride + 1) % job_.total;
    using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{place} * stride + mixed(~job_.limits.order)) % job_.total);
  }
  bool start_one() {
    const uint64_t place = job_.next++;
    if (place >= job_.total) return false;
    const uint64_t number = in_order(place);
    if (spare_.empty()) spare_.push_back(std::make_unique<Group>(job_));
    const bool count = job_.limits.count_memory;
    spare_.back()->start(number, count ? memory_.data() : nullptr, count ? &touched_ : nullptr);
    groups_.push_back(std::move(spare_.back()));
    spare_.pop_back();
    return true;
  }
  void turn() {
    uint64_t done = 0;
    for (size_t k = 0; k < groups_.size() && !job_.stop;) {
      bool ended = false;
      // A workgroup goes on while its waves only wait for each other.
      for (unsigned again = 0; again < 64 && !ended && !job_.stop; ++again) {
        const uint64_t before = done;
        ended = groups_[k]->step(counts_.data(), done);
        if (!ended && done - before >= job_.limits.quantum) break;
      }
      if (ended) {
        spare_.push_back(std::move(groups_[k]));
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(k));
      } else {
        ++k;
      }
      // A turn of all takes seconds where thousands of workgroups are in flight.
      if (done >= job_.limits.quantum) check_limits(std::exchange(done, 0));
    }
    check_limits(done);
  }
  void grow() {
    const size_t now = groups_.size();
    for (size_t k = 0; k < now && groups_.size() < most_; ++k)
      if (!start_one()) return;
  }
  void check_limits(uint64_t done) {
    const uint64_t total = job_.instructions += done;
    if (job_.limits.total) *job_.limits.total += done;
    const bool count = job_.limits.instructions && total > job_.limits.instructions;
    const bool time = job_.limits.seconds > 0 && std::chrono::steady_clock::now() > job_.deadline;
    if (!count && !time) return;
    if (groups_.empty() && job_.next >= job_.total) return;
    const std::scoped_lock guard(job_.lock);
    job_.stop = true;
    if (job_.result.outcome != Outcome::ended) return;
    job_.result.outcome = Outcome::limit;
    job_.result.reason = count ? "the limit of instructions was reached" : "the time limit was reached";
    if (!groups_.empty()) groups_.front()->place_of_first(job_.result.where);
  }
};

uint64_t resident_groups(const RegisterFile& file, uint32_t lds, uint32_t waves) {
  const uint32_t by_registers = std::min(kMostWavesPerSimd, std::max(1U, kVectorsPerSimdLane / std::max(8U, file.vectors)));
  const uint32_t per_unit = std::max(1U, by_registers * kSimds / std::max(1U, waves));
  const uint32_t by_lds = lds == 0 ? per_unit : std::max(1U, kLdsPerUnit / lds);
  return uint64_t{std::min(per_unit, by_lds)} * kComputeUnits;
}

void write_packet(uint8_t* packet, const LaunchSizes& s, uint32_t lds, uint32_t scratch, uint64_t object, uint64_t kernarg) {
  // HSA runtime specification, "kernel dispatch packet".
  const auto put = [&](size_t at, auto value) { std::memcpy(packet + at, &value, sizeof value); };
  put(0, uint16_t{2});
  put(2, static_cast<uint16_t>(s.grid[2] > 1 ? 3 : s.grid[1] > 1 ? 2 : 1));
  for (unsigned k = 0; k < 3; ++k) {
    put(4 + 2 * k, static_cast<uint16_t>(s.block[k]));
    put(12 + 4 * k, s.grid[k]);
  }
  put(24, scratch);
  put(28, lds);
  put(32, object);
  put(40, kernarg);
}

}  // namespace

RegisterFile register_file(const Descriptor& d, bool sets_mode, bool sets_rounding) {
  RegisterFile file{};
  file.vectors = ((d.rsrc1 & 63) + 1) * 8;
  file.accumulator_at = std::min(file.vectors, ((d.rsrc3 & 63) + 1) * 4);
  file.may_flush = sets_mode || (d.rsrc1 >> 16 & 15) != 15;
  file.dx10_clamp = d.rsrc1 >> 21 & 1;
  file.may_round = sets_rounding || (d.rsrc1 >> 12 & 15);
  if (!(d.rsrc1 >> 23 & 1)) throw Unavailable("the kernel turns IEEE mode off, which is not offered");
  return file;
}

LoadedObject::LoadedObject(const CodeObject& object, GuestMemory& memory, uint64_t wanted) : object_(object) {
  uint8_t* place = memory.allocate(object.end, true, wanted);
  base_ = reinterpret_cast<uint64_t>(place);
  for (const Segment& s : object.segments)
    if (!s.file.empty()) std::memcpy(place + s.address, s.file.data(), s.file.size());
  for (const Relocation& r : object.relocations) {
    const uint64_t value = base_ + r.value;
    std::memcpy(place + r.at, &value, sizeof value);
  }
}

// The functions whose addresses code makes: S_GETPC_B64 and two additions of literals behind it.
std::vector<uint64_t> LoadedObject::made_addresses(const Program& program, uint64_t text, size_t first, size_t last) {
  std::vector<uint64_t> out;
  for (size_t at = first; at < last; at += program.code[at].size) {
    const auto is = [&](size_t place, const char* name) { return program.code[place].row && std::string_view(program.code[place].row->name) == name; };
    if (!is(at, "s_getpc_b64")) continue;
    const uint64_t here = text + 4 * (at + program.code[at].size);
    for (size_t next = at + 1, k = 0; next < last && k < 4; next += program.code[next].size, ++k) {
      const Instruction& low = program.code[next];
      if (!is(next, "s_add_u32") || low.from[0].index != program.code[at].to[0].index || low.from[1].place != Place::constant) continue;
      const size_t after = next + low.size;
      if (after >= last || !is(after, "s_addc_u32") || program.code[after].from[1].place != Place::constant) continue;
      out.push_back(here + (static_cast<uint32_t>(low.from[1].value) | program.code[after].from[1].value << 32));
    }
  }
  return out;
}

void LoadedObject::decode_reachable(Program& program, const Kernel& kernel, const Segment& text, const Decoder& decoder, const RegisterFile& file) const {
  const size_t words = text.file.size() / 4;
  const auto region = [&](uint64_t begin, uint64_t bytes, bool reached) {
    const size_t first = (begin - text.address) / 4;
    const size_t last = std::min<uint64_t>(words, first + (bytes + 3) / 4);
    decoder.decode(program, text.file.subspan(0, 4 * words), first, last, file, reached);
    return made_addresses(program, text.address, first, last);
  };
  std::map<uint64_t, const Function*> functions;
  for (const Function& f : object_.functions)
    if (f.begin >= text.address && f.begin < text.address + text.file.size() && f.begin % 4 == 0) functions[f.begin] = &f;
  std::vector<uint64_t> wanted;
  wanted = region(kernel.begin, kernel.bytes, true);
  std::map<uint64_t, bool> seen{{kernel.begin, true}};
  while (!wanted.empty()) {
    const uint64_t begin = wanted.back();
    wanted.pop_back();
    const auto f = functions.find(begin);
    if (f == functions.end() || seen[begin]) continue;
    seen[begin] = true;
    const auto more = region(begin, f->second->bytes, true);
    wanted.insert(wanted.end(), more.begin(), more.end());
  }
  // A call by a pointer may lead to any function.
  for (const auto& [begin, f] : functions)
    if (f && !seen[begin] && !object_.kernels.contains(f->name)) region(begin, f->bytes, false);
}

Program LoadedObject::decode(const Kernel& kernel, const Decoder& decoder) const {
  const Segment* text = nullptr;
  for (const Segment& s : object_.segments)
    if (s.executable && kernel.begin >= s.address && kernel.begin < s.address + s.file.size()) text = &s;
  if (!text || kernel.begin % 4 != 0) throw BadFile("the kernel's code lies outside of what can be executed");
  Program program;
  program.begin = base_ + text->address;
  const size_t words = text->file.size() / 4;
  program.code.resize(words + 1);
  if (kernel.bytes == 0) throw BadFile("the kernel's symbol has no size");
  decode_reachable(program, kernel, *text, decoder, register_file(kernel.descriptor, false));
  if (program.sets_mode) {
    for (Instruction& i : program.code) i = {};
    program.refused.clear();
    decode_reachable(program, kernel, *text, decoder, register_file(kernel.descriptor, true, program.sets_rounding));
  }
  for (size_t at = 0; at < words; ++at) {
    const Instruction& i = program.code[at];
    if (!i.run || i.target == 0) continue;
    const int64_t to = static_cast<int64_t>(at) + i.target;
    if (to < 0 || to >= static_cast<int64_t>(words)) Decoder::leave_out(program, at, "a branch to where there is no code: " + program.texts[at]);
  }
  for (Instruction& i : program.code)
    if (!i.run) {
      i.run = undecoded;
      i.size = 1;
    }
  mark_straight_runs(program);
  return program;
}

void fill_hidden_arguments(const Kernel& kernel, const LaunchSizes& sizes, uint64_t queue, std::vector<uint8_t>& kernarg) {
  kernarg.resize(std::max<uint64_t>(kernarg.size(), kernel.kernarg_bytes + 16));
  for (const Argument& a : kernel.arguments) {
    if (!a.kind.starts_with("hidden_")) continue;
    uint64_t value = 0;
    for (unsigned k = 0; k < 3; ++k) {
      const std::string axis(1, static_cast<char>('x' + k));
      if (a.kind == "hidden_block_count_" + axis) value = sizes.grid[k] / sizes.block[k];
      if (a.kind == "hidden_group_size_" + axis) value = sizes.block[k];
      if (a.kind == "hidden_remainder_" + axis) value = sizes.grid[k] % sizes.block[k];
    }
    if (a.kind == "hidden_grid_dims") value = sizes.grid[2] > 1 ? 3 : sizes.grid[1] > 1 ? 2 : 1;
    if (a.kind == "hidden_dynamic_lds_size") value = sizes.dynamic_lds;
    if (a.kind == "hidden_private_base") value = kPrivateBase >> 32;
    if (a.kind == "hidden_shared_base") value = kSharedBase >> 32;
    if (a.kind == "hidden_queue_ptr") value = queue;
    if (a.size > 8 || a.offset > kernarg.size() || kernarg.size() - a.offset < a.size) throw BadFile("a hidden argument outside of the kernel's arguments");
    std::memcpy(&kernarg[a.offset], &value, a.size);
  }
}

namespace {

uint32_t lds_bytes(const Kernel& kernel, const LaunchSizes& sizes) {
  const uint32_t bytes = kernel.descriptor.group_bytes + sizes.dynamic_lds;
  if (bytes > kLdsPerUnit) throw Unavailable("the launch needs more than 65536 bytes of LDS");
  return bytes;
}

uint32_t scratch_bytes(const Kernel& kernel, const LaunchSizes& sizes) {
  const uint32_t bytes = (kernel.descriptor.private_bytes + sizes.stack + (kernel.dynamic_stack ? 16384U : 0U) + 15) & ~15U;
  if (bytes > 1U << 20) throw Unavailable("the launch needs more than 1 MiB of scratch memory per lane");
  return bytes;
}

void set_sizes(Job& job) {
  const LaunchSizes& sizes = job.sizes;
  job.total = 1;
  for (unsigned k = 0; k < 3; ++k) {
    job.groups[k] = static_cast<uint32_t>((uint64_t{sizes.grid[k]} + sizes.block[k] - 1) / sizes.block[k]);
    job.total *= job.groups[k];
  }
  job.result.groups = job.total;
  job.ids.resize(size_t{sizes.block[0]} * sizes.block[1] * sizes.block[2]);
  work_item_ids(job, sizes.block, 0, static_cast<uint32_t>(job.ids.size()), job.ids.data());
  for (size_t k = 0; k < kGarbage; k += 8) {
    const uint64_t bits = mixed(job.limits.seed * 1000003 + k);
    std::memcpy(&job.garbage[k], &bits, sizeof bits);
  }
}

LaunchResult run_all(Job& job) {
  std::optional<CacheModel> caches;
  if (job.limits.model_caches && !job.log) job.caches = &caches.emplace();
  // Never taken back: another launch may run by the same functions, and to the nearest both ways are the same.
  if (job.limits.round_halves || job.file.may_round) *job.lanes.round_halves = true;
  const std::clock_t cpu_begin = std::clock();
  const auto begin = std::chrono::steady_clock::now();
  const LaunchSizes& sizes = job.sizes;
  job.deadline = begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(job.limits.seconds));
  const unsigned threads = static_cast<unsigned>(std::max<uint64_t>(1, std::min<uint64_t>(job.caches || job.log ? 1 : job.limits.threads, job.total)));
  const uint32_t waves = (sizes.block[0] * sizes.block[1] * sizes.block[2] + kLanes - 1) / kLanes;
  const uint64_t most = std::max<uint64_t>(1, resident_groups(job.file, job.lds_bytes, waves) / threads);
  std::vector<std::unique_ptr<Worker>> workers;
  workers.reserve(threads);
  for (unsigned k = 0; k < threads; ++k) workers.push_back(std::make_unique<Worker>(job, most));
  std::vector<std::thread> running;
  for (unsigned k = 1; k < threads; ++k) running.emplace_back([&, k] { workers[k]->run(); });
  workers[0]->run();
  for (std::thread& t : running) t.join();
  LaunchResult result = std::move(job.result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.cpu_seconds = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  result.waves = job.waves;
  result.rounded = job.rounded;
  result.counts.resize(job.program.code.size());
  result.memory.resize(job.program.code.size());
  TouchedLines touched;
  for (const auto& worker : workers) worker->add_to(result, touched);
  result.touched = touched.count();
  if (caches) result.traffic = caches->finish();
  return result;
}

}  // namespace

LaunchResult launch(const Placed& placed, const Kernel& kernel, const Program& program, const RowLists& lanes, const LaunchSizes& sizes,
                    const Limits& limits, Findings* findings, TrafficSink* log) {
  Job job{.kernel = kernel, .program = program, .lanes = lanes, .sizes = sizes, .limits = limits, .findings = findings, .log = log};
  const Descriptor& d = kernel.descriptor;
  job.file = register_file(d, program.sets_mode, program.sets_rounding);
  job.lds_bytes = lds_bytes(kernel, sizes);
  job.scratch_bytes = scratch_bytes(kernel, sizes);
  job.mode = d.rsrc1 >> 12 & 0xff;
  job.queue = placed.queue;
  job.kernarg = placed.kernarg;
  job.kernarg_bytes = placed.kernarg_bytes;
  job.packet = placed.packet;
  job.ranges = placed.ranges;
  job.placed = &placed;
  job.start_pc = (placed.entry - program.begin) / 4 + ((d.preload & 127) ? 64 : 0);
  set_sizes(job);
  return run_all(job);
}

LaunchResult launch(const LoadedObject& object, const Kernel& kernel, const Program& program, const RowLists& lanes, const LaunchSizes& sizes,
                    std::vector<uint8_t> kernarg, GuestMemory& memory, const Limits& limits, Findings* findings,
                    TrafficSink* log) {
  const Descriptor& d = kernel.descriptor;
  Placed placed;
  placed.entry = object.base() + d.entry;
  uint8_t* queue = memory.allocate(256);
  const uint32_t apertures[2] = {static_cast<uint32_t>(kSharedBase >> 32), static_cast<uint32_t>(kPrivateBase >> 32)};
  std::memcpy(queue + 64, apertures, sizeof apertures);
  placed.queue = reinterpret_cast<uint64_t>(queue);
  auto* arguments = reinterpret_cast<uint8_t*>(sizes.kernarg_at);
  if (!arguments) {
    fill_hidden_arguments(kernel, sizes, placed.queue, kernarg);
    arguments = memory.allocate(kernarg.size());
  }
  std::memcpy(arguments, kernarg.data(), kernarg.size());
  const uint32_t preloaded = (d.preload & 127U) + (d.preload >> 7U);
  if (4 * preloaded > kernarg.size()) throw BadFile("preloaded arguments beyond the kernel's arguments");
  placed.kernarg = reinterpret_cast<uint64_t>(arguments);
  placed.kernarg_bytes = arguments;
  uint8_t* packet = memory.allocate(64);
  write_packet(packet, sizes, lds_bytes(kernel, sizes), scratch_bytes(kernel, sizes), object.base(), placed.kernarg);
  placed.packet = reinterpret_cast<uint64_t>(packet);
  placed.ranges = memory.ranges();
  return launch(placed, kernel, program, lanes, sizes, limits, findings, log);
}

}  // namespace rpl_emu
