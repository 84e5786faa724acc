#include "code/kernel_metadata.h"

#include <nlohmann/json.hpp>

#include "capture/records.h"

namespace rpl::isolate {
namespace {

using nlohmann::json;

constexpr int kDeepest = 16;  // kernels, their arguments and a few lists: 5 in real notes

// Whether a document is nested so deep that it could only be hostile: building it would take the stack.
class DepthCheck : public json::json_sax_t {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool key(std::string&) override { return true; }
  bool start_object(size_t) override { return ++depth_ <= kDeepest; }
  bool start_array(size_t) override { return ++depth_ <= kDeepest; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  int depth_ = 0;
};

json without_dots(const json& object) {
  json found = json::object();
  for (const auto& [key, value] : object.items()) {
    if (!value.is_structured()) found[key.starts_with('.') ? key.substr(1) : key] = value;
  }
  return found;
}

json argument_of(const json& given) {
  const json plain = without_dots(given);
  json argument = json::object();
  for (const char* key : record::kArgumentKeys) argument[key] = plain.contains(key) ? plain[key] : json();
  return argument;
}

}  // namespace

json metadata_of(Bytes message_pack, std::string_view kernel) {
  json nothing = {{"arguments", nullptr}, {"metadata", nullptr}};
  const auto* const first = reinterpret_cast<const uint8_t*>(message_pack.data());
  const auto* const end = first + message_pack.size();
  DepthCheck check;
  if (!json::sax_parse(first, end, &check, json::input_format_t::msgpack)) return nothing;
  const json note = json::from_msgpack(first, end, true, false);
  if (!note.is_object() || !note.contains("amdhsa.kernels") || !note["amdhsa.kernels"].is_array())
    return nothing;
  const std::string symbol = std::string(kernel) + ".kd";
  for (const json& one : note["amdhsa.kernels"]) {
    if (!one.is_object() || !one.contains(".symbol") || one[".symbol"] != symbol) continue;
    json arguments = json::array();
    if (one.contains(".args") && one[".args"].is_array()) {
      for (const json& given : one[".args"]) {
        if (given.is_object()) arguments.push_back(argument_of(given));
      }
    }
    return {{"arguments", std::move(arguments)}, {"metadata", without_dots(one)}};
  }
  return nothing;
}

}  // namespace rpl::isolate
