"""Which code objects an analysis may read, and the analyzer that reads the code of recorded kernels."""

from __future__ import annotations

from rpl_codeobject.kernel_code import KERNEL_CODE
from rpl_codeobject.options import CODE_OBJECT, RECORDED_CODE
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.trace import TraceRole


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
