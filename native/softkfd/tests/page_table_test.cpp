#include "memory/page_table.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <optional>

#include "memory/backing_store.h"

namespace softkfd {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAddress = 0x7000'0000'0000;

struct Table {
  BackingStore store{1024 * kPage};
  PageTable memory{store};

  uint64_t map(uint64_t address, uint64_t bytes, bool writable = true) {
    const uint64_t offset = store.allocate(bytes, 0).value();
    memory.map(address, bytes, {store.at(offset), writable});
    return offset;
  }
};

std::optional<GpuFault> fault_of(auto&& action) {
  try {
    action();
  } catch (const GpuFault& fault) {
    return fault;
  }
  return std::nullopt;
}

TEST_CASE("mappings that continue each other are listed as one") {
  softkfd::BackingStore store(1 << 20);
  softkfd::PageTable table(store);
  std::byte* bytes = store.at(store.allocate(0x4000, 0x1000).value());
  table.map(0x10000, 0x1000, {bytes, true});
  table.map(0x11000, 0x1000, {bytes + 0x1000, true});
  table.map(0x12000, 0x1000, {bytes + 0x2000, false});
  table.map(0x14000, 0x1000, {bytes + 0x3000, false});
  const auto found = table.mapped();
  REQUIRE(found.size() == 3);
  CHECK(found[0].end - found[0].begin == 0x2000);
  CHECK(found[1].begin == 0x12000);
  CHECK(found[2].begin == 0x14000);
}

TEST_CASE("what is not mapped is a fault that names the first missing address") {
  Table table;
  table.map(kAddress, kPage);
  std::array<char, 64> bytes{};
  const auto fault = fault_of([&] { table.memory.read(kAddress + kPage - 32, bytes.data(), bytes.size()); });
  REQUIRE(fault);
  CHECK(fault->address() == kAddress + kPage);
  CHECK_FALSE(fault->present());
  table.memory.unmap(kAddress, kPage);
  CHECK(fault_of([&] { table.memory.read(kAddress, bytes.data(), 1); })->address() == kAddress);
}

TEST_CASE("writing to what is mapped for reading is another fault") {
  Table table;
  table.map(kAddress, kPage, false);
  int value = 3;
  CHECK_FALSE(fault_of([&] { table.memory.read(kAddress, &value, sizeof(value)); }));
  const auto fault = fault_of([&] { table.memory.write(kAddress, &value, sizeof(value)); });
  REQUIRE(fault);
  CHECK(fault->present());
}

TEST_CASE("bytes cross from one mapping to the next") {
  Table table;
  table.map(kAddress + kPage, kPage);  // in the file before the page that is below it
  table.map(kAddress, kPage);
  const std::array<char, 6> text = {'a', 'c', 'r', 'o', 's', 's'};
  table.memory.write(kAddress + kPage - 3, text.data(), text.size());
  std::array<char, 6> back{};
  table.memory.read(kAddress + kPage - 3, back.data(), back.size());
  CHECK(back == text);
  table.memory.copy(kAddress, kAddress + kPage - 3, text.size());
  table.memory.read(kAddress, back.data(), back.size());
  CHECK(back == text);
  // No pointer of the host serves both pages.
  CHECK(fault_of([&] { (void)table.memory.at(kAddress + kPage - 3, 6, Access::kRead); }));
}

TEST_CASE("copying sparse memory keeps it sparse, into other sparse memory and over old data") {
  Table table;
  const uint64_t bytes = 512 * kPage;
  const uint64_t from = table.map(kAddress, bytes);
  const uint64_t to = table.map(kAddress + bytes, bytes / 2);
  *table.store.at(from + 3 * kPage) = std::byte{9};
  *table.store.at(to + 100 * kPage) = std::byte{1};
  table.memory.copy(kAddress + bytes, kAddress, bytes / 2);
  CHECK(*table.store.at(to + 3 * kPage) == std::byte{9});
  CHECK(*table.store.at(to + 100 * kPage) == std::byte{0});
  std::array<std::byte, 4 * kPage> host{};
  host.fill(std::byte{5});
  table.memory.map(kAddress - host.size(), host.size(), {host.data(), true});
  table.memory.copy(kAddress - host.size(), kAddress, host.size());
  CHECK(host[0] == std::byte{0});
  CHECK(host[3 * kPage] == std::byte{9});
  CHECK(table.store.resident_bytes() < bytes / 8);
}

TEST_CASE("filling with zero gives pages back") {
  Table table;
  const uint64_t offset = table.map(kAddress, 4 * kPage);
  table.memory.fill(kAddress, 0x01020304, kPage);
  CHECK(*table.store.at(offset + 4 * kPage - 1) == std::byte{1});
  CHECK(table.store.resident_bytes() == 4 * kPage);
  table.memory.fill(kAddress, 0, kPage);
  CHECK(table.store.resident_bytes() == 0);
}

}  // namespace
}  // namespace softkfd
