// A code object with kernels and the note that describes them, as a compiler would lay it out.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace made_up {

inline nlohmann::json note_of(const std::string& kernel) {
  return {{"amdhsa.kernels",
           {{{".symbol", kernel + ".kd"},
             {".kernarg_segment_size", 16},
             {".args",
              {{{".offset", 0}, {".size", 8}, {".value_kind", "global_buffer"}, {".name", "values"}}}}}}}};
}

class CodeObject {
 public:
  explicit CodeObject(const std::string& kernel)
      : CodeObject(kernel, nlohmann::json::to_msgpack(note_of(kernel))) {}
  CodeObject(const std::string& kernel, const std::vector<uint8_t>& note) {
    const std::string names = std::string(1, '\0') + kernel + ".kd" + '\0';
    put(Elf64_Ehdr{});
    const uint64_t descriptor = bytes.size();
    const uint32_t sizes[16] = {64, 8, 16};
    put(sizes);
    const uint64_t note_at = bytes.size();
    put(Elf64_Nhdr{7, static_cast<uint32_t>(note.size()), 32});
    put_bytes("AMDGPU\0", 8);
    put_bytes(note.data(), note.size());
    bytes.resize((bytes.size() + 3) / 4 * 4);
    const uint64_t note_size = bytes.size() - note_at;
    const uint64_t symbols_at = bytes.size();
    put(Elf64_Sym{});
    put(Elf64_Sym{1, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1, kDescriptorAddress, 64});
    const uint64_t names_at = bytes.size();
    put_bytes(names.data(), names.size());
    const uint64_t sections_at = bytes.size();
    put(Elf64_Shdr{});
    put(Elf64_Shdr{0, SHT_PROGBITS, 0, kDescriptorAddress, descriptor, 64, 0, 0, 64, 0});
    put(Elf64_Shdr{0, SHT_NOTE, 0, 0, note_at, note_size, 0, 0, 4, 0});
    put(Elf64_Shdr{0, SHT_DYNSYM, 0, 0, symbols_at, 2 * sizeof(Elf64_Sym), 4, 0, 8, sizeof(Elf64_Sym)});
    put(Elf64_Shdr{0, SHT_STRTAB, 0, 0, names_at, names.size(), 0, 0, 1, 0});
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_shoff = sections_at;
    header.e_shnum = 5;
    std::memcpy(bytes.data(), &header, sizeof(header));
  }

  static constexpr uint64_t kDescriptorAddress = 0x1000;
  std::vector<std::byte> bytes;

 private:
  template <typename T>
  void put(const T& value) {
    put_bytes(&value, sizeof(value));
  }
  void put_bytes(const void* data, size_t size) {
    const auto* const first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + size);
  }
};

}  // namespace made_up
