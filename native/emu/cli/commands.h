// The commands of rpl-emu.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace rpl_emu {

// Exit codes, the same as those of `rpl emu`.
constexpr int kOk = 0, kFinding = 1, kMemoryFault = 4, kUsage = 64, kLayout = 3, kBadInput = 65, kUnavailable = 69, kInternal = 70, kLimit = 124;

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Words of the command line: options by name, each with its values in order.
class Options {
 public:
  Options(int count, char** words, const std::vector<std::string>& with_value, const std::vector<std::string>& flags);
  [[nodiscard]] const std::vector<std::string>& plain() const { return plain_; }
  [[nodiscard]] std::vector<std::string> all(const std::string& name) const;
  [[nodiscard]] std::string one(const std::string& name, const std::string& otherwise) const;
  [[nodiscard]] bool flag(const std::string& name) const;

 private:
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> plain_;
};

// For messages: names come from files of strangers, and terminals obey some bytes.
[[nodiscard]] std::string printable(std::string text);
[[nodiscard]] std::vector<unsigned char> read_file(const std::string& path);
[[nodiscard]] unsigned long long parse_number(const std::string& text, const std::string& what);

int launch_command(int count, char** words);
// May throw LayoutClash: then another start of the program may do.
int replay_command(int count, char** words);
int inputs_command(int count, char** words);
int step_command(int count, char** words);
int opcodes_command(int count, char** words);
class OpcodeTable;
int coverage_command(const Options& options, const OpcodeTable& table);  // opcodes --known
int decode_command(int count, char** words);
int doctor_command(int count, char** words);
int disassemble_command(int count, char** words);

}  // namespace rpl_emu
