#include "launch/loaded_code.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "plan/failure.h"

namespace rpl::replay {
namespace {

constexpr uint32_t kProfileFull = 1;
constexpr uint32_t kDefaultRounding = 0;

}  // namespace

LoadedCode::LoadedCode(const HsaLibrary& hsa, hsa::Agent agent, const std::string& file)
    : hsa_(hsa), agent_(agent) {
  std::ifstream stream(file, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(stream), {});
  hsa_.require(hsa_.reader_from_memory(bytes_.data(), bytes_.size(), &reader_), "bad_code",
               "the runtime does not read the code object");
  hsa_.require(hsa_.executable_create(kProfileFull, kDefaultRounding, nullptr, &executable_), "bad_code",
               "the runtime makes no executable");
  hsa_.require(hsa_.executable_load(executable_, agent_, reader_, nullptr, nullptr), "bad_code",
               "the runtime does not load the code object");
  hsa_.require(hsa_.executable_freeze(executable_, nullptr), "bad_code",
               "the runtime does not finish the code object");
}

LoadedCode::~LoadedCode() {
  hsa_.executable_destroy(executable_);
  hsa_.reader_destroy(reader_);
}

hsa::Symbol LoadedCode::symbol(const std::string& name) const {
  hsa::Symbol symbol{};
  return hsa_.executable_get_symbol(executable_, name.c_str(), &agent_, &symbol) == hsa::kSuccess
             ? symbol
             : hsa::Symbol{};
}

template <typename T>
T LoadedCode::info(hsa::Symbol symbol, uint32_t what) const {
  T value{};
  hsa_.require(hsa_.symbol_get_info(symbol, what, &value), "bad_code",
               "the runtime does not know the symbol");
  return value;
}

hsa::DispatchPacket LoadedCode::packet_of(const Kernel& kernel, uint64_t kernarg) const {
  const hsa::Symbol found = symbol(kernel.name + ".kd");
  if (found.handle == 0) {
    throw Failure("bad_code", "the code object has no kernel " + kernel.name);
  }
  hsa::DispatchPacket packet{};
  packet.setup = kernel.setup;
  std::ranges::copy(kernel.workgroup, packet.workgroup);
  std::ranges::copy(kernel.grid, packet.grid);
  packet.kernel_object = info<uint64_t>(found, hsa::kSymbolKernelObject);
  packet.kernarg_address = kernarg;
  const auto fixed_group = info<uint32_t>(found, hsa::kSymbolGroupSegmentSize);
  const auto fixed_private = info<uint32_t>(found, hsa::kSymbolPrivateSegmentSize);
  packet.group_segment_size = kernel.dynamic_group_bytes ? fixed_group + *kernel.dynamic_group_bytes
                                                         : std::max(fixed_group, kernel.group_bytes);
  packet.private_segment_size = std::max(fixed_private, kernel.private_bytes);
  return packet;
}

uint64_t LoadedCode::address_of(const Variable& variable) const {
  const hsa::Symbol found = symbol(variable.name);
  if (found.handle == 0 || info<uint32_t>(found, hsa::kSymbolType) != hsa::kSymbolVariable ||
      info<uint32_t>(found, hsa::kSymbolVariableSize) < variable.size) {
    return 0;
  }
  return info<uint64_t>(found, hsa::kSymbolVariableAddress);
}

}  // namespace rpl::replay
