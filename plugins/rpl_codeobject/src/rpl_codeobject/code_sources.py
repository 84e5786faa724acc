"""Which code objects an analysis may read, and the analyzer that reads the code of recorded kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rpl_codeobject.kernel_code import KERNEL_CODE
from rpl_core.config import flag
from rpl_core.errors import MissingError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.interfaces.options import CommandOption, OptionForm
from rpl_core.model.trace import TraceRole

# Options that name code objects.

_COMMANDS = ("profile", "analyze")


def _code_object(value: Any) -> Path:
    path = Path(value)
    if not path.is_file():
        raise MissingError(f"no code object at {path}", next_step="check the path")
    return path


CODE_OBJECT: CommandOption[tuple[Path, ...]] = CommandOption(
    name="code-object",
    commands=_COMMANDS,
    parse=_code_object,
    default=(),
    help="Executable or code object of the kernels, for packed arithmetic; may be repeated.",
    form=OptionForm.REPEATED,
    metavar="FILE",
)
RECORDED_CODE: CommandOption[bool] = CommandOption(
    name="recorded-code",
    commands=_COMMANDS,
    parse=flag,
    default=False,
    help="Read the code objects beside the recording and those that it names on this machine.",
    form=OptionForm.FLAG,
)


class KernelCodeAnalyzer(Analyzer):
    """Fact ``KERNEL_CODE``. Reads nothing where no code object can be at hand."""

    name = "kernel-code"
    summary = "the instructions of recorded kernels, from code objects at hand"
    provides = frozenset({KERNEL_CODE})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        files, recorded = context.options[CODE_OBJECT], context.options[RECORDED_CODE]
        traced = any(trace.role is TraceRole.THREAD_TRACE for trace in context.recording.traces)
        if not (files or recorded or traced):
            return AnalysisOutcome({KERNEL_CODE: ()})
        from rpl_codeobject.at_hand import code_at_hand

        code = code_at_hand(files, recorded=recorded, recording=context.recording)
        return AnalysisOutcome({KERNEL_CODE: code.kernels}, code.diagnostics)
