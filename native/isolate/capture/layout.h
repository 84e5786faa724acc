// Written by tools/write_capture_format.py, which describes the files of a capture.
// Names, sizes and choices of a capture. Nothing here is edited by hand.
// clang-format off
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rpl::isolate {

inline constexpr const char* kSchemaVersion = "1.0";
inline constexpr size_t kChunkBytes = 1048576;

inline constexpr const char* kDispatch = "dispatch.json";
inline constexpr const char* kRegions = "memory_regions.json";
inline constexpr const char* kExtras = "capture.json";
inline constexpr const char* kKernarg = "kernarg.bin";
inline constexpr const char* kCodeObject = "kernel.hsaco";
inline constexpr const char* kSentinel = "rpl_capture_complete";
inline constexpr const char* kMemoryFolder = "memory";
inline constexpr const char* kAfterFolder = "memory_after";
inline constexpr const char* kVariablesFolder = "module_variables";
inline constexpr const char* kRegionPrefix = "region_";
inline constexpr const char* kBytesSuffix = ".bin";
inline constexpr const char* kPackedSuffix = ".zst";
inline constexpr const char* kBeforeHashesSuffix = ".pre.xxh3";
inline constexpr const char* kAfterHashesSuffix = ".post.xxh3";

enum class Mode : uint8_t { kFull, kReferenced };
inline constexpr std::array kModeNames = {"full", "referenced"};

enum class Post : uint8_t { kHashes, kBytes, kNone };
inline constexpr std::array kPostNames = {"hashes", "bytes", "none"};

enum class Hash : uint8_t { kXxh3, kNone };
inline constexpr std::array kHashNames = {"xxh3", "none"};

enum class Compression : uint8_t { kNone, kZstd };
inline constexpr std::array kCompressionNames = {"none", "zstd"};

enum class RegionKind : uint8_t { kDevicePool, kHostPool, kVmem, kSvm, kLockedHost, kIpc, kInterop, kHsaMemory };
inline constexpr std::array kRegionKindNames = {"device_pool", "host_pool", "vmem", "svm", "locked_host", "ipc", "interop", "hsa_memory"};

}  // namespace rpl::isolate
