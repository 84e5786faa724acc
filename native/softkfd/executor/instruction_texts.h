// Text of instructions from a process of its own (`rpl-emu disassemble`): the application may have an LLVM in it
// already, in another version.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "decode/disassembler.h"

namespace softkfd {

class DisassemblerProcess {
 public:
  explicit DisassemblerProcess(std::string program) : program_(std::move(program)) {}
  ~DisassemblerProcess();
  DisassemblerProcess(const DisassemblerProcess&) = delete;
  DisassemblerProcess& operator=(const DisassemblerProcess&) = delete;

  using Lines = std::map<uint64_t, rpl_emu::InstructionTexts::Line>;
  // The instructions in `code`, by address. Starts the process when it is first needed; throws
  // rpl_emu::Unavailable.
  Lines lines(std::span<const uint8_t> code, uint64_t address);

 private:
  void start();
  [[nodiscard]] std::string read_line();
  void send(const void* bytes, size_t count) const;

  std::string program_;
  std::mutex mutex_;
  int to_ = -1, from_ = -1;
  std::string pending_;
};

// For one decoding: asks the process for some pages at a time.
class InstructionTexts : public rpl_emu::InstructionTexts {
 public:
  explicit InstructionTexts(DisassemblerProcess& process) : process_(process) {}
  [[nodiscard]] Line at(std::span<const uint8_t> code, uint64_t address) const override;

 private:
  DisassemblerProcess& process_;
  mutable DisassemblerProcess::Lines known_;
};

}  // namespace softkfd
