#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "tool/hooks.h"

namespace rpl::isolate {
namespace {

std::atomic<Process*> current{nullptr};
std::atomic<bool> passive{false};
// A process captures once, however often it starts the runtime.
std::atomic<bool> captured_before{false};

// The child has the parent's memory but none of its threads and queues; what it starts anew is hooked anew.
void in_child() { passive = true; }

}  // namespace

Process* process() { return current.load(std::memory_order_acquire); }
bool is_passive() { return passive.load(std::memory_order_relaxed); }

bool load(hsa::ApiTable* tables) {
  auto settings =
      Settings::from([](const char* name) { return std::getenv(name); }, getpid(), getsid(0) == getpid());
  hsa::ApiTables api;
  const std::string refusal = api.adopt(tables);
  if (!refusal.empty()) {
    Status status(settings);
    status.set("refused", refusal);
    status.log(refusal);
    return false;
  }
  static const int registered = pthread_atfork(nullptr, nullptr, &in_child);
  static_cast<void>(registered);
  if (const Process* const before = process(); before != nullptr && before->began) captured_before = true;
  auto* const fresh = new Process(api, std::move(settings));
  if (fresh->settings.error.empty() && !fresh->filter.error().empty()) {
    fresh->settings.error = "RPL_ISOLATE_KERNEL: " + fresh->filter.error();
  }
  const bool useless = fresh->settings.output.empty() || !fresh->settings.error.empty();
  fresh->taken = useless || captured_before;
  current.store(fresh, std::memory_order_release);
  passive = false;
  if (fresh->settings.output.empty()) {
    fresh->status.set("loaded");
    return true;
  }
  hook_queues(fresh->api);
  hook_memory(fresh->api);
  hook_code(fresh->api);
  if (!captured_before) {
    fresh->status.set(fresh->settings.error.empty() ? "loaded" : "failed", fresh->settings.error);
  }
  return true;
}

void unload() {
  Process* const found = process();
  if (found != nullptr && !is_passive() && !captured_before) found->status.end();
}

void forget() {
  captured_before = false;
  delete current.exchange(nullptr);
}

}  // namespace rpl::isolate

#define RPL_EXPORT extern "C" __attribute__((visibility("default")))

// Called by the runtime: its HSA Tools API.
RPL_EXPORT bool OnLoad(void* table, uint64_t, uint64_t, const char* const*) {
  try {
    return rpl::isolate::load(static_cast<rpl::hsa::ApiTable*>(table));
  } catch (const std::exception&) {
    return false;
  }
}

RPL_EXPORT void OnUnload() { rpl::isolate::unload(); }

// Programs need not shut the runtime down.
namespace {
__attribute__((destructor)) void at_exit() { rpl::isolate::unload(); }
}  // namespace
