#include "decode/disassembler.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <vector>

namespace rpl_emu {
namespace {

constexpr const char* kTriple = "amdgcn-amd-amdhsa";
constexpr const char* kProcessor = "gfx942";
constexpr unsigned kOldestLlvm = 19;
// No instruction of gfx942 is longer. LLVM takes a literal behind 8 bytes for part of the instruction only where the
// target has this feature; where it has not, LLVM 22 reads freed memory in its message on the literal that it misses.
constexpr size_t kLongest = 8;
constexpr const char* kReadsLiterals = "+vop3-literal";

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

// LLVM's disassembler takes fields with reserved values for impossible and crashes; whoever damages a code object can
// write them. Each thread comes back from its crash to where it called the library.
constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
thread_local sigjmp_buf* before_call = nullptr;

extern "C" void leave_crash(int signal) {
  if (before_call) siglongjmp(*before_call, 1);  // NOLINT(modernize-avoid-setjmp-longjmp,cert-err52-cpp)
  (void)std::signal(signal, SIG_DFL);            // not in the library: it ends this process when it happens again
}

void watch_for_crashes() {
  struct sigaction action {};
  action.sa_handler = leave_crash;
  action.sa_flags = SA_NODEFER;
  for (const int signal : kCrashes) (void)sigaction(signal, &action, nullptr);
}

// False where the library crashed; what it held is lost.
template <class F>
bool survives(const F& call) {
  sigjmp_buf here;
  const bool back = sigsetjmp(here, 0) != 0;  // NOLINT(modernize-avoid-setjmp-longjmp,cert-err52-cpp)
  if (!back) {
    before_call = &here;
    call();
  }
  before_call = nullptr;
  return !back;
}

}  // namespace

// The two libraries' C interfaces: llvm-c/Disassembler.h, amd_comgr.h.
struct Disassembler::Parts {
  void* library = nullptr;
  std::string path;
  std::string version;
  void* llvm = nullptr;
  void* (*llvm_create)(const char*, const char*, const char*, void*, int, void*, void*) = nullptr;
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
    llvm_create = symbol<decltype(llvm_create)>(library, "LLVMCreateDisasmCPUFeatures");
    auto* get_version = symbol<void (*)(unsigned*, unsigned*, unsigned*)>(library, "LLVMGetVersion");
    llvm_at = symbol<decltype(llvm_at)>(library, "LLVMDisasmInstruction");
    llvm_dispose = symbol<decltype(llvm_dispose)>(library, "LLVMDisasmDispose");
    if (!llvm_create || !llvm_at || !llvm_dispose || !get_version) return false;
    unsigned major = 0, minor = 0, patch = 0;
    get_version(&major, &minor, &patch);
    version = "LLVM " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    if (major < kOldestLlvm)
      throw Unavailable(path + " is " + version + ", which does not know gfx942 well. Next: give LLVM 19 or newer by --llvm PATH");
    renew_llvm();
    return llvm != nullptr;
  }
  void renew_llvm() { llvm = llvm_create(kTriple, kProcessor, kReadsLiterals, nullptr, 0, nullptr, nullptr); }

  // It always sees enough bytes for a literal: zeros behind the end of the code.
  [[nodiscard]] Line line(std::span<const uint8_t> code, uint64_t address) {
    std::array<uint8_t, kLongest + 4> bytes{};
    std::copy_n(code.begin(), std::min(code.size(), bytes.size()), bytes.begin());
    std::array<char, 512> text{};
    size_t read = 0;
    if (!survives([&] { read = llvm_at(llvm, bytes.data(), bytes.size(), address, text.data(), text.size()); })) {
      renew_llvm();  // the old one remembers half of an instruction
      return {};
    }
    return read <= std::min(code.size(), kLongest) ? Line{read, text.data()} : Line{};
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
    if (parts_->open_comgr() || parts_->open_llvm()) {  // comgr may be linked to a libLLVM, never the other way
      watch_for_crashes();
      return;
    }
    dlclose(parts_->library);
    parts_->library = nullptr;
  }
  if (library.empty())
    throw NoLlvm(
        "no LLVM library with the AMDGPU disassembler was found. Next: rpl emu get-runtime, apt-get install libllvm22, or "
        "give libLLVM (19 or newer) or ROCm's libamd_comgr.so by --llvm PATH");
  throw Unavailable(library + " is no libLLVM with the AMDGPU disassembler and no libamd_comgr. Next: give another by --llvm PATH");
}

Disassembler::~Disassembler() {
  if (parts_->llvm) parts_->llvm_dispose(parts_->llvm);
  else if (parts_->comgr_destroy && parts_->comgr.handle) parts_->comgr_destroy(parts_->comgr);
}

Disassembler::Line Disassembler::at(std::span<const uint8_t> code, uint64_t address) const {
  if (parts_->llvm) return parts_->line(code, address);
  ComgrCall call{code, address, {}};
  uint64_t bytes = 0;
  int status = 0;
  if (!survives([&] { status = parts_->comgr_at(parts_->comgr, address, &call, &bytes); }) || status != 0) return {};
  return {bytes, call.text};
}
const std::string& Disassembler::library() const { return parts_->path; }
const std::string& Disassembler::version() const { return parts_->version; }

}  // namespace rpl_emu
