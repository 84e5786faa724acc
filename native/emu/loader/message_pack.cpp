#include "loader/message_pack.h"

#include "loader/code_object.h"

namespace rpl_emu {
namespace {

constexpr unsigned kDeepest = 16;
constexpr uint64_t kMostValues = 1000000;

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  Packed value(unsigned depth = 0) {
    if (depth > kDeepest || ++values_ > kMostValues) throw BadFile("metadata of the code object is nested too deeply or too large");
    const uint64_t tag = number(1);
    if (tag <= 0x7f) return of_number(tag);
    if (tag <= 0x8f) return map(tag & 15, depth);
    if (tag <= 0x9f) return list(tag & 15, depth);
    if (tag <= 0xbf) return text(tag & 31);
    if (tag >= 0xe0) return of_number(static_cast<uint64_t>(static_cast<int8_t>(tag)));
    switch (tag) {
      case 0xc0: return {};
      case 0xc2: case 0xc3: { Packed p; p.kind = Packed::Kind::boolean; p.number = tag & 1; return p; }
      case 0xc4: case 0xd9: return text(number(1));
      case 0xc5: case 0xda: return text(number(2));
      case 0xc6: case 0xdb: return text(number(4));
      case 0xcc: case 0xd0: return of_number(number(1));
      case 0xcd: case 0xd1: return of_number(number(2));
      case 0xca: case 0xce: case 0xd2: return of_number(number(4));
      case 0xcb: case 0xcf: case 0xd3: return of_number(number(8));
      case 0xdc: return list(number(2), depth);
      case 0xdd: return list(number(4), depth);
      case 0xde: return map(number(2), depth);
      case 0xdf: return map(number(4), depth);
      default: throw BadFile("metadata of the code object is no MessagePack");
    }
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  uint64_t values_ = 0;

  uint64_t number(unsigned bytes) {
    if (bytes > bytes_.size() - at_) throw BadFile("metadata of the code object ends too early");
    uint64_t out = 0;
    for (unsigned k = 0; k < bytes; ++k) out = out << 8 | bytes_[at_++];
    return out;
  }
  static Packed of_number(uint64_t n) { Packed p; p.kind = Packed::Kind::number; p.number = n; return p; }
  Packed text(uint64_t bytes) {
    if (bytes > bytes_.size() - at_) throw BadFile("metadata of the code object ends too early");
    Packed p;
    p.kind = Packed::Kind::text;
    p.text.assign(reinterpret_cast<const char*>(&bytes_[at_]), bytes);
    at_ += bytes;
    return p;
  }
  Packed list(uint64_t count, unsigned depth) {
    Packed p;
    p.kind = Packed::Kind::list;
    for (uint64_t k = 0; k < count; ++k) p.list.push_back(value(depth + 1));
    return p;
  }
  Packed map(uint64_t count, unsigned depth) {
    Packed p;
    p.kind = Packed::Kind::map;
    for (uint64_t k = 0; k < count; ++k) {
      std::string key = value(depth + 1).text;
      p.map.insert_or_assign(std::move(key), value(depth + 1));
    }
    return p;
  }
};

}  // namespace

const Packed& Packed::operator[](const std::string& key) const {
  static const Packed kNothing;
  const auto found = map.find(key);
  return found == map.end() ? kNothing : found->second;
}
Packed read_message_pack(std::span<const uint8_t> bytes) { return Reader(bytes).value(); }

}  // namespace rpl_emu
