#include "tool/hooks.h"

namespace rpl::isolate {
namespace {

KernelRegistry* registry() { return is_passive() ? nullptr : &process()->registry; }

hsa::Status reader_from_memory(const void* bytes, size_t size, hsa::CodeObjectReader* reader) {
  const auto status = api().original(hsa::core::kReaderFromMemory)(bytes, size, reader);
  if (status == hsa::kSuccess && registry() != nullptr) registry()->add_reader(reader->handle, bytes, size);
  return status;
}

hsa::Status reader_from_file(int file, hsa::CodeObjectReader* reader) {
  const auto status = api().original(hsa::core::kReaderFromFile)(file, reader);
  if (status == hsa::kSuccess && registry() != nullptr) registry()->add_reader(reader->handle, file);
  return status;
}

hsa::Status reader_destroy(hsa::CodeObjectReader reader) {
  if (registry() != nullptr) registry()->remove_reader(reader.handle);
  return api().original(hsa::core::kReaderDestroy)(reader);
}

hsa::Status load_agent_code_object(hsa::Executable executable, hsa::Agent agent, hsa::CodeObjectReader reader,
                                   const char* options, hsa::LoadedCodeObject* loaded) {
  const auto original = api().original(hsa::core::kLoadAgentCodeObject);
  const auto status = original(executable, agent, reader, options, loaded);
  if (status == hsa::kSuccess && registry() != nullptr) {
    registry()->load(executable.handle, agent.handle, reader.handle);
  }
  return status;
}

hsa::Status freeze(hsa::Executable executable, const char* options) {
  const auto status = api().original(hsa::core::kExecutableFreeze)(executable, options);
  if (status == hsa::kSuccess && registry() != nullptr) registry()->read_symbols(api(), executable);
  return status;
}

hsa::Status executable_destroy(hsa::Executable executable) {
  if (registry() != nullptr) {
    process()->queues.pass(nullptr, nullptr);
    registry()->remove_executable(executable.handle);
  }
  return api().original(hsa::core::kExecutableDestroy)(executable);
}

}  // namespace

void hook_code(hsa::ApiTables& tables) {
  tables.hook(hsa::core::kReaderFromMemory, &reader_from_memory);
  tables.hook(hsa::core::kReaderFromFile, &reader_from_file);
  tables.hook(hsa::core::kReaderDestroy, &reader_destroy);
  tables.hook(hsa::core::kLoadAgentCodeObject, &load_agent_code_object);
  tables.hook(hsa::core::kExecutableFreeze, &freeze);
  tables.hook(hsa::core::kExecutableDestroy, &executable_destroy);
}

}  // namespace rpl::isolate
