"""Real code objects of clang are read from every container; broken ones end in one clear line."""

from __future__ import annotations

import re
import struct
import subprocess
from contextlib import suppress

import pytest

from rpl_codeobject.reading import code_objects_from, read_code_objects, split_section
from rpl_codeobject.reading.elf_file import decode_descriptor, decode_note, kernel_from, metadata_version
from rpl_core.errors import BadDataError, ForeignFileError, MissingError, RplError

_SOURCE = """
extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(1, 256)))
void scale(float* out, const float* in, int n, double factor) {
  __shared__ float tile[256];
  tile[LANE] = in[LANE];
  __builtin_amdgcn_s_barrier();
  out[LANE] = tile[(LANE + n) % 256] * factor;
}
"""


@pytest.mark.clang
def test_kernel_facts_agree_with_readelf(compile_hip, rpl_require):
    path = compile_hip(_SOURCE)
    (code_object,) = read_code_objects(path)
    (kernel,) = code_object.kernels
    command = [rpl_require("llvm-readelf-22"), "--notes", path]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def noted(key: str) -> int:
        match = re.search(rf"\.{key}:\s+(\d+)", text)
        assert match is not None, key
        return int(match[1])

    assert kernel.kernarg_bytes == noted("kernarg_segment_size") == 32
    assert kernel.lds_bytes == noted("group_segment_fixed_size") == 1024
    assert kernel.max_workgroup_size == noted("max_flat_workgroup_size") == 256
    assert kernel.vgprs == noted("vgpr_count")
    assert kernel.sgprs == noted("sgpr_count")
    assert [(a.offset, a.size, a.value_kind) for a in kernel.arguments] == [
        (0, 8, "global_buffer"),
        (8, 8, "global_buffer"),
        (16, 4, "by_value"),
        (24, 8, "by_value"),
    ]
    assert (code_object.target, code_object.architecture) == ("amdgcn-amd-amdhsa--gfx942", "gfx942")


@pytest.mark.clang
def test_the_descriptor_agrees_with_the_note(compile_hip):
    (code_object,) = read_code_objects(compile_hip(_SOURCE))
    (kernel,) = code_object.kernels
    assert kernel.descriptor is not None
    assert kernel.descriptor.group_segment_bytes == kernel.lds_bytes
    assert kernel.descriptor.kernarg_bytes == kernel.kernarg_bytes
    assert kernel.descriptor.vgpr_granules * 8 >= kernel.vgprs
    assert not kernel.descriptor.wavefront_size32
    assert not kernel.descriptor.dynamic_stack


@pytest.mark.clang
def test_a_bundle_holds_one_code_object_per_architecture(compile_hip):
    architectures = ("--offload-arch=gfx942", "--offload-arch=gfx90a")
    found = read_code_objects(compile_hip(_SOURCE, *architectures, name="two.hipfb", bundle=True))
    assert sorted(c.architecture for c in found) == ["gfx90a", "gfx942"]


@pytest.mark.clang
def test_a_host_program_gives_the_bundles_of_all_its_units(compile_hip, tmp_path, rpl_require):
    bundles = [
        compile_hip(_SOURCE.replace("scale", name), name=f"{name}.hipfb", bundle=True)
        for name in ("first", "second")
    ]
    section = tmp_path / "fatbin"
    section.write_bytes(b"".join(b.read_bytes().ljust(1 << 16, b"\0") for b in bundles))
    source, program = tmp_path / "main.c", tmp_path / "program"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(
        [rpl_require("clang-22"), "-c", source, "-o", f"{program}.o"], check=True, capture_output=True
    )
    copy = [
        rpl_require("llvm-objcopy-22"),
        "--add-section",
        f".hip_fatbin={section}",
        f"{program}.o",
        program,
    ]
    subprocess.run(copy, check=True, capture_output=True)
    assert [k.name for c in read_code_objects(program) for k in c.kernels] == ["first", "second"]


@pytest.mark.clang
def test_the_target_id_keeps_its_features(compile_hip):
    for name in ("gfx942:xnack+", "gfx942:sramecc+:xnack-"):
        (code_object,) = read_code_objects(compile_hip(_SOURCE, f"--offload-arch={name}"))
        assert code_object.target.endswith(name)
        assert code_object.architecture == "gfx942"


@pytest.mark.clang
def test_no_truncation_ends_in_anything_but_an_expected_error(compile_hip):
    data = compile_hip(_SOURCE, name="whole.hipfb", bundle=True).read_bytes()
    for size in range(0, len(data), 97):
        with suppress(RplError):
            code_objects_from(data[:size], "cut")


@pytest.mark.clang
def test_no_flipped_byte_ends_in_anything_but_an_expected_error(compile_hip):
    data = compile_hip(_SOURCE).read_bytes()
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        with suppress(RplError):
            code_objects_from(bytes(damaged), "flipped")


def test_a_missing_file_and_a_text_file_are_told_apart(tmp_path):
    with pytest.raises(MissingError):
        read_code_objects(tmp_path / "absent")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ForeignFileError, match="neither"):
        read_code_objects(tmp_path / "text")


def test_a_bundle_that_claims_too_many_entries_is_refused():
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 1 << 60)
    with pytest.raises(BadDataError, match="claims"):
        split_section(data, "here")


def test_an_offload_packager_binary_is_named_as_such():
    with pytest.raises(ForeignFileError, match="offload-packager"):
        code_objects_from(b"\x10\xff\x10\xad" + b"\0" * 64, "here")


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93\x01", b"\x81" * 100_000, b"\x01"])
def test_a_note_that_is_no_map_is_refused(data):
    with pytest.raises(BadDataError, match="metadata note"):
        decode_note(data, "here")


def test_another_metadata_version_is_refused():
    with pytest.raises(ForeignFileError, match="version 2"):
        metadata_version({"amdhsa.version": [2, 0]}, "here")


def test_a_kernel_without_a_required_key_is_refused_by_name():
    with pytest.raises(BadDataError, match=r"kernel k: \.symbol is None"):
        kernel_from({".name": "k"}, None, "here")


@pytest.mark.parametrize("size", [-1, True, "8", 8.0, None])
def test_a_size_that_is_no_count_is_refused_by_name(size):
    with pytest.raises(BadDataError, match=r"kernel k: \.kernarg_segment_size is .*, expected a count"):
        kernel_from({".name": "k", ".symbol": "k.kd", ".kernarg_segment_size": size}, None, "here")


def test_descriptor_fields_are_where_the_table_of_llvm_puts_them():
    data = struct.pack("<III4xq20xIIIHH4x", 1, 2, 3, -4, 5, 0x43, 0, 1 << 10 | 1 << 11, 7)
    found = decode_descriptor(data, "here")
    assert (found.group_segment_bytes, found.private_segment_bytes, found.kernarg_bytes) == (1, 2, 3)
    assert (found.entry_offset, found.accum_offset) == (-4, 24)
    assert (found.vgpr_granules, found.sgpr_granules) == (4, 2)
    assert found.wavefront_size32
    assert found.dynamic_stack
    assert found.kernarg_preload == 7
