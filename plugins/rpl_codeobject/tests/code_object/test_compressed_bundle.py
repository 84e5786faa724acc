"""Bundles that clang compressed are read like others; damaged and hostile ones end in one clear line."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import sys
import zlib
from contextlib import suppress

import pytest

from rpl_codeobject.reading import code_objects_from, read_code_objects, split_section, unpack_bundle
from rpl_core.errors import BadDataError, ForeignFileError, MissingError, RplError

_SOURCE = """
extern "C" __global__ void scale(float* out, const float* in, float factor) { out[LANE] = in[LANE] * factor; }
"""

#: Else clang makes the unit's id from path and options, and writes it into the code.
_SAME_ID = "-fuse-cuid=none"


def packed_with_zlib(plain: bytes, version: int) -> bytes:
    """The header of LLVM's ``RawCompressedBundleHeader``; clang itself takes zstd where it has it."""
    body = zlib.compress(plain)
    low_md5 = int.from_bytes(hashlib.md5(plain).digest()[:8], "little")
    common = struct.pack("<4sHH", b"CCOB", version, 0)
    if version == 1:
        return common + struct.pack("<IQ", len(plain), low_md5) + body
    form = "<IIQ" if version == 2 else "<QQQ"
    whole = len(common) + struct.calcsize(form) + len(body)
    return common + struct.pack(form, whole, len(plain), low_md5) + body


@pytest.fixture
def plain_bundle(compile_hip) -> bytes:
    return compile_hip(_SOURCE, _SAME_ID, name="plain.hipfb", bundle=True).read_bytes()


@pytest.mark.clang
@pytest.mark.parametrize("version", ["2", "3"])
def test_what_clang_compressed_is_what_it_bundled(compile_hip, monkeypatch, plain_bundle, version):
    monkeypatch.setenv("COMPRESSED_BUNDLE_FORMAT_VERSION", version)
    path = compile_hip(_SOURCE, _SAME_ID, "--offload-compress", name="plain.hipfb", bundle=True)
    data = path.read_bytes()
    assert data[:6] == b"CCOB" + struct.pack("<H", int(version))
    assert data[6:8] == b"\1\0", "clang was expected to choose zstd"
    pytest.importorskip("zstandard")
    unpacked = unpack_bundle(data, "here", 1 << 20)
    assert unpacked.packed_bytes == len(data)
    assert read_code_objects(path) == code_objects_from(plain_bundle, "plain")


@pytest.mark.clang
@pytest.mark.parametrize("version", [1, 2, 3])
def test_our_zlib_bundles_are_what_llvm_reads_and_are_read(plain_bundle, tmp_path, rpl_require, version):
    data = packed_with_zlib(plain_bundle, version)
    (tmp_path / "in").write_bytes(data)
    tool = rpl_require("clang-offload-bundler-22")
    listed = subprocess.run(
        [tool, "-type=o", "-list", f"-input={tmp_path / 'in'}"], capture_output=True, text=True, check=True
    )
    assert "amdgcn-amd-amdhsa--gfx942" in listed.stdout
    assert code_objects_from(data, "packed") == code_objects_from(plain_bundle, "plain")


@pytest.mark.clang
def test_a_section_may_mix_compressed_and_plain_bundles(plain_bundle):
    parts = [packed_with_zlib(plain_bundle, 1), plain_bundle, packed_with_zlib(plain_bundle, 3), plain_bundle]
    section = b"".join(part.ljust(len(part) + 4096 - len(part) % 4096, b"\0") for part in parts)
    found = split_section(section, "here")
    assert len(found) == 4
    assert len({code.code for code in found}) == 1


@pytest.mark.clang
def test_code_that_holds_the_magic_of_a_bundle_does_not_split_it(compile_hip):
    text = '__attribute__((device, used)) const char text[] = "CCOB\\3__CLANG_OFFLOAD_BUNDLE__";' + _SOURCE
    data = compile_hip(text, name="magic.hipfb", bundle=True).read_bytes()
    assert data.count(b"CCOB") == 1
    assert len(split_section(data + b"\0" * 64 + data, "here")) == 2


@pytest.mark.clang
def test_damage_is_noticed_wherever_it_is(plain_bundle):
    data, whole = packed_with_zlib(plain_bundle, 3), code_objects_from(plain_bundle, "plain")
    noticed = 0
    for position in range(4, len(data), 5):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        try:  # deflate can say the same in other words: a run of zeros copied from further back
            assert code_objects_from(bytes(damaged), "damaged") == whole
        except RplError:
            noticed += 1
    assert noticed > len(data) / 5 * 0.95
    for size in range(0, len(data), 31):
        with suppress(RplError):
            code_objects_from(data[:size], "cut")


@pytest.mark.parametrize("packer", ["zlib", "zstd"])
def test_a_bomb_is_not_unpacked_further_than_it_claims(packer):
    plain = b"\0" * (64 << 20)
    body, method = zlib.compress(plain, 9), 0
    if packer == "zstd":
        zstandard = pytest.importorskip("zstandard")
        body, method = zstandard.compress(plain), 1
    data = struct.pack("<4sHHQQQ", b"CCOB", 3, method, 32 + len(body), 1000, 0) + body
    with pytest.raises(BadDataError, match="other bytes than it says"):
        unpack_bundle(data, "here", 1 << 20)
    huge = struct.pack("<4sHHQQQ", b"CCOB", 3, method, 32 + len(body), 1 << 62, 0) + body
    with pytest.raises(BadDataError, match="is not unpacked"):
        unpack_bundle(huge, "here", 1 << 20)


def test_later_versions_and_methods_are_named():
    for version, method in ((4, 1), (3, 2)):
        data = struct.pack("<4sHHQQQ", b"CCOB", version, method, 64, 10, 0).ljust(64, b"\0")
        with pytest.raises(ForeignFileError, match=f"version {version}, method {method}"):
            unpack_bundle(data, "here", 1 << 20)


def test_without_a_decoder_for_zstd_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    data = struct.pack("<4sHHQQQ", b"CCOB", 3, 1, 40, 10, 0).ljust(40, b"\0")
    with pytest.raises(MissingError, match="no decoder") as caught:
        unpack_bundle(data, "here", 1 << 20)
    assert "pip install 'rpl-codeobject[zstd]'" in caught.value.one_line()


def test_entries_that_claim_more_than_the_bundle_are_refused():
    entries = b"".join(struct.pack("<QQQ", 0, 1 << 20, 1) + b"x" for _ in range(4096))
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 4096) + entries + b"\0" * (1 << 20)
    with pytest.raises(BadDataError, match="larger than it"):
        split_section(data, "here")
