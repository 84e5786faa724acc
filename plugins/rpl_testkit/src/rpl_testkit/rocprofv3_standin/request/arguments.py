"""The command line of rocprofv3: split at `--`, parsed into plain keys, aggregates expanded.

Errors of the command line leave through argparse with exit code 2, as in reality.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from rpl_testkit.rocprofv3_standin.request import option_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_testkit.rocprofv3_standin.emulated_rocm import EmulatedRocm

__all__ = ["expand_aggregates", "parse_command_line", "split_counters"]

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
    switches = option_table.BOOLEAN_OPTIONS
    if release.repeatable_pmc:
        switches += option_table.LATER_BOOLEAN_OPTIONS
    if release.kernel_replay:
        switches += (("--kernel-replay-beta-enabled",),)
    for names in switches:
        parser.add_argument(*names, nargs="?", const=True, type=_truth, metavar="BOOL")
    for names, count in option_table.VALUE_OPTIONS:
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
        "sys_trace": option_table.SYS_TRACE,
        "runtime_trace": option_table.RUNTIME_TRACE,
        "hip_trace": ("hip_runtime_trace", "hip_compiler_trace"),
        "hsa_trace": ("hsa_core_trace", "hsa_amd_trace", "hsa_image_trace", "hsa_finalizer_trace"),
    }
    for name, members in groups.items():
        if options.get(name):
            wanted.update(members)
    for name, members in groups.items():
        if options.get(name) is False:
            wanted.difference_update(members)
    for name in option_table.TRACE_OPTIONS:
        if name in groups:
            continue
        if options.get(name):
            wanted.add(name)
        elif options.get(name) is False:
            wanted.discard(name)
    return wanted
