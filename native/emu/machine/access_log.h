// Which bytes of memory a launch wrote, and which it read before it had written them. Bytes are those of whole
// ranges that were asked for; everything else passes unseen. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/traffic.h"

namespace rpl_emu {

struct AddressRange {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

class AccessLog : public TrafficSink {
 public:
  AccessLog() = default;
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;
  AccessLog(AccessLog&&) = delete;
  AccessLog& operator=(AccessLog&&) = delete;
  ~AccessLog() override;

  void vector_access(const Wave& w, const uint64_t* addresses, uint64_t lanes, unsigned bytes, bool write, bool atomic) override;
  void scalar_access(const Wave&, uint64_t address, unsigned bytes) override { mark(address, bytes, false, false); }

  void watch(AddressRange range);
  // Nothing was touched yet.
  void clear();
  // Runs of bytes, in rising order.
  [[nodiscard]] std::vector<AddressRange> written() const { return runs(kWritten); }
  [[nodiscard]] std::vector<AddressRange> read_first() const { return runs(kReadFirst); }
  [[nodiscard]] std::vector<AddressRange> touched() const { return runs(kWritten | kReadFirst); }

 private:
  static constexpr uint8_t kWritten = 1, kReadFirst = 2;
  static constexpr uint64_t kPart = 4096;
  struct Watched {
    AddressRange range;
    uint8_t* marks = nullptr;     // one for each byte; pages that nobody touches take no memory
    std::vector<uint8_t> touched; // by parts of `kPart` bytes
  };
  std::vector<Watched> watched_;
  size_t last_ = 0;

  void mark(uint64_t address, unsigned bytes, bool write, bool atomic);
  [[nodiscard]] Watched* find(uint64_t address);
  [[nodiscard]] std::vector<AddressRange> runs(uint8_t mark) const;
};

}  // namespace rpl_emu
