#include "executor/kernel_name.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstring>

#include "executor/blit_kernels.h"
#include "executor/shadow_library.h"
#include "tests/gpu_fixture.h"

namespace softkfd {
namespace {

constexpr uint64_t kCode = GpuFixture::kData;
constexpr uint64_t kOffsetOfDescriptor = 0x2040;  // in the code object

// A code object as the loader leaves it: header, one dynamic segment, two symbols.
struct CodeObject : GpuFixture {
  CodeObject() {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_phoff = sizeof(header);
    header.e_phnum = 1;
    at<Elf64_Ehdr>(kCode) = header;
    Elf64_Phdr segment{};
    segment.p_type = PT_DYNAMIC;
    segment.p_vaddr = 0x200;
    at<Elf64_Phdr>(kCode + sizeof(header)) = segment;
    auto* dynamic = &at<Elf64_Dyn>(kCode + 0x200);
    dynamic[0] = {DT_SYMTAB, {0x300}};
    dynamic[1] = {DT_STRTAB, {0x400}};
    dynamic[2] = {DT_HASH, {0x500}};
    dynamic[3] = {DT_NULL, {0}};
    std::memcpy(&at<char>(kCode + 0x400), "\0scale\0scale.kd", 15);
    auto* symbols = &at<Elf64_Sym>(kCode + 0x300);
    symbols[1] = {1, 0, 0, 0, kOffsetOfDescriptor, 0};
    symbols[2] = {7, 0, 0, 0, kOffsetOfDescriptor, 0};
    at<uint32_t>(kCode + 0x504) = 3;
  }
};

TEST_CASE_FIXTURE(CodeObject, "a kernel has the name of the symbol at its descriptor") {
  CHECK(kernel_name(memory, kCode + kOffsetOfDescriptor) == "scale");
}

TEST_CASE_FIXTURE(CodeObject, "code without a symbol there is named by its bytes") {
  at<KernelDescriptor>(kCode + kOffsetOfDescriptor + 64).entry_offset = 0x100;
  const std::string name = kernel_name(memory, kCode + kOffsetOfDescriptor + 64);
  CHECK(name.starts_with("code:"));
  at<uint8_t>(kCode + kOffsetOfDescriptor + 64 + 0x100) = 1;
  CHECK(kernel_name(memory, kCode + kOffsetOfDescriptor + 64) != name);
}

TEST_CASE_FIXTURE(GpuFixture,
                  "a shadow function gets the arguments, and a wrong address is the kernel's fault") {
  const softkfd_shadow table[] = {
      {"store",
       [](const softkfd_launch* launch, const softkfd_memory* given) {
         uint64_t address = 0;
         std::memcpy(&address, launch->kernarg, sizeof(address));
         auto* place = static_cast<uint32_t*>(given->at(given, address, sizeof(uint32_t), 1));
         if (place != nullptr) *place = launch->grid[0];
       }},
      {nullptr, nullptr}};
  ShadowLibrary library(table);
  Launch launch;
  launch.kernel = "store";
  launch.grid = {42, 1, 1};
  launch.kernarg = kData;
  launch.kernarg_bytes = sizeof(uint64_t);
  at<uint64_t>(kData) = kData + 64;
  CHECK(library.run(launch, memory));
  CHECK(at<uint32_t>(kData + 64) == 42);
  at<uint64_t>(kData) = 0x10;
  CHECK_THROWS_AS(library.run(launch, memory), GpuFault);
  launch.kernel = "other";
  CHECK_FALSE(library.run(launch, memory));
}

TEST_CASE_FIXTURE(GpuFixture, "HIP's copy kernel is done with the arguments of old and new versions") {
  constexpr uint64_t kFrom = kData + 0x1000;
  constexpr uint64_t kTo = kData + 0x2000;
  for (uint32_t i = 0; i < 64; ++i) at<uint8_t>(kFrom + i) = static_cast<uint8_t>(i + 1);
  Launch launch;
  launch.kernel = "__amd_rocclr_copyBuffer";
  launch.kernarg = kData;
  HipBlitKernels kernels;
  auto* words = &at<uint64_t>(kData);
  words[0] = kFrom;
  words[1] = kTo;
  words[2] = 1;      // offset of the source
  words[3] = 2;      // of the target
  words[4] = 2 + 1;  // two whole words
  words[5] = 3;      // and three bytes
  CHECK(kernels.run(launch, memory));
  CHECK(at<uint8_t>(kTo + 2) == 2);
  CHECK(at<uint8_t>(kTo + 12) == 12);
  CHECK(at<uint8_t>(kTo + 13) == 0);
  words[2] = 33;                // bytes
  words[3] = 1 | (4ULL << 32);  // remainder, width
  words[4] = kTo + 32;          // end of the whole words
  CHECK(kernels.run(launch, memory));
  CHECK(at<uint8_t>(kTo) == 1);
  CHECK(at<uint8_t>(kTo + 32) == 33);
  CHECK(at<uint8_t>(kTo + 33) == 0);
}

TEST_CASE_FIXTURE(GpuFixture, "HIP's fill kernel is done with the arguments of old and new versions") {
  constexpr uint64_t kPattern = kData + 0x1000;
  constexpr uint64_t kTo = kData + 0x2000;
  at<uint32_t>(kPattern) = 0x04030201;
  Launch launch;
  launch.kernel = "__amd_rocclr_fillBufferAligned";
  launch.kernarg = kData;
  HipBlitKernels kernels;
  auto* words = &at<uint64_t>(kData);
  words[1] = kTo;  // as 16-bit words
  words[4] = kPattern;
  words[5] = 1;
  words[6] = 2;  // from the third word on
  words[7] = 4;
  CHECK(kernels.run(launch, memory));
  CHECK(at<uint16_t>(kTo + 2) == 0);
  CHECK(at<uint16_t>(kTo + 4) == 0x0201);
  CHECK(at<uint16_t>(kTo + 10) == 0x0201);
  CHECK(at<uint16_t>(kTo + 12) == 0);
  words[0] = kTo;
  words[1] = kPattern;
  words[2] = 1 | (4ULL << 32);  // one word of four bytes
  words[3] = kTo + 16;
  CHECK(kernels.run(launch, memory));
  CHECK(at<uint32_t>(kTo + 12) == 0x04030201);
  CHECK(at<uint32_t>(kTo + 16) == 0);
}

}  // namespace
}  // namespace softkfd
