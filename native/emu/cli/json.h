// Writing JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace rpl_emu {

class Json {
 public:
  Json& open(char bracket) { comma(); text_ += bracket; first_ = true; return *this; }
  Json& close(char bracket) { text_ += bracket; first_ = false; return *this; }
  Json& key(std::string_view name) { string(name); text_ += ": "; first_ = true; return *this; }
  Json& string(std::string_view value) {
    comma();
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') { text_ += '\\'; text_ += c; }
      else if (static_cast<unsigned char>(c) < 32) { char b[8]; std::snprintf(b, sizeof b, "\\u%04x", c); text_ += b; }
      else if (static_cast<unsigned char>(c) >= 127) text_ += '?';
      else text_ += c;
    }
    text_ += '"';
    return *this;
  }
  Json& number(uint64_t value) { comma(); text_ += std::to_string(value); return *this; }
  Json& real(double value) { comma(); char b[40]; std::snprintf(b, sizeof b, "%.9g", value); text_ += b; return *this; }
  Json& boolean(bool value) { comma(); text_ += value ? "true" : "false"; return *this; }
  Json& null() { comma(); text_ += "null"; return *this; }
  Json& hex(uint64_t value) { char b[24]; std::snprintf(b, sizeof b, "0x%llx", static_cast<unsigned long long>(value)); return string(b); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool first_ = true;
  void comma() {
    if (!first_) text_ += ", ";
    first_ = false;
  }
};

}  // namespace rpl_emu
