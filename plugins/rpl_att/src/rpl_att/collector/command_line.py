"""The exact rocprofv3 command line of a thread trace, and what it and its decoder say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from rpl_att.settings import AttSettings
from rpl_core.errors import MissingError
from rpl_core.model.diagnostic import Diagnostic
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


# What rocprofv3 and its decoder say about a thread trace, and what to do about it.
#
# See docs/reference/thread-trace.md, 4.3.

_KEPT_CHARACTERS = 300


@frozen
class _Symptom:
    code: str
    pattern: re.Pattern[str]
    fact: str
    remedy: str


def _symptom(code: str, pattern: str, fact: str, remedy: str) -> _Symptom:
    return _Symptom(code, re.compile(pattern), fact, remedy)


_FEWER = "trace fewer shader engines (plugins.att.shader-engine-mask), or sample counters less often"
_SYMPTOMS = (
    _symptom(
        "att.buffer_full",
        r"Thread trace buffer full",
        "the trace buffer was full, so the trace ends early",
        "raise plugins.att.buffer-bytes, or trace fewer shader engines",
    ),
    _symptom("att.data_lost", r"Data Lost", "part of the trace was lost on its way to memory", _FEWER),
    _symptom(
        "att.stitch_incomplete",
        r"Stitch Incomplete",
        "some of the trace could not be matched to instructions",
        "treat figures of single lines as lower bounds",
    ),
    _symptom(
        "att.wave_incomplete",
        r"Wave incomplete",
        "the trace ends before some waves did",
        "treat lifetimes as lower bounds; raise plugins.att.buffer-bytes",
    ),
    _symptom(
        "att.code_missing",
        r"Could not fetch some instructions|code object.* was not loaded",
        "the decoder lacked some of the code",
        "treat the listing as incomplete",
    ),
    _symptom(
        "att.context_switched",
        r"Wave had \d+ context save",
        "waves were saved and restored while they were traced, so their latencies are too long",
        "run alone on the GPU",
    ),
)
_REFUSALS = (
    (
        r"rocprofv3[\w.-]*: error: unrecognized arguments:.*--att",
        "this rocprofv3 records no thread traces",
        "ROCm is older than 7.0",
        "use ROCm 7.0 or newer",
    ),
    (
        r"rocprof-trace-decoder library path not found",
        "rocprofv3 found no trace decoder",
        "the library is not in the folder that rpl found",
        "see `rpl doctor`",
    ),
    (
        r"Error loading decoder|Decoder library not found",
        "rocprofv3 could not load the trace decoder; the raw trace is kept",
        "the library is of another release",
        "install the decoder that belongs to this ROCm",
    ),
    (
        r"INVALID_SHADER_DATA|Callback failed with status|Agent not supported",
        "the trace of this GPU could not be decoded; the raw trace is kept",
        "the decoder does not know this GPU, or ROCm and the decoder do not match",
        "use the newest ROCm and decoder",
    ),
)
_COMPILED_REFUSALS = tuple((re.compile(refusal[0]), refusal[1:]) for refusal in _REFUSALS)


class AttLogWatch:
    """A line sink that notes symptoms and passes every line on."""

    def __init__(self, forward: Callable[[str], None]) -> None:
        self._forward = forward
        self._counts: dict[str, int] = {}
        self._refusal: tuple[str, str, str] | None = None

    def __call__(self, line: str) -> None:
        text = line[:_KEPT_CHARACTERS]
        for symptom in _SYMPTOMS:
            if symptom.pattern.search(text):
                self._counts[symptom.code] = self._counts.get(symptom.code, 0) + 1
        for pattern, refusal in _COMPILED_REFUSALS:
            if self._refusal is None and pattern.search(text):
                self._refusal = refusal
        self._forward(line)

    def refusal(self) -> MissingError | None:
        """Why the profiler gave no decoded trace, if it said so."""
        if self._refusal is None:
            return None
        fact, cause, remedy = self._refusal
        return MissingError(fact, cause=cause, next_step=remedy)

    def findings(self, where: str) -> tuple[Diagnostic, ...]:
        """One warning per kind of trouble, in a fixed order."""
        return tuple(
            Diagnostic(s.code, s.fact, remedy=s.remedy, where=where, count=self._counts[s.code])
            for s in _SYMPTOMS
            if s.code in self._counts
        )
