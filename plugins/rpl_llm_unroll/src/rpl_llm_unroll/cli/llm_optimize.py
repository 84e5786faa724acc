"""``rpl llm-optimize``: the closed loop with a language model as proposer."""

from __future__ import annotations

from typing import Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand
from rpl_llm_unroll.cli.llm_options import llm_options
from rpl_optimize.cli.optimize_options import optimize_options


@click.command(
    "llm-optimize",
    cls=PluginOptionsCommand,
    short_help="Let a language model rewrite kernels; accept what is proven.",
)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@llm_options
@optimize_options
@click.pass_context
def llm_optimize(context: click.Context, /, application: tuple[str, ...], **flags: Any) -> int:
    """Ask a language model for faster kernels: `rpl llm-optimize [SOURCE] "COMMAND" --model NAME`.

    As `rpl optimize`, with the proposer `llm`: each reply is checked as data, built, compared and measured.
    What is sent is said before; the key comes from OPENAI_API_KEY. Every exchange is recorded.

    \b
    rpl llm-optimize saxpy.hip "./saxpy 100" --model NAME --output-file out.bin:f32
    rpl llm-optimize saxpy.hip "./saxpy 100" --model NAME --replay-llm exchanges.jsonl
    """
    import os

    from rpl_core.cli.session import session_of
    from rpl_llm_unroll.asking.questions import require_ready
    from rpl_llm_unroll.cli.llm_options import proposer_options, split_flags
    from rpl_optimize.cli.optimize_command import run_optimize

    own, shared = split_flags(flags)
    options = proposer_options(session_of(context), own)
    if shared["resume"] is None:  # a resumed session has its options recorded
        require_ready(options, os.environ)
    return run_optimize(
        context, application, shared, proposer="llm", suffix="_llm_opt", proposer_options=options
    )
