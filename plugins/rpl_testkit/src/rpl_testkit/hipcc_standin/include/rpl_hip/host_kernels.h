// Kernels on the CPU: block after block, work-item after work-item. A work-item that waits at a barrier is
// a fibre of its own; one that never waits shares its fibre with those before it. One host thread only.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

namespace rpl_hip {
struct Index { uint32_t x, y, z; };
constexpr unsigned kMostItems = 1024, kLanes = 64;
constexpr size_t kLdsBytes = 65536, kStackBytes = 65536;
alignas(64) inline unsigned char dynamic_lds[kLdsBytes];
inline hipError_t last_error = hipSuccess;
}  // namespace rpl_hip
inline rpl_hip::Index threadIdx, blockIdx, blockDim, gridDim;

namespace rpl_hip {
enum class State : unsigned char { Running, AtWave, AtBlock, Finished };

struct Fibre {
  ucontext_t context;
  unsigned item;  // the one that it runs or that waits on it
};

struct Grid {
  ucontext_t scheduler;
  void (*body)(const void*);
  const void* closure;
  unsigned count, next, fibres, current;
  Fibre* pool[kMostItems];
  State state[kMostItems];
  Fibre* owner[kMostItems];
};
inline Grid grid;

// What a lane gives to its wave. Two sets: a lane may be one exchange ahead of the others, never two.
struct Slot {
  unsigned char bytes[2][16];
  unsigned given[2];  // number of the exchange that the bytes belong to
  unsigned round;
};
inline Slot slots[kMostItems];

[[noreturn]] inline void fail(const char* what) {
  fprintf(stderr, "HIP emulation: %s\n", what);
  abort();
}

inline void enter(unsigned item) {
  grid.current = item;
  unsigned row = item / blockDim.x;
  threadIdx = {item % blockDim.x, row % blockDim.y, row / blockDim.y};
}

inline void run_items() {
  for (;;) {
    Fibre* self = grid.pool[grid.fibres - 1];
    while (grid.next < grid.count) {
      self->item = grid.next++;
      grid.owner[self->item] = self;
      grid.state[self->item] = State::Running;
      slots[self->item] = Slot{};
      enter(self->item);
      grid.body(grid.closure);
      grid.state[self->item] = State::Finished;
    }
    swapcontext(&self->context, &grid.scheduler);
  }
}

inline Fibre* make_fibre() {
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
inline void wait(State where) {
  unsigned item = grid.current;
  grid.state[item] = where;
  swapcontext(&grid.owner[item]->context, &grid.scheduler);
}

inline void resume(unsigned item) {
  grid.state[item] = State::Running;
  enter(item);
  swapcontext(&grid.scheduler, &grid.owner[item]->context);
}

// Whether all unfinished items of [begin, end) wait at `where`, and some do.
inline bool complete(unsigned begin, unsigned end, State where) {
  bool some = false;
  for (unsigned i = begin; i < end; ++i) {
    if (grid.state[i] != State::Finished && grid.state[i] != where) return false;
    some |= grid.state[i] == where;
  }
  return some;
}

inline bool release(unsigned begin, unsigned end, State where) {
  if (!complete(begin, end, where)) return false;
  for (unsigned i = begin; i < end; ++i)
    if (grid.state[i] == where) resume(i);
  return true;
}

inline void run_block() {
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

template <class Body> void run_grid(dim3 blocks, dim3 block, size_t lds, const Body& body) {
  uint64_t count = uint64_t(block.x) * block.y * block.z;
  if (count == 0 || count > kMostItems || blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || lds > kLdsBytes) {
    last_error = hipErrorInvalidConfiguration;
    return;
  }
  grid.count = unsigned(count);
  grid.closure = &body;
  grid.body = [](const void* closure) { (*static_cast<const Body*>(closure))(); };
  blockDim = {block.x, block.y, block.z};
  gridDim = {blocks.x, blocks.y, blocks.z};
  for (uint32_t z = 0; z < blocks.z; ++z)
    for (uint32_t y = 0; y < blocks.y; ++y)
      for (uint32_t x = 0; x < blocks.x; ++x) {
        blockIdx = {x, y, z};
        run_block();
      }
}

// What `kernel<<<grid, block, lds, stream>>>` is translated to; calling it with the arguments runs the grid.
template <class Kernel> struct Bound {
  Kernel kernel;
  dim3 blocks, block;
  size_t lds;
  template <class... Arguments> void operator()(Arguments... arguments) const {
    run_grid(blocks, block, lds, [&] { kernel(arguments...); });
  }
};
template <class Kernel> Bound<Kernel> bind(Kernel kernel, dim3 blocks, dim3 block, size_t lds = 0, hipStream_t = nullptr) {
  return {kernel, blocks, block, lds};
}
}  // namespace rpl_hip

#define hipLaunchKernelGGL(kernel, blocks, block, lds, stream, ...) \
  ::rpl_hip::bind([&](auto... rpl_hip_each) { kernel(rpl_hip_each...); }, blocks, block, lds, stream)(__VA_ARGS__)
#define HIP_DYNAMIC_SHARED(type, name) type* const name = reinterpret_cast<type*>(::rpl_hip::dynamic_lds);
