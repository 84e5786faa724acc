#include "code/name_filter.h"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace rpl::isolate {

std::string demangled(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : mangled;
}

NameFilter::NameFilter(const std::string& expression) : all_(expression.empty()) {
  if (all_) return;
  const int status = regcomp(&compiled_, expression.c_str(), REG_EXTENDED | REG_NOSUB);
  if (status == 0) return;
  std::array<char, 256> text{};
  regerror(status, &compiled_, text.data(), text.size());
  error_ = text.data();
}

NameFilter::~NameFilter() {
  if (!all_ && error_.empty()) regfree(&compiled_);
}

bool NameFilter::wants(const std::string& mangled, const std::string& readable) const {
  return all_ || (error_.empty() && (found_in(readable) || found_in(mangled)));
}

bool NameFilter::found_in(const std::string& name) const {
  return regexec(&compiled_, name.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace rpl::isolate
