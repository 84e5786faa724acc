#include "executor/instruction_texts.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace softkfd {
namespace {

constexpr size_t kRequest = 16384;
constexpr size_t kLongestInstruction = 12;
constexpr const char* kLost = "the process that decodes instructions ended. Next: rpl emu doctor";

// The application's environment without what loads the driver into programs.
std::vector<char*> environment_without_driver() {
  constexpr std::string_view kPreload = "LD_PRELOAD=";
  std::vector<char*> kept;
  for (size_t index = 0; environ[index] != nullptr; ++index) {
    if (!std::string_view(environ[index]).starts_with(kPreload)) kept.push_back(environ[index]);
  }
  kept.push_back(nullptr);
  return kept;
}

struct Pipe {
  Pipe() {
    std::array<int, 2> both{};
    if (pipe2(both.data(), O_CLOEXEC) != 0) throw rpl_emu::Unavailable("no pipe to the decoder");
    read = both[0];
    write = both[1];
  }
  int read = -1, write = -1;
};

}  // namespace

DisassemblerProcess::~DisassemblerProcess() {
  if (to_ >= 0) close(to_);
  if (from_ >= 0) close(from_);
}

void DisassemblerProcess::start() {
  const Pipe requests;
  const Pipe answers;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, requests.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, answers.write, STDOUT_FILENO);
  std::vector<std::string> words = {program_, "disassemble"};
  if (const char* llvm = std::getenv("RPL_EMU_LLVM")) words.insert(words.end(), {"--llvm", llvm});
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int failed = posix_spawn(&process, program_.c_str(), &actions, nullptr, arguments.data(),
                                 environment_without_driver().data());
  posix_spawn_file_actions_destroy(&actions);
  close(requests.read);
  close(answers.write);
  to_ = requests.write;
  from_ = answers.read;
  if (failed != 0) throw rpl_emu::Unavailable("cannot start " + program_);
  waitpid(process, nullptr, 0);  // it leaves a child of its own behind
  [[maybe_unused]] const std::string version = read_line();
}

std::string DisassemblerProcess::read_line() {
  for (;;) {
    const size_t end = pending_.find('\n');
    if (end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    std::array<char, 65536> block{};
    const ssize_t got = read(from_, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw rpl_emu::Unavailable(kLost);
    pending_.append(block.data(), static_cast<size_t>(got));
  }
}

void DisassemblerProcess::send(const void* bytes, size_t count) const {
  const auto* place = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = write(to_, place, count);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw rpl_emu::Unavailable(kLost);
    place += sent;
    count -= static_cast<size_t>(sent);
  }
}

DisassemblerProcess::Lines DisassemblerProcess::lines(std::span<const uint8_t> code, uint64_t address) {
  const std::scoped_lock lock(mutex_);
  if (to_ < 0) start();
  const std::array<uint64_t, 2> request = {address, code.size()};
  send(request.data(), sizeof(request));
  send(code.data(), code.size());
  Lines found;
  for (size_t at = 0; at < code.size();) {
    const std::string line = read_line();
    const size_t blank = line.find(' ');
    rpl_emu::InstructionTexts::Line one;
    std::from_chars(line.data(), line.data() + std::min(blank, line.size()), one.bytes);
    if (blank != std::string::npos) one.text = line.substr(blank + 1);
    const size_t bytes = std::max<size_t>(one.bytes, 4);
    found.emplace(address + at, std::move(one));
    at += bytes;
  }
  return found;
}

rpl_emu::InstructionTexts::Line InstructionTexts::at(std::span<const uint8_t> code, uint64_t address) const {
  if (const auto found = known_.find(address); found != known_.end()) return found->second;
  const size_t asked = std::min(code.size(), kRequest);
  auto lines = process_.lines(code.first(asked), address);
  if (asked < code.size()) {  // the last ones may have been cut
    std::erase_if(lines, [&](const auto& line) {
      return line.first + kLongestInstruction > address + asked && line.first != address;
    });
  }
  known_.merge(lines);
  return known_.at(address);
}

}  // namespace softkfd
