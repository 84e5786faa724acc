#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "code/elf.h"
#include "code/kernel_metadata.h"
#include "code/name_filter.h"
#include "made_up_code.h"

using namespace rpl::isolate;
using nlohmann::json;

TEST_CASE("kernels, descriptors and metadata of a code object") {
  const made_up::CodeObject code("scale");
  const auto elf = Elf::open(code.bytes);
  REQUIRE(elf);
  CHECK(elf->kernels() == std::vector<std::string_view>{"scale"});
  CHECK(elf->address_of("scale.kd") == made_up::CodeObject::kDescriptorAddress);
  const auto descriptor = KernelDescriptor::read(elf->bytes_of("scale.kd").value());
  REQUIRE(descriptor);
  CHECK(descriptor->group_segment_size == 64);
  CHECK(descriptor->kernarg_size == 16);
  CHECK_FALSE(KernelDescriptor::read(Bytes(code.bytes).first(63)));
  const json told = metadata_of(elf->metadata(), "scale");
  CHECK(told["arguments"][0]["value_kind"] == "global_buffer");
  CHECK(told["arguments"][0]["access"].is_null());
  CHECK(told["metadata"]["kernarg_segment_size"] == 16);
  CHECK(metadata_of(elf->metadata(), "other")["arguments"].is_null());
}

TEST_CASE("broken code objects are poorer, never read beyond their end") {
  const made_up::CodeObject code("scale");
  const auto look_at = [](const std::vector<std::byte>& bytes) {
    if (const auto elf = Elf::open(bytes)) {
      for (const std::string_view kernel : elf->kernels()) {
        static_cast<void>(elf->bytes_of(std::string(kernel) + ".kd"));
      }
      static_cast<void>(metadata_of(elf->metadata(), "scale"));
    }
  };
  for (size_t size = 0; size < code.bytes.size(); ++size) {
    look_at({code.bytes.begin(), code.bytes.begin() + static_cast<ptrdiff_t>(size)});
  }
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    auto bytes = code.bytes;
    for (int change = 0; change < 3; ++change)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    look_at(bytes);
  }
  CHECK_FALSE(Elf::open(Bytes{}));
}

TEST_CASE("a note that is nested too deep, or is none, tells nothing") {
  json deep = 1;
  for (int i = 0; i < 100; ++i) deep = json::array({deep});
  for (const json& note : {deep, json("text"), json{{"amdhsa.kernels", 3}}, json{{"amdhsa.kernels", {1}}}}) {
    const auto packed = json::to_msgpack(note);
    const Bytes bytes(reinterpret_cast<const std::byte*>(packed.data()), packed.size());
    CHECK(metadata_of(bytes, "scale")["metadata"].is_null());
  }
}

TEST_CASE("expressions are searched in both names") {
  const std::string name = "_Z5scalePfi";
  CHECK(demangled(name) == "scale(float*, int)");
  CHECK(demangled("plain") == "plain");
  CHECK(NameFilter("").wants(name, demangled(name)));
  CHECK(NameFilter("^scale\\(float").wants(name, demangled(name)));
  CHECK(NameFilter("Z5sc").wants(name, demangled(name)));
  CHECK_FALSE(NameFilter("^cale").wants(name, demangled(name)));
  const NameFilter broken("(");
  CHECK_FALSE(broken.error().empty());
  CHECK_FALSE(broken.wants(name, name));
  const std::string longest(1 << 16, 'a');
  CHECK(NameFilter("(a|b)*c?$").wants(longest, longest));
}
