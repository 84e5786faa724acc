"""What the commands of `rpl replay` share: their one document, the folder they are for, and options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand

if TYPE_CHECKING:
    from rpl_core.errors import RplError

DEFAULT_FOLDER = Path("isolate_capture")


class JsonCommand(click.Command):
    """With --json it prints ``failure(error)`` when it fails, be it for words that it does not know."""

    def __init__(self, *words: Any, failure: Callable[[RplError], dict[str, Any]], **attributes: Any) -> None:
        super().__init__(*words, **attributes)
        self._failure = failure

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from rpl_core.errors import UsageError

        as_json = "--json" in args
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if as_json:
                self._print(ctx, UsageError(error.format_message()))
            raise

    def invoke(self, ctx: click.Context) -> Any:
        from rpl_core.errors import RplError

        try:
            return super().invoke(ctx)
        except RplError as error:
            if ctx.params.get("as_json"):
                self._print(ctx, error)
            raise

    def _print(self, ctx: click.Context, error: RplError) -> None:
        from rpl_core.cli.session import session_of

        session_of(ctx).output.json(self._failure(error))


class JsonPluginOptionsCommand(JsonCommand, PluginOptionsCommand):
    """The same with the options that plugins declare for it."""


def replayer_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Where to run, by the name of a replayer or of the device that it replays on; ``text`` is its help."""
    return click.option("--replayer", "--device", default=None, metavar="NAME", help=text)


def timeout_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """How long a kernel may run; ``text`` says for what."""
    limit = click.FloatRange(0, min_open=True)
    return click.option(
        "--kernel-timeout", type=limit, default=60.0, metavar="S", help=f"{text} (default: 60)."
    )


def named_folder(argument: Path | None, option: Path | None) -> Path | None:
    """Raises UsageError when two different ones are named."""
    from rpl_core.errors import UsageError

    if argument is not None and option is not None and argument.absolute() != option.absolute():
        raise UsageError(
            f"CAPTURE is {argument} and --capture-dir is {option}", next_step="name one of them only"
        )
    return argument if argument is not None else option
