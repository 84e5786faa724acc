// Which kernels are wanted: a regular expression over their names.
#pragma once

#include <regex.h>

#include <string>

namespace rpl::isolate {

// As the program wrote it, where the name is mangled; otherwise the name itself.
std::string demangled(const std::string& mangled);

// A POSIX extended expression: the C library's matcher needs no stack that grows with the name.
class NameFilter {
 public:
  // Empty: every name. `error` says what is wrong with an expression; it then matches nothing.
  explicit NameFilter(const std::string& expression);
  ~NameFilter();
  NameFilter(const NameFilter&) = delete;
  NameFilter& operator=(const NameFilter&) = delete;

  [[nodiscard]] bool wants(const std::string& mangled, const std::string& readable) const;
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  [[nodiscard]] bool found_in(const std::string& name) const;

  bool all_;
  regex_t compiled_{};
  std::string error_;
};

}  // namespace rpl::isolate
