"""The exact rocprofv3 command line of a thread trace (reference: docs/reference/thread-trace.md, 4.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rpl_att.collector.settings import AttSettings
from rpl_core.values import frozen

DIRECTORY = "{directory}"
_SPECIAL = re.compile(r"([\\^$.|?*+()\[\]{}])")
_TARGET_OPTION = "--att-target-cu"
_MASK_OPTION = "--att-shader-engine-mask"


@frozen
class Target:
    """Where instructions are traced: one CU (WGP) number on every shader engine of the mask."""

    cu: int
    shader_engine_mask: int

    def __str__(self) -> str:
        return f"CU {self.cu}, shader engine mask {self.shader_engine_mask:#x}"


def trace_command(
    executable: Path,
    library_folder: Path,
    application: Sequence[str],
    kernel: str,
    iteration: int,
    settings: AttSettings,
    *,
    activity: bool,
) -> tuple[str, ...]:
    """One pass that traces launch ``iteration`` (from 1) of ``kernel``.

    The kernel trace beside it joins the trace to its dispatch; its times are not used. The decoder's folder
    is given as an option, since the variable is read wrongly by some releases.
    """
    target = Target(settings.target_cu, settings.shader_engine_mask)
    rate = ("--att-activity", str(settings.activity)) if activity and settings.activity else ()
    return (
        str(executable),
        "--att",
        "--att-library-path",
        str(library_folder),
        *_aim(target),
        "--att-buffer-size",
        f"{settings.buffer_bytes:#x}",
        *rate,
        "--kernel-include-regex",
        exactly(kernel),
        "--kernel-iteration-range",
        f"[{iteration}]",
        "--kernel-trace",
        "--output-format",
        "json",
        "-d",
        DIRECTORY,
        "-o",
        "att_%pid%",
        "--",
        *application,
    )


def exactly(name: str) -> str:
    """A regular expression, in the grammar of ECMAScript, that matches ``name`` alone."""
    escaped = _SPECIAL.sub(r"\\\1", name)
    return f"^{escaped}$"


def _aim(target: Target) -> tuple[str, ...]:
    return (_TARGET_OPTION, str(target.cu), _MASK_OPTION, f"{target.shader_engine_mask:#x}")


def target_of(command: Sequence[str]) -> Target:
    """The target in a planned command."""
    own = list(command)
    cu = own[own.index(_TARGET_OPTION) + 1]
    return Target(int(cu), int(own[own.index(_MASK_OPTION) + 1], 0))


def aimed_at(command: Sequence[str], target: Target) -> tuple[str, ...]:
    """The same command with another target."""
    own = list(command)
    own[own.index(_TARGET_OPTION) + 1] = str(target.cu)
    own[own.index(_MASK_OPTION) + 1] = f"{target.shader_engine_mask:#x}"
    return tuple(own)
