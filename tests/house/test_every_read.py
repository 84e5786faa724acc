"""Every opening of a file in the product is known, with its bound.

What comes from elsewhere goes through ``rpl_core.files`` and needs no line here. Any other opening
stands in ``OPENINGS`` with the reason why it ends: a bound by the name that it has in the same module, or
whose file it is. A new opening, or one that is gone, fails.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_OPENERS = {
    *("open", "fdopen", "read_text", "read_bytes", "fromfile", "memmap", "mmap", "connect"),
    *("np.load", "json.load", "tarfile.open", "gzip.open"),
}
_SPELT = re.compile("|".join(name.rpartition(".")[2] for name in _OPENERS))

#: Reasons that are not the name of a bound.
SYSTEM = "what the kernel or the system tells"
INSTALLED = "a file of the installation"
OWN = "written by this command or its child into a folder of its own"
NAMED = "the user's own source or program, compared or copied as a whole"
BLOCKS = "read block by block: memory has a bound, time is linear in the size of a regular file"
WHOLE = "of a size that problems_of() compared with the capture's lists before"
DOOR = "the door itself, through which the others go"
REASONS = {SYSTEM, INSTALLED, OWN, NAMED, BLOCKS, WHOLE, DOOR}

OPENINGS = {
    "rpl_core/cli/main.py:_summary_of": INSTALLED,
    "rpl_core/cli/output.py:_bytes_read": SYSTEM,
    "rpl_core/cli/standard_output.py:discard_output": SYSTEM,
    "rpl_core/cli/standard_output.py:keep_for_results": SYSTEM,
    "rpl_core/files.py:_replace": OWN,
    "rpl_core/files.py:write_atomic": OWN,
    "rpl_core/files.py:open_regular": DOOR,
    "rpl_core/files.py:sha256_of": BLOCKS,
    "rpl_core/profiling.py:_overwrite": OWN,
    "rpl_core/run_directory.py:_change_state": OWN,
    "rpl_core/plugins/entry_points.py:_entries": INSTALLED,
    "rpl_core/plugins/entry_points.py:_name_and_version": INSTALLED,
    "rpl_core/plugins/trial.py:_tried": SYSTEM,
    "rpl_core/process/__init__.py:_open_repeatable_stdin": SYSTEM,
    "rpl_core/process/__init__.py:_reopened": SYSTEM,
    "rpl_core/process/output.py:LogFile.__init__": OWN,
    "rpl_core/process/supervision.py:MemoryGroup.exceeded": SYSTEM,
    "rpl_core/process/supervision.py:_groups_around": SYSTEM,
    "rpl_core/process/supervision.py:_made_group": SYSTEM,
    "rpl_core/process/supervision.py:_processes": SYSTEM,
    "rpl_core/process/supervision.py:memory_of": SYSTEM,
    "plugins/rpl_amdgpu/src/rpl_amdgpu/detection.py:architectures_here": SYSTEM,
    "plugins/rpl_analysis/src/rpl_analysis/bottleneck.py:builtin_rules": INSTALLED,
    "plugins/rpl_analysis/src/rpl_analysis/documents/__init__.py:_Kind.shape": INSTALLED,
    "plugins/rpl_analysis/src/rpl_analysis/interfaces.py:packaged_rules": INSTALLED,
    "plugins/rpl_analysis/src/rpl_analysis/ranks/gather.py:_workers": OWN,
    "plugins/rpl_compare/src/rpl_compare/ci.py:append_summary": NAMED,
    "plugins/rpl_att/src/rpl_att/decoding/decode.py:read_loads": BLOCKS,
    "plugins/rpl_att/src/rpl_att/decoding/decode.py:run_worker": OWN,
    "plugins/rpl_att/src/rpl_att/decoded_trace.py:_from_csv": BLOCKS,
    "plugins/rpl_att/src/rpl_att/decoded_trace.py:_items": BLOCKS,
    "plugins/rpl_att/src/rpl_att/reader.py:_looks_like_json": BLOCKS,
    "plugins/rpl_att/src/rpl_att/reading/__init__.py:_unpacked_bytes": BLOCKS,
    "plugins/rpl_att/src/rpl_att/reading/__init__.py:open_bounded": BLOCKS,
    "plugins/rpl_att/src/rpl_att/reading/__init__.py:recorded_architecture": "_MOST_TABLE_BYTES",
    "plugins/rpl_att/src/rpl_att/reading/__init__.py:read_source": "_MAX_SOURCE_BYTES",
    "plugins/rpl_autotune/src/rpl_autotune/run_job.py:Cache._append": OWN,
    "plugins/rpl_autotune/src/rpl_autotune/cli.py:_measured": OWN,
    "plugins/rpl_autotune/src/rpl_autotune/run_job.py:file_lock": OWN,
    "plugins/rpl_autotune/src/rpl_autotune/source_tuning.py:_tried": OWN,
    "rpl_core/executor_worker.py:main": OWN,
    "plugins/rpl_codeobject/src/rpl_codeobject/demangle.py:_work": SYSTEM,
    "plugins/rpl_codeobject/src/rpl_codeobject/reading/debug_reader.py:main": SYSTEM,
    "plugins/rpl_codeobject/src/rpl_codeobject/reading/__init__.py:_read": "MAX_RECORDED_BYTES",
    "plugins/rpl_emu/src/rpl_emu/rocpd_file.py:counter_map": INSTALLED,
    "plugins/rpl_emu/src/rpl_emu/apt.py:_write": OWN,
    "plugins/rpl_emu/src/rpl_emu/isa_mix.py:_device_code": BLOCKS,
    "plugins/rpl_emu/src/rpl_emu/rocpd_file.py:read_work": OWN,
    "plugins/rpl_emu/src/rpl_emu/rocpd_file.py:_size_of": OWN,
    "plugins/rpl_emu/src/rpl_emu/rocpd_file.py:write_rocpd": OWN,
    "plugins/rpl_emu/src/rpl_emu/software_gpu.py:_hip_library": NAMED,
    "plugins/rpl_emu/src/rpl_emu/replay.py:_pairs": OWN,
    "plugins/rpl_emu/src/rpl_emu/replay.py:_write_plan": OWN,
    "plugins/rpl_emu/src/rpl_emu/replay.py:read_changes": OWN,
    "plugins/rpl_emu/src/rpl_emu/replay.py:read_ranges": OWN,
    "plugins/rpl_emu/src/rpl_emu/replay.py:_variables_left": WHOLE,
    "plugins/rpl_emu/src/rpl_emu/runtime_index.py:_text": "_LARGEST_LIST_BYTES",
    "plugins/rpl_emu/src/rpl_emu/runtime_index.py:_dynamic": OWN,
    "plugins/rpl_emu/src/rpl_emu/runtime_packages.py:_unpack_data": "_MOST_UNPACKED_BYTES",
    "plugins/rpl_emu/src/rpl_emu/runtime_packages.py:download_one": OWN,
    "plugins/rpl_emu/src/rpl_emu/runtime_packages.py:unpack": OWN,
    "plugins/rpl_emu/src/rpl_emu/runtime_packages.py:locked_cache": OWN,
    "plugins/rpl_emu/src/rpl_emu/runtime_packages.py:listed": INSTALLED,
    "plugins/rpl_llm_unroll/src/rpl_llm_unroll/exchange.py:ExchangeLog.append": OWN,
    "plugins/rpl_llm_unroll/src/rpl_llm_unroll/exchange.py:_ends_torn": OWN,
    "plugins/rpl_llm_unroll/src/rpl_llm_unroll/samples.py:Samples._try_out": OWN,
    "plugins/rpl_transforms/src/rpl_transforms/resource_screen.py:DeviceCompiler.compile": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/build/host_code.py:HostComparison._object": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/build/host_code.py:_compilations": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/build/host_code.py:prerequisites": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/build/build_run.py:defines_main": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/build/build_run.py:is_device_code": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/build/host_code.py:SeparateCompile._same_objects": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/build/host_code.py:SeparateCompile.verdict": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/ceilings.py:read_kept": "_MAX_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/cli/ceilings.py:_built": INSTALLED,
    "plugins/rpl_optimize/src/rpl_optimize/cli/optimize_request.py:with_binary": NAMED,
    "plugins/rpl_optimize/src/rpl_optimize/cli/optimize_request.py:recalled": "_MOST_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/equivalence/outputs.py:_mapped": BLOCKS,
    "plugins/rpl_optimize/src/rpl_optimize/equivalence/outputs.py:compare_raw": BLOCKS,
    "plugins/rpl_optimize/src/rpl_optimize/equivalence/outputs.py:looks_like_text": BLOCKS,
    "plugins/rpl_optimize/src/rpl_optimize/equivalence/outputs.py:blocks_of": BLOCKS,
    "plugins/rpl_optimize/src/rpl_optimize/equivalence/program_run.py:_tail": BLOCKS,
    "plugins/rpl_optimize/src/rpl_optimize/running/confined.py:_bound": SYSTEM,
    "plugins/rpl_optimize/src/rpl_optimize/running/confined.py:_own_namespaces": SYSTEM,
    "plugins/rpl_optimize/src/rpl_optimize/running/confined.py:_protect": SYSTEM,
    "plugins/rpl_optimize/src/rpl_optimize/ledger/lines.py:_opened": "MAX_LEDGER_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/ledger/session_files.py:_sha256_of_first": BLOCKS,
    "plugins/rpl_optimize/src/rpl_optimize/ledger/session_files.py:read_key": "MOST_KEY_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/ledger/lines.py:_open": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/ledger/lines.py:_sync_directory": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/loop/session.py:_hash_of": NAMED,
    "plugins/rpl_optimize/src/rpl_optimize/loop/session.py:is_changed": NAMED,
    "plugins/rpl_optimize/src/rpl_optimize/loop/meaning.py:_unit": "_MOST_FILES",
    "plugins/rpl_optimize/src/rpl_optimize/loop/measuring.py:keep_best": NAMED,
    "plugins/rpl_optimize/src/rpl_optimize/loop/recorded_session.py:RecordedSession._dag": "_MOST_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/loop/recorded_session.py:RecordedSession.end": "_MOST_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/loop/session.py:_hash_if_readable": NAMED,
    "plugins/rpl_optimize/src/rpl_optimize/loop/session.py:OptimizeSession.record_resumed": NAMED,
    "plugins/rpl_optimize/src/rpl_optimize/build/project_systems.py:_home": "_MOST_CMAKE_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/build/project_systems.py:defines_kernels": "_MAX_SOURCE_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/build/project_systems.py:_makefile_text": "_MOST_MAKEFILE_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/running/program_word.py:mapped_files": "_MOST_LOG_BYTES",
    "plugins/rpl_optimize/src/rpl_optimize/running/mount_and_run.py:_own_namespace": SYSTEM,
    "plugins/rpl_optimize/src/rpl_optimize/running/program_word.py:_runs_others": NAMED,
    "plugins/rpl_optimize/src/rpl_optimize/source_meaning/front_end.py:Pass._failure": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/source_meaning/front_end.py:Pass.messages": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/source_meaning/front_end.py:preprocess": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/source_meaning/reading.py:CompilerReading.compiled": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/source_meaning/reading.py:CompilerReading.macros": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/source_meaning/unit.py:Original.pragmas": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/source_meaning/syntax_dump.py:SyntaxDump.__init__": OWN,
    "plugins/rpl_optimize/src/rpl_optimize/transform.py:read_source": "MAX_SOURCE_BYTES",
    "plugins/rpl_pcsampling/src/rpl_pcsampling/reading.py:holds_samples": "_MOST_BEFORE_BYTES",
    "plugins/rpl_report/src/rpl_report/cli/report.py:_title": INSTALLED,
    "plugins/rpl_report/src/rpl_report/cli/report.py:docs": INSTALLED,
    "plugins/rpl_report/src/rpl_report/html/page.py:load_assets": INSTALLED,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/collector/passes.py:_has_second_line": OWN,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/collector/__init__.py:_installed_rocm": SYSTEM,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/database.py:_connected": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/database.py:PassingHash.finished": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/database.py:_copy_bytes": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/database.py:_refuse_super_journal": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/csv/__init__.py:_edge_times": BLOCKS,
    "plugins/rpl_emu/src/rpl_emu/demo/recorded.py:unpack": INSTALLED,
    "plugins/rpl_emu/src/rpl_emu/demo/steps.py:_dominant": OWN,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/csv/tables.py:_opened": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/catalog.py:_head": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/gzip_limits.py:BoundedGzip.__init__": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/gzip_limits.py:unpack": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/json/__init__.py:_opened": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/json/__init__.py:is_results_json": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/claims.py:looks_like_database": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/database.py:read_header": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/sqlite/__init__.py:open_pages": BLOCKS,
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers/trace/__init__.py:mark_beside": "_MAX_SIDECAR_BYTES",
    "plugins/rpl_selftest/src/rpl_selftest/kept.py:read_archive": "_MOST_BYTES",
    "plugins/rpl_selftest/src/rpl_selftest/kept.py:write_archive": INSTALLED,
    "plugins/rpl_selftest/src/rpl_selftest/checks/machine.py:_processes_of": SYSTEM,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/folder.py:_unpacked": BLOCKS,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/folder.py:blocks_with_data": BLOCKS,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/plain_memory.py:PlainMemory._captured_hashes": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/plain_memory.py:PlainMemory._region_hashes": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/plain_memory.py:PlainMemory.path_of": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/plain_memory.py:PlainMemory.read": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/plain_memory.py:_wrong_variables": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/plain_memory.py:reproduction": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/shrink.py:_seal": OWN,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/shrink.py:_seals": OWN,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/shrink.py:_write_extras": OWN,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/shrink.py:_write_variable_hashes": OWN,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/wholeness.py:_code_object_problem": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/wholeness.py:_hash_of": BLOCKS,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/capture/wholeness.py:_hash_problems": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/compare/experiment.py:Experiment._changed_variables": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/compare/outputs.py:_pointers": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/inputs/arguments.py:varied_arguments": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/isolate.py:launched_kernels": "_LARGEST_NAMES",
    "plugins/rpl_vmreplay/src/rpl_vmreplay/replay/captured_code.py:fitting_arguments": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/replay/captured_code.py:stale_arguments": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/replay/captured_code.py:_contents": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/replay/native_replayer.py:_Replayed._hashes": OWN,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/replay/native_replayer.py:_Replayed._kept_bytes": OWN,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/replay/native_replayer.py:_Replayed._left": OWN,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/replay/native_replayer.py:_run": OWN,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/replay/outcome.py:capture_hash": WHOLE,
    "plugins/rpl_vmreplay/src/rpl_vmreplay/replay/native_replayer.py:ReplayPlan._kernarg": OWN,
}


def _sources():
    """Of what users run: not the test kit, which reads what its author's own tests wrote."""
    plugins = [p / "src" for p in sorted((ROOT / "plugins").iterdir()) if p.name != "rpl_testkit"]
    for top in (ROOT / "rpl_core", *plugins, ROOT / "metapackage/src", ROOT / "native/python"):
        yield from sorted(top.rglob("*.py"))


def _openings(tree: ast.AST) -> set[str]:
    found: set[str] = set()

    def walk(node: ast.AST, scope: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inner = (*scope, child.name)
            if isinstance(child, ast.Call) and _opens(child):
                found.add(".".join(scope) or "<module>")
            walk(child, inner)

    walk(tree, ())
    return found


def _opens(call: ast.Call) -> bool:
    whole = ast.unparse(call.func)
    return whole.rpartition(".")[2] in _OPENERS or whole in _OPENERS


def test_every_opening_of_a_file_is_listed_with_its_bound():
    found = {
        f"{path.relative_to(ROOT)}:{place}"
        for path in _sources()
        if _SPELT.search(text := path.read_text(encoding="utf-8"))
        for place in _openings(ast.parse(text))
    }
    assert found - set(OPENINGS) == set(), "read it through rpl_core.files, or say where its bound is"
    assert set(OPENINGS) - found == set(), "these openings are gone"


@pytest.mark.parametrize("place", sorted(set(OPENINGS)))
def test_a_bound_is_one_of_its_module(place):
    why = OPENINGS[place]
    assert why in REASONS or why in (ROOT / place.partition(":")[0]).read_text(encoding="utf-8")


def test_an_opening_that_nobody_knows_is_found():
    tree = ast.parse("class A:\n    def b(self, path):\n        return path.read_bytes()\n")
    assert _openings(tree) == {"A.b"}
