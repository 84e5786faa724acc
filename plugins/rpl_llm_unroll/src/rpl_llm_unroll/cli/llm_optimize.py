"""``rpl llm-optimize``: the closed loop with a language model as proposer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand, declared, option, settled, takes
from rpl_core.cli.session import Session
from rpl_core.errors import UsageError
from rpl_core.values import frozen
from rpl_llm_unroll.settings import FORM, OPTIONS, LlmSettings
from rpl_optimize.cli.optimize_options import OptimizeSettings

if TYPE_CHECKING:
    from rpl_llm_unroll.settings import Form


# Options on the language model, and how they become options of the proposer.


@frozen
class FormOptions:
    """How much the prompt holds."""

    compact: bool = option(
        "--compact", is_flag=True, help="The shortest form: device, label, resources, kernel."
    )
    full_source: bool = option(
        "--full-source", is_flag=True, help="The whole source file instead of what is used."
    )

    def form(self) -> Form:
        """Raises ``UsageError`` for both at once."""
        if self.compact and self.full_source:
            raise UsageError(
                "--compact and --full-source exclude each other", next_step="leave one of them out"
            )
        if self.compact:
            return "compact"
        return "full-source" if self.full_source else "standard"


def split_flags(flags: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The flags of a language model, and all others."""
    own = {*declared(LlmSettings), *declared(FormOptions)}
    return {k: v for k, v in flags.items() if k in own}, {k: v for k, v in flags.items() if k not in own}


def proposer_options(session: Session, flags: Mapping[str, Any]) -> dict[str, str]:
    """Options for ``ProposalRequest``: flag, then configuration file; what is absent keeps its default."""
    view = session.host.relay.config
    options = {}
    for name, (field, one) in OPTIONS.items():
        value = flags[field]
        if value is None and one.setting is not None:
            value = view.get(one.setting)
        if value is not None and value is not False:
            options[name] = "true" if value is True else str(value)
    form = settled(FormOptions, session, flags).form()
    return options if form == "standard" else {**options, FORM: form}


# The closed loop with a language model as proposer.


@click.command(
    "llm-optimize",
    cls=PluginOptionsCommand,
    short_help="Let a language model rewrite kernels; accept what is proven.",
)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@takes(LlmSettings, FormOptions, OptimizeSettings)
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
    from rpl_llm_unroll.questions import require_ready
    from rpl_optimize.cli.optimize_command import run_optimize

    session = session_of(context)
    own, shared = split_flags(flags)
    options = proposer_options(session, own)
    if shared["resume"] is None:  # a resumed session has its options recorded
        require_ready(options, session.host.catalog.of, os.environ)
    return run_optimize(
        context, application, shared, proposer="llm", suffix="_llm_opt", proposer_options=options
    )
