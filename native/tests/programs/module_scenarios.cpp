// `module_scenarios KERNEL CODE_OBJECT`: `remember`, then one launch of a kernel of module_pointers.hip. Exit: 0 right, 1
// wrong, 70 a call of the runtime failed.
#include <string>

#include "hsa_session.h"

namespace {

constexpr uint32_t kItems = 64;

struct Arguments {
  void* table;
  uint32_t* results;
};

void run(const Kernels& kernels, const HsaSession& session, Queue& queue, const std::string& name,
         Arguments given) {
  auto* arguments = session.host_array<Arguments>(1);
  *arguments = given;
  hsa_kernel_dispatch_packet_t packet = kernels.packet(name, kItems, arguments);
  CHECK(hsa_executable_symbol_get_info(kernels.symbol(name + ".kd"),
                                       HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                                       &packet.private_segment_size));
  packet.private_segment_size += 1024;  // for functions that the compiler did not see called
  queue.submit(packet);
  queue.wait();
}

}  // namespace

int main(int, char** words) {
  const std::string name = words[1];
  HsaSession session;
  const Kernels kernels(words[2], session.gpu().agent);
  Queue queue(session.gpu().agent);
  void* table = session.device_array<uint64_t>(64);
  auto* results = session.device_array<uint32_t>(kItems);
  auto* host = session.host_array<uint32_t>(kItems);
  for (uint32_t i = 0; i < kItems; ++i) host[i] = i + 3;
  HsaSession::copy(results, session.gpu().agent, host, session.cpu(), kItems * sizeof(uint32_t));
  if (name == "_Z4tickPKj") {
    run(kernels, session, queue, name, {results, nullptr});
  } else {
    run(kernels, session, queue, "_Z8rememberP5Table", {table, nullptr});
    run(kernels, session, queue, name, {table, results});
  }
  HsaSession::copy(host, session.cpu(), results, session.gpu().agent, kItems * sizeof(uint32_t));
  bool right = true;
  for (uint32_t i = 0; i < kItems; ++i) {
    const bool functions = name.find("call_functions") != std::string::npos;
    const bool function = name.find("call_virtual") != std::string::npos;
    right = right && host[i] == (functions ? (i % 2 == 0 ? 2 * i : 3 * i) : function ? 28 + i : i + 3);
  }
  std::printf("right %d\n", right);
  return right ? 0 : 1;
}
