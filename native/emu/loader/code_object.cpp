#include "loader/code_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "loader/message_pack.h"

namespace rpl_emu {
namespace {

constexpr uint32_t kMachine = 224;          // EM_AMDGPU
constexpr uint32_t kProcessor = 0x4c;       // EF_AMDGPU_MACH_AMDGCN_GFX942
constexpr uint32_t kMetadataNote = 32;      // NT_AMDGPU_METADATA
constexpr uint64_t kMostMemory = uint64_t{1} << 32;
// Parts of a file may overlap and names may share their text. So often, in bytes, the file may be gone through in all;
// what compilers write takes two or three times.
constexpr uint64_t kMostPasses = 16, kAlways = uint64_t{1} << 24;
// LLVM AMDGPUUsage, "Relocation Records".
constexpr uint32_t kAbs32Low = 1, kAbs32High = 2, kAbs64 = 3, kAbs32 = 6, kRelative64 = 13;

class Elf {
 public:
  explicit Elf(std::span<const uint8_t> file) : file_(file) {
    header_ = at<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
      if (file.size() > 24 && std::memcmp(file.data(), "__CLANG_OFFLOAD_BUNDLE__", 24) == 0)
        throw BadFile("an offload bundle, not a code object. Next: compile with --no-gpu-bundle-output, or unbundle it");
      throw BadFile("no ELF file");
    }
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_machine != kMachine) throw BadFile("an ELF file, but no AMD GPU code object");
    if ((header_.e_flags & 0xff) != kProcessor) throw BadFile("a code object for another GPU than gfx942");
    if (header_.e_type != ET_DYN) throw BadFile("a code object that is not linked");
    for (unsigned k = 0; k < header_.e_phnum; ++k)
      headers_.push_back(at<Elf64_Phdr>(checked(header_.e_phoff, uint64_t{k} * sizeof(Elf64_Phdr))));
  }

  CodeObject read() {
    for (const Elf64_Phdr& h : headers_) if (h.p_type == PT_LOAD) segment(h);
    if (out_.segments.empty()) throw BadFile("a code object without anything to load");
    symbols();
    dynamic();
    for (const Elf64_Phdr& h : headers_) if (h.p_type == PT_NOTE) notes(h);
    return std::move(out_);
  }

 private:
  std::span<const uint8_t> file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> headers_;
  CodeObject out_;
  uint64_t work_ = 0;

  void charge(uint64_t bytes) {
    work_ += bytes;
    if (work_ < bytes || work_ > kMostPasses * file_.size() + kAlways) throw BadFile("a code object whose parts overlap again and again");
  }
  static uint64_t checked(uint64_t a, uint64_t b) {
    if (a + b < a) throw BadFile("an offset in the code object overflows");
    return a + b;
  }
  [[nodiscard]] std::span<const uint8_t> part(uint64_t offset, uint64_t bytes) const {
    if (offset > file_.size() || bytes > file_.size() - offset) throw BadFile("the code object is cut off");
    return file_.subspan(offset, bytes);
  }
  template <class T>
  [[nodiscard]] T at(uint64_t offset) const {
    T value;
    std::memcpy(&value, part(offset, sizeof value).data(), sizeof value);
    return value;
  }
  void segment(const Elf64_Phdr& h) {
    if (h.p_memsz < h.p_filesz || h.p_vaddr > kMostMemory || h.p_memsz > kMostMemory) throw BadFile("a segment of impossible size");
    out_.segments.push_back({h.p_vaddr, h.p_memsz, part(h.p_offset, h.p_filesz), (h.p_flags & PF_W) != 0, (h.p_flags & PF_X) != 0});
    out_.end = std::max(out_.end, h.p_vaddr + h.p_memsz);
  }
  // Bytes of the loaded object at an address, as far as the file has them.
  [[nodiscard]] std::span<const uint8_t> loaded(uint64_t address, uint64_t bytes) {
    charge(bytes + out_.segments.size());
    for (const Segment& s : out_.segments)
      if (address >= s.address && address - s.address <= s.file.size() && bytes <= s.file.size() - (address - s.address))
        return s.file.subspan(address - s.address, bytes);
    throw BadFile("an address of the code object lies outside of what it loads");
  }
  std::string text(uint64_t table, uint64_t bytes, uint64_t offset) {
    const auto strings = part(table, bytes);
    if (offset >= bytes) throw BadFile("a name of the code object lies outside of its table");
    const auto* begin = reinterpret_cast<const char*>(strings.data() + offset);
    const size_t length = strnlen(begin, bytes - offset);
    charge(length);
    return {begin, length};
  }

  // The full table where there is one, else the dynamic one.
  void symbols() {
    Elf64_Shdr chosen{};
    for (unsigned k = 0; k < header_.e_shnum; ++k) {
      const auto s = at<Elf64_Shdr>(checked(header_.e_shoff, uint64_t{k} * sizeof(Elf64_Shdr)));
      if (s.sh_type == SHT_SYMTAB || (s.sh_type == SHT_DYNSYM && chosen.sh_type != SHT_SYMTAB)) chosen = s;
    }
    if (chosen.sh_type == 0) throw BadFile("a code object without symbols");
    const auto strings = at<Elf64_Shdr>(checked(header_.e_shoff, uint64_t{chosen.sh_link} * sizeof(Elf64_Shdr)));
    std::map<std::string, Elf64_Sym> by_name;
    for (uint64_t k = 0; k + sizeof(Elf64_Sym) <= chosen.sh_size; k += sizeof(Elf64_Sym)) {
      const auto symbol = at<Elf64_Sym>(checked(chosen.sh_offset, k));
      if (symbol.st_name == 0) continue;
      const std::string name = text(strings.sh_offset, strings.sh_size, symbol.st_name);
      by_name[name] = symbol;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_size != 0 && symbol.st_shndx != SHN_UNDEF) {
        charge(std::min<uint64_t>(symbol.st_size, file_.size()));
        out_.functions.push_back({name, symbol.st_value, symbol.st_size});
      }
      if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF && !name.ends_with(".kd") && symbol.st_value <= out_.end && symbol.st_size <= out_.end - symbol.st_value)
        out_.variables.push_back({name, symbol.st_value, symbol.st_size});
    }
    for (const auto& [name, symbol] : by_name)
      if (name.ends_with(".kd")) kernel(name.substr(0, name.size() - 3), symbol, by_name);
  }

  void kernel(const std::string& name, const Elf64_Sym& symbol, const std::map<std::string, Elf64_Sym>& by_name) {
    Kernel k;
    k.name = name;
    k.descriptor = read_descriptor(loaded(symbol.st_value, 64), symbol.st_value);
    const Descriptor& d = k.descriptor;
    k.kernarg_bytes = d.kernarg_bytes;
    k.dynamic_stack = d.properties >> 11 & 1;
    k.begin = d.entry;
    const auto code = by_name.find(name);
    k.bytes = code != by_name.end() && code->second.st_value == d.entry ? code->second.st_size : 0;
    out_.kernels.emplace(name, std::move(k));
  }

  void dynamic() {
    uint64_t rela = 0, bytes = 0, symbols = 0;
    for (const Elf64_Phdr& h : headers_) {
      if (h.p_type != PT_DYNAMIC) continue;
      charge(std::min<uint64_t>(h.p_filesz, file_.size()));
      for (uint64_t k = 0; k + sizeof(Elf64_Dyn) <= h.p_filesz; k += sizeof(Elf64_Dyn)) {
        const auto entry = at<Elf64_Dyn>(checked(h.p_offset, k));
        if (entry.d_tag == DT_RELA) rela = entry.d_un.d_ptr;
        if (entry.d_tag == DT_RELASZ) bytes = entry.d_un.d_val;
        if (entry.d_tag == DT_SYMTAB) symbols = entry.d_un.d_ptr;
      }
    }
    for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= bytes; k += sizeof(Elf64_Rela)) relocation(checked(rela, k), symbols);
  }
  void relocation(uint64_t where, uint64_t symbols) {
    Elf64_Rela r;
    std::memcpy(&r, loaded(where, sizeof r).data(), sizeof r);
    const uint32_t type = ELF64_R_TYPE(r.r_info);
    Relocation out;
    out.at = r.r_offset;
    out.value = static_cast<uint64_t>(r.r_addend);
    if (type == kRelative64) {
    } else if (type == kAbs64) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, loaded(checked(symbols, uint64_t{ELF64_R_SYM(r.r_info)} * sizeof symbol), sizeof symbol).data(), sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF) throw BadFile("the code object needs a symbol of another one");
      out.value += symbol.st_value;
    } else {
      throw BadFile("a relocation of type " + std::to_string(type) + ", which is not offered");
    }
    if (out.at > out_.end || out_.end - out.at < 8) throw BadFile("a relocation outside of the code object");
    out_.relocations.push_back(out);
  }

  void notes(const Elf64_Phdr& h) {
    uint64_t at_byte = h.p_offset;
    const uint64_t end = checked(h.p_offset, h.p_filesz);
    charge(std::min<uint64_t>(h.p_filesz, file_.size()) * (kMostPasses / 2));  // what it unpacks to is far larger
    while (at_byte + sizeof(Elf64_Nhdr) <= end) {
      const auto note = at<Elf64_Nhdr>(at_byte);
      const uint64_t name = at_byte + sizeof note;
      const uint64_t content = name + ((uint64_t{note.n_namesz} + 3) & ~uint64_t{3});
      if (note.n_type == kMetadataNote && note.n_namesz == 7 && std::memcmp(part(name, 7).data(), "AMDGPU", 7) == 0)
        metadata(read_message_pack(part(content, note.n_descsz)));
      at_byte = content + ((uint64_t{note.n_descsz} + 3) & ~uint64_t{3});
    }
  }
  void metadata(const Packed& root) {
    for (const Packed& k : root["amdhsa.kernels"].list) {
      const std::string symbol = k[".symbol"].text;
      if (!symbol.ends_with(".kd")) continue;
      const auto found = out_.kernels.find(symbol.substr(0, symbol.size() - 3));
      if (found == out_.kernels.end()) continue;
      found->second.kernarg_bytes = std::max(found->second.kernarg_bytes, k[".kernarg_segment_size"].number);
      if (found->second.kernarg_bytes > 65536) throw BadFile("kernel arguments of impossible size");
      for (const Packed& a : k[".args"].list)
        found->second.arguments.push_back({a[".name"].text, a[".value_kind"].text, a[".offset"].number, a[".size"].number});
    }
  }
};

}  // namespace

Descriptor read_descriptor(std::span<const uint8_t> bytes, uint64_t address) {
  const auto word = [&](size_t offset) { uint32_t v; std::memcpy(&v, &bytes[offset], 4); return v; };
  Descriptor d;
  d.group_bytes = word(0);
  d.private_bytes = word(4);
  d.kernarg_bytes = word(8);
  d.entry = address + (word(16) | uint64_t{word(20)} << 32);
  d.rsrc3 = word(44);
  d.rsrc1 = word(48);
  d.rsrc2 = word(52);
  d.properties = static_cast<uint16_t>(word(56));
  d.preload = static_cast<uint16_t>(word(56) >> 16);
  return d;
}

CodeObject read_code_object(std::span<const uint8_t> file) { return Elf(file).read(); }

}  // namespace rpl_emu
