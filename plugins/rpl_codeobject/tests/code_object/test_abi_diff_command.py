"""``rpl abi-diff`` through the real entry point: exit codes, table, JSON."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.clang

_SOURCE = """
extern "C" __global__ void scale(float* out, const float* in, int n) {
  for (int i = 0; i < n; ++i) out[i * 64 + LANE] = in[i * 64 + LANE];
}
"""


def test_equal_builds_are_compatible(compile_hip, rpl_cli):
    path = str(compile_hip(_SOURCE))
    result = rpl_cli("abi-diff", path, path)
    assert result.exit_code == 0
    assert result.stdout.startswith("compatible: 1 kernel in both files, 0 differences")


def test_another_parameter_type_exits_1_and_names_the_slot(compile_hip, rpl_cli):
    before = compile_hip(_SOURCE, name="a.hsaco")
    after = compile_hip(_SOURCE.replace("int n", "long n"), name="b.hsaco")
    result = rpl_cli("abi-diff", str(before), str(after), "--json")
    assert result.exit_code == 1
    document = result.json()
    assert document["compatible"] is False
    found = {d["what"]: d for d in document["differences"] if d["severity"] == "breaking"}
    assert found["arguments[2]"]["baseline"] == "offset 16, 4 bytes, by_value"
    assert found["arguments[2]"]["candidate"] == "offset 16, 8 bytes, by_value"


def test_an_unrolled_loop_is_compatible_and_shown(compile_hip, rpl_cli):
    before = compile_hip(_SOURCE.replace("  for", "#pragma nounroll\n  for"), name="a.hsaco")
    after = compile_hip(_SOURCE.replace("  for", "#pragma unroll 4\n  for"), name="b.hsaco")
    result = rpl_cli("abi-diff", str(before), str(after), "--isa", "--json")
    assert result.exit_code == 0
    instructions = result.json()["instructions"]["scale (gfx942)"]
    assert instructions["verdict"] == "loops_changed"
    assert instructions["candidate"] > instructions["baseline"]


def test_an_unknown_kernel_is_bad_data_naming_the_known_ones(compile_hip, rpl_cli):
    path = str(compile_hip(_SOURCE))
    result = rpl_cli("abi-diff", path, path, "--kernel", "scail")
    assert result.exit_code == 65
    assert "scale" in result.stderr


def test_a_missing_file_exits_69(rpl_cli, tmp_path):
    assert rpl_cli("abi-diff", str(tmp_path / "a"), str(tmp_path / "b")).exit_code == 69


def test_occupancy_is_compared_without_the_analysis(compile_hip, rpl_cli):
    """It is arithmetic on what the device says: neither a recording nor an analyzer takes part."""
    before = compile_hip(_SOURCE, name="a.hsaco")
    used = _SOURCE.replace(
        "  for",
        "  __attribute__((shared)) static float tile[15000];\n  tile[n] = n; out[n] = tile[n + 1];\n  for",
    )
    after = compile_hip(used, name="b.hsaco")
    options = ("--disable-plugin", "analysis", "abi-diff", str(before), str(after), "--json")
    document = rpl_cli(*options, "--workgroup-size", "64").json()
    found = {d["what"]: d for d in document["differences"]}
    # By hand: 60 000 B of the 64 KiB leave room for one workgroup of one wave.
    assert (
        found["occupancy_waves_per_simd"]["baseline"],
        found["occupancy_waves_per_simd"]["candidate"],
    ) == ("8", "1")
    assert document["not_compared"] == []
