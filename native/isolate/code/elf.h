// A code object: an ELF file whose notes describe its kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rpl::isolate {

using Bytes = std::span<const std::byte>;

struct ElfSymbol {
  std::string_view name;
  uint64_t address;
  uint64_t size;
};

// Views into the bytes; everything that does not lie in them is left out, so that broken files are only
// poorer.
class Elf {
 public:
  // Nothing when it is no 64-bit little-endian ELF file.
  static std::optional<Elf> open(Bytes bytes);

  // Names of kernels: what precedes ".kd" in the name of a descriptor's symbol.
  [[nodiscard]] std::vector<std::string_view> kernels() const;
  // Where a symbol is, from the beginning of the loaded code object.
  [[nodiscard]] std::optional<uint64_t> address_of(std::string_view symbol) const;
  // Bytes of a symbol, where it has bytes in the file.
  [[nodiscard]] std::optional<Bytes> bytes_of(std::string_view symbol) const;
  // MessagePack of the note NT_AMDGPU_METADATA, or nothing.
  [[nodiscard]] Bytes metadata() const;

 private:
  struct Section {
    uint32_t type;
    uint32_t link;
    uint64_t address, offset, size, entry_size;
  };
  explicit Elf(Bytes bytes) : bytes_(bytes) {}
  [[nodiscard]] Bytes part(uint64_t offset, uint64_t size) const;
  [[nodiscard]] static Bytes metadata_in(Bytes notes);
  [[nodiscard]] const ElfSymbol* find(std::string_view symbol) const;
  void read_symbols(const Section& table, const Section& names);

  Bytes bytes_;
  std::vector<Section> sections_;
  std::vector<Section> note_segments_;
  std::vector<ElfSymbol> symbols_;
};

// The 64 bytes that a kernel object points to; AMDGPU usage guide of LLVM, "Kernel Descriptor".
struct KernelDescriptor {
  uint32_t group_segment_size;
  uint32_t private_segment_size;
  uint32_t kernarg_size;
  int64_t entry_offset;

  static std::optional<KernelDescriptor> read(Bytes bytes);
};

}  // namespace rpl::isolate
