"""Sections with the source: the kernel alone, with what it uses, or the whole file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.prompt.model import Section
from rpl_llm_unroll.prompt.quoting import fenced, inline
from rpl_llm_unroll.prompt.source_context import context_of

if TYPE_CHECKING:
    from rpl_llm_unroll.asking.settings import Form
    from rpl_llm_unroll.reply.model import Target


def source_sections(target: Target, file: str, form: Form) -> tuple[Section, ...]:
    kernel = Section(
        "The kernel",
        f"{inline(target.kernel.name)}, {inline(file)}, line {target.kernel.line}:\n\n"
        + fenced(_unified(target.text), "cpp"),
    )
    if form == "compact":
        return (kernel,)
    if form == "full-source":
        whole = target.file.text.decode("utf-8", "replace")
        return (Section("The whole file (context only)", fenced(_unified(whole), "cpp")), kernel)
    context = context_of(target)
    if not context:
        return (kernel,)
    return (Section("What the kernel uses (context only)", fenced(_unified(context), "cpp")), kernel)


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n")
