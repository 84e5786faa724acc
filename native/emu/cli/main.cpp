// rpl-emu: runs kernels of gfx942 code objects on this CPU. A program of its own, so that whatever a code
// object does ends here.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "decode/disassembler.h"
#include "loader/code_object.h"
#include "replay/captured_memory.h"

namespace rpl_emu {

Options::Options(int count, char** words, const std::vector<std::string>& with_value, const std::vector<std::string>& flags) {
  for (int k = 0; k < count; ++k) {
    const std::string word = words[k];
    if (!word.starts_with("--")) {
      plain_.push_back(word);
    } else if (std::ranges::find(flags, word) != flags.end()) {
      given_.emplace_back(word, "");
    } else if (std::ranges::find(with_value, word) != with_value.end()) {
      if (k + 1 == count) throw UsageError(word + " needs a value");
      given_.emplace_back(word, words[++k]);
    } else {
      throw UsageError("unknown option " + word);
    }
  }
}
std::vector<std::string> Options::all(const std::string& name) const {
  std::vector<std::string> out;
  for (const auto& [key, value] : given_) if (key == name) out.push_back(value);
  return out;
}
std::string Options::one(const std::string& name, const std::string& otherwise) const {
  const auto found = all(name);
  return found.empty() ? otherwise : found.back();
}
bool Options::flag(const std::string& name) const { return !all(name).empty(); }

std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

// A pipe could have no other end and a device no end at all; a file of holes claims any size.
std::vector<unsigned char> read_file(const std::string& path) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{1} << 30;
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) throw BadFile("cannot read " + path + (std::filesystem::exists(path, problem) ? ": it is no regular file" : ""));
  if (std::filesystem::file_size(path, problem) > kLargest) throw BadFile(path + " is larger than 1 GiB");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw BadFile("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

unsigned long long parse_number(const std::string& text, const std::string& what) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != 0) throw UsageError(what + " is no number: " + text);
  return value;
}

}  // namespace rpl_emu

namespace {

int run(int count, char** words) {
  using namespace rpl_emu;
  struct Command { const char* name; int (*run)(int, char**); };
  static constexpr Command kCommands[] = {{"launch", launch_command}, {"replay", replay_command}, {"inputs", inputs_command}, {"step", step_command}, {"opcodes", opcodes_command}, {"decode", decode_command}, {"doctor", doctor_command}, {"disassemble", disassemble_command}};
  for (const Command& c : kCommands)
    if (count > 1 && std::strcmp(words[1], c.name) == 0) return c.run(count - 2, words + 2);
  throw UsageError("usage: rpl-emu launch|replay|inputs|step|opcodes|decode|doctor ...");
}

// Where the libraries are that this process was begun with; absent: those of the system.
constexpr const char* kLibraries = "RPL_EMU_LIBRARIES";

// The same words by another dynamic loader, with its own C library. Comes back when that fails.
void start_with(const std::string& libraries, char** words) {
  std::error_code problem;
  std::string loader = libraries + "/ld-linux-x86-64.so.2", option = "--library-path", folder = libraries;
  std::string program = words[0];
  if (program.find('/') == std::string::npos) program = std::filesystem::read_symlink("/proc/self/exe", problem).string();
  setenv(kLibraries, libraries.c_str(), 1);
  std::vector<char*> all = {loader.data(), option.data(), folder.data(), program.data()};
  while (*++words) all.push_back(*words);
  all.push_back(nullptr);
  execv(loader.c_str(), all.data());
}

// The runtime of ROCm that `rpl emu get-runtime` fetched has an LLVM, too; its libraries may be newer than the system's.
void start_in_runtime(char** words) {
  const char* root = std::getenv("RPL_EMU_RUNTIME");
  if (root && *root && !std::getenv(kLibraries)) start_with(std::string(root) + "/usr/lib/x86_64-linux-gnu", words);
}

// The same words in a process of another layout. Comes back when that is of no use.
void start_again(char** words) {
  constexpr int kMost = 32;
  constexpr const char* kVariable = "RPL_EMU_STARTS";
  const char* before = std::getenv(kVariable);
  const int starts = before ? static_cast<int>(std::strtol(before, nullptr, 10)) + 1 : 1;
  if (starts > kMost) return;
  setenv(kVariable, std::to_string(starts).c_str(), 1);
  if (const char* libraries = std::getenv(kLibraries)) start_with(libraries, words);
  else execv("/proc/self/exe", words);
}

}  // namespace

int main(int count, char** words) {
  using namespace rpl_emu;
  const auto fail = [](const char* what, int status) {
    std::fprintf(stderr, "rpl-emu: %s\n", printable(what).c_str());
    return status;
  };
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  try {
    return run(count, words);
  } catch (const UsageError& e) { return fail(e.what(), kUsage);
  } catch (const LayoutClash& e) {
    start_again(words);
    return fail(e.what(), kLayout);
  } catch (const NoLlvm& e) {
    start_in_runtime(words);
    return fail(e.what(), kUnavailable);
  } catch (const BadFile& e) { return fail(e.what(), kBadInput);
  } catch (const Unavailable& e) { return fail(e.what(), kUnavailable);
  } catch (const std::bad_alloc&) { return fail("not enough memory. Next: a smaller launch, or a higher limit", kLimit);
  } catch (const std::exception& e) { return fail(e.what(), kInternal);
  }
}
