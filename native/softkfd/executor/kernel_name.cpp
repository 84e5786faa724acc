#include "executor/kernel_name.h"

#include <elf.h>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "queue/packets.h"

namespace softkfd {
namespace {

constexpr uint64_t kLargestCodeObject = 256ULL << 20;
constexpr std::string_view kDescriptorSuffix = ".kd";

template <typename T>
T load(const PageTable& memory, uint64_t address) {
  T value{};
  memory.read(address, &value, sizeof(value));
  return value;
}

struct Symbols {
  uint64_t table = 0;
  uint64_t strings = 0;
  uint64_t hash = 0;
};

bool is_elf(const PageTable& memory, uint64_t base) {
  const auto magic = load<std::array<char, SELFMAG>>(memory, base);
  return std::memcmp(magic.data(), ELFMAG, SELFMAG) == 0;
}

// The dynamic section is what the loader keeps of the symbols.
std::optional<Symbols> symbols_of(const PageTable& memory, uint64_t base) {
  const auto header = load<Elf64_Ehdr>(memory, base);
  for (unsigned index = 0; index < header.e_phnum; ++index) {
    const auto segment = load<Elf64_Phdr>(memory, base + header.e_phoff + index * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_DYNAMIC) continue;
    Symbols symbols;
    for (uint64_t place = base + segment.p_vaddr;; place += sizeof(Elf64_Dyn)) {
      const auto entry = load<Elf64_Dyn>(memory, place);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_SYMTAB) symbols.table = base + entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRTAB) symbols.strings = base + entry.d_un.d_ptr;
      if (entry.d_tag == DT_HASH) symbols.hash = base + entry.d_un.d_ptr;
    }
    if (symbols.table != 0 && symbols.strings != 0 && symbols.hash != 0) return symbols;
  }
  return std::nullopt;
}

std::string string_at(const PageTable& memory, uint64_t address) {
  std::string text;
  while (const char letter = load<char>(memory, address++)) text += letter;
  return text;
}

template <typename Visit>
void for_each_symbol(const PageTable& memory, uint64_t base, const Symbols& symbols, const Visit& visit) {
  const auto count = load<uint32_t>(memory, symbols.hash + sizeof(uint32_t));  // nchain: one per symbol
  for (uint32_t index = 0; index < count; ++index) {
    const auto symbol = load<Elf64_Sym>(memory, symbols.table + index * sizeof(Elf64_Sym));
    visit(symbol, base + symbol.st_value);
  }
}

std::optional<std::string> name_in(const PageTable& memory, uint64_t base, uint64_t kernel_object) {
  const auto symbols = symbols_of(memory, base);
  if (!symbols) return std::nullopt;
  std::optional<std::string> found;
  for_each_symbol(memory, base, *symbols, [&](const Elf64_Sym& symbol, uint64_t address) {
    if (found || address != kernel_object) return;
    const std::string name = string_at(memory, symbols->strings + symbol.st_name);
    if (name.ends_with(kDescriptorSuffix)) found = name.substr(0, name.size() - kDescriptorSuffix.size());
  });
  return found;
}

struct Found {
  uint64_t base;
  std::string name;
};

std::optional<Found> code_object_around(const PageTable& memory, uint64_t kernel_object) {
  constexpr uint64_t kPage = 4096;
  uint64_t base = kernel_object / kPage * kPage;
  try {
    for (uint64_t passed = 0; passed < kLargestCodeObject; passed += kPage, base -= kPage) {
      if (!is_elf(memory, base)) continue;
      if (auto name = name_in(memory, base, kernel_object)) return Found{base, *name};
    }
  } catch (const GpuFault&) {
    return std::nullopt;  // the allocation begins here: no code object is around the descriptor
  }
  return std::nullopt;
}

std::string code_hash(const PageTable& memory, uint64_t kernel_object) {
  const auto descriptor = load<KernelDescriptor>(memory, kernel_object);
  const auto code =
      load<std::array<uint8_t, 64>>(memory, kernel_object + static_cast<uint64_t>(descriptor.entry_offset));
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const uint8_t byte : code) hash = (hash ^ byte) * 0x100000001b3;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "code:";
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(hash >> shift) & 0xf];
  return text;
}

}  // namespace

std::string kernel_name(const PageTable& memory, uint64_t kernel_object) {
  if (const auto found = code_object_around(memory, kernel_object)) return found->name;
  return code_hash(memory, kernel_object);
}

std::optional<LoadedCode> loaded_code(const PageTable& memory, uint64_t kernel_object) {
  const auto found = code_object_around(memory, kernel_object);
  if (!found) return std::nullopt;
  LoadedCode code;
  code.base = found->base;
  const auto header = load<Elf64_Ehdr>(memory, code.base);
  for (unsigned index = 0; index < header.e_phnum; ++index) {
    const auto segment =
        load<Elf64_Phdr>(memory, code.base + header.e_phoff + index * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    code.text = code.base + segment.p_vaddr;
    code.text_bytes = segment.p_memsz;
  }
  const auto symbols = symbols_of(memory, code.base);
  if (!symbols) return std::nullopt;
  for_each_symbol(memory, code.base, *symbols, [&](const Elf64_Sym& symbol, uint64_t address) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0) return;
    code.functions.push_back(
        {string_at(memory, symbols->strings + symbol.st_name), address, symbol.st_size});
  });
  return code;
}

}  // namespace softkfd
