// Text of instructions, by LLVM's disassembler library, which is looked for when it is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace rpl_emu {

// Something that has to be there is not, or something that was asked for is not offered: exit code 69.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class NoLlvm : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

// Where the text of instructions comes from.
class InstructionTexts {
 public:
  struct Line {
    size_t bytes = 0;  // 0: no instruction
    std::string text;
  };
  InstructionTexts() = default;
  virtual ~InstructionTexts() = default;
  InstructionTexts(const InstructionTexts&) = delete;
  InstructionTexts& operator=(const InstructionTexts&) = delete;

  // The instruction that `code` begins with.
  [[nodiscard]] virtual Line at(std::span<const uint8_t> code, uint64_t address) const = 0;
};

class Disassembler : public InstructionTexts {
 public:
  // `library`: a path of libLLVM (19 or newer) or of ROCm's libamd_comgr; empty: the usual names of libLLVM.
  explicit Disassembler(const std::string& library);
  ~Disassembler() override;
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;

  [[nodiscard]] Line at(std::span<const uint8_t> code, uint64_t address) const override;
  [[nodiscard]] const std::string& library() const;
  [[nodiscard]] const std::string& version() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rpl_emu
