"""What rpl-codeobject contributes: options that name code objects, and what they say of recorded kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.options import CommandOption

RPL_API = 2


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_codeobject.options import CODE_OBJECT, RECORDED_CODE

    return (CODE_OBJECT, RECORDED_CODE)


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_codeobject.code_sources import KernelCodeAnalyzer

    return (KernelCodeAnalyzer(),)
