"""The stand-in's command line: the releases that it can be, what they take, and what they print.

Facts: docs/reference/formats.md, 2.8 (formats, columns, repeatable --pmc, schema versions).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rpl_core.values import frozen


@frozen
class EmulatedRocm:
    """One release: `schema_version` None means that rocpd output does not exist there."""

    rocm: str
    sdk: str
    schema_version: str | None
    repeatable_pmc: bool = False
    kernel_replay: bool = False

    @property
    def default_format(self) -> str:
        return "rocpd" if self.schema_version else "csv"

    @property
    def formats(self) -> tuple[str, ...]:
        common = ("csv", "json", "pftrace", "otf2")
        return (*common, "rocpd") if self.schema_version else common

    @property
    def wide_csv(self) -> bool:
        """Whether CSV has registers, Stream_Id and text agent ids (7.0 and later)."""
        return self.schema_version is not None


_RELEASES: Final = {
    "6.4": EmulatedRocm("6.4.0", "0.6.0", None),
    "7.0": EmulatedRocm("7.0.0", "1.0.0", "3"),
    "7.2": EmulatedRocm("7.2.0", "1.1.0", "3"),
    "7.13": EmulatedRocm("7.13.0", "1.3.0", "3", repeatable_pmc=True),
    "10.0": EmulatedRocm("10.0.0", "1.3.5", "3.0.3", repeatable_pmc=True),
    "10.0.1": EmulatedRocm("10.0.1", "1.4.1", "3.0.3", repeatable_pmc=True, kernel_replay=True),
}


def emulated_rocm(environment: Mapping[str, str]) -> EmulatedRocm:
    """Return the release named by `RPL_STANDIN_ROCM`, 7.2 by default. ValueError for an unknown one."""
    name = environment.get("RPL_STANDIN_ROCM", "7.2")
    if name not in _RELEASES:
        raise ValueError(f"RPL_STANDIN_ROCM={name} is not one of {', '.join(_RELEASES)}")
    return _RELEASES[name]


# What rocprofv3 was asked: its options as data, the command line, the input file.

#: Options that switch a kind of recording on.
TRACE_OPTIONS: Final = (
    "kernel_trace",
    "memory_copy_trace",
    "memory_allocation_trace",
    "scratch_memory_trace",
    "hip_trace",
    "hip_runtime_trace",
    "hip_compiler_trace",
    "hsa_trace",
    "hsa_core_trace",
    "hsa_amd_trace",
    "hsa_image_trace",
    "hsa_finalizer_trace",
    "marker_trace",
    "rccl_trace",
    "kokkos_trace",
    "rocdecode_trace",
    "rocjpeg_trace",
)

#: What -r switches on, and what -s adds.
RUNTIME_TRACE: Final = (
    "hip_runtime_trace",
    "marker_trace",
    "kernel_trace",
    "memory_copy_trace",
    "memory_allocation_trace",
    "scratch_memory_trace",
    "rccl_trace",
    "rocdecode_trace",
    "rocjpeg_trace",
)
SYS_TRACE: Final = (
    *RUNTIME_TRACE,
    "hip_compiler_trace",
    "hsa_core_trace",
    "hsa_amd_trace",
    "hsa_image_trace",
    "hsa_finalizer_trace",
)

#: Switches with an optional yes/no value.
BOOLEAN_OPTIONS: Final = (
    ("-r", "--runtime-trace"),
    ("-s", "--sys-trace"),
    *((f"--{name.replace('_', '-')}",) for name in TRACE_OPTIONS),
    ("--output-config",),
    ("--pc-sampling-beta-enabled",),
    ("--stats",),
    ("-S", "--summary"),
    ("-D", "--summary-per-domain"),
    ("-M", "--mangled-kernels"),
    ("-T", "--truncate-kernels"),
    ("--kernel-rename",),
    ("--selected-regions",),
    ("-L", "--list-avail"),
    ("--group-by-queue",),
    ("--readlink",),
    ("--realpath",),
    ("--suppress-marker-preload",),
    ("--echo",),
    ("--disable-signal-handlers",),
    ("--advanced-thread-trace", "--att"),
    ("--att-serialize-all",),
)
#: Switches of SDK 1.3 (ROCm 7.13).
LATER_BOOLEAN_OPTIONS: Final = (("--kfd-trace",), ("--hip-graph-trace",))

#: Options with values: names and number of values as argparse counts them.
VALUE_OPTIONS: Final[tuple[tuple[tuple[str, ...], str | None], ...]] = (
    (("-i", "--input"), None),
    (("-E", "--extra-counters"), None),
    (("--summary-groups",), "+"),
    (("--summary-output-file",), None),
    (("-u", "--summary-units"), None),
    (("--kernel-include-regex",), None),
    (("--kernel-exclude-regex",), None),
    (("--kernel-iteration-range",), "+"),
    (("-P", "--collection-period"), "+"),
    (("--collection-period-unit",), None),
    (("--perfetto-backend",), None),
    (("--perfetto-buffer-size",), None),
    (("--perfetto-buffer-fill-policy",), None),
    (("--perfetto-shmem-size-hint",), None),
    (("--preload",), "*"),
    (("--rocm-root",), None),
    (("--sdk-soversion",), None),
    (("--sdk-version",), None),
    (("--benchmark-mode",), None),
    (("--minimum-output-data",), None),
    (("-p", "--pid"), "+"),
    (("--att-library-path",), "+"),
    (("--att-target-cu",), None),
    (("--att-simd-select",), None),
    (("--att-buffer-size",), None),
    (("--att-shader-engine-mask",), None),
    (("--att-gpu-index",), None),
    (("--att-perfcounters",), None),
    (("--att-perfcounter-ctrl",), None),
    (("--att-activity",), None),
)


# The command line of rocprofv3: split at `--`, parsed into plain keys, aggregates expanded.
#
# Errors of the command line leave through argparse with exit code 2, as in reality.

_TRUE: Final = ("y", "yes", "t", "true", "on", "1")
_FALSE: Final = ("n", "no", "f", "false", "off", "0")


def parse_command_line(
    arguments: Sequence[str], release: EmulatedRocm, environment: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the options that were given (key to value) and the application's command line."""
    own, application = list(arguments), []
    if "--" in own:
        position = own.index("--")
        own, application = own[:position], own[position + 1 :]
    values = vars(_parser(release, environment).parse_args(own))
    return {key: value for key, value in values.items() if value is not None}, application


def _parser(release: EmulatedRocm, environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rocprofv3",
        usage="%(prog)s [options] -- <application> [application options]",
        description="rpl stand-in for rocprofv3 (synthetic data)",
        allow_abbrev=False,
    )
    parser.add_argument("-v", "--version", action="store_true", default=None)
    parser.add_argument("-o", "--output-file", default=environment.get("ROCPROF_OUTPUT_FILE_NAME"))
    parser.add_argument("-d", "--output-directory", default=environment.get("ROCPROF_OUTPUT_PATH"))
    parser.add_argument("-f", "--output-format", nargs="+", type=str.lower, choices=release.formats)
    levels = ("fatal", "error", "warning", "info", "trace", "env", "config")
    parser.add_argument("--log-level", type=str.lower, choices=levels)
    parser.add_argument("-A", "--agent-index", choices=("absolute", "relative", "type-relative"))
    parser.add_argument("--pmc", nargs="*", action="append" if release.repeatable_pmc else "store")
    parser.add_argument("--pc-sampling-unit", type=str.lower, choices=("instructions", "cycles", "time"))
    parser.add_argument("--pc-sampling-method", type=str.lower, choices=("stochastic", "host_trap"))
    parser.add_argument("--pc-sampling-interval", type=int)
    if release.kernel_replay:
        replays = "select the counter-collection replay strategy; kernel needs --kernel-replay-beta-enabled"
        parser.add_argument("--replay-mode", choices=("kernel", "application"), help=replays)
    switches = BOOLEAN_OPTIONS
    if release.repeatable_pmc:
        switches += LATER_BOOLEAN_OPTIONS
    if release.kernel_replay:
        switches += (("--kernel-replay-beta-enabled",),)
    for names in switches:
        parser.add_argument(*names, nargs="?", const=True, type=_truth, metavar="BOOL")
    for names, count in VALUE_OPTIONS:
        parser.add_argument(*names, nargs=count)
    return parser


def _truth(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(f"invalid truth value {text}")


def split_counters(words: Sequence[str]) -> tuple[str, ...]:
    """Split counter words at commas; order is kept, empty parts vanish."""
    return tuple(part for word in words for part in word.replace(",", " ").split())


def expand_aggregates(options: Mapping[str, Any]) -> set[str]:
    """Return the trace options in force; an explicit `=no` wins over -r, -s, --hip-trace, --hsa-trace."""
    wanted: set[str] = set()
    groups = {
        "sys_trace": SYS_TRACE,
        "runtime_trace": RUNTIME_TRACE,
        "hip_trace": ("hip_runtime_trace", "hip_compiler_trace"),
        "hsa_trace": ("hsa_core_trace", "hsa_amd_trace", "hsa_image_trace", "hsa_finalizer_trace"),
    }
    for name, members in groups.items():
        if options.get(name):
            wanted.update(members)
    for name, members in groups.items():
        if options.get(name) is False:
            wanted.difference_update(members)
    for name in TRACE_OPTIONS:
        if name in groups:
            continue
        if options.get(name):
            wanted.add(name)
        elif options.get(name) is False:
            wanted.discard(name)
    return wanted


# The -i file of rocprofv3: text `pmc:` lines, or YAML/JSON `jobs`, each becoming one pass.

#: Keys and values of one job, and the prefix of its output folder (`pmc_` or `pass_`).
InputJob = tuple[dict[str, Any], str]


class InputFileError(Exception):
    """The file can't be used; the text is what the profiler prints after `Fatal error:`."""


def read_input_file(path: Path) -> list[InputJob]:
    """Return the jobs of `path` in order."""
    if path.suffix == ".txt":
        return [({"pmc": counters}, "pmc_") for counters in _text_jobs(path)]
    if path.suffix not in (".json", ".yaml", ".yml"):
        raise InputFileError(
            f"Input file '{path}' does not have a recognized extension (.txt, .json, .yaml, .yml)"
        )
    try:
        text = path.read_text(encoding="utf-8")
        jobs = (json.loads(text) if path.suffix == ".json" else _load_yaml(text))["jobs"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputFileError(str(error)) from error
    return [(dict(job), "pass_") for job in jobs]


def _load_yaml(text: str) -> Any:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise InputFileError(
            f"{error}\n\nYAML package is not installed. Run 'pip install pyyaml' or use JSON or text format"
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputFileError(str(error)) from error


def _text_jobs(path: Path) -> list[list[str]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputFileError(str(error)) from error
    counters = [line.partition("#")[0].replace("pmc:", "").split() for line in lines if "pmc:" in line]
    return [names for names in counters if names]


def merge_options(command_line: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """Join command line and job. RuntimeError when both give a key different values, as in reality."""
    merged = dict(job)
    for key, value in command_line.items():
        if key in job and job[key] != value:
            raise RuntimeError(f"conflicting value for {key} : {value} vs {job[key]}")
        merged[key] = value
    if isinstance(merged.get("kernel_iteration_range"), str):
        merged["kernel_iteration_range"] = [merged["kernel_iteration_range"]]
    return merged


# What rocprofv3 prints on stderr: driver lines as they are, log lines in the format of glog.
#
# Results are announced at error level and the database at warning level although nothing is wrong; readers
# must not take such lines for failures (docs/reference/formats.md, 4.6).

_RANKS: Final = {"fatal": 3, "error": 2, "warning": 1, "info": 0, "trace": 0, "env": 1, "config": 1}
_LETTERS: Final = "IWEF"


def warning(text: str) -> None:
    """Print a warning of the driver script."""
    print(f"Warning: {text}", file=sys.stderr, flush=True)


def fatal_error(text: str) -> int:
    """Print a fatal error of the driver script and return its exit code."""
    print(f"Fatal error: {text}", file=sys.stderr, flush=True)
    return 1


@frozen
class Log:
    """Log lines of the tool library; lines below `level` are not printed."""

    level: str = "warning"

    def _line(self, rank: int, place: str, text: str) -> None:
        if rank < _RANKS[self.level]:
            return
        now = time.time()
        stamp = time.strftime("%Y%m%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"
        thread = threading.get_native_id()
        print(f"{_LETTERS[rank]}{stamp} {thread} {place}] {text}", file=sys.stderr, flush=True)

    def writing_database(self, pid: int, node: int) -> None:
        """Announce the database."""
        self._line(1, "generateRocpd.cpp:581", f"writing SQL database for process {pid} on node {node}")

    def opened(self, path: os.PathLike[str], uuid: str | None = None) -> None:
        """Announce a result file; the database names its UUID."""
        suffix = f" (UUID={uuid})" if uuid else ""
        place = "generateRocpd.cpp:603" if uuid else "output_stream.cpp:111"
        self._line(2, place, f"Opened result file: {os.fspath(path)}{suffix}")

    def missing_counters(
        self, node: int, gpu: int, name: str, requested: tuple[str, ...], found: tuple[str, ...]
    ) -> None:
        """Warn about counters that the device does not have; the others are still collected."""
        missing = ", ".join(counter for counter in requested if counter not in found)
        self._line(
            1,
            "tool.cpp:1183",
            f"Unable to find all counters for agent {node} (gpu-{gpu}, {name}) in [{', '.join(requested)}]. "
            f"Found: [{', '.join(found)}]. Missing: [{missing}]",
        )

    def replay_declined(self, dispatch: int, reason: str, passes: int) -> None:
        """Say that a launch ran once although it was to be replayed."""
        self._line(
            1,
            "replay_diagnostics.cpp:126",
            f"[kernel-replay] dispatch_id={dispatch} outcome=declined reason={reason} "
            f"requested_passes={passes} executed_passes=0 footprint_bytes=0 footprint_regions=0 "
            "untracked_vmem_bytes=0 untracked_vmem_regions=0 untracked_pool_bytes=0 "
            "untracked_pool_regions=0 snap_seconds=0.0000 restore_seconds=0.0000 reentrancy=0",
        )

    def graph_not_replayed(self) -> None:
        """Warn once about graphs. The real words are not known here, only that it warns."""
        self._line(1, "queue.cpp:512", "kernel replay: HIP graph launches are not replayed; running it once")

    def sampling_not_offered(self) -> int:
        """Say that no GPU offers the asked method, unit and interval; returns the exit code."""
        text = "Given PC sampling configuration is not supported on any of the agents"
        self._line(2, "tool.cpp:1621", text)
        return 1

    def sampling_not_configured(self) -> None:
        """Say why an interval that is no power of two ends the process."""
        self._line(3, "tool.cpp:1612", "configure PC sampling failed with error code 7: Invalid argument")

    def over_capacity(self) -> None:
        """Say why an over-capacity counter set ends the process."""
        self._line(
            3,
            "tool.cpp:1192",
            "Could not construct profile cfg failed with error code 38: "
            "Request exceeds the capabilities of the hardware to collect",
        )

    def sqlite_failure(self, code: int, text: str) -> None:
        """Say why writing the database ends the process."""
        self._line(3, "common.cpp:117", f"SQLite3 error {code}: {text}")

    def decoder_failed(self, status: int) -> None:
        """Say that the trace decoder was found and could not be used; the raw trace stays."""
        self._line(3, "att_lib_wrapper.cpp:96", f"Error loading decoder: {status}")

    def data_lost(self) -> None:
        """Warn that the trace has gaps."""
        self._line(1, "att_lib_wrapper.cpp:141", "Data Lost: likely caused by bandwidth limitations")

    def caught_signal(self, pid: int, number: int) -> None:
        """Announce that results are written although the application dies."""
        handler = "rocprofv3_error_signal_handler"
        head = f"[PPID={os.getpid()}][PID={pid}][TID={pid}][{handler}]"
        self._line(1, "tool.cpp:2806", f"{head} rocprofv3 caught signal {number}...")
        self._line(1, "tool.cpp:2844", f"{head} rocprofv3 finalizing after signal {number}...")
