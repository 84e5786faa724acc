"""Which code objects the analysis may read, and the facts that it gets from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.model.trace import TraceRole

if TYPE_CHECKING:
    from rpl_codeobject.kernel_code import KernelCode
    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.model.recording import Recording


@attrs.frozen
class CodeSources:
    """Files that the user named, and whether everything that the recording points to may be read too."""

    files: tuple[Path, ...] = ()
    recorded: bool = False


def kernel_code(
    sources: CodeSources, recording: Recording
) -> tuple[tuple[KernelCode, ...], tuple[Diagnostic, ...]]:
    """The fact ``"kernel_code"`` and findings about it; reads nothing where no code object can be at hand."""
    traced = any(trace.role is TraceRole.THREAD_TRACE for trace in recording.traces)
    if not (sources.files or sources.recorded or traced):
        return (), ()
    from rpl_codeobject.at_hand import code_at_hand

    found = code_at_hand(sources.files, recorded=sources.recorded, recording=recording)
    return found.kernels, found.diagnostics
