"""What a reply is judged against, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_llm_unroll.syntax.kernels import KernelNode
    from rpl_llm_unroll.syntax.source_file import SourceFile
    from rpl_optimize.interfaces.transformation import Edit, GuardVerdict


@frozen(eq=False)
class Target:
    """The kernel of ``file`` that a reply may replace."""

    file: SourceFile
    kernel: KernelNode

    @property
    def text(self) -> str:
        """The kernel with its template head; bytes that are not UTF-8 are replaced."""
        return self.file.text[self.kernel.outer.start_byte : self.kernel.outer.end_byte].decode(
            "utf-8", "replace"
        )

    @property
    def head(self) -> str:
        """Everything before the body."""
        return self.file.text[self.kernel.outer.start_byte : self.kernel.body.start_byte].decode(
            "utf-8", "replace"
        )


@frozen
class Problem:
    """Why a reply is not used: one sentence that the model is told, without its own text in full."""

    reason: str


@frozen
class SoundReply:
    """``edit`` replaces exactly the kernel's bytes; ``digest`` is of the new kernel's tokens."""

    edit: Edit
    guards: tuple[GuardVerdict, ...]
    digest: str
