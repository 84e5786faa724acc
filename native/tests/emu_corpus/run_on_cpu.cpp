// Runs kernels of the corpus on the CPU: a fiber for each work-item, which gives way at barriers.
#include <ucontext.h>

#include <cstring>
#include <vector>

#include "kernels.h"

namespace {
struct Fiber { ucontext_t context; std::vector<char> stack; bool done = false; };
std::vector<Fiber> fibers;
ucontext_t scheduler;
int current, group, block;
u32 exchanged[256];
void (*kernel)(const In*, Out*, int);
const In* input;
Out* output;
int items;
void start() {
  kernel(input, output, items);
  fibers[size_t(current)].done = true;
  swapcontext(&fibers[size_t(current)].context, &scheduler);
}
}  // namespace

extern "C" int corpus_thread() { return current; }
extern "C" int corpus_group() { return group; }
extern "C" int corpus_block() { return block; }
extern "C" void corpus_barrier() { swapcontext(&fibers[size_t(current)].context, &scheduler); }
// All lanes give a value and get one lane's; the answer is a bit for each lane whose value is odd.
extern "C" u64 corpus_exchange(u32 value, int lane, u32* got) {
  exchanged[current] = value;
  corpus_barrier();
  const int first = current & ~63;
  *got = exchanged[first + lane];
  u64 bits = 0;
  for (int k = 0; k < 64 && first + k < block; ++k) bits |= u64(exchanged[first + k] & 1) << k;
  corpus_barrier();
  return bits;
}
extern "C" void corpus_run(void (*f)(const In*, Out*, int), const In* in, Out* out, int n, int groups, int size) {
  kernel = f, input = in, output = out, items = n, block = size;
  fibers.resize(size_t(size));
  for (Fiber& f_ : fibers) f_.stack.resize(65536);
  for (group = 0; group < groups; ++group) {
    for (int k = 0; k < size; ++k) {
      Fiber& fiber = fibers[size_t(k)];
      fiber.done = false;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, start, 0);
    }
    for (bool more = true; more;) {
      more = false;
      for (current = 0; current < size; ++current) {
        if (fibers[size_t(current)].done) continue;
        more = true;
        swapcontext(&scheduler, &fibers[size_t(current)].context);
      }
    }
  }
}
