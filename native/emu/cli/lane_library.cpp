#include "cli/lane_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>

#include "decode/disassembler.h"

namespace rpl_emu {
namespace {

bool runs_here(const std::string& name) {
  if (name == "avx512")
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (name == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  return name == "baseline";
}

std::string own_folder() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  std::string whole(path.data(), length > 0 ? static_cast<size_t>(length) : 0);
  Dl_info self{};
  // Begun anew by a dynamic loader (cli/main.cpp), it is the loader that runs.
  if (whole.substr(whole.rfind('/') + 1).starts_with("ld-") && dladdr(reinterpret_cast<void*>(&own_folder), &self) != 0) whole = self.dli_fname;
  return whole.substr(0, whole.rfind('/'));
}

}  // namespace

LaneLibrary load_lanes(const std::string& wanted) { return load_lanes(wanted, own_folder()); }

LaneLibrary load_lanes(const std::string& wanted, const std::string& folder) {
  for (const std::string name : {"avx512", "avx2", "baseline"}) {
    if (wanted.empty() ? !runs_here(name) : name != wanted) continue;
    if (!runs_here(name)) throw Unavailable("this CPU has no " + name + ". Next: leave --cpu out");
    const std::string path = std::string(folder).append("/librpl-emu-").append(name).append(".so");
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Unavailable("cannot load " + path + ": the installation is not whole. Next: build native/emu again");
    auto* list = reinterpret_cast<void (*)(RowLists*)>(dlsym(library, "rpl_emu_lanes"));
    if (!list) throw Unavailable(path + " is no library of lane functions. Next: build native/emu again");
    LaneLibrary out;
    out.name = name;
    list(&out.lists);
    return out;
  }
  throw Unavailable("unknown instruction set " + wanted + ". Next: avx512, avx2 or baseline");
}

}  // namespace rpl_emu
