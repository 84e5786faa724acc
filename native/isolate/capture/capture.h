// One launch with all the memory that it needs, written to a folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capture/queues.h"
#include "capture/settings.h"
#include "capture/status.h"
#include "code/kernel_registry.h"
#include "memory/memory_map.h"

namespace rpl::isolate {

// Everything that a process knows; made when the runtime loads the tool.
struct Process {
  explicit Process(const hsa::ApiTables& tables, Settings given)
      : api(tables),
        settings(std::move(given)),
        status(settings),
        filter(settings.kernel),
        registry(filter, spool_folder(settings.output)),
        queues(api) {}

  static std::string spool_folder(const std::string& output);

  hsa::ApiTables api;
  Settings settings;
  Status status;
  NameFilter filter;
  MemoryMap memory;
  KernelRegistry registry;
  Queues queues;
  // Set by the launch that is captured; nothing is captured twice.
  std::atomic<bool> taken{false};
  // A capture was tried, however it ended.
  std::atomic<bool> began{false};
};

// The launch that is captured, in its batch.
struct Launch {
  hsa::DispatchPacket packet;
  std::shared_ptr<Kernel> kernel;
  QueueRecord* queue;
  hsa::PacketWriter writer;
  uint64_t packet_index;
  uint64_t batch_position;
  uint64_t batch_size;
  uint64_t match_index;
  uint64_t launch_index;
};

// Captures it and lets it run; whatever goes wrong, it runs exactly once and its signal is told.
void capture_launch(Process& process, const Launch& launch);

}  // namespace rpl::isolate
