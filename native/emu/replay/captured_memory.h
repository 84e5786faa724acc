// The memory of a capture at its own addresses in this process.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "machine/access_log.h"
#include "machine/guest_memory.h"
#include "replay/plan.h"

namespace rpl_emu {

// This process itself lies where the capture has to. Another start draws other places.
class LayoutClash : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Bytes that replace those of the capture before each run.
struct Edit {
  AddressRange range;
  const uint8_t* bytes = nullptr;
};

class CapturedMemory {
 public:
  // Takes the places; they hold nothing yet. Throws LayoutClash, BadFile.
  explicit CapturedMemory(const std::vector<PlannedRegion>& regions);
  CapturedMemory(const CapturedMemory&) = delete;
  CapturedMemory& operator=(const CapturedMemory&) = delete;
  CapturedMemory(CapturedMemory&&) = delete;
  CapturedMemory& operator=(CapturedMemory&&) = delete;
  ~CapturedMemory();

  // Everything as it was captured. Files are mapped, never changed.
  void restore();
  // Throws BadFile for one outside of all regions.
  void apply(const std::vector<Edit>& edits) const;
  void add_to(GuestMemory& memory) const;
  [[nodiscard]] bool holds(AddressRange range) const;

 private:
  const std::vector<PlannedRegion>& regions_;
  std::vector<AddressRange> mapped_;
};

}  // namespace rpl_emu
