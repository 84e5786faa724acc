"""The command line of the stand-in: what it accepts, refuses and answers without running anything."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Profiler = Callable[..., subprocess.CompletedProcess[str]]
Results = Callable[[str], list[Path]]


def test_application_is_required(profiler: Profiler) -> None:
    done = profiler("--kernel-trace")
    assert done.returncode == 1
    assert done.stderr == "Fatal error: No application provided\n"


def test_application_needs_the_double_dash(profiler: Profiler) -> None:
    done = profiler("--kernel-trace=yes", "./app")
    assert done.returncode == 2
    assert "unrecognized arguments: ./app" in done.stderr


def test_misspelt_option_is_refused(profiler: Profiler) -> None:
    done = profiler("--kernel-trase", "--", "true")
    assert done.returncode == 2
    assert "--kernel-trase" in done.stderr


def test_options_cannot_be_abbreviated(profiler: Profiler) -> None:
    assert profiler("--kernel-tr", "--", "true").returncode == 2


def test_no_tracing_option_is_a_warning_only(profiler: Profiler) -> None:
    done = profiler("--", "sh", "-c", "exit 4")
    assert done.returncode == 4
    assert "Warning: No tracing options were enabled." in done.stderr


@pytest.mark.parametrize(("release", "sdk"), [("6.4", "0.6.0"), ("7.0", "1.0.0"), ("7.13", "1.3.0")])
def test_version_names_the_emulated_release(profiler: Profiler, release: str, sdk: str) -> None:
    done = profiler("--version", RPL_STANDIN_ROCM=release)
    assert done.returncode == 0
    assert f"         version: {sdk}" not in done.stderr
    assert any(line.split() == ["version:", sdk] for line in done.stdout.splitlines())


def test_unknown_release_is_an_error(profiler: Profiler) -> None:
    done = profiler("--version", RPL_STANDIN_ROCM="5.0")
    assert done.returncode == 1
    assert "RPL_STANDIN_ROCM=5.0" in done.stderr


def test_list_avail_lists_counters_with_blocks(profiler: Profiler) -> None:
    done = profiler("-L")
    assert done.returncode == 0
    names = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("Counter_Name")]
    assert {"SQ_WAVES", "TCC_EA0_RDREQ", "GRBM_GUI_ACTIVE", "FETCH_SIZE"} <= set(names)
    assert "TCC_EA0_WRREQ_32B" not in names, "no architecture has it"


def test_echo_prints_the_command_and_runs_nothing(profiler: Profiler, results: Results) -> None:
    done = profiler("--kernel-trace", "--echo", "--", "touch", "ran")
    assert done.stdout == "command: ['touch', 'ran']\n"
    assert not results("*")


def test_thread_trace_without_decoder_answers_like_the_driver(profiler: Profiler, results: Results) -> None:
    done = profiler("--att", "--att-library-path", "/nowhere", "--", "touch", "ran")
    assert done.returncode == 1
    assert "rocprof-trace-decoder library path not found in ['/nowhere']" in done.stderr
    assert not results("ran")


def test_rocpd_is_no_format_before_rocm_7(profiler: Profiler) -> None:
    done = profiler("--kernel-trace", "-f", "rocpd", "--", "true", RPL_STANDIN_ROCM="6.4")
    assert done.returncode == 2
    assert "invalid choice: 'rocpd'" in done.stderr


def test_input_file_conflict_is_refused(profiler: Profiler, tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text(json.dumps({"jobs": [{"pmc": ["SQ_WAVES"], "output_file": "a"}]}))
    done = profiler("-i", str(path), "-o", "b", "--", "true")
    assert done.returncode == 1
    assert "conflicting value for output_file : b vs a" in done.stderr


@pytest.mark.parametrize("name", ["in.ini", "absent.json"])
def test_unusable_input_file_is_fatal(profiler: Profiler, name: str) -> None:
    done = profiler("-i", name, "--", "true")
    assert done.returncode == 1
    assert done.stderr.startswith("Fatal error: ")


def folders(results: Results) -> list[str]:
    return [path.parent.name for path in results("*_results.db")]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.txt", "pmc: SQ_WAVES # note\n\npmc: GRBM_COUNT\n", ["pmc_1", "pmc_2"]),
        ("a.json", '{"jobs": [{"pmc": ["SQ_WAVES"]}, {"kernel_trace": true}]}', ["pass_1", "pass_2"]),
        ("a.json", '{"jobs": [{"pmc": ["SQ_WAVES"]}]}', ["pass_1"]),
        ("a.json", '{"jobs": [{"kernel_trace": true}]}', ["out"]),
    ],
)
def test_jobs_of_an_input_file_write_into_their_folders(
    profiler: Profiler, results: Results, tmp_path: Path, name: str, text: str, expected: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    done = profiler("-i", str(tmp_path / name), "-d", "out", "-o", "x", "--", "true")
    assert done.returncode == 0, done.stderr
    assert "Unable to find" not in done.stderr, "a comment is no counter"
    assert folders(results) == expected


def test_yaml_jobs_are_read(profiler: Profiler, results: Results, tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is what the real driver needs too")
    (tmp_path / "a.yml").write_text("jobs:\n  - pmc: [SQ_WAVES]\n  - pmc: [GRBM_COUNT]\n")
    done = profiler("-i", str(tmp_path / "a.yml"), "-d", "out", "-o", "x", "--", "true")
    assert done.returncode == 0, done.stderr
    assert folders(results) == ["pass_1", "pass_2"]


@pytest.mark.parametrize(("release", "expected"), [("7.2", ["out"]), ("7.13", ["pass_1", "pass_2"])])
def test_repeated_pmc_makes_passes_only_where_the_release_has_them(
    profiler: Profiler, results: Results, release: str, expected: list[str]
) -> None:
    arguments = ("--pmc", "SQ_WAVES", "--pmc", "GRBM_COUNT", "-d", "out", "-o", "x", "--", "true")
    assert profiler(*arguments, RPL_STANDIN_ROCM=release).returncode == 0
    assert folders(results) == expected


def test_failing_pass_of_several_ends_with_1(profiler: Profiler, results: Results, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("pmc: SQ_WAVES\npmc: GRBM_COUNT\n")
    done = profiler("-i", str(tmp_path / "a.txt"), "-d", "out", "-o", "x", "--", "sh", "-c", "exit 7")
    assert done.returncode == 1
    assert "returned non-zero exit status 7" in done.stderr
    assert folders(results) == ["pmc_1"]


@pytest.mark.parametrize(
    ("given", "present", "absent"),
    [
        (["-r"], {"kernel_trace", "hip_runtime_trace", "memory_copy_trace"}, {"hsa_core_trace"}),
        (["-s"], {"hsa_core_trace", "hip_compiler_trace", "kernel_trace"}, set()),
        (["-s", "--hsa-trace=no"], {"kernel_trace"}, {"hsa_core_trace", "hsa_amd_trace"}),
        (["--hip-trace"], {"hip_runtime_trace", "hip_compiler_trace"}, {"kernel_trace"}),
        (["-r", "--kernel-trace=off"], {"hip_runtime_trace"}, {"kernel_trace"}),
    ],
)
def test_aggregate_options_expand(given: list[str], present: set[str], absent: set[str]) -> None:
    from rpl_testkit.rocprofv3_standin.command_line import (
        emulated_rocm,
        expand_aggregates,
        parse_command_line,
    )

    options: dict[str, Any]
    options, _ = parse_command_line([*given, "--", "a"], emulated_rocm({}), {})
    traces = expand_aggregates(options)
    assert present <= traces
    assert not absent & traces
