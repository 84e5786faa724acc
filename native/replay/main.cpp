// `rpl-replay PLAN RESULT`: run a captured launch again at its addresses. `rpl replay` writes the plan and
// reads the result (rpl_vmreplay.replay); the exit codes are those of docs/REPLAY.md.
#include <sys/personality.h>
#include <sysexits.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "launch/session.h"
#include "memory/steered_mapping.h"
#include "memory/address_ranges.h"
#include "plan/failure.h"
#include "plan/plan.h"
#include "plan/result.h"

namespace {

using namespace rpl::replay;

// How many layouts of the process were tried before.
constexpr const char* kAttempts = "RPL_REPLAY_ATTEMPTS";
constexpr uint32_t kMostAttempts = 32;

uint32_t earlier_attempts() {
  const char* text = std::getenv(kAttempts);
  return text == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

// The same program with another layout of its addresses; the last attempt is without randomisation. Returns
// when there is none left.
void start_again() {
  const uint32_t attempts = earlier_attempts() + 1;
  if (attempts > kMostAttempts) return;
  if (attempts == kMostAttempts) personality(ADDR_NO_RANDOMIZE);
  setenv(kAttempts, std::to_string(attempts).c_str(), 1);
  // By /proc: whoever runs this program through a dynamic loader has that as its executable.
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, '\0');) words.push_back(word);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
}

bool in_code(const Plan& plan, const Variable& variable) {
  return plan.code_place && variable.address &&
         *variable.address - plan.code_place->range.address < plan.code_place->range.size;
}

// Variables of the captured code are where it is, if it can be loaded in its place.
std::vector<Pages> wanted_pages(const Plan& plan, bool code_in_place) {
  std::vector<Content> contents = plan.regions;
  for (const Range& range : plan.ranges) contents.push_back({range, "", plan.gpu});
  for (const Variable& variable : plan.variables) {
    if (variable.address && !(code_in_place && in_code(plan, variable)))
      contents.push_back({{*variable.address, variable.size}, "", plan.gpu});
  }
  if (const auto address = plan.kernel.kernarg_address; address && plan.kernel.kernarg_bytes > 0) {
    contents.push_back({{*address, plan.kernel.kernarg_bytes}, "", plan.gpu});
  }
  return pages_of(std::move(contents));
}

// In another thread, while the replay hangs in the runtime: nothing of it can be given back.
void end_late(const std::string& result_file, uint32_t attempts, const char* during) {
  Result result;
  result.attempts = attempts;
  result.software_kfd = over_software_kfd();
  result.failure = Failure("time_limit", "the replay did not end in time",
                           std::string("it was ended ") + during, "raise --kernel-timeout");
  if (!result.write(result_file)) {
    std::fprintf(stderr, "rpl-replay: %s can't be written\n", result_file.c_str());
  }
  _exit(result.exit_code());
}

void run(const Plan& plan, Result& result, std::unique_ptr<Deadline>& deadline,
         std::unique_ptr<Session>& session, const std::string& result_file) {
  // Captured pointers lead to the code: it is loaded first, while its place is free.
  const bool pinned = plan.code_place && !plan.code_place->pointers.empty();
  std::vector<Pages> all = wanted_pages(plan, pinned);
  if (pinned) all.push_back({rounded(plan.code_place->range), plan.gpu});
  HeldPages held(all);
  if (held.taken()) {
    const std::string occupant = occupant_of(*held.taken());
    start_again();
    throw Failure("layout_clash", "the replaying process itself lies where captured memory was", occupant,
                  "capture with low addresses, which rpl isolate does unless told not to");
  }
  const auto passed = [result_file, attempts = result.attempts](const char* during) {
    end_late(result_file, attempts, during);
  };
  deadline = std::make_unique<Deadline>(plan.deadline_ns, passed);
  session = std::make_unique<Session>(plan, result, *deadline);
  if (pinned) prepare_steering();
  session->start();
  if (pinned) session->load_code(*plan.code_place, held);
  session->reserve(wanted_pages(plan, pinned), held);
  if (!plan.reserve_only) session->replay();
}

// After these the GPU may still be at work: nothing of it is given back, the driver does that.
bool leaves_gpu_busy(const Result& result) {
  return result.failure && (result.failure->kind == "gpu_fault" || result.failure->kind == "time_limit" ||
                            result.failure->kind == "copy_failed");
}

int replay(const std::string& plan_file, const std::string& result_file) {
  Result result;
  result.attempts = earlier_attempts() + 1;
  std::unique_ptr<Deadline> deadline;
  std::unique_ptr<Session> session;
  Plan plan;
  try {
    plan = Plan::read(plan_file);
    run(plan, result, deadline, session, result_file);
  } catch (const Failure& failure) {
    result.failure = failure;
  } catch (const std::exception& error) {
    result.failure = Failure("internal", error.what());
  }
  deadline.reset();  // what is known by now counts
  // Before anything is given back: runtimes were seen to crash then.
  if (!result.write(result_file)) {
    std::fprintf(stderr, "rpl-replay: %s can't be written\n", result_file.c_str());
    return EX_CANTCREAT;
  }
  if (leaves_gpu_busy(result)) _exit(result.exit_code());
  constexpr unsigned kTeardownSeconds = 30;
  alarm(kTeardownSeconds);  // the result is written: a runtime that does not end is ended
  session.reset();
  return result.exit_code();
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: rpl-replay PLAN RESULT\n");
    return EX_USAGE;
  }
  // With it neighbouring allocations get pages between them, which captured memory does not have.
  unsetenv("HSA_RESERVE_SVM");
  return replay(words[1], words[2]);
}
