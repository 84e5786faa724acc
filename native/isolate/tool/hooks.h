// The tool inside of a process: its state, and the functions that it puts into the runtime's tables.
#pragma once

#include "capture/capture.h"

namespace rpl::isolate {

// What the hooks work with. Never destroyed: the runtime calls hooks after static objects are gone. nullptr
// before the runtime loads the tool; in the child of a fork hooks only pass on (`is_passive`).
Process* process();
bool is_passive();
inline const hsa::ApiTables& api() { return process()->api; }

// Adopts the tables and puts the hooks in. False: the tables are of an unknown version, nothing was touched.
bool load(hsa::ApiTable* tables);
void unload();
// For tests: as if the tool had never been loaded.
void forget();

void hook_queues(hsa::ApiTables& tables);
void hook_memory(hsa::ApiTables& tables);
void hook_code(hsa::ApiTables& tables);

// What the runtime calls with packets of a queue; `data` is its QueueRecord.
void on_packets(const void* packets, uint64_t count, uint64_t user_index, void* data,
                hsa::PacketWriter writer);

}  // namespace rpl::isolate
