// `rpl-emu inputs PLAN --hsaco A --against B --list FILE --out FOLDER`: two kernels on many inputs of one launch. Each
// input is run by both from the same memory; a line of JSON tells what they did, files hold what differs.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/lane_library.h"
#include "cli/launch_report.h"
#include "machine/access_log.h"
#include "replay/captured_memory.h"
#include "replay/plan.h"
#include "sanitize/cooperation.h"

namespace rpl_emu {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr uint64_t kWatchedShorter = 20;

// A pattern over and over, from the start of a range to its end.
struct Fill {
  AddressRange range;
  std::string file;
};

struct Input {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::string kernarg;
  std::vector<Fill> fills;
  bool sanitize = false;
  bool twice = false;  // the baseline also under another schedule
};

std::vector<Input> read_inputs(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw BadFile("cannot read " + path);
  std::vector<Input> out;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what;
    std::getline(words, what, '\t');
    const auto next = [&] {
      std::string text;
      std::getline(words, text, '\t');
      return text;
    };
    const auto number = [&] { return parse_number(next(), "the list of inputs"); };
    if (what == "input") {
      out.emplace_back();
      continue;
    }
    if (out.empty()) throw BadFile("the list of inputs does not begin with one");
    Input& input = out.back();
    if (what == "grid") for (uint32_t& n : input.grid) n = static_cast<uint32_t>(number());
    else if (what == "block") for (uint32_t& n : input.block) n = static_cast<uint32_t>(number());
    else if (what == "kernarg") input.kernarg = next();
    else if (what == "sanitize") input.sanitize = true;
    else if (what == "twice") input.twice = true;
    else if (what == "fill") {
      const uint64_t begin = number(), bytes = number();
      input.fills.push_back({{begin, bytes}, next()});
    } else throw BadFile("a line of the list of inputs that is not understood: " + what);
  }
  for (const Input& input : out) {
    const uint64_t items = uint64_t{input.block[0]} * input.block[1] * input.block[2];
    if (items == 0 || items > 1024 || std::ranges::count(input.grid, 0U) != 0) throw BadFile("a launch of impossible size");
  }
  return out;
}

uint64_t instructions_of(const LaunchResult& r) {
  uint64_t sum = 0;
  for (const Count& c : r.counts) sum += c.executed;
  return sum;
}

uint64_t name_hash(const std::string& name) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash & ~uint64_t{0xffffffff};
}

// One of the two kernels.
struct Side {
  Bytes file;
  CodeObject object;
  const Kernel& kernel;
  LoadedObject loaded;
  Program program;
  Bytes original;
  std::vector<bool> ran;  // by word of code

  Side(const std::string& path, const std::string& name, GuestMemory& memory, const Decoder& decoder)
      : file(read_file(path)), object(read_code_object(file)), kernel(find_kernel(object, name)), loaded(object, memory), program(loaded.decode(kernel, decoder)),
        original(loaded.bytes().begin(), loaded.bytes().end()), ran(program.code.size()) {}
};

struct Ran {
  LaunchResult result;
  std::unique_ptr<Cooperation> cooperation;
  std::vector<Finding> findings;
  std::vector<AddressRange> written, touched;
  Bytes bytes;  // of what was written, range after range
  std::map<std::string, Bytes> variables;
};

class Comparison {
 public:
  Comparison(const ReplayPlan& plan, const Options& options, CapturedMemory& captured, const std::vector<Input>& inputs)
      : plan_(plan), captured_(captured), inputs_(inputs), lanes_(load_lanes(options.one("--cpu", ""))), table_(lanes_.lists), disassembler_(options.one("--llvm", "")), name_(plain_name(plan.kernel)),
        a_(options.one("--hsaco", ""), name_, code_memory_, Decoder(disassembler_, table_, true)), b_(options.one("--against", ""), name_, code_memory_, Decoder(disassembler_, table_, true)), out_(options.one("--out", ".")) {
    limits_.instructions = parse_number(options.one("--max-instructions", "1000000"), "--max-instructions");
    limits_.count_memory = false;
    const double seconds = std::strtod(options.one("--timeout", "0").c_str(), nullptr);
    has_deadline_ = seconds > 0;
    deadline_ = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
    const Bytes code = read_file(plan.code);
    const CodeObject launched = read_code_object(code);
    const Kernel& kernel = find_kernel(launched, name_);
    dynamic_lds_ = plan.lds - std::min(plan.lds, kernel.descriptor.group_bytes);
    stack_ = plan.scratch - std::min(plan.scratch, kernel.descriptor.private_bytes);
    lds_places_ = a_.kernel.descriptor.group_bytes == b_.kernel.descriptor.group_bytes;
    for (const PlannedRegion& r : plan.regions) log_.watch({r.base, r.bytes});
    for (const PlannedVariable& v : plan.variables) variables_[v.name] = read_file(v.file);
  }

  int run() {
    size_t done = 0;
    for (; done < inputs_.size() && !late(); ++done) compare(done);
    Json json;
    json.open('{').key("done").number(done).key("inputs").number(inputs_.size()).key("disassembler").string(disassembler_.version());
    tell_unreached(json.key("a_unreached"), a_);
    tell_unreached(json.key("b_unreached"), b_);
    json.close('}');
    std::puts(json.text().c_str());
    return kOk;
  }

 private:
  const ReplayPlan& plan_;
  CapturedMemory& captured_;
  const std::vector<Input>& inputs_;
  LaneLibrary lanes_;
  OpcodeTable table_;
  Disassembler disassembler_;
  std::string name_;
  GuestMemory code_memory_;
  Side a_, b_;
  std::string out_;
  Limits limits_;
  bool has_deadline_ = false;
  std::chrono::steady_clock::time_point deadline_;
  uint32_t dynamic_lds_ = 0, stack_ = 0;
  bool lds_places_ = true;
  AccessLog log_;
  std::map<std::string, Bytes> variables_;  // captured ones

  static std::string plain_name(std::string name) {
    if (name.ends_with(".kd")) name.resize(name.size() - 3);
    return name;
  }
  [[nodiscard]] bool late() const { return has_deadline_ && std::chrono::steady_clock::now() > deadline_; }

  // Instructions that no input has reached yet, alignment behind the end left out.
  static void tell_unreached(Json& json, const Side& side) {
    uint64_t count = 0, all = 0;
    for (const auto& [word, text] : side.program.texts) {
      if (text.find("s_nop") != std::string::npos || text.find("s_code_end") != std::string::npos) continue;
      ++all;
      count += side.ran[word] ? 0 : 1;
    }
    json.open('{').key("instructions").number(count).key("of").number(all).close('}');
  }

  // Variables of the modules lie elsewhere in each; with them everything of the code object that can be written.
  [[nodiscard]] static std::vector<Cooperation::Named> named(const Side& side) {
    std::vector<Cooperation::Named> out;
    out.reserve(side.object.variables.size());
    for (const Function& v : side.object.variables) out.push_back({side.loaded.base() + v.begin, side.loaded.base() + v.begin + v.bytes, name_hash(v.name)});
    return out;
  }

  void prepare(const Side& side, const Input& input) {
    captured_.restore();
    for (const Fill& fill : input.fills) {
      if (!captured_.holds(fill.range)) throw BadFile("a fill outside of the memory");
      const Bytes pattern = read_file(fill.file);
      if (pattern.empty()) throw BadFile("a fill with nothing");
      for (uint64_t at = 0; at < fill.range.bytes; at += pattern.size())
        std::memcpy(reinterpret_cast<void*>(fill.range.begin + at), pattern.data(), std::min<uint64_t>(pattern.size(), fill.range.bytes - at));
    }
    std::memcpy(reinterpret_cast<void*>(side.loaded.base()), side.original.data(), side.original.size());
    for (const Function& v : side.object.variables) {
      const auto found = variables_.find(v.name);
      if (found != variables_.end() && found->second.size() <= v.bytes) std::memcpy(reinterpret_cast<void*>(side.loaded.base() + v.begin), found->second.data(), found->second.size());
    }
    log_.clear();
  }

  Ran run_one(Side& side, const Input& input, const Limits& limits) {
    prepare(side, input);
    GuestMemory memory;
    captured_.add_to(memory);
    memory.add(side.loaded.base(), side.object.end, true);
    LaunchSizes sizes;
    sizes.grid = input.grid;
    sizes.block = input.block;
    sizes.dynamic_lds = dynamic_lds_;
    sizes.stack = stack_;
    Ran ran;
    if (input.sanitize) ran.cooperation = std::make_unique<Cooperation>(named(side), lds_places_);
    Findings findings(ran.cooperation.get());
    ran.result = launch(side.loaded, side.kernel, side.program, lanes_.lists, sizes, read_file(input.kernarg), memory, limits, input.sanitize ? &findings : nullptr, &log_);
    if (ran.cooperation) ran.cooperation->launch_ended();
    ran.findings = findings.all();
    ran.written = log_.written();
    ran.touched = log_.touched();
    for (const AddressRange& range : ran.written) {
      const auto* first = reinterpret_cast<const unsigned char*>(range.begin);
      ran.bytes.insert(ran.bytes.end(), first, first + range.bytes);
    }
    for (const Function& v : side.object.variables) {
      const auto* first = reinterpret_cast<const unsigned char*>(side.loaded.base() + v.begin);
      const auto* before = side.original.data() + v.begin;
      Bytes now(first, first + v.bytes);
      if (variables_.contains(v.name) || !std::equal(now.begin(), now.end(), before)) ran.variables[v.name] = std::move(now);
    }
    for (size_t word = 0; word < ran.result.counts.size(); ++word)
      if (ran.result.counts[word].executed != 0) side.ran[word] = true;
    return ran;
  }

  static void tell(Json& json, const Ran& ran, const Side& side) {
    json.open('{').key("outcome").string(name_of(ran.result.outcome)).key("reason").string(ran.result.reason).key("instructions").number(instructions_of(ran.result));
    write_findings(json, ran.findings, side.program, side.loaded);
    json.close('}');
  }

  // The bytes that A has written, as B leaves them.
  static Bytes now_at(const std::vector<AddressRange>& ranges) {
    Bytes out;
    for (const AddressRange& range : ranges) {
      const auto* first = reinterpret_cast<const unsigned char*>(range.begin);
      out.insert(out.end(), first, first + range.bytes);
    }
    return out;
  }

  // What of `b` is in no range of `a`; both are sorted.
  static std::vector<AddressRange> beside(const std::vector<AddressRange>& a, const std::vector<AddressRange>& b) {
    std::vector<AddressRange> out;
    size_t at = 0;
    for (const AddressRange& range : b) {
      uint64_t begin = range.begin;
      const uint64_t end = begin + range.bytes;
      while (at < a.size() && a[at].begin + a[at].bytes <= begin) ++at;
      for (size_t k = at; k < a.size() && a[k].begin < end; ++k) {
        if (a[k].begin > begin) out.push_back({begin, a[k].begin - begin});
        begin = std::max(begin, a[k].begin + a[k].bytes);
      }
      if (begin < end) out.push_back({begin, end - begin});
    }
    return out;
  }

  // What B has written that A has not, though A has read it, with what was there before. Memory is as before then.
  bool left_as_it_was(const std::vector<AddressRange>& ranges, const Ran& a, const Input& input) {
    if (!beside(a.touched, ranges).empty()) return false;
    const Bytes left = now_at(ranges);
    prepare(b_, input);
    return now_at(ranges) == left;
  }

  void write(size_t number, const char* what, const void* bytes, size_t size) const {
    const std::string path = out_ + "/" + std::to_string(number) + "." + what;
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
  }

  // Watching takes many times as long: a launch that is too long for it runs without, unless something hangs on it.
  Ran first_run(Input& input, bool needed) {
    if (!input.sanitize || needed) return run_one(a_, input, limits_);
    Limits shorter = limits_;
    shorter.instructions = std::max<uint64_t>(1, limits_.instructions / kWatchedShorter);
    Ran ran = run_one(a_, input, shorter);
    if (ran.result.outcome != Outcome::limit) return ran;
    input.sanitize = false;
    return run_one(a_, input, limits_);
  }

  // `watch`: where that was not asked for or takes long, too.
  void compare(size_t number, bool watch = false) {
    Input input = inputs_[number];
    input.sanitize |= watch;
    Json json;
    json.open('{').key("input").number(number);
    const Ran a = first_run(input, watch);
    json.key("watched").boolean(input.sanitize);
    tell(json.key("a"), a, a_);
    if (a.result.outcome == Outcome::ended) {
      bool stable = true, same_results = true;
      if (input.twice) {
        Limits other = limits_;
        other.order = 1;
        other.quantum = 61;
        const Ran again = run_one(a_, input, other);
        same_results = again.result.outcome == Outcome::ended && again.bytes == a.bytes && again.variables == a.variables;
        stable = !a.cooperation || !Cooperation::difference(*a.cooperation, *again.cooperation);
      }
      Limits longer = limits_;
      const uint64_t took = instructions_of(a.result);
      longer.instructions = std::max(10 * took, took + 1000000);
      const Ran b = run_one(b_, input, longer);
      tell(json.key("b"), b, b_);
      const Bytes theirs = now_at(a.written);
      std::vector<AddressRange> outside = beside(a.written, b.written);
      if (!outside.empty() && left_as_it_was(outside, a, input)) {
        // Others may write there meanwhile: whether they do, only a watched launch tells.
        if (!input.sanitize) {
          compare(number, true);
          return;
        }
        outside.clear();
      }
      uint64_t count = 0;
      for (const AddressRange& range : outside) count += range.bytes;
      json.key("same_results").boolean(same_results).key("stable").boolean(stable).key("bytes").number(a.bytes.size());
      json.key("outside").number(count).key("outside_at").hex(outside.empty() ? 0 : outside.front().begin);
      std::set<std::string> variables;
      for (const auto& [name, bytes] : a.variables)
        if (const auto found = b.variables.find(name); found == b.variables.end() || found->second != bytes) variables.insert(name);
      for (const auto& [name, bytes] : b.variables)
        if (!a.variables.contains(name)) variables.insert(name);
      json.key("variables").open('[');
      for (const std::string& name : variables) json.string(name);
      json.close(']');
      json.key("cooperation");
      const auto otherwise = a.cooperation && b.cooperation && stable ? Cooperation::difference(*a.cooperation, *b.cooperation) : std::nullopt;
      if (otherwise) json.string(*otherwise);
      else json.null();
      json.key("lds_unlike").boolean(a.cooperation && b.cooperation && stable && Cooperation::lds_unlike(*a.cooperation, *b.cooperation));
      json.key("barriers").number(a.cooperation ? a.cooperation->barriers() : 0).key("atomics").number(a.cooperation ? a.cooperation->atomics() : 0);
      const bool differs = theirs != a.bytes;
      json.key("differs").boolean(differs);
      if (differs) {
        write(number, "ranges", a.written.data(), a.written.size() * sizeof(AddressRange));
        write(number, "a", a.bytes.data(), a.bytes.size());
        write(number, "b", theirs.data(), theirs.size());
      }
    }
    json.close('}');
    std::puts(json.text().c_str());
    std::fflush(stdout);
  }
};

}  // namespace

int inputs_command(int count, char** words) {
  const Options options(count, words, {"--hsaco", "--against", "--list", "--out", "--max-instructions", "--timeout", "--llvm", "--cpu", "--memory-limit"}, {});
  if (options.plain().size() != 1) throw UsageError("usage: rpl-emu inputs PLAN --hsaco A --against B --list FILE --out FOLDER");
  if (const std::string most = options.one("--memory-limit", ""); !most.empty()) {
    const rlimit limit{parse_number(most, "--memory-limit"), parse_number(most, "--memory-limit")};
    setrlimit(RLIMIT_AS, &limit);
  }
  const ReplayPlan plan = read_plan(options.plain()[0]);
  CapturedMemory captured(plan.regions);  // before libraries are loaded that could take its places
  const std::vector<Input> inputs = read_inputs(options.one("--list", ""));
  return Comparison(plan, options, captured, inputs).run();
}

}  // namespace rpl_emu
