// Text of instructions for another process: the software KFD runs inside of applications that may have an LLVM of
// their own, so that a second one is kept out of there.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "cli/commands.h"
#include "decode/disassembler.h"
#include "loader/code_object.h"

namespace rpl_emu {
namespace {

constexpr uint64_t kMostBytes = 1ULL << 20;

// One line for each instruction: its size in bytes, 0 where there is none, and its text.
void answer(const Disassembler& disassembler, const std::vector<unsigned char>& code, uint64_t address) {
  for (size_t at = 0; at < code.size();) {
    const auto line = disassembler.at(std::span(code).subspan(at), address + at);
    const bool whole = line.bytes >= 4 && line.bytes % 4 == 0;
    (void)std::printf("%zu %s\n", whole ? line.bytes : 0, whole ? line.text.c_str() : "");
    at += whole ? line.bytes : 4;
  }
  (void)std::fflush(stdout);
}

}  // namespace

// Requests on the standard input: address and number of bytes, 8 bytes each, then the bytes. It ends with its input,
// apart from the process that started it: nobody who waits for children waits for it.
int disassemble_command(int count, char** words) {
  const Options options(count, words, {"--llvm"}, {});
  if (fork() > 0) _exit(kOk);
  const Disassembler disassembler(options.one("--llvm", ""));
  (void)std::puts(disassembler.version().c_str());
  (void)std::fflush(stdout);
  for (std::array<uint64_t, 2> request{}; std::fread(request.data(), sizeof request, 1, stdin) == 1;) {
    if (request[1] > kMostBytes) throw BadFile("a request of impossible size");
    std::vector<unsigned char> code(request[1]);
    if (!code.empty() && std::fread(code.data(), code.size(), 1, stdin) != 1) return kBadInput;
    answer(disassembler, code, request[0]);
  }
  return kOk;
}

}  // namespace rpl_emu
