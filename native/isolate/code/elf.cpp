#include "code/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace rpl::isolate {
namespace {

constexpr uint32_t kNoteAmdgpuMetadata = 32;
constexpr std::string_view kNoteOwner("AMDGPU\0", 7);
constexpr std::string_view kDescriptorSuffix = ".kd";

template <typename T>
std::optional<T> read(Bytes bytes, uint64_t offset) {
  T value;
  if (offset > bytes.size() || bytes.size() - offset < sizeof(value)) return std::nullopt;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

std::string_view text_at(Bytes bytes, uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const auto* const first = reinterpret_cast<const char*>(bytes.data()) + offset;
  return {first, strnlen(first, bytes.size() - offset)};
}

constexpr uint64_t aligned(uint64_t size) { return (size + 3) / 4 * 4; }

}  // namespace

std::optional<Elf> Elf::open(Bytes bytes) {
  const auto header = read<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return std::nullopt;
  }
  Elf elf(bytes);
  for (uint16_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(bytes, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (segment && segment->p_type == PT_NOTE) {
      elf.note_segments_.push_back({SHT_NOTE, 0, 0, segment->p_offset, segment->p_filesz, 0});
    }
  }
  for (uint16_t i = 0; i < header->e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) break;
    elf.sections_.push_back({section->sh_type, section->sh_link, section->sh_addr, section->sh_offset,
                             section->sh_size, section->sh_entsize});
  }
  for (const uint32_t wanted : {uint32_t{SHT_DYNSYM}, uint32_t{SHT_SYMTAB}}) {
    for (const Section& table : elf.sections_) {
      if (table.type != wanted || table.link >= elf.sections_.size() || !elf.symbols_.empty()) continue;
      elf.read_symbols(table, elf.sections_[table.link]);
    }
  }
  return elf;
}

Bytes Elf::part(uint64_t offset, uint64_t size) const {
  if (offset > bytes_.size() || bytes_.size() - offset < size) return {};
  return bytes_.subspan(offset, size);
}

void Elf::read_symbols(const Section& table, const Section& names) {
  const Bytes entries = part(table.offset, table.size);
  const Bytes texts = part(names.offset, names.size);
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= entries.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = read<Elf64_Sym>(entries, at);
    if (!symbol) break;
    const std::string_view name = text_at(texts, symbol->st_name);
    if (!name.empty() && symbol->st_shndx != SHN_UNDEF) {
      symbols_.push_back({name, symbol->st_value, symbol->st_size});
    }
  }
}

std::vector<std::string_view> Elf::kernels() const {
  std::vector<std::string_view> names;
  for (const ElfSymbol& symbol : symbols_) {
    if (symbol.name.ends_with(kDescriptorSuffix)) {
      names.push_back(symbol.name.substr(0, symbol.name.size() - kDescriptorSuffix.size()));
    }
  }
  return names;
}

const ElfSymbol* Elf::find(std::string_view symbol) const {
  const auto found =
      std::ranges::find_if(symbols_, [symbol](const ElfSymbol& one) { return one.name == symbol; });
  return found == symbols_.end() ? nullptr : &*found;
}

std::optional<uint64_t> Elf::address_of(std::string_view symbol) const {
  const ElfSymbol* const found = find(symbol);
  return found == nullptr ? std::nullopt : std::optional(found->address);
}

std::optional<Bytes> Elf::bytes_of(std::string_view symbol) const {
  const ElfSymbol* const place = find(symbol);
  if (place == nullptr) return std::nullopt;
  for (const Section& section : sections_) {
    const bool has_bytes = section.type == SHT_PROGBITS && section.address != 0;
    if (!has_bytes || place->address < section.address) continue;
    const uint64_t inside = place->address - section.address;
    if (inside > section.size || section.size - inside < place->size) continue;
    if (const Bytes found = part(section.offset + inside, place->size); !found.empty()) return found;
  }
  return std::nullopt;
}

Bytes Elf::metadata() const {
  for (const auto* list : {&note_segments_, &sections_}) {
    for (const Section& one : *list) {
      if (one.type != SHT_NOTE) continue;
      if (const Bytes found = metadata_in(part(one.offset, one.size)); !found.empty()) return found;
    }
  }
  return {};
}

Bytes Elf::metadata_in(Bytes notes) {
  for (uint64_t at = 0; const auto note = read<Elf64_Nhdr>(notes, at);) {
    const uint64_t name = at + sizeof(*note);
    const uint64_t description = name + aligned(note->n_namesz);
    at = description + aligned(note->n_descsz);
    if (description > notes.size() || notes.size() - description < note->n_descsz) return {};
    if (note->n_type == kNoteAmdgpuMetadata && note->n_namesz == kNoteOwner.size() &&
        std::memcmp(notes.data() + name, kNoteOwner.data(), kNoteOwner.size()) == 0) {
      return notes.subspan(description, note->n_descsz);
    }
  }
  return {};
}

std::optional<KernelDescriptor> KernelDescriptor::read(Bytes bytes) {
  constexpr size_t kSize = 64;
  constexpr size_t kEntryOffset = 16;
  if (bytes.size() < kSize) return std::nullopt;
  KernelDescriptor found{};
  std::memcpy(&found.group_segment_size, bytes.data(), sizeof(uint32_t));
  std::memcpy(&found.private_segment_size, bytes.data() + 4, sizeof(uint32_t));
  std::memcpy(&found.kernarg_size, bytes.data() + 8, sizeof(uint32_t));
  std::memcpy(&found.entry_offset, bytes.data() + kEntryOffset, sizeof(int64_t));
  return found;
}

}  // namespace rpl::isolate
