"""Names, sizes and choices of a capture.

Written by tools/write_capture_format.py, which describes the files of a capture.
"""

from __future__ import annotations

from typing import Literal

SCHEMA_VERSION = "1.0"
CHUNK_BYTES = 1048576
#: Of one chunk, in ``.xxh3`` files: XXH3, 64 bits, little-endian.
HASH_BYTES = 8

DISPATCH = "dispatch.json"
REGIONS = "memory_regions.json"
EXTRAS = "capture.json"
KERNARG = "kernarg.bin"
CODE_OBJECT = "kernel.hsaco"
SENTINEL = "rpl_capture_complete"
MEMORY_FOLDER = "memory"
AFTER_FOLDER = "memory_after"
VARIABLES_FOLDER = "module_variables"
REGION_PREFIX = "region_"
BYTES_SUFFIX = ".bin"
PACKED_SUFFIX = ".zst"
BEFORE_HASHES_SUFFIX = ".pre.xxh3"
AFTER_HASHES_SUFFIX = ".post.xxh3"

Mode = Literal["full", "referenced"]
Post = Literal["hashes", "bytes", "none"]
Hash = Literal["xxh3", "none"]
Compression = Literal["none", "zstd"]
RegionKind = Literal["device_pool", "host_pool", "vmem", "svm", "locked_host", "ipc", "interop", "hsa_memory"]
