#include "decode/disassembler.h"

#include <dlfcn.h>

#include <array>
#include <vector>

namespace rpl_emu {
namespace {

constexpr const char* kTriple = "amdgcn-amd-amdhsa";
constexpr const char* kProcessor = "gfx942";
constexpr unsigned kOldestLlvm = 19;

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

}  // namespace

// The two libraries' C interfaces: llvm-c/Disassembler.h, amd_comgr.h.
struct Disassembler::Parts {
  void* library = nullptr;
  std::string path;
  std::string version;
  void* llvm = nullptr;
  size_t (*llvm_at)(void*, uint8_t*, uint64_t, uint64_t, char*, size_t) = nullptr;
  void (*llvm_dispose)(void*) = nullptr;
  struct ComgrInfo { uint64_t handle; };
  ComgrInfo comgr{};
  int (*comgr_at)(ComgrInfo, uint64_t, void*, uint64_t*) = nullptr;
  int (*comgr_destroy)(ComgrInfo) = nullptr;

  bool open_llvm() {
    for (const char* target : {"LLVMInitializeAMDGPUTargetInfo", "LLVMInitializeAMDGPUTarget",
                               "LLVMInitializeAMDGPUTargetMC", "LLVMInitializeAMDGPUDisassembler"}) {
      auto* start = symbol<void (*)()>(library, target);
      if (!start) return false;
      start();
    }
    auto* create = symbol<void* (*)(const char*, const char*, void*, int, void*, void*)>(library, "LLVMCreateDisasmCPU");
    auto* get_version = symbol<void (*)(unsigned*, unsigned*, unsigned*)>(library, "LLVMGetVersion");
    llvm_at = symbol<decltype(llvm_at)>(library, "LLVMDisasmInstruction");
    llvm_dispose = symbol<decltype(llvm_dispose)>(library, "LLVMDisasmDispose");
    if (!create || !llvm_at || !llvm_dispose || !get_version) return false;
    unsigned major = 0, minor = 0, patch = 0;
    get_version(&major, &minor, &patch);
    version = "LLVM " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    if (major < kOldestLlvm)
      throw Unavailable(path + " is " + version + ", which does not know gfx942 well. Next: give LLVM 19 or newer by --llvm PATH");
    llvm = create(kTriple, kProcessor, nullptr, 0, nullptr, nullptr);
    return llvm != nullptr;
  }

  static uint64_t read(uint64_t from, char* to, uint64_t bytes, void* user);
  static void print(const char* text, void* user);
  static void address(uint64_t, void*) {}

  bool open_comgr() {
    auto* create = symbol<int (*)(const char*, decltype(&read), decltype(&print), decltype(&address), ComgrInfo*)>(
        library, "amd_comgr_create_disassembly_info");
    auto* get_version = symbol<void (*)(size_t*, size_t*)>(library, "amd_comgr_get_version");
    comgr_at = symbol<decltype(comgr_at)>(library, "amd_comgr_disassemble_instruction");
    comgr_destroy = symbol<decltype(comgr_destroy)>(library, "amd_comgr_destroy_disassembly_info");
    if (!create || !get_version || !comgr_at || !comgr_destroy) return false;
    size_t major = 0, minor = 0;
    get_version(&major, &minor);
    version = "comgr " + std::to_string(major) + "." + std::to_string(minor);
    const std::string isa = std::string(kTriple) + "--" + kProcessor;
    if (create(isa.c_str(), &read, &print, &address, &comgr) != 0)
      throw Unavailable(path + " does not know " + kProcessor + ". Next: give a newer one, or libLLVM, by --llvm PATH");
    return true;
  }
};

namespace {
struct ComgrCall {
  std::span<const uint8_t> code;
  uint64_t address;
  std::string text;
};
}  // namespace

uint64_t Disassembler::Parts::read(uint64_t from, char* to, uint64_t bytes, void* user) {
  const auto& call = *static_cast<ComgrCall*>(user);
  uint64_t done = 0;
  for (; done < bytes && from - call.address + done < call.code.size(); ++done)
    to[done] = static_cast<char>(call.code[from - call.address + done]);
  return done;
}
void Disassembler::Parts::print(const char* text, void* user) { static_cast<ComgrCall*>(user)->text = text; }

Disassembler::Disassembler(const std::string& library) : parts_(std::make_unique<Parts>()) {
  std::vector<std::string> names;
  if (!library.empty()) {
    names = {library};
  } else {
    for (unsigned major = 25; major >= kOldestLlvm; --major) {
      const std::string m = std::to_string(major);
      names.insert(names.end(), {"libLLVM.so." + m + ".1", "/usr/lib/llvm-" + m + "/lib/libLLVM.so.1", "libLLVM-" + m + ".so.1"});
    }
  }
  for (const std::string& name : names) {
    parts_->library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!parts_->library) continue;
    parts_->path = name;
    if (parts_->open_comgr() || parts_->open_llvm()) return;  // comgr may be linked to a libLLVM, never the other way
    dlclose(parts_->library);
    parts_->library = nullptr;
  }
  if (library.empty())
    throw Unavailable(
        "no LLVM library with the AMDGPU disassembler was found. Next: apt-get install libllvm22, or give libLLVM "
        "(19 or newer) or ROCm's libamd_comgr.so by --llvm PATH");
  throw Unavailable(library + " is no libLLVM with the AMDGPU disassembler and no libamd_comgr. Next: give another by --llvm PATH");
}

Disassembler::~Disassembler() {
  if (parts_->llvm) parts_->llvm_dispose(parts_->llvm);
  else if (parts_->comgr_destroy && parts_->comgr.handle) parts_->comgr_destroy(parts_->comgr);
}

Disassembler::Line Disassembler::at(std::span<const uint8_t> code, uint64_t address) const {
  if (parts_->llvm) {
    std::array<char, 512> text{};
    const size_t bytes = parts_->llvm_at(parts_->llvm, const_cast<uint8_t*>(code.data()), code.size(), address,
                                         text.data(), text.size());
    return {bytes, text.data()};
  }
  ComgrCall call{code, address, {}};
  uint64_t bytes = 0;
  if (parts_->comgr_at(parts_->comgr, address, &call, &bytes) != 0) return {};
  return {bytes, call.text};
}
const std::string& Disassembler::library() const { return parts_->path; }
const std::string& Disassembler::version() const { return parts_->version; }

}  // namespace rpl_emu
