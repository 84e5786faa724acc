// What a program of the stand-in calls at run time. The bundle that it registers holds a library with its
// kernels compiled for the CPU, and the sizes of their arguments: what runs is what the bundle holds, not
// what the host was compiled from.
//
// Kernels run block after block, work-item after work-item. A work-item that waits at a barrier is a fibre
// of its own; one that never waits shares its fibre with those before it. One host thread only.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#define __host__
#define __device__
#define __forceinline__ inline
#include "../include/rpl_hip/types.h"
#include "../include/rpl_hip/services.h"

extern "C" {
hipError_t rpl_hip_last_error = hipSuccess;
}

namespace rpl_hip {
constexpr unsigned kMostItems = 1024, kLanes = 64, kMostArguments = 64;
constexpr size_t kStackBytes = 65536;

[[noreturn]] void fail(const char* what) {
  fprintf(stderr, "HIP emulation: %s\n", what);
  abort();
}

// Scheduler.

enum class State : unsigned char { Running, AtWave, AtBlock, Finished };

struct Fibre {
  ucontext_t context;
  unsigned item;  // the one that it runs or that waits on it
};

// `entry` follows the calling convention of types.h: an argument of 1, 2, 4 or 8 bytes is its slot, any
// other lies where its slot points to, and belongs to the kernel, which may write there.
struct Kernel {
  void (*entry)();
  std::vector<unsigned> sizes;
  Services** services;
};

struct Grid {
  ucontext_t scheduler;
  const Kernel* kernel;
  void** arguments;
  unsigned count, next, fibres, current;
  Fibre* pool[kMostItems];
  State state[kMostItems];
  Fibre* owner[kMostItems];
};
Grid grid;
Services services;

// What a lane gives to its wave. Two sets: a lane may be one exchange ahead of the others, never two.
struct Slot {
  unsigned char bytes[2][16];
  unsigned given[2];  // number of the exchange that the bytes belong to
  unsigned round;
};
Slot slots[kMostItems];

void enter(unsigned item) {
  grid.current = item;
  unsigned row = item / services.block_size.x;
  services.thread = {item % services.block_size.x, row % services.block_size.y, row / services.block_size.y};
}

bool is_slot(unsigned bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

// Slots are passed as doubles of a variadic call, which puts the first four into registers of both kinds.
void call(const Kernel& kernel) {
  using Variadic = void(__attribute__((ms_abi)) *)(...);
  double s[kMostArguments] = {};
  size_t room = 0, count = kernel.sizes.size();
  for (unsigned bytes : kernel.sizes) room += is_slot(bytes) ? 0 : (bytes + 15) / 16 * 16;
  unsigned char* copies = static_cast<unsigned char*>(__builtin_alloca_with_align(room + 16, 128));
  for (size_t i = 0; i < count; ++i) {
    unsigned bytes = kernel.sizes[i];
    if (is_slot(bytes)) {
      memcpy(&s[i], grid.arguments[i], bytes);
    } else {
      memcpy(copies, grid.arguments[i], bytes);
      memcpy(&s[i], &copies, sizeof(copies));
      copies += (bytes + 15) / 16 * 16;
    }
  }
  Variadic entry = reinterpret_cast<Variadic>(kernel.entry);
  if (count <= 4) entry(s[0], s[1], s[2], s[3]);
  else if (count <= 12) entry(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11]);
#define RPL_EIGHT(n) s[n], s[n + 1], s[n + 2], s[n + 3], s[n + 4], s[n + 5], s[n + 6], s[n + 7]
  else entry(RPL_EIGHT(0), RPL_EIGHT(8), RPL_EIGHT(16), RPL_EIGHT(24), RPL_EIGHT(32), RPL_EIGHT(40),
             RPL_EIGHT(48), RPL_EIGHT(56));
#undef RPL_EIGHT
}

void run_items() {
  for (;;) {
    Fibre* self = grid.pool[grid.fibres - 1];
    while (grid.next < grid.count) {
      self->item = grid.next++;
      grid.owner[self->item] = self;
      grid.state[self->item] = State::Running;
      slots[self->item] = Slot{};
      enter(self->item);
      call(*grid.kernel);
      grid.state[self->item] = State::Finished;
    }
    swapcontext(&self->context, &grid.scheduler);
  }
}

Fibre* make_fibre() {
  Fibre* made = static_cast<Fibre*>(malloc(sizeof(Fibre)));
  void* stack = malloc(kStackBytes);
  if (!made || !stack || getcontext(&made->context) != 0) fail("no memory for a work-item");
  made->context.uc_stack.ss_sp = stack;
  made->context.uc_stack.ss_size = kStackBytes;
  made->context.uc_link = nullptr;
  makecontext(&made->context, run_items, 0);
  return made;
}

// A work-item waits; called from inside a kernel.
void wait(State where) {
  unsigned item = grid.current;
  grid.state[item] = where;
  swapcontext(&grid.owner[item]->context, &grid.scheduler);
}

void resume(unsigned item) {
  grid.state[item] = State::Running;
  enter(item);
  swapcontext(&grid.scheduler, &grid.owner[item]->context);
}

// Whether all unfinished items of [begin, end) wait at `where`, and some do.
bool complete(unsigned begin, unsigned end, State where) {
  bool some = false;
  for (unsigned i = begin; i < end; ++i) {
    if (grid.state[i] != State::Finished && grid.state[i] != where) return false;
    some |= grid.state[i] == where;
  }
  return some;
}

bool release(unsigned begin, unsigned end, State where) {
  if (!complete(begin, end, where)) return false;
  for (unsigned i = begin; i < end; ++i)
    if (grid.state[i] == where) resume(i);
  return true;
}

void run_block() {
  grid.next = grid.fibres = 0;
  while (grid.next < grid.count) {
    if (!grid.pool[grid.fibres]) grid.pool[grid.fibres] = make_fibre();
    Fibre* fresh = grid.pool[grid.fibres++];
    swapcontext(&grid.scheduler, &fresh->context);
  }
  for (;;) {
    bool moved = false;
    for (unsigned i = 0; i < grid.count; i += kLanes)
      moved |= release(i, i + kLanes < grid.count ? i + kLanes : grid.count, State::AtWave);
    if (moved || release(0, grid.count, State::AtBlock)) continue;
    for (unsigned i = 0; i < grid.count; ++i)
      if (grid.state[i] != State::Finished) fail("work-items wait at different barriers");
    return;
  }
}

hipError_t run_grid(const Kernel& kernel, dim3 blocks, dim3 block, void** arguments, size_t lds) {
  uint64_t count = uint64_t(block.x) * block.y * block.z;
  if (count == 0 || count > kMostItems || blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || lds > kLdsBytes)
    return hipErrorInvalidConfiguration;
  grid.count = unsigned(count);
  grid.kernel = &kernel;
  grid.arguments = arguments;
  *kernel.services = &services;
  services.block_size = {block.x, block.y, block.z};
  services.grid_size = {blocks.x, blocks.y, blocks.z};
  for (uint32_t z = 0; z < blocks.z; ++z)
    for (uint32_t y = 0; y < blocks.y; ++y)
      for (uint32_t x = 0; x < blocks.x; ++x) {
        services.block = {x, y, z};
        run_block();
      }
  return hipSuccess;
}

// Services.

void wait_for_block() { wait(State::AtBlock); }
unsigned own_lane() { return grid.current % kLanes; }

unsigned exchange(const void* value, unsigned bytes) {
  Slot& mine = slots[grid.current];
  unsigned round = ++mine.round;
  memcpy(mine.bytes[round % 2], value, bytes);
  mine.given[round % 2] = round;
  wait(State::AtWave);
  return round;
}

bool given(unsigned lane, unsigned round, void* value, unsigned bytes) {
  unsigned item = grid.current - own_lane() + lane;
  if (lane >= kLanes || item >= grid.count || slots[item].given[round % 2] != round) return false;
  memcpy(value, slots[item].bytes[round % 2], bytes);
  return true;
}

// Registration.

// One registered bundle: `__CLANG_OFFLOAD_BUNDLE__`, a count, and offset, size and name of each entry.
struct Module {
  void* library = nullptr;
  std::map<std::string, std::vector<unsigned>> sizes;  // of each kernel's arguments
};
std::map<const void*, Kernel>& kernels() {
  static std::map<const void*, Kernel> all;
  return all;
}
std::map<const void*, void*>& variables() {
  static std::map<const void*, void*> all;
  return all;
}

const char* entry_of(const char* bundle, const char* wanted, uint64_t* size) {
  uint64_t count;
  const char* at = bundle + 24;
  memcpy(&count, at, 8);
  at += 8;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t facts[3];
    memcpy(facts, at, 24);
    at += 24;
    if (facts[2] == strlen(wanted) && memcmp(at, wanted, facts[2]) == 0) {
      *size = facts[1];
      return bundle + facts[0];
    }
    at += facts[2];
  }
  return nullptr;
}

void* open_library(const char* content, uint64_t size) {
  int file = memfd_create("kernels", MFD_CLOEXEC);
  if (file < 0 || write(file, content, size) != ssize_t(size)) fail("no memory for the kernels");
  std::string path = "/proc/self/fd/" + std::to_string(file);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(dlerror());
  return library;  // the file stays open: the next one must not get its name
}

// Lines of a kernel's name and the sizes of its arguments.
void read_sizes(Module* module, const char* text, uint64_t size) {
  std::string rest(text, size);
  for (char* line = strtok(rest.data(), "\n"); line; line = strtok(nullptr, "\n")) {
    char* end = strchr(line, ' ');
    std::vector<unsigned>& sizes = module->sizes[end ? std::string(line, end) : std::string(line)];
    while (end && *end) sizes.push_back(unsigned(strtoul(end, &end, 10)));
    if (sizes.size() > kMostArguments) fail("a kernel with more than 64 arguments");
  }
}

Module* open_module(const char* bundle) {
  if (memcmp(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24) != 0) fail("device code that is no bundle");
  services.wait_for_block = wait_for_block;
  services.exchange = exchange;
  services.given = given;
  services.own_lane = own_lane;
  Module* module = new Module;
  uint64_t size;
  if (const char* library = entry_of(bundle, "host-rpl-kernels", &size)) module->library = open_library(library, size);
  if (const char* text = entry_of(bundle, "host-rpl-arguments", &size)) read_sizes(module, text, size);
  return module;
}

bool find_kernel(const Module* module, const char* name, Kernel* kernel) {
  auto found = module->sizes.find(name);
  void* entry = module->library ? dlsym(module->library, name) : nullptr;
  if (!entry || found == module->sizes.end()) return false;
  void* place = dlsym(module->library, "rpl_hip_services");
  if (!place) fail("a library of kernels without services");
  *kernel = {reinterpret_cast<void (*)()>(entry), found->second, static_cast<Services**>(place)};
  return true;
}

struct Configuration {
  dim3 grid, block;
  size_t lds;
  hipStream_t stream;
};
std::vector<Configuration> configurations;
}  // namespace rpl_hip

using namespace rpl_hip;

extern "C" {
// clang's __CudaFatBinaryWrapper.
void** __hipRegisterFatBinary(const void* wrapper) {
  const char* bundle;
  memcpy(&bundle, static_cast<const char*>(wrapper) + 8, sizeof(bundle));
  return reinterpret_cast<void**>(open_module(bundle));
}

// Device code of a file: a bundle of the stand-in, as `hipcc --genco` writes it.
hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return hipErrorFileNotFound;
  std::string content;
  char block[65536];
  while (size_t count = fread(block, 1, sizeof(block), file)) content.append(block, count);
  fclose(file);
  *module = reinterpret_cast<hipModule_t>(open_module(content.data()));
  return hipSuccess;
}

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t handle, const char* name) {
  Kernel* kernel = new Kernel;
  if (!find_kernel(reinterpret_cast<Module*>(handle), name, kernel)) return hipErrorNotFound;
  *function = reinterpret_cast<hipFunction_t>(kernel);
  return hipSuccess;
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned x,
                                 unsigned y, unsigned z, unsigned lds, hipStream_t, void** arguments, void**) {
  dim3 blocks{grid_x, grid_y, grid_z}, block{x, y, z};
  return run_grid(*reinterpret_cast<const Kernel*>(function), blocks, block, arguments, lds);
}

hipError_t hipModuleUnload(hipModule_t) { return hipSuccess; }

// A kernel that the bundle lacks is no error before its launch, as with HIP.
int __hipRegisterFunction(void** handle, const void* host, char*, const char* name, unsigned, void*, void*, void*,
                          void*, int*) {
  Kernel kernel;
  if (!find_kernel(reinterpret_cast<Module*>(handle), name, &kernel)) return 1;
  kernels()[host] = kernel;
  return 0;
}

void __hipRegisterVar(void** handle, void* host, char*, const char* name, int, size_t size, int, int) {
  Module* module = reinterpret_cast<Module*>(handle);
  void* place = module->library ? dlsym(module->library, name) : nullptr;
  if (!place) return;
  // Constants are read-only data for the linker, and the host may write them.
  uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE)), begin = uintptr_t(place) & ~(page - 1);
  mprotect(reinterpret_cast<void*>(begin), uintptr_t(place) + size - begin, PROT_READ | PROT_WRITE);
  variables()[host] = place;
}

void __hipUnregisterFatBinary(void**) {}

unsigned __hipPushCallConfiguration(dim3 blocks, dim3 block, size_t lds, hipStream_t stream) {
  configurations.push_back({blocks, block, lds, stream});
  return 0;
}

hipError_t __hipPopCallConfiguration(dim3* blocks, dim3* block, size_t* lds, hipStream_t* stream) {
  const Configuration& last = configurations.back();
  *blocks = last.grid, *block = last.block, *lds = last.lds, *stream = last.stream;
  configurations.pop_back();
  return hipSuccess;
}

hipError_t hipLaunchKernel(const void* host, dim3 blocks, dim3 block, void** arguments, size_t lds, hipStream_t) {
  auto found = kernels().find(host);
  hipError_t error =
      found == kernels().end() ? hipErrorInvalidDeviceFunction : run_grid(found->second, blocks, block, arguments, lds);
  if (error != hipSuccess) rpl_hip_last_error = error;
  return error;
}

void* rpl_hip_variable(const void* symbol) {
  auto found = variables().find(symbol);
  return found == variables().end() ? nullptr : found->second;
}
}
